#include "runtime/many_devices.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "tensor/memory_pool.h"

namespace hone {

namespace {

double seconds_since(int64_t begin) { return static_cast<double>(steady_now() - begin) * 1e-9; }

// Copies bits between places that do not overlap. The other bits of a byte stay.
void copy_bits(const std::byte* from, int64_t from_bit, std::byte* to, int64_t to_bit,
               int64_t bits) {
  if (from_bit % 8 == 0 && to_bit % 8 == 0 && bits % 8 == 0) {
    std::memcpy(to + to_bit / 8, from + from_bit / 8, static_cast<size_t>(bits / 8));
    return;
  }
  for (int64_t i = 0; i < bits; ++i) {
    const int64_t f = from_bit + i, t = to_bit + i;
    const auto mask = std::byte{1} << (t % 8);
    const bool is_set = (from[f / 8] >> (f % 8) & std::byte{1}) != std::byte{0};
    to[t / 8] = is_set ? to[t / 8] | mask : to[t / 8] & ~mask;
  }
}

std::vector<image::Port> whole_ports(std::span<const DividedPort> divided) {
  std::vector<image::Port> ports;
  for (const DividedPort& one : divided) ports.push_back(one.port);
  return ports;
}

Type share_of(const DividedPort& port, int64_t rows, int64_t count) {
  if (port.dim < 0) return port.port.type;
  Dims dims(port.port.type.dims().begin(), port.port.type.dims().end());
  Dim& size = dims[static_cast<size_t>(port.dim)];
  size = size.value() / rows * count;
  return port.port.type.with_dims(dims);
}

Status check_share(std::span<const DividedPort> whole, std::span<const image::Port> ports,
                   int64_t rows, const DeviceShare& device) {
  if (ports.size() != whole.size())
    return fault("the code of {} has {} inputs or outputs, not {}", device.name, ports.size(),
                 whole.size());
  for (size_t i = 0; i < ports.size(); ++i)
    if (const Type wanted = share_of(whole[i], rows, device.count); ports[i].type != wanted)
      return fault("'{}' of {} is {}, not {}", whole[i].port.name, device.name,
                   ports[i].type.to_string(), wanted.to_string());
  return {};
}

}  // namespace

// ---- Making -------------------------------------------------------------------------------------

Result<std::shared_ptr<const ManyDevices>> ManyDevices::make(std::vector<DividedPort> inputs,
                                                             std::vector<DividedPort> outputs,
                                                             int64_t rows,
                                                             std::vector<DeviceShare> devices) {
  std::shared_ptr<ManyDevices> made(new ManyDevices());
  made->input_ports_ = whole_ports(inputs);
  made->output_ports_ = whole_ports(outputs);
  made->inputs_ = std::move(inputs);
  made->outputs_ = std::move(outputs);
  made->rows_ = rows;
  made->devices_ = std::move(devices);
  HONE_TRY(made->check());
  size_t bytes = 0;
  for (const image::Port& port : made->output_ports_)
    bytes += static_cast<size_t>(port.type.static_bytes());
  made->output_memory_ = std::make_shared<MemoryPool>(bytes);
  return std::shared_ptr<const ManyDevices>(std::move(made));
}

Status ManyDevices::check() const {
  if (devices_.empty()) return fault("there is no device");
  for (const auto* side : {&inputs_, &outputs_})
    for (const DividedPort& port : *side)
      if (port.dim >= port.port.type.rank() ||
          (port.dim >= 0 && (rows_ < 1 || port.port.type.dim(port.dim).value() % rows_ != 0)))
        return fault("'{}' is {}, which has no {} rows along dim {}", port.port.name,
                     port.port.type.to_string(), rows_, port.dim);
  int64_t first = 0;
  for (const DeviceShare& device : devices_) {
    if (device.first != first || device.count < 0)
      return fault("{} begins at row {}, not at {}", device.name, device.first, first);
    first += device.count;
    HONE_TRY(check_share(inputs_, device.code->inputs(), rows_, device));
    HONE_TRY(check_share(outputs_, device.code->outputs(), rows_, device));
  }
  if (first != rows_) return fault("the devices have {} of {} rows", first, rows_);
  return {};
}

ManyDevices::Rows ManyDevices::rows_of(const DividedPort& port, const DeviceShare& device) const {
  const Type type = port.port.type;
  const int64_t element = bits(type.dtype());
  if (port.dim < 0) return {.bits = type.static_elements() * element};
  Rows rows;
  int64_t inner = element;
  for (int dim = 0; dim < type.rank(); ++dim)
    (dim < port.dim ? rows.pieces : inner) *= type.dim(dim).value();
  rows.stride = inner;
  rows.begin = inner / rows_ * device.first;
  rows.bits = inner / rows_ * device.count;
  return rows;
}

// ---- Running ------------------------------------------------------------------------------------

// One device's part of a run.
class ManyDevices::Device {
 public:
  Device(const ManyDevices& all, const DeviceShare& share) : all_(all), share_(share) {}

  // Tensors that are not those of all devices: pieces of inputs, outputs to be joined.
  void prepare(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
               bool is_first);
  Status run(const RunOptions& options);
  // When all devices are done: outputs whose elements share bytes.
  void join_shared_bytes(std::span<std::byte* const> outputs);

  DeviceTimes times = {};
  int64_t end = 0;  // steady_now()

 private:
  struct Copy {
    Rows rows;
    const std::byte* from;
    std::byte* to;
  };
  // Between pieces in the whole and one piece; `is_join` writes the whole.
  static void copy(const Copy& one, bool is_join);
  std::byte* room(Type type);

  const ManyDevices& all_;
  const DeviceShare& share_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  std::vector<Tensor> own_;
  std::vector<Copy> gathered_, joined_;
  std::vector<std::pair<size_t, Copy>> shared_;
};

void ManyDevices::Device::copy(const Copy& one, bool is_join) {
  for (int64_t i = 0; i < one.rows.pieces; ++i) {
    const int64_t whole = one.rows.begin + i * one.rows.stride, part = i * one.rows.bits;
    copy_bits(one.from, is_join ? part : whole, one.to, is_join ? whole : part, one.rows.bits);
  }
}

std::byte* ManyDevices::Device::room(Type type) {
  own_.push_back(Tensor::zeros(type));
  return own_.back().mutable_bytes().data();
}

void ManyDevices::Device::prepare(std::span<const std::byte* const> inputs,
                                  std::span<std::byte* const> outputs, bool is_first) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Rows rows = all_.rows_of(all_.inputs_[i], share_);
    if (all_.inputs_[i].dim < 0 || rows.is_one_piece()) {
      inputs_.push_back(inputs[i] + rows.begin / 8);
      continue;
    }
    std::byte* const to = room(share_.code->inputs()[i].type);
    gathered_.push_back({rows, inputs[i], to});
    inputs_.push_back(to);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const bool is_whole = all_.outputs_[i].dim < 0;
    const Rows rows = all_.rows_of(all_.outputs_[i], share_);
    if (is_whole ? is_first : rows.is_one_piece()) {
      outputs_.push_back(outputs[i] + rows.begin / 8);
      continue;
    }
    std::byte* const from = room(share_.code->outputs()[i].type);
    outputs_.push_back(from);
    if (is_whole) continue;  // the first device gives it
    const Copy join{rows, from, outputs[i]};
    if ((rows.begin | rows.stride | rows.bits) % 8 == 0)
      joined_.push_back(join);
    else
      shared_.emplace_back(i, join);
  }
}

Status ManyDevices::Device::run(const RunOptions& options) {
  int64_t begin = steady_now();
  for (const Copy& one : gathered_) copy(one, false);
  times.moving += seconds_since(begin);
  begin = steady_now();
  Status ran = share_.code->run(inputs_, outputs_, options);
  times.computing += seconds_since(begin);
  if (!ran.ok()) return ran;
  begin = steady_now();
  for (const Copy& one : joined_) copy(one, true);
  times.moving += seconds_since(begin);
  end = steady_now();
  return {};
}

void ManyDevices::Device::join_shared_bytes(std::span<std::byte* const> outputs) {
  for (const auto& [output, one] : shared_) {
    HONE_CHECK(one.to == outputs[output], "an output has moved");
    copy(one, true);
  }
}

// All devices of a run, each on its thread.
class ManyDevices::Run {
 public:
  Run(const ManyDevices& all, const RunOptions& options)
      : user_(options.cancel), options_(options), shares_(all.devices_) {
    options_.cancel = &cancel_;
    for (const DeviceShare& share : shares_) devices_.emplace_back(all, share);
  }

  std::vector<Device>& devices() { return devices_; }
  Status execute();

 private:
  void work(size_t i);
  void end(size_t i, Status status);
  void wait();

  const CancelToken* user_;
  RunOptions options_;
  CancelToken cancel_;
  const std::span<const DeviceShare> shares_;
  std::vector<Device> devices_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable is_done_;
  size_t done_ = 0;
  std::optional<Error> error_;  // the first
};

void ManyDevices::Run::end(size_t i, Status status) {
  const std::scoped_lock lock(mutex_);
  if (!status.ok() && !error_) {
    Error error = std::move(status).error();
    const bool is_interruption = error.code() == ErrorCode::interrupted;
    error_ = is_interruption ? std::move(error)
                             : std::move(error).within(fmt::format("device '{}'", shares_[i].name));
    cancel_.cancel();
  }
  ++done_;
  is_done_.notify_one();
}

void ManyDevices::Run::work(size_t i) { end(i, devices_[i].run(options_)); }

// Until all are done; hands on that the user cancels.
void ManyDevices::Run::wait() {
  constexpr auto kLook = std::chrono::milliseconds(10);
  std::unique_lock lock(mutex_);
  const auto all_done = [&] { return done_ == devices_.size(); };
  if (user_ == nullptr) return is_done_.wait(lock, all_done);
  while (!is_done_.wait_for(lock, kLook, all_done))
    if (user_->cancelled()) cancel_.cancel();
}

Status ManyDevices::Run::execute() {
  if (user_ != nullptr) HONE_TRY(user_->check());
  std::vector<std::thread> threads;
  threads.reserve(devices_.size());
  for (size_t i = 0; i < devices_.size(); ++i) {
    try {
      threads.emplace_back([this, i] { work(i); });
    } catch (const std::system_error& error) {
      end(i, over_limit("the system gives no thread: {}", error.what()));
    }
  }
  wait();
  for (std::thread& thread : threads) thread.join();
  if (error_) return *std::move(error_);
  int64_t last = 0;
  for (const Device& device : devices_) last = std::max(last, device.end);
  for (Device& device : devices_)
    device.times.waiting += static_cast<double>(last - device.end) * 1e-9;
  return {};
}

Result<std::vector<Tensor>> ManyDevices::run(std::span<const Tensor> inputs,
                                             const RunOptions& options,
                                             std::vector<UnitTimes>* times) const {
  if (times != nullptr)
    return unsupported("the times of kernels are those of one device; there are {}",
                       devices_.size());
  return run(inputs, options, std::span<DeviceTimes>());
}

Result<std::vector<Tensor>> ManyDevices::run(std::span<const Tensor> inputs,
                                             const RunOptions& options,
                                             std::span<DeviceTimes> times) const {
  if (options.profile != nullptr || options.trace != nullptr)
    return unsupported("a profile and a trace are of one device; there are {}", devices_.size());
  if (inputs.size() != inputs_.size())
    return bad_input("{} inputs are given, but {} are needed", inputs.size(), inputs_.size());
  std::vector<const std::byte*> from;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].type() != inputs_[i].port.type)
      return bad_input("input '{}' is {}, but {} is needed", inputs_[i].port.name,
                       inputs[i].type().to_string(), inputs_[i].port.type.to_string());
    // Aligned for all element types.
    from.push_back(reinterpret_cast<const std::byte*>(inputs[i].as<uint64_t>().data()));
  }
  std::vector<Tensor> outputs;
  std::vector<std::byte*> to;
  for (const DividedPort& port : outputs_) {
    // Bytes that several devices share are written bit by bit, into zeros.
    outputs.push_back(bits(port.port.type.dtype()) < 8
                          ? Tensor::zeros(port.port.type)
                          : Tensor::uninitialized(port.port.type, output_memory_));
    to.push_back(outputs.back().mutable_bytes().data());
  }
  Run run(*this, options);
  for (Device& device : run.devices()) device.prepare(from, to, &device == run.devices().data());
  HONE_TRY(run.execute());
  for (size_t i = 0; i < devices_.size(); ++i) {
    run.devices()[i].join_shared_bytes(to);
    if (times.empty()) continue;
    const DeviceTimes& took = run.devices()[i].times;
    times[i].computing += took.computing;
    times[i].moving += took.moving;
    times[i].waiting += took.waiting;
  }
  return outputs;
}

}  // namespace hone

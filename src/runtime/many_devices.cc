#include "runtime/many_devices.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/cuda/cuda_executable.h"
#include "runtime/cuda/gpu_moves.h"
#include "runtime/device_runs.h"
#include "tensor/memory_pool.h"
#include "transport/threads.h"

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

Status check_share(std::span<const DividedPort> whole, std::span<const image::Port> ports,
                   int64_t rows, const DeviceShare& device) {
  if (ports.size() != whole.size())
    return fault("the code of {} has {} inputs or outputs, not {}", device.name, ports.size(),
                 whole.size());
  for (size_t i = 0; i < ports.size(); ++i)
    if (const Type wanted = share_of(whole[i].port.type, whole[i].dim, rows, device.count);
        ports[i].type != wanted)
      return fault("'{}' of {} is {}, not {}", whole[i].port.name, device.name,
                   ports[i].type.to_string(), wanted.to_string());
  return {};
}

}  // namespace

std::vector<DividedPort> divided_ports(std::span<const image::Port> ports,
                                       std::span<const int> dims) {
  std::vector<DividedPort> all;
  for (size_t i = 0; i < ports.size(); ++i) all.push_back({ports[i], dims[i]});
  return all;
}

std::string LoadDivided::name_of(size_t device) const {
  return device < names.size() ? names[device] : fmt::format("device {}", device);
}

namespace {

class CodeOnGpu final : public FarCode {
 public:
  explicit CodeOnGpu(std::shared_ptr<const CudaExecutable> code) : code_(std::move(code)) {}

  std::span<const image::Port> inputs() const override { return code_->inputs(); }
  std::span<const image::Port> outputs() const override { return code_->outputs(); }
  int64_t threads() const override { return code_->threads(); }
  std::shared_ptr<const CudaDevice> gpu() const override { return code_->device(); }
  Status run(std::span<const void* const> inputs, std::span<void* const> outputs,
             const RunOptions& options) const override {
    return code_->run_between(inputs, outputs, options);
  }

 private:
  const std::shared_ptr<const CudaExecutable> code_;
};

}  // namespace

Result<DeviceShare> load_here(size_t device, size_t devices, std::span<const Image> images,
                              size_t image, const LoadDivided& options) {
  DeviceShare made;
  made.name = options.name_of(device);
  if (image >= images.size()) return bad_input("a device has code {} of {}", image, images.size());
  const std::shared_ptr<const CudaDevice> gpu =
      device < options.gpus.size() ? options.gpus[device] : nullptr;
  const bool is_for_gpu = image < options.gpu_kernels.size() && !options.gpu_kernels[image].empty();
  if (is_for_gpu != (gpu != nullptr) && !images[image].kernels.empty())
    return bad_input("code {} is for a {}, and '{}' is a {}", image, is_for_gpu ? "GPU" : "CPU",
                     made.name, gpu != nullptr ? "GPU" : "CPU");
  if (gpu != nullptr) {
    std::vector<GpuKernel> kernels;
    if (is_for_gpu) kernels = options.gpu_kernels[image];
    made.far = std::make_shared<const CodeOnGpu>(
        HONE_TRY(CudaExecutable::load({images[image], std::move(kernels)}, gpu,
                                      {.cubins = options.cubins, .has_gpu_moves = true})));
    return made;
  }
  made.code = HONE_TRY(Executable::load(
      images[image], {.team = HONE_TRY(Team::create({.threads = options.threads})),
                      .machine = options.machine,
                      .memory_limit = options.memory_limit / static_cast<int64_t>(devices)}));
  return made;
}

Result<std::unique_ptr<Transport>> transport_of(std::span<const DeviceShare> devices) {
  std::vector<std::shared_ptr<const CudaDevice>> gpus;
  for (const DeviceShare& device : devices)
    if (auto gpu = device.far ? device.far->gpu() : nullptr) gpus.push_back(std::move(gpu));
  ExchangeOptions options;
  if (!gpus.empty()) options.move = moves_among(std::move(gpus));
  return make_thread_transport(static_cast<int32_t>(devices.size()), options);
}

// Runs at a time each have one. It is used again, unless the run failed.
struct ManyDevices::Meeting {
  std::unique_ptr<JobThreads> threads;
  std::unique_ptr<Transport> transport;
};

ManyDevices::ManyDevices() = default;
ManyDevices::~ManyDevices() = default;

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

Result<std::shared_ptr<const ManyDevices>> ManyDevices::load(const BatchDivision& division,
                                                             std::span<const image::Port> inputs,
                                                             std::span<const image::Port> outputs,
                                                             std::span<const Image> images,
                                                             const LoadDivided& options) {
  HONE_TRY(hone::check(division, inputs, outputs));
  HONE_TRY(check_meetings(images));
  const size_t count = std::max(division.shares.size(), options.names.size());
  std::vector<DeviceShare> devices;
  for (size_t i = 0; i < division.shares.size(); ++i) {
    const BatchDivision::Share& share = division.shares[i];
    devices.push_back(HONE_TRY(load_here(i, count, images, share.code, options)));
    devices.back().first = share.first;
    devices.back().count = share.count;
  }
  return make(divided_ports(inputs, division.inputs), divided_ports(outputs, division.outputs),
              division.rows, std::move(devices));
}

Result<std::unique_ptr<ManyDevices::Meeting>> ManyDevices::meeting() const {
  std::unique_ptr<Meeting> meeting;
  {
    const std::scoped_lock lock(mutex_);
    if (!idle_.empty()) {
      meeting = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (meeting == nullptr)
    meeting = std::make_unique<Meeting>(Meeting{
        HONE_TRY(JobThreads::make(devices_.size())), nullptr});
  if (meeting->transport == nullptr && devices_.size() > 1)
    meeting->transport = HONE_TRY(transport_of(devices_));
  return meeting;
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
    HONE_TRY(check_share(inputs_, device.inputs(), rows_, device));
    HONE_TRY(check_share(outputs_, device.outputs(), rows_, device));
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
    std::byte* const to = room(share_.inputs()[i].type);
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
    std::byte* const from = room(share_.outputs()[i].type);
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
  Status ran = share_.far ? share_.far->run(inputs_, outputs_, options)
                          : share_.code->run(inputs_, outputs_, options);
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
  explicit Run(const ManyDevices& all) : all_(all) {
    for (const DeviceShare& share : all.devices_) devices_.emplace_back(all, share);
  }

  std::vector<Device>& devices() { return devices_; }
  Status execute(const RunOptions& options);

 private:
  const ManyDevices& all_;
  std::vector<Device> devices_;
};

Status ManyDevices::Run::execute(const RunOptions& options) {
  std::unique_lock turn(all_.turn_, std::defer_lock);
  if (std::ranges::any_of(all_.devices_, [](const DeviceShare& one) { return one.far != nullptr; }))
    turn.lock();
  std::unique_ptr<Meeting> meeting = HONE_TRY(all_.meeting());
  Status ran = run_devices(all_.devices_, *meeting->threads, meeting->transport.get(), options,
                           [&](size_t i, const RunOptions& own) { return devices_[i].run(own); });
  if (!ran.ok()) meeting->transport = nullptr;
  {
    const std::scoped_lock lock(all_.mutex_);
    all_.idle_.push_back(std::move(meeting));
  }
  HONE_TRY(std::move(ran));
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
  Run run(*this);
  for (Device& device : run.devices()) device.prepare(from, to, &device == run.devices().data());
  HONE_TRY(run.execute(options));
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

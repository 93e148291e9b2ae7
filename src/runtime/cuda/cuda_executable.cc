#include "runtime/cuda/cuda_executable.h"

#include <algorithm>
#include <numeric>
#include <thread>

#include "base/text.h"
#include "runtime/cuda/cuda_run.h"
#include "runtime/cuda/graph_conditions.h"
#include "runtime/cuda/host_kernels.h"
#include "runtime/script.h"
#include "transport/transport.h"

namespace hone {

namespace {

constexpr size_t kMostGraphs = 16;  // that are kept

}  // namespace

CudaExecutable::CudaExecutable() = default;

CudaExecutable::~CudaExecutable() {
  if (device_ == nullptr) return;
  const CudaEntry entered = device_->enter_to_give_back();
  const cuda::Functions& call = device_->call();
  for (const BoundGraph& graph : graphs_) (void)call.cuGraphExecDestroy(graph.run);
  for (cuda::Event event : events_)
    if (event != nullptr) (void)call.cuEventDestroy_v2(event);
  if (stream_ != nullptr) (void)call.cuStreamDestroy_v2(stream_);
}

// ---- Graphs -------------------------------------------------------------------------------------

Result<cuda::GraphRun> CudaExecutable::made_graph(const Addresses& bases) const {
  const CudaEntry entered = HONE_TRY(device_->enter());
  const cuda::Functions& call = device_->call();
  HONE_TRY(device_->check(call.cuStreamBeginCapture_v2(stream_, cuda::kCaptureOfThread),
                          "began a graph"));
  const Status recorded = Run(*this, RunOptions(), stream_, bases).record();
  cuda::Graph graph = nullptr;
  cuda::GraphRun made = nullptr;
  Status ended = device_->check(call.cuStreamEndCapture(stream_, &graph), "ended a graph");
  if (recorded.ok() && ended.ok())
    ended = device_->check(call.cuGraphInstantiateWithFlags(&made, graph, 0), "made a graph");
  if (graph != nullptr) (void)call.cuGraphDestroy(graph);
  HONE_TRY(recorded);
  HONE_TRY(ended);
  return made;
}

Result<cuda::GraphRun> CudaExecutable::graph_of(const Addresses& bases) const {
  const auto known = std::ranges::find(graphs_, bases, &BoundGraph::bases);
  if (known != graphs_.end()) {
    graphs_.splice(graphs_.begin(), graphs_, known);
    return graphs_.front().run;
  }
  Result<cuda::GraphRun> made = made_graph(bases);
  if (!made.ok() && conditions_ != nullptr && device_->answers().ok()) {
    is_one_graph_ = false;
    return cuda::GraphRun();
  }
  graphs_.push_front({bases, HONE_TRY(std::move(made))});
  if (graphs_.size() > kMostGraphs) {
    (void)device_->call().cuGraphExecDestroy(graphs_.back().run);
    graphs_.pop_back();
  }
  return graphs_.front().run;
}

// ---- Running -----------------------------------------------------------------------------------

int64_t CudaExecutable::threads() const { return device_->sms(); }

std::span<const std::optional<uint32_t>> CudaExecutable::donors() const { return script_->donors; }

int64_t CudaExecutable::device_bytes() const {
  return std::accumulate(constants_.begin(), constants_.end(), memory_->bytes(),
                         [](int64_t sum, const auto& one) { return sum + one->bytes(); });
}

Status CudaExecutable::check_inputs(std::span<const Tensor> inputs) const {
  const size_t needed = inputs_.size() - residents_.size();
  if (inputs.size() != needed)
    return bad_input("{} inputs are given, but {} are needed", inputs.size(), needed);
  const Tensor* given = inputs.data();
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (resident_of_[i]) continue;
    if (const Type type = (given++)->type(); type != inputs_[i].type)
      return bad_input("input '{}' is {}, but {} is needed", inputs_[i].name, type.to_string(),
                       inputs_[i].type.to_string());
  }
  return {};
}

Status CudaExecutable::check_resident(std::span<const CudaArray> resident) const {
  if (resident.size() != residents_.size())
    return bad_input("{} inputs on the GPU are given, but {} are needed", resident.size(),
                     residents_.size());
  for (size_t i = 0; i < resident.size(); ++i)
    if (const image::Port& port = inputs_[residents_[i]]; resident[i].type != port.type)
      return bad_input("input '{}' is {} on the GPU, but {} is needed", port.name,
                       resident[i].type.to_string(), port.type.to_string());
  return {};
}

Result<std::vector<Tensor>> CudaExecutable::run(std::span<const Tensor> inputs,
                                                const RunOptions& options,
                                                std::vector<UnitTimes>* times) const {
  if (times != nullptr) return run(inputs, timed(options, *times, 0, types_of(inputs)));
  return run_beside(inputs, {}, options);
}

Result<std::vector<Tensor>> CudaExecutable::run_beside(std::span<const Tensor> inputs,
                                                       std::span<const CudaArray> resident,
                                                       const RunOptions& options) const {
  HONE_TRY(check_inputs(inputs));
  HONE_TRY(check_resident(resident));
  if (options.profile != nullptr && options.profile->empty())
    for (const Script::Origin& origin : script_->origins)
      options.profile->push_back({.command = origin.command, .kernel = origin.kernel});
  Result<std::vector<Tensor>> outputs = run_once(inputs, bases_beside(resident), options);
  if (!outputs.ok()) return std::move(outputs).error().within(place_);
  return outputs;
}

CudaExecutable::Addresses CudaExecutable::bases_beside(std::span<const CudaArray> resident) const {
  Addresses bases = bases_;
  for (size_t port = 0; port < resident_of_.size(); ++port)
    if (const std::optional<size_t> of = resident_of_[port])
      bases[script_->first_port + port] = resident[*of].address;
  return bases;
}

Status CudaExecutable::run_on_device(std::span<const cuda::Address> inputs,
                                     std::span<const cuda::Address> outputs, cuda::Stream stream,
                                     const RunOptions& options) const {
  HONE_CHECK(
      inputs.size() == inputs_.size() && outputs.size() == outputs_.size() && residents_.empty(),
      "{} inputs and {} outputs of '{}'", inputs.size(), outputs.size(), place_);
  HONE_TRY(check_arrays(inputs, outputs));
  const std::scoped_lock lock(mutex_);
  const CudaEntry entered = HONE_TRY(device_->enter());
  Status good = run_in_place(inputs, outputs, stream, options);
  // Whatever was put into the stream uses memory of the caller.
  const Status ended = wait(stream, options);
  if (good.ok()) good = ended;
  return good.ok() ? Status() : Status(std::move(good).error().within(place_));
}

Status CudaExecutable::check_arrays(std::span<const cuda::Address> inputs,
                                    std::span<const cuda::Address> outputs) const {
  struct Range {
    uint64_t begin, end;
    bool is_output;
  };
  std::vector<Range> ranges;
  const auto add = [&](uint64_t begin, const image::Port& port, bool is_output) -> Status {
    const auto bytes = static_cast<uint64_t>(port.type.static_bytes());
    const char* const what = is_output ? "output" : "input";
    if (bytes == 0) return {};
    if (begin == 0) return bad_input("{} '{}' has the address 0", what, port.name);
    if (begin > UINT64_MAX - bytes)
      return bad_input("{} '{}' has no such address", what, port.name);
    ranges.push_back({begin, begin + bytes, is_output});
    return {};
  };
  std::vector<bool> is_given_up(inputs.size());  // the output stands for it
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (const auto donor = donors()[i]; donor && inputs[*donor] == outputs[i])
      is_given_up[*donor] = true;
    HONE_TRY(add(outputs[i], outputs_[i], true));
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!is_given_up[i]) HONE_TRY(add(inputs[i], inputs_[i], false));
  std::ranges::sort(ranges, {}, &Range::begin);
  uint64_t end = 0, end_of_outputs = 0;
  for (const Range& one : ranges) {
    if (one.begin < (one.is_output ? end : end_of_outputs))
      return bad_input("an output overlaps another array");
    end = std::max(end, one.end);
    if (one.is_output) end_of_outputs = std::max(end_of_outputs, one.end);
  }
  return {};
}

Status CudaExecutable::run_in_place(std::span<const cuda::Address> inputs,
                                    std::span<const cuda::Address> outputs, cuda::Stream stream,
                                    const RunOptions& options) const {
  const cuda::Functions& call = device_->call();
  const auto is_aligned = [](cuda::Address address) {
    return address % CudaMemory::kAlignment == 0;
  };
  Addresses bases = bases_;
  cuda::Address* base = bases.data() + script_->first_port;
  for (size_t i = 0; i < inputs.size(); ++i, ++base) {
    const int64_t bytes = inputs_[i].type.static_bytes();
    if (bytes == 0) continue;
    if (is_aligned(inputs[i]))
      *base = inputs[i];
    else
      HONE_TRY(device_->check(
          call.cuMemcpyDtoDAsync_v2(*base, inputs[i], static_cast<size_t>(bytes), stream),
          fmt::format("copied input '{}' on it", excerpt(inputs_[i].name))));
  }
  const cuda::Address* const own = bases_.data() + script_->first_port + inputs.size();
  for (size_t i = 0; i < outputs.size(); ++i, ++base)
    if (is_aligned(outputs[i]) && outputs_[i].type.static_bytes() > 0) *base = outputs[i];
  const bool is_again = std::exchange(last_bases_, bases) == bases;
  HONE_TRY(is_again ? start(bases, stream, options) : Run(*this, options, stream, bases).execute());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int64_t bytes = outputs_[i].type.static_bytes();
    if (is_aligned(outputs[i]) || bytes == 0) continue;
    HONE_TRY(device_->check(
        call.cuMemcpyDtoDAsync_v2(outputs[i], own[i], static_cast<size_t>(bytes), stream),
        fmt::format("copied output '{}' on it", excerpt(outputs_[i].name))));
  }
  return {};
}

Status CudaExecutable::run_between(std::span<const void* const> inputs,
                                   std::span<void* const> outputs,
                                   const RunOptions& options) const {
  HONE_CHECK(
      inputs.size() == inputs_.size() && outputs.size() == outputs_.size() && residents_.empty(),
      "{} inputs and {} outputs of '{}'", inputs.size(), outputs.size(), place_);
  Status good = copied_run(inputs, outputs, bases_, options);
  return good.ok() ? Status() : Status(std::move(good).error().within(place_));
}

Result<std::vector<Tensor>> CudaExecutable::run_once(std::span<const Tensor> inputs,
                                                     const Addresses& bases,
                                                     const RunOptions& options) const {
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (!resident_of_[inputs_.size() + i])
      outputs.push_back(Tensor::uninitialized(outputs_[i].type, output_memory_));
  std::vector<const void*> from;
  std::vector<void*> to;
  for (const Tensor& input : inputs) from.push_back(input.bytes().data());
  for (Tensor& output : outputs) to.push_back(output.mutable_bytes().data());
  HONE_TRY(copied_run(from, to, bases, options));
  return outputs;
}

// Inputs and outputs are those that are not resident.
Status CudaExecutable::copied_run(std::span<const void* const> inputs,
                                  std::span<void* const> outputs, const Addresses& bases,
                                  const RunOptions& options) const {
  HONE_TRY(check_place(*script_, options.place));
  const std::scoped_lock lock(mutex_);
  if (options.cancel != nullptr) HONE_TRY(options.cancel->check());
  const CudaEntry entered = HONE_TRY(device_->enter());
  const Status good = start_and_wait(inputs, outputs, bases, options);
  // Copies that are under way would outlive the memory.
  if (!good.ok()) (void)device_->call().cuStreamSynchronize(stream_);
  // The other devices must not wait for this one.
  if (!good.ok() && options.place.transport != nullptr)
    options.place.transport->cancel(good.error());
  HONE_TRY(good);
  // Equal tensors have equal bytes, so the unused bits of the last byte become 0.
  void* const* output = outputs.data();
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (resident_of_[inputs_.size() + i]) continue;
    auto* const bytes = static_cast<std::byte*>(*output++);
    const Type type = outputs_[i].type;
    if (type.static_bytes() > 0) bytes[type.static_bytes() - 1] &= type.bits_of_last_byte();
  }
  return {};
}

Status CudaExecutable::start_and_wait(std::span<const void* const> inputs,
                                      std::span<void* const> outputs, const Addresses& bases,
                                      const RunOptions& options) const {
  const cuda::Functions& call = device_->call();
  const cuda::Address* base = bases.data() + script_->first_port;
  const void* const* input = inputs.data();
  for (size_t i = 0; i < inputs_.size(); ++i, ++base) {
    if (resident_of_[i]) continue;
    const void* const from = *input++;
    if (const auto bytes = static_cast<size_t>(inputs_[i].type.static_bytes()); bytes > 0)
      HONE_TRY(device_->check(call.cuMemcpyHtoDAsync_v2(*base, from, bytes, stream_),
                              fmt::format("copied input '{}' to it", excerpt(inputs_[i].name))));
  }
  has_inputs_ = true;
  HONE_TRY(start(bases, stream_, options));
  // The driver may wait in a copy to memory of the machine, where nothing could end a loop.
  if (conditions_ != nullptr) HONE_TRY(wait(stream_, options));
  void* const* output = outputs.data();
  for (size_t i = 0; i < outputs_.size(); ++i, ++base) {
    if (resident_of_[inputs_.size() + i]) continue;
    void* const to = *output++;
    if (const auto bytes = static_cast<size_t>(outputs_[i].type.static_bytes()); bytes > 0)
      HONE_TRY(
          device_->check(call.cuMemcpyDtoHAsync_v2(to, *base, bytes, stream_),
                         fmt::format("copied output '{}' from it", excerpt(outputs_[i].name))));
  }
  return device_->check(call.cuStreamSynchronize(stream_), "waited for a run");
}

Status CudaExecutable::start(const Addresses& bases, cuda::Stream stream,
                             const RunOptions& options) const {
  cuda::GraphRun graph = nullptr;
  if (is_one_graph_ && options.profile == nullptr) graph = HONE_TRY(graph_of(bases));
  if (graph == nullptr) return Run(*this, options, stream, bases).execute();
  return device_->check(device_->call().cuGraphLaunch(graph, stream), "launched a graph");
}

// Loops that the GPU decides about end, if the run is cancelled.
Status CudaExecutable::wait(cuda::Stream stream, const RunOptions& options) const {
  const cuda::Functions& call = device_->call();
  constexpr std::string_view kWaited = "waited for a run";
  if (conditions_ == nullptr || options.cancel == nullptr)
    return device_->check(call.cuStreamSynchronize(stream), kWaited);
  for (;;) {
    const cuda::Code code = call.cuStreamQuery(stream);
    if (code != cuda::kNotReady) return device_->check(code, kWaited);
    if (options.cancel->cancelled()) {
      HONE_TRY(conditions_->end_loops(stream));
      return options.cancel->check();
    }
    std::this_thread::yield();
  }
}

// ---- Times -------------------------------------------------------------------------------------

// The work comes to the stream; waits for its end.
Result<double> CudaExecutable::seconds_of(const std::function<Status()>& work, cuda::Stream stream,
                                          std::string_view what) const {
  const cuda::Functions& call = device_->call();
  HONE_TRY(device_->check(call.cuEventRecord(events_[0], stream), "began to time"));
  HONE_TRY(work());
  HONE_TRY(device_->check(call.cuEventRecord(events_[1], stream), "ended a timing"));
  HONE_TRY(device_->check(call.cuEventSynchronize(events_[1]), what));
  float milliseconds = 0;
  HONE_TRY(device_->check(call.cuEventElapsedTime(&milliseconds, events_[0], events_[1]),
                          "read a time"));
  return 1e-3 * static_cast<double>(milliseconds);
}

Result<double> CudaExecutable::seconds(int64_t runs,
                                       const std::function<Status(cuda::Stream)>& before) const {
  const std::scoped_lock lock(mutex_);
  HONE_CHECK(has_inputs_ && residents_.empty() && runs >= 1, "{} runs of '{}' without inputs", runs,
             place_);
  const CudaEntry entered = HONE_TRY(device_->enter());
  const auto work = [&]() -> Status {
    for (int64_t i = 0; i < runs; ++i) HONE_TRY(start(bases_, stream_, {}));
    return {};
  };
  const Status begun = before ? before(stream_) : Status();
  const Result<double> all =
      begun.ok() ? seconds_of(work, stream_, "timed runs") : Result<double>(begun.error());
  if (!all.ok()) (void)device_->call().cuStreamSynchronize(stream_);
  if (!all.ok()) return Error(all.error()).within(place_);
  return *all / static_cast<double>(runs);
}

}  // namespace hone

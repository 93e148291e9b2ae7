#include "runtime/cuda/cuda_run.h"

#include <algorithm>

#include "base/text.h"
#include "runtime/cuda/graph_conditions.h"
#include "runtime/cuda/host_kernels.h"

namespace hone {

namespace {

using InstructionKind = Script::Instruction::Kind;

bool is_written(image::Place::Region region) {
  return region == image::Place::Region::arena || region == image::Place::Region::output;
}

}  // namespace

bool CudaExecutable::Run::is_exchange(InstructionKind kind) {
  using enum Script::Instruction::Kind;
  return kind == start || kind == send || kind == receive || kind == wait || kind == device_index;
}

Status CudaExecutable::Run::execute() {
  if (is_recorded_ || script_.collectives.empty()) return go(0, script_.instructions.size());
  of_.collectives_.enter(options_.place);
  Status good = go(0, script_.instructions.size());
  if (!good.ok()) of_.collectives_.give_up(good.error());
  return good;
}

Status CudaExecutable::Run::record() {
  is_recorded_ = true;
  return execute();
}

Status CudaExecutable::Run::go(size_t begin, size_t end) {
  for (size_t next = begin; next < end;) {
    if (options_.cancel != nullptr) HONE_TRY(options_.cancel->check());
    const Instruction& now = script_.instructions[next++];
    const bool is_timed = options_.profile != nullptr && now.origin != Script::kNoOrigin;
    HONE_TRY(is_timed ? timed(now) : work(now));
    switch (now.kind) {
      case InstructionKind::jump: next = now.target; break;
      case InstructionKind::jump_if_zero:
        if (is_recorded_)
          next = HONE_TRY(record_condition(next - 1));
        else if (HONE_TRY(byte_at(now.pointer)) == std::byte{0})
          next = now.target;
        break;
      case InstructionKind::enter: trips_[now.first] = now.count; break;
      case InstructionKind::next:
        if (trips_[now.first] != now.count) {
          trips_[now.first] += now.step;
          next = now.target;
        }
        break;
      default: break;
    }
    if (!is_recorded_ && !of_.collectives_.is_idle()) HONE_TRY(of_.collectives_.poll());
  }
  return {};
}

// Returns where it goes on.
Result<size_t> CudaExecutable::Run::record_condition(size_t at) {
  const ScriptCondition condition = condition_at(script_, at);
  const cuda::Address byte = address(script_.instructions[at].pointer);
  const auto block = [this](std::initializer_list<ScriptCondition::Range> ranges) {
    return [this, ranges = std::vector(ranges)](cuda::Stream stream) -> Status {
      const cuda::Stream outer = std::exchange(stream_, stream);
      const bool was_in_block = std::exchange(is_in_block_, true);
      is_behind_kernel_ = false;
      Status good;
      for (const ScriptCondition::Range& one : ranges)
        if (good.ok()) good = go(one.begin, one.end);
      stream_ = outer;
      is_in_block_ = was_in_block;
      is_behind_kernel_ = false;
      return good;
    };
  };
  const auto& [is_loop, test, then, otherwise, end] = condition;
  if (is_loop)
    HONE_TRY(of_.conditions_->loop(stream_, byte, block({then, test})));
  else
    HONE_TRY(of_.conditions_->branch(
        stream_, byte, block({then}),
        otherwise.begin == otherwise.end ? GraphConditions::Record() : block({otherwise})));
  return end;
}

Status CudaExecutable::Run::work(const Instruction& now) {
  if (now.kind == InstructionKind::launch) return launch(now);
  if (now.kind == InstructionKind::copy) return copy(now);
  return is_exchange(now.kind) ? exchange(now) : Status();
}

Status CudaExecutable::Run::exchange(const Instruction& now) {
  is_behind_kernel_ = false;
  if (now.kind == InstructionKind::device_index) {
    const auto device = static_cast<int64_t>(options_.place.device);
    return write(address(now.pointer), &device, sizeof device);
  }
  const Script::Collective& one = script_.collectives[now.first];
  if (one.message && of_.has_gpu_moves_) return exchange_directly(now, one);
  Exchanged& own = of_.exchanged_[now.first];
  const auto from_bytes = static_cast<size_t>(one.from_bytes),
             to_bytes = static_cast<size_t>(one.to_bytes);
  const std::span<const std::byte> from(own.from.data(), from_bytes);
  const std::span<std::byte> to(own.to.data(), to_bytes);
  if (now.kind == InstructionKind::wait) {
    HONE_TRY(of_.collectives_.wait(&one, options_.cancel));
    return write(own.written, own.to.data(), to_bytes);
  }
  const bool is_start = now.kind == InstructionKind::start;
  if (now.kind != InstructionKind::receive)
    HONE_TRY(read(own.from.data(), address(now.pointer), from_bytes));
  own.written = address(is_start ? now.pointer + 1 : now.pointer);
  if (is_start)
    return of_.collectives_.start(&one, one.collective, one.dtype, from, to, one.result);
  if (now.kind == InstructionKind::send)
    return of_.collectives_.send(&one, *one.message, from, one.result);
  return of_.collectives_.receive(&one, *one.message, to, one.result);
}

// Whoever comes second moves the bytes, in a stream of its own. So what this stream does to them
// has to be done.
Status CudaExecutable::Run::exchange_directly(const Instruction& now,
                                              const Script::Collective& one) {
  if (now.kind == InstructionKind::wait) return of_.collectives_.wait(&one, options_.cancel);
  HONE_TRY(waited(cuda::kGood, "waited for what devices exchange"));
  auto* const at = reinterpret_cast<std::byte*>(address(now.pointer));
  if (now.kind == InstructionKind::send)
    return of_.collectives_.send(&one, *one.message, {at, static_cast<size_t>(one.from_bytes)},
                                 one.result);
  return of_.collectives_.receive(&one, *one.message, {at, static_cast<size_t>(one.to_bytes)},
                                  one.result);
}

// These wait: a copy must not outlive memory of the machine.
Status CudaExecutable::Run::read(void* to, cuda::Address from, size_t bytes) {
  if (bytes == 0) return {};
  return waited(call_.cuMemcpyDtoHAsync_v2(to, from, bytes, stream_),
                "copied what devices exchange");
}

Status CudaExecutable::Run::write(cuda::Address to, const void* from, size_t bytes) {
  if (bytes == 0) return {};
  return waited(call_.cuMemcpyHtoDAsync_v2(to, from, bytes, stream_),
                "copied what devices have exchanged");
}

Status CudaExecutable::Run::waited(cuda::Code begun, std::string_view what) {
  const cuda::Code ended = call_.cuStreamSynchronize(stream_);
  // A copy that is under way would outlive what it writes to.
  if (ended != cuda::kGood) (void)call_.cuStreamSynchronize(stream_);
  HONE_TRY(of_.device_->check(begun, what));
  return of_.device_->check(ended, what);
}

// Waits for its end.
Status CudaExecutable::Run::timed(const Instruction& now) {
  const SpanClock clock;
  const double seconds = HONE_TRY(of_.seconds_of([&] { return work(now); }, stream_, what(now)));
  CommandTime& entry = (*options_.profile)[now.origin];
  entry.least = entry.runs++ == 0 ? seconds : std::min(entry.least, seconds);
  entry.seconds += seconds;
  if (options_.trace != nullptr) options_.trace->add(now.origin, clock.span());
  return {};
}

std::string CudaExecutable::Run::what(const Instruction& now) const {
  const Script::Origin& origin = script_.origins[now.origin];
  return origin.kernel.empty() ? fmt::format("copied '{}'", excerpt(origin.command))
                               : fmt::format("ran kernel '{}'", excerpt(origin.kernel));
}

cuda::Address CudaExecutable::Run::address(uint32_t i) const {
  const Script::Pointer& pointer = script_.pointers[i];
  int64_t offset = pointer.offset;
  for (uint32_t s = pointer.first_step; s < pointer.last_step; ++s)
    offset += script_.steps[s].stride * trips_[script_.steps[s].loop];
  return bases_[pointer.base] + static_cast<uint64_t>(offset);
}

Status CudaExecutable::Run::launch(const Instruction& now) {
  const auto count = now.last - now.first;
  if (count > 0 && of_.phases_[now.first].function == nullptr) return launch_on_cpu(now);
  words_.clear();
  for (uint32_t i = 0; i < now.pointers; ++i) words_.push_back(address(now.pointer + i));
  for (uint32_t i = now.symbols; i < now.last_symbol; ++i)
    words_.push_back(static_cast<uint64_t>(script_.symbols[i]));
  words_.push_back(of_.scratch_);
  for (uint32_t i = now.first; i < now.last; ++i) {
    if (script_.phases[i].trips == 0) continue;
    const Phase& phase = of_.phases_[i];
    HONE_TRY(set_parameters(phase.phase, static_cast<uint64_t>(script_.phases[i].trips)));
    cuda::LaunchAttribute early = {.id = cuda::kMayBeginEarly, .truth = 1};
    // NVIDIA's manual does not list such edges among what blocks of conditions may have.
    const bool begins_early = is_behind_kernel_ && phase.waits && !is_in_block_;
    const cuda::LaunchConfig config = {
        .grid = {phase.grid.blocks, 1, 1},
        .block = {phase.grid.threads, 1, 1},
        .shared_bytes = static_cast<unsigned>(phase.phase.shared_bytes),
        .stream = stream_,
        .attributes = &early,
        .attribute_count = begins_early ? 1U : 0U};
    HONE_TRY(of_.device_->check(
        call_.cuLaunchKernelEx(&config, phase.function, parameters_.data(), nullptr), what(now)));
    is_behind_kernel_ = true;
  }
  return {};
}

// Maps are of the addresses of this launch, which the driver copies with it.
Status CudaExecutable::Run::set_parameters(const GpuPhase& phase, uint64_t trips) {
  parameters_.clear();
  for (uint64_t& word : words_) parameters_.push_back(&word);
  maps_.clear();
  for (const GpuMap& map : phase.maps)
    maps_.push_back(
        HONE_TRY(map_parameter(*of_.device_, map, words_[static_cast<size_t>(map.buffer)])));
  for (MapParameter& map : maps_) parameters_.push_back(&map);
  trips_of_launch_ = {0, trips};
  for (uint64_t& trip : trips_of_launch_) parameters_.push_back(&trip);
  return {};
}

Status CudaExecutable::Run::launch_on_cpu(const Instruction& now) {
  is_behind_kernel_ = false;
  std::vector<CudaHostKernels::Buffer> buffers;
  for (uint32_t i = now.pointer; i < now.pointer + now.pointers; ++i) {
    const Script::Pointer& pointer = script_.pointers[i];
    buffers.push_back({address(i), pointer.bytes, is_written(script_.bases[pointer.base].region)});
  }
  return of_.host_->run(*of_.device_, stream_,
                        std::span(script_.phases).subspan(now.first, now.last - now.first), buffers,
                        script_.symbols.data() + now.symbols);
}

Status CudaExecutable::Run::copy(const Instruction& now) {
  const cuda::Address from = address(now.pointer), to = address(now.pointer + 1);
  if (now.count == 0 || from == to) return {};
  is_behind_kernel_ = false;
  return of_.device_->check(
      call_.cuMemcpyDtoDAsync_v2(to, from, static_cast<size_t>(now.count), stream_), what(now));
}

Result<std::byte> CudaExecutable::Run::byte_at(uint32_t pointer) {
  is_behind_kernel_ = false;
  std::byte value{};
  HONE_TRY(
      waited(call_.cuMemcpyDtoHAsync_v2(&value, address(pointer), 1, stream_), "read a condition"));
  return value;
}

}  // namespace hone

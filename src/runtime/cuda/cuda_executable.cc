#include "runtime/cuda/cuda_executable.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <thread>

#include "base/checked_math.h"
#include "base/text.h"
#include "runtime/cuda/gpu_map.h"
#include "runtime/cuda/graph_conditions.h"
#include "runtime/cuda/host_kernels.h"
#include "runtime/script.h"
#include "target/gpu.h"
#include "transport/transport.h"

namespace hone {

namespace {

using Instruction = Script::Instruction;
using InstructionKind = Instruction::Kind;

constexpr int64_t kMaxBlocks = INT32_MAX;
constexpr size_t kMostGraphs = 16;  // that are kept

bool is_written(image::Place::Region region) {
  return region == image::Place::Region::arena || region == image::Place::Region::output;
}

// True if data decides what runs.
bool has_conditions(const Script& script) {
  return std::ranges::any_of(script.instructions, [](const Instruction& one) {
    return one.kind == InstructionKind::jump_if_zero;
  });
}

// True if it differs from device to device.
bool is_exchange(InstructionKind kind) {
  using enum Instruction::Kind;
  return kind == start || kind == send || kind == receive || kind == wait || kind == device_index;
}

}  // namespace

// ---- Runs --------------------------------------------------------------------------------------

// Goes through the script's instructions once. Work of the GPU comes to the stream. `bases` are
// addresses of Script::bases.
class CudaExecutable::Run {
 public:
  Run(const CudaExecutable& of, const RunOptions& options, cuda::Stream stream,
      std::span<const cuda::Address> bases)
      : of_(of),
        stream_(stream),
        bases_(bases),
        script_(*of.script_),
        call_(of.device_->call()),
        options_(options),
        trips_(script_.loops) {}

  Status execute() {
    if (is_recorded_ || script_.collectives.empty()) return go(0, script_.instructions.size());
    of_.collectives_.enter(options_.place);
    Status good = go(0, script_.instructions.size());
    if (!good.ok()) of_.collectives_.give_up(good.error());
    return good;
  }
  // While the stream is captured: the work becomes a graph, in which the GPU decides.
  Status record() {
    is_recorded_ = true;
    return execute();
  }

 private:
  Status go(size_t begin, size_t end) {
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
  Result<size_t> record_condition(size_t at) {
    const ScriptCondition condition = condition_at(script_, at);
    const cuda::Address byte = address(script_.instructions[at].pointer);
    const auto block = [this](std::initializer_list<ScriptCondition::Range> ranges) {
      return [this, ranges = std::vector(ranges)](cuda::Stream stream) -> Status {
        const cuda::Stream outer = std::exchange(stream_, stream);
        is_behind_kernel_ = false;
        Status good;
        for (const ScriptCondition::Range& one : ranges)
          if (good.ok()) good = go(one.begin, one.end);
        stream_ = outer;
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

  Status work(const Instruction& now) {
    if (now.kind == InstructionKind::launch) return launch(now);
    if (now.kind == InstructionKind::copy) return copy(now);
    return is_exchange(now.kind) ? exchange(now) : Status();
  }

  Status exchange(const Instruction& now) {
    is_behind_kernel_ = false;
    if (now.kind == InstructionKind::device_index) {
      const auto device = static_cast<int64_t>(options_.place.device);
      return write(address(now.pointer), &device, sizeof device);
    }
    const Script::Collective& one = script_.collectives[now.first];
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

  // These wait: a copy must not outlive memory of the machine.
  Status read(void* to, cuda::Address from, size_t bytes) {
    if (bytes == 0) return {};
    return waited(call_.cuMemcpyDtoHAsync_v2(to, from, bytes, stream_),
                  "copied what devices exchange");
  }
  Status write(cuda::Address to, const void* from, size_t bytes) {
    if (bytes == 0) return {};
    return waited(call_.cuMemcpyHtoDAsync_v2(to, from, bytes, stream_),
                  "copied what devices have exchanged");
  }
  Status waited(cuda::Code begun, std::string_view what) {
    const cuda::Code ended = call_.cuStreamSynchronize(stream_);
    HONE_TRY(of_.device_->check(begun, what));
    return of_.device_->check(ended, what);
  }

  // Waits for its end.
  Status timed(const Instruction& now) {
    const SpanClock clock;
    const double seconds = HONE_TRY(of_.seconds_of([&] { return work(now); }, stream_, what(now)));
    CommandTime& entry = (*options_.profile)[now.origin];
    entry.least = entry.runs++ == 0 ? seconds : std::min(entry.least, seconds);
    entry.seconds += seconds;
    if (options_.trace != nullptr) options_.trace->add(now.origin, clock.span());
    return {};
  }

  std::string what(const Instruction& now) const {
    const Script::Origin& origin = script_.origins[now.origin];
    return origin.kernel.empty() ? fmt::format("copied '{}'", excerpt(origin.command))
                                 : fmt::format("ran kernel '{}'", excerpt(origin.kernel));
  }

  cuda::Address address(uint32_t i) const {
    const Script::Pointer& pointer = script_.pointers[i];
    int64_t offset = pointer.offset;
    for (uint32_t s = pointer.first_step; s < pointer.last_step; ++s)
      offset += script_.steps[s].stride * trips_[script_.steps[s].loop];
    return bases_[pointer.base] + static_cast<uint64_t>(offset);
  }

  Status launch(const Instruction& now) {
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
      const bool begins_early = is_behind_kernel_ && phase.waits;
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
  Status set_parameters(const GpuPhase& phase, uint64_t trips) {
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

  Status launch_on_cpu(const Instruction& now) {
    is_behind_kernel_ = false;
    std::vector<CudaHostKernels::Buffer> buffers;
    for (uint32_t i = now.pointer; i < now.pointer + now.pointers; ++i) {
      const Script::Pointer& pointer = script_.pointers[i];
      buffers.push_back(
          {address(i), pointer.bytes, is_written(script_.bases[pointer.base].region)});
    }
    return of_.host_->run(*of_.device_, stream_,
                          std::span(script_.phases).subspan(now.first, now.last - now.first),
                          buffers, script_.symbols.data() + now.symbols);
  }

  Status copy(const Instruction& now) {
    const cuda::Address from = address(now.pointer), to = address(now.pointer + 1);
    if (now.count == 0 || from == to) return {};
    is_behind_kernel_ = false;
    return of_.device_->check(
        call_.cuMemcpyDtoDAsync_v2(to, from, static_cast<size_t>(now.count), stream_), what(now));
  }

  Result<std::byte> byte_at(uint32_t pointer) {
    is_behind_kernel_ = false;
    std::byte value{};
    HONE_TRY(waited(call_.cuMemcpyDtoHAsync_v2(&value, address(pointer), 1, stream_),
                    "read a condition"));
    return value;
  }

  const CudaExecutable& of_;
  cuda::Stream stream_;  // where work goes
  bool is_recorded_ = false;
  const std::span<const cuda::Address> bases_;
  const Script& script_;
  const cuda::Functions& call_;
  const RunOptions& options_;
  std::vector<int64_t> trips_;     // of each loop
  bool is_behind_kernel_ = false;  // the stream's last work of this run is one of the GPU
  // The parameters of a launch, and where they stand.
  std::vector<uint64_t> words_;  // addresses, symbols, scratch
  std::vector<MapParameter> maps_;
  std::array<uint64_t, 2> trips_of_launch_ = {};  // begin, end
  std::vector<void*> parameters_;
};

// ---- Loading -----------------------------------------------------------------------------------

// No more threads start than have trips, and scratch.
CudaExecutable::Grid CudaExecutable::grid_of(const GpuPhase& phase, int64_t trips) {
  const int64_t most = phase.scratch_bytes > 0 ? kMaxGpuScratch / phase.scratch_bytes : INT64_MAX;
  int64_t threads = phase.block_threads, blocks = trips;
  if (phase.trip_of == TripOf::thread) {
    threads = std::clamp<int64_t>(std::min(trips, most), 1, threads);
    blocks = ceil_div(trips, threads);
  }
  blocks = std::clamp<int64_t>(std::min(blocks, most / threads), 1, kMaxBlocks);
  int64_t working = threads * blocks;
  if (phase.trip_of == TripOf::thread) working = std::min(working, trips);
  return {static_cast<unsigned>(blocks), static_cast<unsigned>(threads),
          phase.scratch_bytes * working};
}

CudaExecutable::CudaExecutable() = default;

CudaExecutable::~CudaExecutable() {
  if (device_ == nullptr) return;
  device_->enter_to_give_back();
  const cuda::Functions& call = device_->call();
  for (const BoundGraph& graph : graphs_) (void)call.cuGraphExecDestroy(graph.run);
  for (cuda::Event event : events_)
    if (event != nullptr) (void)call.cuEventDestroy_v2(event);
  if (stream_ != nullptr) (void)call.cuStreamDestroy_v2(stream_);
}

Result<std::shared_ptr<const CudaExecutable>> CudaExecutable::load(
    const GpuImage& image, std::shared_ptr<const CudaDevice> device,
    const CudaLoadOptions& options) {
  std::shared_ptr<CudaExecutable> made(new CudaExecutable);
  made->place_ = fmt::format("image '{}' on cuda:{}", image.image.name, device->number());
  made->device_ = std::move(device);
  Status good = made->set_up(image, options);
  if (!good.ok()) return std::move(good).error().within(made->place_);
  return std::shared_ptr<const CudaExecutable>(std::move(made));
}

Status CudaExecutable::set_up(const GpuImage& image, const CudaLoadOptions& options) {
  HONE_TRY(check_kernels(image));
  script_ =
      std::make_unique<const Script>(
          HONE_TRY(resolve(image.image, default_imports(), Objects::of_some)));
  inputs_ = image.image.inputs;
  outputs_ = image.image.outputs;
  find_residents(options.resident);
  plan_launches(image);
  HONE_TRY(check_alignment());
  HONE_TRY(check_maps());
  const MemoryLayout layout = HONE_TRY(lay_out(image));
  HONE_TRY(load_code(image, options.cubins));
  HONE_TRY(allocate(image, layout));
  const bool needs_cpu =
      std::ranges::any_of(phases_, [](const Phase& one) { return one.function == nullptr; });
  if (needs_cpu) {
    const int64_t threads = image.image.threads;
    host_ = HONE_TRY(CudaHostKernels::make(*script_, threads, options.team));
  }
  for (const Script::Collective& one : script_->collectives)
    exchanged_.push_back({AlignedBytes(static_cast<size_t>(one.from_bytes), false),
                          AlignedBytes(static_cast<size_t>(one.to_bytes), false)});
  const cuda::Functions& call = device_->call();
  HONE_TRY(device_->check(call.cuStreamCreate(&stream_, cuda::kNotWithNull), "made a stream"));
  for (cuda::Event& event : events_)
    HONE_TRY(device_->check(call.cuEventCreate(&event, 0), "made an event"));
  size_t output_bytes = 0;
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (!resident_of_[inputs_.size() + i])
      output_bytes += static_cast<size_t>(outputs_[i].type.static_bytes());
  output_memory_ = std::make_shared<MemoryPool>(output_bytes);
  is_one_graph_ = fits_a_graph();
  if (is_one_graph_ && has_conditions(*script_)) {
    conditions_ = HONE_TRY(GraphConditions::make(device_));
  }
  if (is_one_graph_ && residents_.empty()) (void)HONE_TRY(graph_of(bases_));
  return {};
}

void CudaExecutable::find_residents(std::span<const uint32_t> resident) {
  residents_.assign(resident.begin(), resident.end());
  const bool is_rising =
      std::ranges::adjacent_find(residents_, std::greater_equal<>()) == residents_.end();
  HONE_CHECK(is_rising && (residents_.empty() || residents_.back() < inputs_.size()),
             "residents of '{}' are no inputs in order", place_);
  resident_of_.resize(inputs_.size() + outputs_.size());
  for (size_t i = 0; i < residents_.size(); ++i) resident_of_[residents_[i]] = i;
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (const std::optional<uint32_t> donor = script_->donors[i])
      resident_of_[inputs_.size() + i] = resident_of_[*donor];
}

Status CudaExecutable::check_kernels(const GpuImage& image) const {
  const std::vector<image::Kernel>& kernels = image.image.kernels;
  if (image.kernels.size() != kernels.size())
    return bad_input("{} kernels have code, but the image has {}", image.kernels.size(),
                     kernels.size());
  const int64_t most_shared = HONE_TRY(device_->attribute(cuda::kSharedOfBlock));
  for (size_t k = 0; k < kernels.size(); ++k) {
    const GpuKernel& code = image.kernels[k];
    const std::string place = fmt::format("kernel '{}'", kernels[k].name);
    if (kernels[k].object) continue;
    if (code.phases.size() != kernels[k].phases.size())
      return bad_input("its code has {} phases, not {}", code.phases.size(),
                       kernels[k].phases.size())
          .within(place);
    if (!runs_on(code, device_->capability()))
      return unsupported("it is for sm_{}{}, and the GPU '{}' is sm_{}", code.capability,
                         code.is_exact ? " alone" : "", device_->name(), device_->capability())
          .within(place);
    Status good = check_code(code);
    for (const GpuPhase& phase : code.phases)
      if (good.ok()) good = check_block(phase, most_shared);
    if (!good.ok()) return std::move(good).error().within(place);
  }
  return {};
}

void CudaExecutable::plan_launches(const GpuImage& image) {
  for (size_t k = 0; k < image.kernels.size(); ++k) {
    const image::Kernel& kernel = image.image.kernels[k];
    for (size_t p = 0; p < kernel.phases.size(); ++p) {
      Phase& made = phases_.emplace_back();
      if (kernel.object) continue;
      made.phase = image.kernels[k].phases[p];
      made.alignment = image.kernels[k].alignment;
      made.waits = device_->may_begin_early() && waits_for_kernels(image.kernels[k], made.phase);
      made.grid = grid_of(made.phase, kernel.phases[p].trips);
    }
  }
}

Status CudaExecutable::load_code(const GpuImage& image, const CubinStore& store) {
  std::map<std::string_view, size_t> known;  // texts
  std::vector<PtxText> texts;
  for (size_t k = 0; k < image.kernels.size(); ++k)
    if (!image.image.kernels[k].object &&
        known.try_emplace(image.kernels[k].ptx, texts.size()).second)
      texts.push_back({image.kernels[k].ptx, image.kernels[k].is_exact});
  for (const std::string& cubin : HONE_TRY(make_cubins(*device_, texts, store)))
    modules_.push_back(HONE_TRY(CudaModule::load(device_, cubin)));
  size_t next = 0;
  for (size_t k = 0; k < image.kernels.size(); ++k) {
    const image::Kernel& kernel = image.image.kernels[k];
    for (size_t p = 0; p < kernel.phases.size(); ++p) {
      Phase& made = phases_[next++];
      if (!kernel.object)
        made.function = HONE_TRY(modules_[known.at(image.kernels[k].ptx)]->function(
            made.phase.symbol, made.phase.shared_bytes));
    }
  }
  return {};
}

// Code that reads 16 bytes at once would lose the GPU for all who use it. Memory is aligned for it,
// so places in it decide.
Status CudaExecutable::check_alignment() const {
  for (const Instruction& one : script_->instructions) {
    if (one.kind != InstructionKind::launch || one.first == one.last) continue;
    const int64_t wanted = phases_[one.first].alignment;
    for (uint32_t i = 0; i < one.pointers; ++i) {
      const Script::Pointer& pointer = script_->pointers[one.pointer + i];
      int64_t place = pointer.offset;
      for (uint32_t s = pointer.first_step; s < pointer.last_step; ++s)
        place |= script_->steps[s].stride;
      if ((place & (wanted - 1)) != 0)
        return bad_input("buffer {} begins at byte {}, and the code wants a multiple of {}", i,
                         pointer.offset, wanted)
            .within(fmt::format("command '{}'", excerpt(script_->origins[one.origin].command)))
            .with_hint("'hone compile' makes code for it");
    }
  }
  return {};
}

// The driver makes maps of whatever it is told.
Status CudaExecutable::check_maps() const {
  const auto check = [&](const Instruction& one, const GpuMap& map) -> Status {
    HONE_TRY(check_map(map, one.pointers));
    const Script::Pointer& pointer =
        script_->pointers[one.pointer + static_cast<uint32_t>(map.buffer)];
    if (pointer.bytes == bytes_of(map)) return {};
    return bad_input("a map of buffer {} is of {} bytes, and the buffer has {}", map.buffer,
                     bytes_of(map), pointer.bytes);
  };
  for (const Instruction& one : script_->instructions) {
    if (one.kind != InstructionKind::launch) continue;
    for (uint32_t i = one.first; i < one.last; ++i)
      for (const GpuMap& map : phases_[i].phase.maps)
        if (Status good = check(one, map); !good.ok())
          return std::move(good).error().within(
              fmt::format("command '{}'", excerpt(script_->origins[one.origin].command)));
  }
  return {};
}

// An error, if the GPU has less free memory. The driver's compiler takes longer than to ask.
Result<CudaExecutable::MemoryLayout> CudaExecutable::lay_out(const GpuImage& image) const {
  MemoryLayout made;
  bool is_too_large = false;
  const auto place = [&](int64_t size) {
    const int64_t at = made.bytes;
    const std::optional<int64_t> rounded = checked_round_up(size, CudaMemory::kAlignment);
    const std::optional<int64_t> end = rounded ? checked_add(at, *rounded) : std::nullopt;
    is_too_large |= !end;
    made.bytes = end.value_or(at);
    return at;
  };
  for (size_t i = 0; i < script_->bases.size(); ++i)
    made.bases.push_back(is_elsewhere(i) ? 0 : place(script_->bases[i].bytes));
  int64_t scratch = 0;
  for (const Phase& one : phases_) scratch = std::max(scratch, one.grid.scratch_bytes);
  made.scratch = place(scratch);
  const int64_t constants = device_->missing_bytes(image.image.constants);
  const std::optional<int64_t> all = checked_add(made.bytes, constants);
  if (is_too_large || !all) return over_limit("its values take more bytes than 64 bits count");
  Status fits =
      device_->has_room(*all, fmt::format(", {} of them for constants", format_bytes(constants)));
  if (fits.ok()) return made;
  const int64_t free = HONE_TRY(device_->free_bytes());
  return std::move(fits).error().with_hint(
      fmt::format("{}; {}", what_would_fit(made.bytes, free - constants), kCpuRunsIt));
}

// True for what lies in memory of its own: constants, and arrays that callers keep on the GPU.
bool CudaExecutable::is_elsewhere(size_t base) const {
  const bool is_port = base >= script_->first_port;
  return script_->bases[base].region == image::Place::Region::constant ||
         (is_port && resident_of_[base - script_->first_port]);
}

// All but constants is in proportion to the batch, as far as one can tell from the inputs.
std::string CudaExecutable::what_would_fit(int64_t bytes, int64_t free) const {
  if (free <= 0) return "its constants alone do not fit";
  int64_t batch = 0;
  for (const image::Port& port : inputs_) {
    if (port.type.rank() == 0) continue;
    const int64_t rows = port.type.dim(0).value();
    if (batch != 0 && rows != batch) return "a smaller batch needs less";
    batch = rows;
  }
  const auto fits = static_cast<int64_t>(static_cast<double>(batch) * static_cast<double>(free) /
                                         static_cast<double>(bytes));
  if (fits < 1) return "a smaller batch needs less";
  return fmt::format("a batch of about {} would fit in place of {}", fits, batch);
}

Status CudaExecutable::allocate(const GpuImage& image, const MemoryLayout& layout) {
  memory_ = HONE_TRY(CudaMemory::make(device_, layout.bytes));
  scratch_ = memory_->address() + static_cast<uint64_t>(layout.scratch);
  for (size_t i = 0; i < script_->bases.size(); ++i) {
    const Script::Base& base = script_->bases[i];
    if (base.region == image::Place::Region::constant) {
      constants_.push_back(HONE_TRY(device_->resident(image.image.constants[base.index])));
      bases_.push_back(constants_.back()->address());
    } else {
      const cuda::Address own = memory_->address() + static_cast<uint64_t>(layout.bases[i]);
      bases_.push_back(is_elsewhere(i) ? 0 : own);
    }
  }
  return {};
}

// The CPU has nothing to decide and nothing to compute.
bool CudaExecutable::fits_a_graph() const {
  const auto exchanges = [](const Instruction& one) { return is_exchange(one.kind); };
  return host_ == nullptr && !script_->instructions.empty() &&
         std::ranges::none_of(script_->instructions, exchanges) &&
         unrolled_steps(*script_) <= kMostSteps &&
         (device_->driver().has_conditions() || !has_conditions(*script_));
}

Result<cuda::GraphRun> CudaExecutable::made_graph(const Addresses& bases) const {
  HONE_TRY(device_->enter());
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
  graphs_.push_front({bases, HONE_TRY(made_graph(bases))});
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

// The commands are for as many devices as there are.
Status CudaExecutable::check_place(const DevicePlace& place) const {
  HONE_TRY(hone::check(place));
  for (const Script::Collective& one : script_->collectives) {
    Status good = one.message ? hone::check(*one.message, place)
                              : check_devices(one.collective, devices_of(place));
    if (!good.ok()) return std::move(good).error().within(fmt::format("command '{}'", one.result));
  }
  return {};
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
  HONE_TRY(device_->enter());
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
  HONE_TRY(check_place(options.place));
  const std::scoped_lock lock(mutex_);
  if (options.cancel != nullptr) HONE_TRY(options.cancel->check());
  HONE_TRY(device_->enter());
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
  if (!is_one_graph_ || options.profile != nullptr)
    return Run(*this, options, stream, bases).execute();
  const cuda::GraphRun graph = HONE_TRY(graph_of(bases));
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
  HONE_TRY(device_->enter());
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

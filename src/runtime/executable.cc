#include "runtime/executable.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <functional>
#include <optional>
#include <utility>

#include "base/checked_math.h"
#include "base/memory_hint.h"
#include "base/planted.h"
#include "runtime/denormal_mode.h"
#include "runtime/memory.h"
#include "runtime/script.h"
#include "tensor/memory_pool.h"
#include "transport/open_collectives.h"
#include "transport/transport.h"

namespace hone {

namespace {

using Instruction = Script::Instruction;
using InstructionKind = Instruction::Kind;

constexpr int64_t kCopiedTogether = int64_t{256} << 10;  // bytes, by one thread

bool is_aligned(const void* address, int64_t alignment) {
  return reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(alignment) == 0;
}

int64_t element_alignment(DType type) { return std::max(1, bits(type) / 8); }

// The bytes, aligned to their elements; mapped files may have them anywhere.
const void* aligned_data(const Tensor& tensor) {
  switch (element_alignment(tensor.dtype())) {
    case 2: return tensor.as<uint16_t>().data();
    case 4: return tensor.as<uint32_t>().data();
    case 8: return tensor.as<uint64_t>().data();
    default: return tensor.bytes().data();
  }
}

Tensor aligned(const Tensor& constant) {
  const std::span<const std::byte> bytes = constant.bytes();
  return is_aligned(bytes.data(), kBufferAlignment) ? constant
                                                    : Tensor::copy_of(constant.type(), bytes);
}

template <class Pointers>
Status check(std::string_view sort, std::span<const image::Port> ports, const Pointers& pointers) {
  if (pointers.size() != ports.size()) {
    return bad_input("{} {}s are given, but {} are needed", pointers.size(), sort, ports.size());
  }
  for (size_t i = 0; i < ports.size(); ++i) {
    const Type type = ports[i].type;
    if (pointers[i] == nullptr && type.static_bytes() > 0) {
      return bad_input("{} '{}' has no memory", sort, ports[i].name);
    }
    const int64_t alignment = element_alignment(type.dtype());
    if (!is_aligned(pointers[i], alignment)) {
      return bad_input("{} '{}' is not aligned to the {} bytes of its elements", sort,
                       ports[i].name, alignment);
    }
  }
  return {};
}

double now(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Adds the time until its end to the entry, if there is one.
class Stopwatch {
 public:
  Stopwatch(CommandTime* entry, clockid_t clock) : entry_(entry), clock_(clock) {
    if (entry_ != nullptr) start_ = now(clock_);
  }
  Stopwatch(const Stopwatch&) = delete;
  ~Stopwatch() {
    if (entry_ == nullptr) return;
    const double seconds = now(clock_) - start_;
    entry_->least = entry_->runs++ == 0 ? seconds : std::min(entry_->least, seconds);
    entry_->seconds += seconds;
  }

 private:
  CommandTime* const entry_;
  const clockid_t clock_;
  double start_ = 0;
};

}  // namespace

// The memory of a port.
struct Executable::Extent {
  const std::byte* begin;
  const std::byte* end;
  bool is_output;
  uint32_t port;
};

// The state of one run: memory, and where everything is in it.
struct Executable::Frame {
  Memory memory;
  std::vector<std::byte*> bases;  // of Script::bases
  std::vector<void*> pointers;    // of Script::pointers
  std::vector<int64_t> trips;     // of each loop
  std::vector<Extent> extents;    // of the ports: room for check_overlaps()
  OpenCollectives collectives;

  void* address(const Script& script, const Script::Pointer& pointer) const {
    std::byte* base = bases[pointer.base];
    if (base == nullptr) return nullptr;  // of no bytes
    int64_t offset = pointer.offset;
    for (uint32_t i = pointer.first_step; i < pointer.last_step; ++i) {
      const image::Step& step = script.steps[i];
      offset += step.stride * trips[step.loop];
    }
    return base + offset;
  }
};

// The script goes through its instructions, in a frame.
class Executable::Run {
 public:
  Run(const Executable& of, Frame& frame, const RunOptions& options)
      : of_(of), script_(*of.script_), frame_(frame), options_(options) {}

  Status execute();

 private:
  Status execute_instructions();
  Status start(const Instruction& instruction) const;
  Status start_message(const Instruction& instruction) const;
  // Threads share large ones.
  void copy(const void* from, void* to, int64_t bytes) const;
  void launch(const Instruction& instruction) const;
  void launch_traced(const Instruction& instruction) const;
  // `around` is called for each thread's part of each phase, with what computes it.
  template <class Around>
  void run_phases(const Instruction& instruction, const Around& around) const;

  const Executable& of_;
  const Script& script_;
  Frame& frame_;
  const RunOptions& options_;
};

// A frame for the time of a run.
class Executable::Lease {
 public:
  static Result<Lease> take(const Executable& executable) {
    {
      std::lock_guard lock(executable.mutex_);
      if (!executable.free_.empty()) {
        Lease lease(executable, std::move(executable.free_.back()));
        executable.free_.pop_back();
        return lease;
      }
    }
    return Lease(executable, HONE_TRY(executable.make_frame()));
  }
  Lease(Lease&&) = default;
  ~Lease() {
    if (!frame_) return;
    std::lock_guard lock(executable_.mutex_);
    executable_.free_.push_back(std::move(frame_));  // make_frame() reserved its place
  }

  Frame& frame() { return *frame_; }

 private:
  Lease(const Executable& executable, std::unique_ptr<Frame> frame)
      : executable_(executable), frame_(std::move(frame)) {}

  const Executable& executable_;
  std::unique_ptr<Frame> frame_;
};

// ---- Loading -----------------------------------------------------------------------------------

Result<std::shared_ptr<const Executable>> Executable::load(const Image& image,
                                                           const LoadOptions& options) {
  std::shared_ptr<Executable> executable(new Executable);
  executable->place_ = fmt::format("image '{}'", image.name);
  Status status = executable->set_up(image, options);
  if (!status.ok()) return std::move(status).error().within(executable->place_);
  return std::shared_ptr<const Executable>(std::move(executable));
}

Status Executable::set_up(const Image& image, const LoadOptions& options) {
  const Instructions machine = options.machine ? *options.machine : HONE_TRY(host_instructions());
  for (const image::Kernel& kernel : image.kernels)
    HONE_TRY(check_has(machine, kernel.needs, fmt::format("kernel '{}'", kernel.name)));
  script_ = std::make_unique<const Script>(HONE_TRY(resolve(image, options.imports)));
  inputs_ = image.inputs;
  outputs_ = image.outputs;
  for (const Tensor& constant : image.constants) constants_.push_back(aligned(constant));
  for (uint32_t i = 0; i < script_->pointers.size(); ++i) {
    const Script::Pointer& pointer = script_->pointers[i];
    if (pointer.base >= script_->first_port && !pointer.moves()) bound_.push_back(i);
  }
  size_t output_bytes = 0;
  for (uint32_t i = 0; i < outputs_.size(); ++i) {
    const Type type = outputs_[i].type;
    output_bytes += static_cast<size_t>(type.static_bytes());
    if (type.static_elements() > 0 && type.bits_of_last_byte() != std::byte{0xff})
      partly_used_.push_back(i);
  }
  output_memory_ = std::make_shared<MemoryPool>(output_bytes);
  team_ = options.team;
  if (!team_) team_ = HONE_TRY(Team::create({.threads = image.threads}));
  threads_ = std::min(image.threads, team_->threads());
  flushes_denormals_ = image.flushes_denormals;
  memory_limit_ = options.memory_limit;
  return lay_out_frame();
}

Status Executable::lay_out_frame() {
  // Whole pages: threads write nothing on the same line, or on one that is fetched along with it.
  const int64_t arena_bytes = script_->bases[0].bytes;
  const std::optional<int64_t> arena = checked_round_up(arena_bytes, Memory::kPage);
  const std::optional<int64_t> scratch = checked_round_up(script_->scratch_bytes, Memory::kPage);
  std::optional<int64_t> all = scratch ? checked_mul(*scratch, threads_) : std::nullopt;
  if (all && arena) all = checked_add(*all, *arena);
  if (!all || !arena) {
    return over_limit("an arena of {} bytes with scratch of {} for each thread is too large",
                      arena_bytes, script_->scratch_bytes);
  }
  scratch_offset_ = *arena;
  scratch_stride_ = *scratch;
  frame_bytes_ = *all;
  return {};
}

Executable::Executable() = default;
Executable::~Executable() = default;

Result<std::unique_ptr<Executable::Frame>> Executable::make_frame() const {
  {
    std::lock_guard lock(mutex_);
    if (frame_bytes_ > 0 && frames_ >= memory_limit_ / frame_bytes_) {
      if (frames_ == 0)
        return over_limit("a run needs {} bytes for temporary values; the limit is {}",
                          frame_bytes_, memory_limit_)
            .with_hint(std::string(kMemoryHint));
      return over_limit("a run beside {} others needs {} bytes each; the limit is {} together",
                        frames_, frame_bytes_, memory_limit_)
          .with_hint(std::string(kMemoryHint));
    }
    free_.reserve(static_cast<size_t>(++frames_));
  }
  auto frame = std::make_unique<Frame>();
  Result<Memory> memory = Memory::map(frame_bytes_);
  if (!memory.ok()) {
    std::lock_guard lock(mutex_);
    --frames_;
    return std::move(memory).error();
  }
  frame->memory = *std::move(memory);
  frame->trips.resize(script_->loops);
  frame->bases.resize(script_->bases.size());
  frame->bases[0] = frame->memory.data();
  for (size_t i = 0; i < constants_.size(); ++i)  // kernels do not write to them
    frame->bases[1 + i] = const_cast<std::byte*>(constants_[i].bytes().data());
  frame->extents.reserve(inputs_.size() + outputs_.size());
  frame->pointers.resize(script_->pointers.size());
  for (size_t i = 0; i < script_->pointers.size(); ++i) {
    const Script::Pointer& pointer = script_->pointers[i];
    if (pointer.base < script_->first_port && !pointer.moves())
      frame->pointers[i] = frame->address(*script_, pointer);
  }
  return frame;
}

void Executable::give_up_frames() const {
  std::vector<std::unique_ptr<Frame>> idle;
  const std::lock_guard lock(mutex_);
  idle.swap(free_);
  frames_ -= std::ssize(idle);
  free_.reserve(static_cast<size_t>(frames_));  // for those of runs that go on
}

// ---- Running -----------------------------------------------------------------------------------

Status Executable::check_types(std::span<const Tensor> inputs) const {
  if (inputs.size() != inputs_.size()) {
    return bad_input("{} inputs are given, but {} are needed", inputs.size(), inputs_.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].type() != inputs_[i].type) {
      return bad_input("input '{}' is {}, but {} is needed", inputs_[i].name,
                       inputs[i].type().to_string(), inputs_[i].type.to_string());
    }
  }
  return {};
}

std::span<const std::optional<uint32_t>> Executable::donors() const { return script_->donors; }

Status check_image(const Image& image, std::span<const Import> imports) {
  HONE_TRY(resolve(image, imports));
  return {};
}

Result<std::vector<Tensor>> Executable::run(std::span<const Tensor> inputs,
                                            const RunOptions& options,
                                            std::vector<UnitTimes>* times) const {
  if (times != nullptr) return run(inputs, timed(options, *times, 0, types_of(inputs)));
  HONE_TRY(check_types(inputs));
  std::vector<const void*> from;
  for (const Tensor& input : inputs) from.push_back(aligned_data(input));
  return run_to_tensors(from, std::vector<Tensor>(outputs_.size()), options);
}

Result<std::vector<Tensor>> Executable::run_donating(std::vector<Tensor> inputs,
                                                     const RunOptions& options) const {
  HONE_TRY(check_types(inputs));
  std::vector<const void*> from;
  for (const Tensor& input : inputs) from.push_back(aligned_data(input));
  std::vector<Tensor> outputs(outputs_.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    if (const std::optional<uint32_t> donor = script_->donors[i];
        donor && inputs[*donor].is_writable())
      outputs[i] = std::move(inputs[*donor]);
  return run_to_tensors(from, std::move(outputs), options);
}

Result<std::vector<Tensor>> Executable::run_to_tensors(std::span<const void* const> inputs,
                                                       std::vector<Tensor> outputs,
                                                       const RunOptions& options) const {
  std::vector<void*> to;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i]) outputs[i] = Tensor::uninitialized(outputs_[i].type, output_memory_);
    to.push_back(outputs[i].mutable_bytes().data());
  }
  HONE_TRY(run(inputs, to, options));
  return outputs;
}

Status Executable::run(std::span<const void* const> inputs, std::span<void* const> outputs,
                       const RunOptions& options) const {
  Status good = run_here(inputs, outputs, options);
  // The other devices must not wait for this one.
  if (!good.ok() && options.place.transport != nullptr)
    options.place.transport->cancel(good.error());
  return good;
}

Status Executable::run_here(std::span<const void* const> inputs, std::span<void* const> outputs,
                            const RunOptions& options) const {
  HONE_TRY(check("input", inputs_, inputs));
  HONE_TRY(check("output", outputs_, outputs));
  if (Status good = check_place(*script_, options.place); !good.ok())
    return std::move(good).error().within(place_);
  if (options.profile != nullptr) HONE_TRY(prepare(*options.profile));
  Result<Lease> lease = Lease::take(*this);
  if (!lease.ok()) return std::move(lease).error().within(place_);
  Frame& frame = lease->frame();
  std::byte** base = frame.bases.data() + script_->first_port;
  for (const void* input : inputs) *base++ = static_cast<std::byte*>(const_cast<void*>(input));
  for (void* output : outputs) *base++ = static_cast<std::byte*>(output);
  if (Status good = check_overlaps(frame); !good.ok())
    return std::move(good).error().within(place_);
  for (uint32_t i : bound_) frame.pointers[i] = frame.address(*script_, script_->pointers[i]);
  HONE_TRY(Run(*this, frame, options).execute());
  // Equal tensors have equal bytes, so the unused bits of the last byte become 0.
  for (uint32_t i : partly_used_) {
    const Type type = outputs_[i].type;
    static_cast<std::byte*>(outputs[i])[type.static_bytes() - 1] &= type.bits_of_last_byte();
  }
  return {};
}

// Sorted by place: each must begin where what stands before ends, but inputs may overlap inputs.
Status Executable::check_overlaps(Frame& frame) const {
  std::byte* const* inputs = frame.bases.data() + script_->first_port;
  std::byte* const* outputs = inputs + inputs_.size();
  std::vector<Extent>& extents = frame.extents;
  extents.clear();
  for (uint32_t i = 0; i < inputs_.size(); ++i)
    extents.push_back({inputs[i], inputs[i] + inputs_[i].type.static_bytes(), false, i});
  for (uint32_t i = 0; i < outputs_.size(); ++i) {
    const std::optional<uint32_t> donor = script_->donors[i];
    const bool is_donated = donor && inputs[*donor] == outputs[i];
    if (is_donated) extents[*donor].end = extents[*donor].begin;  // the output stands for it
    extents.push_back({outputs[i], outputs[i] + outputs_[i].type.static_bytes(), true, i});
  }
  std::erase_if(extents, [](const Extent& extent) { return extent.begin == extent.end; });
  std::ranges::sort(extents, {}, &Extent::begin);
  const Extent* last[2] = {};  // of inputs and of outputs: that ends last
  for (const Extent& extent : extents) {
    for (const Extent* other : {last[1], extent.is_output ? last[0] : nullptr})
      if (other != nullptr && other->end > extent.begin) return overlap(extent, *other);
    const Extent*& same = last[extent.is_output ? 1 : 0];
    if (same == nullptr || same->end < extent.end) same = &extent;
  }
  return {};
}

Error Executable::overlap(const Extent& a, const Extent& b) const {
  const Extent& output = a.is_output ? a : b;
  const Extent& other = a.is_output ? b : a;
  Error error = bad_input("output '{}' overlaps {} '{}'", outputs_[output.port].name,
                          other.is_output ? "output" : "input",
                          (other.is_output ? outputs_ : inputs_)[other.port].name);
  const std::optional<uint32_t> donor = script_->donors[output.port];
  if (!donor) return error;
  return std::move(error).with_hint(fmt::format(
      "it may lie where input '{}' does, from its first byte on", inputs_[*donor].name));
}

Status Executable::prepare(Profile& profile) const {
  if (profile.empty()) {
    for (const Script::Origin& origin : script_->origins)
      profile.push_back({.command = origin.command, .kernel = origin.kernel});
  }
  if (profile.size() == script_->origins.size()) return {};
  return bad_input("the profile has {} commands, {} {}", profile.size(), place_,
                   script_->origins.size());
}

Status Executable::Run::execute() {
  frame_.collectives.enter(options_.place);
  Status good = execute_instructions();
  if (!good.ok()) frame_.collectives.give_up(good.error());
  return good;
}

Status Executable::Run::start(const Instruction& instruction) const {
  const Script::Collective& one = script_.collectives[instruction.first];
  void* const* const pointers = frame_.pointers.data() + instruction.pointer;
  return frame_.collectives.start(
      &one, one.collective, one.dtype,
      {static_cast<const std::byte*>(pointers[0]), static_cast<size_t>(one.from_bytes)},
      {static_cast<std::byte*>(pointers[1]), static_cast<size_t>(one.to_bytes)}, one.result);
}

Status Executable::Run::start_message(const Instruction& instruction) const {
  const Script::Collective& one = script_.collectives[instruction.first];
  auto* const bytes = static_cast<std::byte*>(frame_.pointers[instruction.pointer]);
  if (instruction.kind == InstructionKind::send)
    return frame_.collectives.send(&one, *one.message, {bytes, static_cast<size_t>(one.from_bytes)},
                                   one.result);
  return frame_.collectives.receive(&one, *one.message, {bytes, static_cast<size_t>(one.to_bytes)},
                                    one.result);
}

Status Executable::Run::execute_instructions() {
  const CancelToken* const cancel = options_.cancel;
  const clockid_t clock = of_.threads_ == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  void** const pointers = frame_.pointers.data();
  for (size_t next = 0; next < script_.instructions.size();) {
    if (cancel != nullptr && cancel->cancelled()) return cancel->check();
    const Instruction& now = script_.instructions[next++];
    const bool is_timed = options_.profile != nullptr && now.origin != Script::kNoOrigin;
    const Stopwatch watch(is_timed ? &(*options_.profile)[now.origin] : nullptr, clock);
    const bool is_traced = is_timed && options_.trace != nullptr;
    const int64_t begin = is_traced ? steady_now() : 0;
    if (now.moves) {
      for (uint32_t i = now.pointer; i < now.pointer + now.pointers; ++i)
        if (script_.pointers[i].moves()) pointers[i] = frame_.address(script_, script_.pointers[i]);
    }
    switch (now.kind) {
      case InstructionKind::launch: is_traced ? launch_traced(now) : launch(now); break;
      case InstructionKind::copy:
        copy(pointers[now.pointer], pointers[now.pointer + 1], now.count);
        break;
      case InstructionKind::jump: next = now.target; break;
      case InstructionKind::jump_if_zero:
        if (*static_cast<const std::byte*>(pointers[now.pointer]) == std::byte{0})
          next = now.target;
        break;
      case InstructionKind::start: HONE_TRY(start(now)); break;
      case InstructionKind::send:
      case InstructionKind::receive: HONE_TRY(start_message(now)); break;
      case InstructionKind::wait:
        HONE_TRY(frame_.collectives.wait(&script_.collectives[now.first], cancel));
        break;
      case InstructionKind::device_index: {
        const auto device = static_cast<int64_t>(options_.place.device);
        std::memcpy(pointers[now.pointer], &device, sizeof device);
        break;
      }
      case InstructionKind::enter: frame_.trips[now.first] = now.count; break;
      case InstructionKind::next:
        if (frame_.trips[now.first] != now.count) {
          frame_.trips[now.first] += now.step;
          next = now.target;
        }
        break;
    }
    if (!frame_.collectives.is_idle()) HONE_TRY(frame_.collectives.poll());
    if (is_traced) options_.trace->add(now.origin, {begin, steady_now(), this_thread()});
  }
  return {};
}

void Executable::Run::copy(const void* from, void* to, int64_t bytes) const {
  if (bytes <= 0 || from == to) return;
  const auto* const first = static_cast<const std::byte*>(from);
  auto* const second = static_cast<std::byte*>(to);
  const bool overlap = std::less<>()(first, second + bytes) && std::less<>()(second, first + bytes);
  if (of_.threads_ == 1 || bytes < 2 * kCopiedTogether || overlap) {
    std::memmove(second, first, static_cast<size_t>(bytes));
    return;
  }
  const auto part = [&](int64_t begin, int64_t end, int64_t) noexcept {
    const int64_t at = begin * kCopiedTogether;
    std::memcpy(second + at, first + at,
                static_cast<size_t>(std::min(end * kCopiedTogether, bytes) - at));
  };
  of_.team_->run(ceil_div(bytes, kCopiedTogether), of_.threads_, part);
}

template <class Around>
void Executable::Run::run_phases(const Instruction& instruction, const Around& around) const {
  const bool flush_denormals = options_.flush_denormals || of_.flushes_denormals_;
  void* const* buffers = frame_.pointers.data() + instruction.pointer;
  const int64_t* symbols = script_.symbols.data() + instruction.symbols;
  std::byte* scratch = frame_.memory.data() + of_.scratch_offset_;
  for (uint32_t i = instruction.first; i < instruction.last; ++i) {
    const Script::Phase& phase = script_.phases[i];
    const auto part = [&](int64_t begin, int64_t end, int64_t thread) noexcept {
      around(i - instruction.first, thread, [&]() noexcept {
        const DenormalMode mode(flush_denormals);
        phase.function(buffers, symbols, scratch + thread * of_.scratch_stride_, begin,
                       HONE_PLANT(thread_end, end, thread > 0 ? end - 1 : end));
      });
    };
    of_.team_->run(phase.trips, phase.is_parallel ? of_.threads_ : 1, part);
  }
}

void Executable::Run::launch(const Instruction& instruction) const {
  run_phases(instruction, [](uint32_t, int64_t, const auto& compute) noexcept { compute(); });
}

// The caller's parts lie in the entry of the whole launch, which execute() adds.
void Executable::Run::launch_traced(const Instruction& instruction) const {
  const auto threads = static_cast<size_t>(of_.threads_);
  std::vector<Span> parts((instruction.last - instruction.first) * threads);
  run_phases(instruction, [&](uint32_t phase, int64_t thread, const auto& compute) noexcept {
    const SpanClock clock;
    compute();
    parts[phase * threads + static_cast<size_t>(thread)] = clock.span();
  });
  for (const Span& part : parts)
    if (part.end != 0 && part.thread != this_thread())
      options_.trace->add(instruction.origin, part);
}

}  // namespace hone

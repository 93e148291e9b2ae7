#include "compile/gpu_kernels.h"

#include <algorithm>
#include <ranges>
#include <set>

#include "base/text.h"
#include "codegen/gpu/gpu_code.h"
#include "cost/gpu_cost.h"
#include "ir/op_def.h"
#include "program/frame.h"
#include "program/tiles/calling.h"
#include "program/tiles/serial.h"
#include "program/tiles/simt.h"

namespace hone {

namespace {

// None: the back end has no code for it, for this reason.
struct ForGpu {
  std::optional<GpuKernel> kernel;
  std::string reason;
};

// Which buffers of frames begin at a multiple of what an access takes at most. The callers of the
// main frame see to that, other frames have what they are given.
class Alignment {
  using Frame = program::Frame;
  using BufferId = program::BufferId;
  using Role = program::Role;

 public:
  explicit Alignment(const std::vector<program::FrameRef>& frames) {
    // In this order a frame comes before those that it runs.
    for (const program::FrameRef& frame : frames | std::views::reverse)
      for (const program::Command& command : frame->commands)
        std::visit([&](const auto& c) { run(*frame, c); }, command.kind);
  }

  bool has(const Frame& frame, BufferId id) const {
    const program::Buffer& buffer = frame.buffers[id];
    if (buffer.role == Role::view)
      return buffer.view.offset.divisible_by(kGpuBufferAlignment) && has(frame, buffer.view.of);
    return !lacking_.contains({&frame, id});
  }

 private:
  void run(const Frame& frame, const program::Call& c) {
    pass(frame, c.inputs, *c.frame, Role::input);
    pass(frame, c.outputs, *c.frame, Role::output);
  }
  void run(const Frame& frame, const program::Branch& c) {
    for (const Frame* taken : {c.on_true.get(), c.on_false.get()}) {
      pass(frame, c.inputs, *taken, Role::input);
      pass(frame, c.outputs, *taken, Role::output);
    }
  }
  void run(const Frame& frame, const program::Loop& c) {
    pass(frame, c.state, *c.test, Role::input);
    pass(frame, {c.condition}, *c.test, Role::output);
    pass(frame, c.state, *c.body, Role::input);
    pass(frame, program::next_of(program::changes_of(c)), *c.body, Role::output);
  }
  void run(const Frame& frame, const program::Scan& c) {
    const std::vector<BufferId> next = program::next_of(program::changes_of(c));
    pass(frame, c.state, *c.body, Role::input);
    pass(frame, next, *c.body, Role::output);
    pass(frame, c.xs, *c.body, Role::input, c.state.size());
    pass(frame, c.ys, *c.body, Role::output, next.size());
  }
  template <class C>
  void run(const Frame& /*frame*/, const C& /*runs_no_frame*/) {}

  // The first ports, or in a scan the ports of stacks: each has a step's part of its buffer.
  void pass(const Frame& from, const std::vector<BufferId>& buffers, const Frame& to, Role role,
            std::optional<size_t> first_of_steps = std::nullopt) {
    const std::vector<BufferId> ports = program::buffers_of(to, role);
    for (size_t i = 0; i < buffers.size(); ++i) {
      const BufferId port = ports[first_of_steps.value_or(0) + i];
      const bool are_whole =
          !first_of_steps || bytes_of(to.buffers[port].type).divisible_by(kGpuBufferAlignment);
      if (!are_whole || !has(from, buffers[i])) lacking_.insert({&to, port});
    }
  }

  std::set<std::pair<const Frame*, BufferId>> lacking_;
};

// For each kernel: true if all of its launches have such buffers.
std::vector<bool> kernels_with_aligned_buffers(const Program& program) {
  std::vector<bool> all(program.kernels.size(), true);
  const std::vector<program::FrameRef> frames = program::all_frames(program.main);
  const Alignment alignment(frames);
  for (const program::FrameRef& frame : frames)
    for (const program::Command& command : frame->commands) {
      const auto* launch = std::get_if<program::Launch>(&command.kind);
      if (launch == nullptr) continue;
      for (const std::vector<program::BufferId>* ids : {&launch->inputs, &launch->outputs})
        for (program::BufferId id : *ids)
          if (!alignment.has(*frame, id)) all[launch->kernel] = false;
    }
  return all;
}

bool is_constant(const program::Frame& frame, program::BufferId id) {
  const program::Buffer& buffer = frame.buffers[id];
  if (buffer.role == program::Role::view) return is_constant(frame, buffer.view.of);
  return buffer.role == program::Role::constant;
}

// For each kernel: its tiles, whose inputs are constant if all launches give them constants.
std::vector<TileProgram> with_constants(const Program& program) {
  std::vector<TileProgram> all;
  std::vector<bool> is_launched(program.kernels.size());
  for (const program::Kernel& kernel : program.kernels) all.push_back(kernel.tiles);
  for (const program::FrameRef& frame : program::all_frames(program.main))
    for (const program::Command& command : frame->commands) {
      const auto* launch = std::get_if<program::Launch>(&command.kind);
      if (launch == nullptr) continue;
      const bool is_first = !is_launched[launch->kernel];
      is_launched[launch->kernel] = true;
      for (size_t i = 0; i < launch->inputs.size(); ++i) {
        TileBuffer& buffer = all[launch->kernel].buffers[i];
        const bool may_be = buffer.role == BufferRole::input && (is_first || buffer.is_constant);
        buffer.is_constant = may_be && is_constant(*frame, launch->inputs[i]);
      }
    }
  return all;
}

// A kernel whose points have an order has few threads on a GPU, unless blocks share it. Why it is
// for the CPU, with copies of what it reads and writes, by prices; empty: it is not.
std::string why_slower_than_cpu(const program::Kernel& kernel, const Target& target,
                                const Target& cpu) {
  constexpr double kCopiesStart = 2e-5,
                   kCopied = 1.2e10;  // seconds; bytes per second of a PCIe bus
  if (kernel.body == nullptr || !kernel.schedule ||
      kernel.schedule->if_is<GenericFields>() == nullptr)
    return "";
  const Graph& graph = kernel.body->graph;
  if (class_of(graph.opcode(graph.producer(graph.outputs()[0]))) != OpClass::ordered) return "";
  double bytes = 0;
  const auto add = [&](std::span<const ValueId> values) {
    for (ValueId value : values)
      bytes += static_cast<double>(bytes_of(graph.type(value)).range().high);
  };
  add(graph.inputs());
  add(graph.outputs());
  const double here = analytic_cost(target)->launch(*kernel.body, *kernel.schedule, 1);
  const double there = analytic_cost(cpu)->launch(*kernel.body, *kernel.schedule, 1) +
                       kCopiesStart + bytes / kCopied;
  if (here <= there) return "";
  return fmt::format(
      "few threads of a GPU can share it, which would take {}; a thread of the CPU takes {} with "
      "copies",
      format_seconds(here), format_seconds(there));
}

Result<ForGpu> for_gpu(const program::Kernel& kernel, const TileProgram& tiles,
                       const Target& target, const Target& cpu, bool has_aligned_buffers) {
  if (std::string why = why_slower_than_cpu(kernel, target, cpu); !why.empty())
    return ForGpu{std::nullopt, std::move(why)};
  Result<GpuKernel> made =
      compile_for_gpu(tiles, target.gpu->capability, kGpuSymbol, has_aligned_buffers);
  if (made.ok()) return ForGpu{*std::move(made), ""};
  if (made.error().code() != ErrorCode::unsupported) return std::move(made).error();
  return ForGpu{std::nullopt, made.error().what()};
}

// A block of a GPU is one thread of a CPU.
TileProgram for_cpu(const TileProgram& tiles) {
  const bool has_blocks = std::ranges::any_of(
      tiles.phases, [](const auto& phase) { return phase.exec == Exec::blocks; });
  return has_blocks ? serial_form(simt_form(tiles)) : tiles;
}

}  // namespace

Result<GpuCode> compile_gpu_kernels(const Program& program, const Target& target, ThreadPool& pool,
                                    const KernelOptions& options) {
  const std::span<const program::Kernel> kernels = program.kernels;
  const std::vector<bool> are_aligned = kernels_with_aligned_buffers(program);
  const std::vector<TileProgram> tiles = with_constants(program);
  GpuCode made;
  made.code.resize(kernels.size());
  made.gpu.resize(kernels.size());
  made.on_cpu.resize(kernels.size());
  std::vector<Status> states(kernels.size());
  const Target cpu = HONE_TRY(host_target());
  const auto compile = [&](size_t i) -> Status {
    if (options.cancel != nullptr) HONE_TRY(options.cancel->check());
    const SpanClock clock;
    ForGpu one = HONE_TRY(for_gpu(kernels[i], tiles[i], target, cpu, are_aligned[i]));
    made.on_cpu[i] = std::move(one.reason);
    if (!one.kernel) return {};
    made.gpu[i] = *std::move(one.kernel);
    for (const GpuPhase& phase : made.gpu[i].phases) made.code[i].phases.push_back(phase.symbol);
    if (options.observer) options.observer(kernels[i].tiles.name, clock.span());
    return {};
  };
  pool.parallel_for(0, static_cast<int64_t>(kernels.size()), 1, [&](int64_t from, int64_t to) {
    for (auto i = static_cast<size_t>(from); i < static_cast<size_t>(to); ++i)
      states[i] = compile(i);
  });
  for (Status& state : states) HONE_TRY(std::move(state));
  std::vector<program::Kernel> rest;
  std::vector<size_t> places;
  for (size_t i = 0; i < kernels.size(); ++i)
    if (made.gpu[i].phases.empty() && !kernels[i].tiles.phases.empty()) {
      rest.push_back(kernels[i]);
      rest.back().tiles = for_cpu(kernels[i].tiles);
      places.push_back(i);
    }
  if (rest.empty()) return made;
  std::vector<KernelCode> objects = HONE_TRY(compile_kernels(rest, cpu, pool, options));
  for (size_t i = 0; i < places.size(); ++i) made.code[places[i]] = std::move(objects[i]);
  return made;
}

Program as_on_gpu(Program program, std::span<const GpuKernel> kernels) {
  for (size_t k = 0; k < kernels.size(); ++k) {
    TileProgram& tiles = program.kernels[k].tiles;
    tiles = kernels[k].phases.empty() ? for_cpu(tiles) : simt_form(tiles);
  }
  return program;
}

Result<Image> image_of(const Program& program, std::span<const GpuKernel> on_gpu,
                       const Bindings& sizes, std::span<const KernelCode> code) {
  return on_gpu.empty() ? instantiate(program, sizes, code)
                        : instantiate(as_on_gpu(program, on_gpu), sizes, code);
}

}  // namespace hone

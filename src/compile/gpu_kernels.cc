#include "compile/gpu_kernels.h"

#include "codegen/gpu/gpu_code.h"
#include "program/frame.h"
#include "program/tiles/simt.h"

namespace hone {

namespace {

// None: the back end has no code for it, for this reason.
struct ForGpu {
  std::optional<GpuKernel> kernel;
  std::string reason;
};

constexpr int64_t kWidestAccess = 16;  // bytes

// True if the memory of the buffer begins at a multiple of what an access takes at most. The main
// frame's callers see to it, those of other frames may pass parts.
bool is_aligned(const program::Frame& frame, bool is_main, program::BufferId id) {
  const program::Buffer& buffer = frame.buffers[id];
  switch (buffer.role) {
    case program::Role::temporary:
    case program::Role::constant: return true;
    case program::Role::input:
    case program::Role::output: return is_main;
    case program::Role::view:
      return buffer.view.offset.divisible_by(kWidestAccess) &&
             is_aligned(frame, is_main, buffer.view.of);
  }
  return false;
}

// For each kernel: true if all of its launches have such buffers.
std::vector<bool> kernels_with_aligned_buffers(const Program& program) {
  std::vector<bool> all(program.kernels.size(), true);
  for (const program::FrameRef& frame : program::all_frames(program.main))
    for (const program::Command& command : frame->commands) {
      const auto* launch = std::get_if<program::Launch>(&command.kind);
      if (launch == nullptr) continue;
      for (const std::vector<program::BufferId>* ids : {&launch->inputs, &launch->outputs})
        for (program::BufferId id : *ids)
          if (!is_aligned(*frame, frame == program.main, id)) all[launch->kernel] = false;
    }
  return all;
}

Result<ForGpu> for_gpu(const TileProgram& tiles, const Target& target, bool has_aligned_buffers) {
  Result<GpuKernel> made =
      compile_for_gpu(tiles, target.gpu->capability, kGpuSymbol, has_aligned_buffers);
  if (made.ok()) return ForGpu{*std::move(made), ""};
  if (made.error().code() != ErrorCode::unsupported) return std::move(made).error();
  return ForGpu{std::nullopt, made.error().what()};
}

}  // namespace

Result<GpuCode> compile_gpu_kernels(const Program& program, const Target& target, ThreadPool& pool,
                                    const KernelOptions& options) {
  const std::span<const program::Kernel> kernels = program.kernels;
  const std::vector<bool> are_aligned = kernels_with_aligned_buffers(program);
  GpuCode made;
  made.code.resize(kernels.size());
  made.gpu.resize(kernels.size());
  made.on_cpu.resize(kernels.size());
  std::vector<Status> states(kernels.size());
  const auto compile = [&](size_t i) -> Status {
    if (options.cancel != nullptr) HONE_TRY(options.cancel->check());
    const SpanClock clock;
    ForGpu one = HONE_TRY(for_gpu(kernels[i].tiles, target, are_aligned[i]));
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
      places.push_back(i);
    }
  if (rest.empty()) return made;
  std::vector<KernelCode> objects =
      HONE_TRY(compile_kernels(rest, HONE_TRY(host_target()), pool, options));
  for (size_t i = 0; i < places.size(); ++i) made.code[places[i]] = std::move(objects[i]);
  return made;
}

Program as_on_gpu(Program program, std::span<const GpuKernel> kernels) {
  for (size_t k = 0; k < kernels.size(); ++k)
    if (!kernels[k].phases.empty()) program.kernels[k].tiles = simt_form(program.kernels[k].tiles);
  return program;
}

CubinStore cubin_store(CompileCache* cache) {
  return cubin_store(std::shared_ptr<CompileCache>(std::shared_ptr<void>(), cache));
}

CubinStore cubin_store(std::shared_ptr<CompileCache> cache) {
  if (cache == nullptr) return {};
  // A cache that cannot be written to costs time, nothing else.
  return {.find = [cache](std::string_view key) { return cache->find(key); },
          .put = [cache](std::string_view key,
                         std::string_view cubin) { (void)cache->put(key, cubin).ok(); }};
}

}  // namespace hone

#include "compile/gpu_kernels.h"

#include "codegen/gpu/gpu_code.h"
#include "program/tiles/simt.h"

namespace hone {

namespace {

// None: the back end has no code for it, for this reason.
struct ForGpu {
  std::optional<GpuKernel> kernel;
  std::string reason;
};

Result<ForGpu> for_gpu(const TileProgram& tiles, const Target& target) {
  Result<GpuKernel> made = compile_for_gpu(tiles, target.gpu->capability, kGpuSymbol);
  if (made.ok()) return ForGpu{*std::move(made), ""};
  if (made.error().code() != ErrorCode::unsupported) return std::move(made).error();
  return ForGpu{std::nullopt, made.error().what()};
}

}  // namespace

Result<GpuCode> compile_gpu_kernels(std::span<const program::Kernel> kernels, const Target& target,
                                    ThreadPool& pool, const KernelOptions& options) {
  GpuCode made;
  made.code.resize(kernels.size());
  made.gpu.resize(kernels.size());
  made.on_cpu.resize(kernels.size());
  std::vector<Status> states(kernels.size());
  const auto compile = [&](size_t i) -> Status {
    if (options.cancel != nullptr) HONE_TRY(options.cancel->check());
    const SpanClock clock;
    ForGpu one = HONE_TRY(for_gpu(kernels[i].tiles, target));
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

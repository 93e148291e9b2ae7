#include "tests/fake_cuda/backing_testing.h"

#include <algorithm>

#include "codegen/gpu/gpu_code.h"
#include "compile/gpu_kernels.h"
#include "program/tiles/bind.h"
#include "program/tiles/calling.h"
#include "program/tiles/serial.h"
#include "program/tiles/simt.h"

namespace hone::tested {

Status GpuBacking::add(const FakeCuda& cuda, const Program& program, const Target& gpu,
                       int64_t works) {
  const GpuCode code = HONE_TRY(compile_gpu_kernels(program, gpu, default_pool(), {}));
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    if (!code.on_cpu[k].empty()) continue;  // no driver sees it
    HONE_TRY(add_code(cuda, code.gpu[k], program.kernels[k].tiles, {.works = works}));
  }
  return {};
}

Status GpuBacking::add(const FakeCuda& cuda, const TileProgram& shown, const TileProgram& run,
                       const Target& gpu, int64_t works, const fake::Fate& fate) {
  return add_code(cuda, HONE_TRY(compile_for_gpu(shown, gpu.gpu->capability, kGpuSymbol)), run,
                  {.works = works, .fate = fate});
}

Status GpuBacking::add_any(const FakeCuda& cuda, const TileProgram& run, int64_t works,
                           const fake::Fate& fate) {
  const TileProgram form = simt_form(run);
  GpuKernel any;
  any.phases.resize(1);
  any.phases[0].symbol = phase_symbols(form, kGpuSymbol).at(0);
  return add_code(
      cuda, any, run,
      {.works = works, .trips = trips_of(form.phases.at(0), form).value(), .fate = fate});
}

Status GpuBacking::add_code(const FakeCuda& cuda, const GpuKernel& shown, const TileProgram& run,
                            fake::Backing backing) {
  const TileProgram form = serial_form(simt_form(run));
  const std::string object = HONE_TRY(compile_like_gpu(run, HONE_TRY(host_target()), kGpuSymbol));
  objects_.push_back(
      HONE_TRY(ObjectCode::load(std::as_bytes(std::span(object.data(), object.size())))));
  const auto buffers = std::ranges::count_if(
      form.buffers, [](const TileBuffer& one) { return one.role != BufferRole::scratch; });
  for (const GpuPhase& phase : shown.phases) {
    const void* const function = objects_.back()->function(phase.symbol);
    if (function == nullptr) return check_failed("there is no function '{}'", phase.symbol);
    backing.function = reinterpret_cast<PhaseFn>(const_cast<void*>(function));
    backing.buffers = static_cast<int>(buffers);
    backing.symbols = static_cast<int>(symbols_of(form).size());
    backing.cpu_scratch_bytes = scratch_layout(form).bytes.value();
    backing.thread_scratch_bytes = phase.scratch_bytes;
    backing.maps = phase.maps;
    cuda.add(shown.ptx, phase.symbol, backing);
  }
  return {};
}

}  // namespace hone::tested

#include "tests/fake_cuda/backing_testing.h"

#include "codegen/gpu/gpu_code.h"
#include "compile/gpu_kernels.h"
#include "program/tiles/bind.h"
#include "program/tiles/calling.h"
#include "program/tiles/serial.h"
#include "program/tiles/simt.h"

namespace hone::tested {

Status GpuBacking::add(const FakeCuda& cuda, const Program& program, const Target& gpu) {
  const GpuCode code = HONE_TRY(compile_gpu_kernels(program, gpu, default_pool(), {}));
  const Target cpu = HONE_TRY(host_target());
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    if (!code.on_cpu[k].empty()) return check_failed("on the CPU: {}", code.on_cpu[k]);
    const TileProgram form = serial_form(simt_form(program.kernels[k].tiles));
    const std::string object =
        HONE_TRY(compile_like_gpu(program.kernels[k].tiles, cpu, kGpuSymbol));
    objects_.push_back(
        HONE_TRY(ObjectCode::load(std::as_bytes(std::span(object.data(), object.size())))));
    const auto buffers = std::ranges::count_if(
        form.buffers, [](const TileBuffer& one) { return one.role != BufferRole::scratch; });
    for (const GpuPhase& phase : code.gpu[k].phases) {
      const void* const function = objects_.back()->function(phase.symbol);
      if (function == nullptr) return check_failed("there is no function '{}'", phase.symbol);
      cuda.add(code.gpu[k].ptx, phase.symbol,
               {.function = reinterpret_cast<PhaseFn>(const_cast<void*>(function)),
                .buffers = static_cast<int>(buffers),
                .symbols = static_cast<int>(symbols_of(form).size()),
                .cpu_scratch_bytes = scratch_layout(form).bytes.value(),
                .thread_scratch_bytes = phase.scratch_bytes});
    }
  }
  return {};
}

}  // namespace hone::tested

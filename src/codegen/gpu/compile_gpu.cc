#include <algorithm>

#include "codegen/emit/emitter.h"
#include "codegen/emit/variance.h"
#include "codegen/gpu/gpu_code.h"
#include "codegen/gpu/phase_writer.h"
#include "codegen/gpu/ptx.h"
#include "codegen/llvm_object.h"
#include "codegen/module.h"
#include "program/tiles/calling.h"
#include "program/tiles/serial.h"
#include "program/tiles/simt.h"
#include "program/tiles/swizzle.h"
#include "program/tiles/waiting.h"
#include "runtime/cuda/gpu_map.h"
#include "target/gpu.h"

namespace hone {

namespace {

constexpr int64_t kBlockThreads = 256;
constexpr int64_t kWaitCapability = 90;  // from here on kernels can wait for others
// The driver takes no more of a launch. Later drivers do for later PTX, which older ones refuse.
constexpr int64_t kMostParameterBytes = 4096;

bool copies_pieces(const TileProgram& program, const tile::Block& body) {
  return std::ranges::any_of(body, [&](const tile::Statement& statement) {
    if (const auto* loop = std::get_if<tile::Loop>(&statement.kind))
      return copies_pieces(program, loop->body);
    const auto* copy = std::get_if<tile::AsyncCopy>(&statement.kind);
    return (copy != nullptr && copy->count > 1) ||
           std::holds_alternative<tile::TensorCopy>(statement.kind);
  });
}

// True if units that only GPUs of kGroupCapability have carry some of it out.
bool is_for_hopper(const tile::Block& body) {
  return std::ranges::any_of(body, [](const tile::Statement& statement) {
    if (const auto* loop = std::get_if<tile::Loop>(&statement.kind))
      return is_for_hopper(loop->body);
    return std::holds_alternative<tile::MbarrierInit>(statement.kind) ||
           std::holds_alternative<tile::ProxyFence>(statement.kind) ||
           std::holds_alternative<tile::GroupProduct>(statement.kind);
  });
}

Result<std::vector<GpuMap>> maps_of(const tile::Loop& phase, const TileProgram& program) {
  std::vector<GpuMap> maps;
  for (const code::BoxMap& box : code::box_maps(phase)) {
    const TileBuffer& from = program.buffers[box.from];
    GpuMap& map = maps.emplace_back();
    map.buffer = std::count_if(program.buffers.begin(), program.buffers.begin() + box.from,
                               [](const TileBuffer& buffer) { return is_passed(buffer.role); });
    map.dtype = from.type.dtype();
    map.dims = from.type.static_dims();
    map.box.assign(map.dims.size(), 1);
    map.box[static_cast<size_t>(box.axis)] = box.rows;
    map.box.back() = swizzled_row(map.dtype);
    if (const Status good = check_map(map, map.buffer + 1); !good.ok())
      return unsupported("it copies boxes of @{}: {}", from.name, good.error().what());
  }
  return maps;
}

Status check_for_gpu(const TileProgram& program, int64_t capability, bool has_aligned_buffers) {
  HONE_TRY(verify(program));
  if (capability < kMinCapability)
    return unsupported("a GPU of capability {}; hone makes code for {} and later", capability,
                       kMinCapability);
  for (const tile::Loop& phase : program.phases) {
    if (code::first_product(phase) != nullptr)
      return unsupported("a product on the matrix unit of a CPU cannot run on a GPU");
    if (capability != kGroupCapability && is_for_hopper(phase.body))
      return unsupported("its warpgroups multiply, which GPUs of sm_{} alone do", kGroupCapability);
    if (!has_aligned_buffers && copies_pieces(program, phase.body))
      return unsupported("it copies pieces of a buffer that begins at any element");
  }
  return {};
}

// Maps begin at a multiple of their alignment.
Status check_parameters(const TileProgram& form, const GpuPhase& phase) {
  int64_t bytes = 8 * code::parameter_words(form);
  if (!phase.maps.empty()) bytes += kMapAlignment + kMapBytes * std::ssize(phase.maps);
  if (bytes <= kMostParameterBytes) return {};
  return unsupported("its buffers and sizes take {} bytes of a launch, of {} at most", bytes,
                     kMostParameterBytes);
}

Result<GpuKernel> compile_form(const TileProgram& form, int64_t capability, std::string_view symbol,
                               bool has_aligned_buffers) {
  HONE_TRY(code::check_lockstep(form));
  GpuKernel kernel;
  kernel.capability = capability;
  kernel.is_exact =
      std::ranges::any_of(form.phases, [](const auto& phase) { return is_for_hopper(phase.body); });
  kernel.alignment = has_aligned_buffers ? kGpuBufferAlignment : 1;
  const int64_t scratch = HONE_TRY(code::gpu_scratch_bytes(form));
  const std::vector<std::string> names = phase_symbols(form, symbol);
  for (size_t i = 0; i < names.size(); ++i) {
    const bool by_block = form.phases[i].exec == Exec::blocks;
    kernel.phases.push_back(
        {.symbol = names[i],
         .trip_of = by_block ? TripOf::block : TripOf::thread,
         .block_threads = by_block ? block_threads(form.phases[i], form) : kBlockThreads,
         .shared_bytes = by_block ? chip_layout(form).bytes : 0,
         .scratch_bytes = scratch > code::kMostLocalBytes ? scratch : 0,
         .maps = HONE_TRY(maps_of(form.phases[i], form))});
    HONE_TRY(check_parameters(form, kernel.phases.back()));
  }
  code::tell_llvm_how_to_fail();
  code::LlvmObject<mlir::MLIRContext> context(mlir::MLIRContext::Threading::DISABLED);
  code::load_dialects(*context);
  code::LlvmObject<mlir::OwningOpRef<mlir::ModuleOp>> owner(
      mlir::ModuleOp::create(mlir::UnknownLoc::get(&*context)));
  mlir::ModuleOp module = owner->get();
  code::emit_gpu_kernel(module, form, kernel.phases, has_aligned_buffers);
  HONE_TRY(code::lower_module(module));
  kernel.ptx = HONE_TRY(code::ptx(module, kernel));
  return kernel;
}

}  // namespace

Result<GpuKernel> compile_for_gpu(const TileProgram& program, int64_t capability,
                                  std::string_view symbol, bool has_aligned_buffers) {
  Result<GpuKernel> kernel = [&]() -> Result<GpuKernel> {
    HONE_TRY(check_for_gpu(program, capability, has_aligned_buffers));
    TileProgram form = simt_form(program);
    if (capability >= kWaitCapability) form = waiting_form(std::move(form));
    return compile_form(form, capability, symbol, has_aligned_buffers);
  }();
  if (!kernel.ok())
    return std::move(kernel).error().within(fmt::format("kernel '{}'", program.name));
  return kernel;
}

Result<std::string> compile_like_gpu(const TileProgram& program, const Target& cpu,
                                     std::string_view symbol) {
  HONE_TRY(verify(program));
  return compile_tiles(serial_form(simt_form(program)), cpu, symbol);
}

}  // namespace hone

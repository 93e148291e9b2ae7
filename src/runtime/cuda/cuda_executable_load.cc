#include <algorithm>
#include <map>

#include "base/checked_math.h"
#include "base/text.h"
#include "runtime/cuda/cuda_executable.h"
#include "runtime/cuda/cuda_run.h"
#include "runtime/cuda/gpu_map.h"
#include "runtime/cuda/graph_conditions.h"
#include "runtime/cuda/host_kernels.h"
#include "runtime/script.h"
#include "target/gpu.h"

// Loading checks an image, plans its launches and memory, and puts its code and constants on the
// GPU. cuda_run.h goes through what is loaded.

namespace hone {

namespace {

using Instruction = Script::Instruction;
using InstructionKind = Instruction::Kind;

constexpr int64_t kMaxBlocks = INT32_MAX;

// True if data decides what runs.
bool has_conditions(const Script& script) {
  return std::ranges::any_of(script.instructions, [](const Instruction& one) {
    return one.kind == InstructionKind::jump_if_zero;
  });
}

}  // namespace

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
  const CudaEntry entered = HONE_TRY(device_->enter());
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
  has_gpu_moves_ = options.has_gpu_moves;
  for (const Script::Collective& one : script_->collectives) {
    const auto here = [&](int64_t bytes) {
      const bool is_moved = one.message && has_gpu_moves_;
      return AlignedBytes(is_moved ? 0 : static_cast<size_t>(bytes), false);
    };
    exchanged_.push_back({here(one.from_bytes), here(one.to_bytes)});
  }
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
  if (is_one_graph_ && has_conditions(*script_)) HONE_TRY(make_conditions(options.cubins));
  if (is_one_graph_ && residents_.empty()) (void)HONE_TRY(graph_of(bases_));
  return {};
}

Status CudaExecutable::make_conditions(const CubinStore& store) {
  Result<std::unique_ptr<GraphConditions>> made = GraphConditions::make(device_, store);
  if (made.ok())
    conditions_ = *std::move(made);
  else if (device_->answers().ok())
    is_one_graph_ = false;
  else
    return std::move(made).error();
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

// The driver may refuse what another one made, or an earlier version of it. The text is good then.
Result<std::unique_ptr<CudaModule>> CudaExecutable::load_module(const std::string& cubin,
                                                                const PtxText& ptx,
                                                                const CubinStore& store) const {
  Result<std::unique_ptr<CudaModule>> kept = CudaModule::load(device_, cubin);
  if (kept.ok() || !store.find || !device_->answers().ok()) return kept;
  return CudaModule::load(device_, HONE_TRY(make_cubin(*device_, ptx, {.put = store.put})));
}

Status CudaExecutable::load_code(const GpuImage& image, const CubinStore& store) {
  std::map<std::string_view, size_t> known;  // texts
  std::vector<PtxText> texts;
  for (size_t k = 0; k < image.kernels.size(); ++k)
    if (!image.image.kernels[k].object &&
        known.try_emplace(image.kernels[k].ptx, texts.size()).second)
      texts.push_back({image.kernels[k].ptx, image.kernels[k].is_exact});
  const std::vector<std::string> cubins = HONE_TRY(make_cubins(*device_, texts, store));
  for (size_t i = 0; i < texts.size(); ++i)
    modules_.push_back(HONE_TRY(load_module(cubins[i], texts[i], store)));
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
  const auto exchanges = [](const Instruction& one) { return Run::is_exchange(one.kind); };
  return host_ == nullptr && !script_->instructions.empty() &&
         std::ranges::none_of(script_->instructions, exchanges) &&
         unrolled_steps(*script_) <= kMostSteps &&
         (device_->driver().has_conditions() || !has_conditions(*script_));
}

}  // namespace hone

#include "runtime/loaded_model.h"

#include <algorithm>

#include "base/text.h"
#include "runtime/cuda/cuda_executable.h"
#include "runtime/segment_run.h"
#include "target/cgroup.h"

namespace hone {

namespace {

std::string dims_text(Type type) {
  std::vector<std::string> dims;
  for (Dim dim : type.dims()) dims.push_back(dim.to_string());
  return dims.empty() ? "scalar" : join(dims, "x");
}

// Bytes that the parts of constants take on all devices. Many constants may name one weight, so a
// small file may ask for much.
Result<int64_t> bytes_of_parts(const HonecFile& file, int64_t limit) {
  const std::span<const MeshPort> ports = file.mesh()->inputs;
  int64_t held = 0;
  for (size_t i = file.inputs().size(); i < ports.size(); ++i) {
    const Type parts = file.divided_inputs()[i].type;
    if (!ports[i].is_divided() && parts == ports[i].whole.type) continue;  // it lies in the file
    if (parts.static_bytes() > limit - held)
      return over_limit("the parts of constants take more than {} bytes", limit);
    held += parts.static_bytes();
  }
  return held;
}

}  // namespace

std::string choices_text(const HonecFile& file, uint32_t unit) {
  std::vector<std::string> choices;
  for (size_t program : file.sizes()) {
    if (file.programs()[program].unit != unit) continue;
    std::vector<std::string> inputs;
    for (const image::Port& input : file.programs()[program].inputs)
      inputs.push_back(fmt::format("{} {}", excerpt(input.name), dims_text(input.type)));
    choices.push_back(join(inputs, ", "));
  }
  return join(choices, "; ");
}

Result<std::shared_ptr<const LoadedModel>> LoadedModel::load(HonecFile file, HonecOptions options) {
  std::shared_ptr<LoadedModel> model(new LoadedModel(std::move(file), std::move(options)));
  Status good = model->prepare();
  if (good.ok()) return std::shared_ptr<const LoadedModel>(std::move(model));
  const std::string& path = model->file_.path();
  Error error = std::move(good).error();
  return path.empty() || error.where().starts_with(path) ? error : std::move(error).within(path);
}

Status LoadedModel::prepare() {
  if (!options_.machine) options_.machine = HONE_TRY(host_instructions());
  if (options_.device != nullptr) return prepare_gpu();
  if (file_.division() != nullptr) return prepare_devices();
  for (size_t i = 0; i < file_.sizes().size(); ++i) {
    Choice& choice = choices_.emplace_back();
    choice.program = HONE_TRY(file_.choose(*options_.machine, i));
    threads_ = std::max(threads_, threads_of(file_.programs()[choice.program].threads, options_));
  }
  if (options_.team == nullptr && !file_.is_single())
    options_.team = HONE_TRY(Team::create({.threads = threads_}));
  if (options_.team != nullptr) threads_ = std::min(threads_, options_.team->threads());
  for (Choice& choice : choices_) {
    choice.open = HONE_TRY(file_.open_image(choice.program));
    if (file_.programs()[choice.program].is_open) continue;
    choice.executable = HONE_TRY(load(std::move(choice.open.image)));
    choice.open = {};
  }
  if (file_.is_single()) one_ = choices_[0].executable;
  return {};
}

// All choices of sizes are there at once, and share weights.
Status LoadedModel::prepare_gpu() {
  if (file_.division() != nullptr)
    return unsupported("the file is for several devices, and a GPU is one").with_hint(kCpuRunsIt);
  for (size_t i = 0; i < file_.sizes().size(); ++i) {
    HonecOptions options = options_;
    options.sizes = i;
    Choice& choice = choices_.emplace_back();
    choice.program =
        HONE_TRY(file_.choose_for_gpu(options_.device->capability(), *options_.machine, i));
    choice.executable = HONE_TRY(load_honec_on_gpu(file_, options));
    threads_ = std::max(threads_, choice.executable->threads());
  }
  if (file_.is_single()) one_ = choices_[0].executable;
  return {};
}

// The codes of the division are units, each with programs for some levels of instructions.
Status LoadedModel::prepare_devices() {
  const BatchDivision& division = *file_.division();
  std::vector<Image> images(division.codes());
  for (size_t i = 0; i < file_.sizes().size(); ++i) {
    const size_t program = HONE_TRY(file_.choose(*options_.machine, i));
    Image image = HONE_TRY(file_.image(program));
    image.threads = threads_of(image.threads, options_);
    threads_ = std::max(threads_, image.threads);
    images[file_.programs()[program].unit] = std::move(image);
  }
  int64_t memory = options_.memory_limit;
  if (file_.mesh() != nullptr) {
    memory -= HONE_TRY(bytes_of_parts(file_, std::min(memory, usable_memory())));
  }
  divided_ = HONE_TRY(ManyDevices::load(
      division, file_.divided_inputs(), file_.divided_outputs(), images,
      {.threads = threads_, .memory_limit = memory, .machine = options_.machine}));
  if (file_.mesh() == nullptr) return {};
  on_mesh_ = HONE_TRY(MeshModel::make(*file_.mesh(), HONE_TRY(file_.mesh_constants()), divided_));
  return {};
}

Result<std::shared_ptr<const Runnable>> LoadedModel::load(Image image) const {
  image.threads = threads_of(image.threads, options_);
  return Result<std::shared_ptr<const Runnable>>(
      HONE_TRY(Executable::load(image, {.team = options_.team,
                                        .machine = options_.machine,
                                        .memory_limit = options_.memory_limit})));
}

std::shared_ptr<const Executable> LoadedModel::for_sizes(size_t sizes) const {
  if (sizes >= choices_.size() || choices_[sizes].executable == nullptr) return nullptr;
  const std::shared_ptr<const Runnable>& made = choices_[sizes].executable;
  return made->single() == nullptr ? nullptr
                                   : std::shared_ptr<const Executable>(made, made->single());
}

Result<std::shared_ptr<const Runnable>> LoadedModel::executable(
    uint32_t unit, std::span<const Type> inputs) const {
  std::optional<size_t> for_all;
  for (size_t i = 0; i < choices_.size(); ++i) {
    const HonecFile::Program& program = file_.programs()[choices_[i].program];
    if (program.unit != unit) continue;
    if (program.is_open)
      for_all = i;
    else if (std::ranges::equal(program.inputs, inputs, {}, &image::Port::type))
      return choices_[i].executable;
  }
  if (for_all) return sized(*for_all, inputs);
  return has_no(inputs, unit);
}

Result<std::shared_ptr<const Runnable>> LoadedModel::has_no(std::span<const Type> inputs,
                                                            uint32_t unit) const {
  // If no choice of sizes is the cause, the binding of sizes names it.
  if (file_.segments() == nullptr) HONE_TRY(bind_ports(file_.inputs(), inputs));
  std::vector<std::string> given;
  for (Type type : inputs) given.push_back(dims_text(type));
  return bad_input("the model was not compiled for inputs of {}", join(given, ", "))
      .with_hint(fmt::format("it has code for {}", choices_text(file_, unit)));
}

Result<std::shared_ptr<const Runnable>> LoadedModel::sized(size_t choice,
                                                           std::span<const Type> types) const {
  const std::scoped_lock lock(mutex_);
  const auto known = std::ranges::find_if(made_, [&](const Made& one) {
    return one.choice == choice && std::ranges::equal(one.types, types);
  });
  if (known != made_.end()) {
    made_.splice(made_.begin(), made_, known);
    return known->executable;
  }
  const OpenImage& open = choices_[choice].open;
  const Bindings sizes = HONE_TRY(bind_ports(open.image.inputs, types));
  auto executable = HONE_TRY(load(HONE_TRY(bound_image(open, sizes))));
  made_.push_front({choice, {types.begin(), types.end()}, executable});
  if (made_.size() > kMaxKept) made_.pop_back();
  return executable;
}

Result<std::vector<Tensor>> LoadedModel::run(std::span<const Tensor> inputs,
                                             const RunOptions& options,
                                             std::vector<UnitTimes>* times) const {
  if (one_ != nullptr) return one_->run(inputs, options, times);
  if (on_mesh_ != nullptr) return on_mesh_->run(inputs, options, times);
  if (divided_ != nullptr) return divided_->run(inputs, options, times);
  if (file_.segments() == nullptr)
    return HONE_TRY(executable(0, types_of(inputs)))->run(inputs, options, times);
  const auto run = [&](uint32_t unit, std::span<const Tensor> tensors,
                       const SegmentLimits& left) -> Result<std::vector<Tensor>> {
    const auto code = HONE_TRY(executable(unit, types_of(tensors)));
    return run_unit(*code, unit, tensors, left, options, times);
  };
  return run_segments(*file_.segments(), file_.inputs(), file_.outputs(), inputs, run,
                      {.cancel = options.cancel, .max_bytes = options_.memory_limit});
}

}  // namespace hone

#include "runtime/loaded_model.h"

#include <algorithm>

#include "base/checked_math.h"
#include "base/memory_hint.h"
#include "base/text.h"
#include "runtime/segment_run.h"

namespace hone {

namespace {

// Before a segment runs: what it gives is held until the last one that reads it has run.
Status check_outputs(const Executable& code, int64_t limit) {
  int64_t bytes = 0;
  for (const image::Port& output : code.outputs())
    bytes = checked_add(bytes, output.type.static_bytes()).value_or(INT64_MAX);
  if (bytes <= limit) return {};
  return over_limit("the results of a segment take {} bytes; the limit is {}", bytes, limit)
      .with_hint(std::string(kMemoryHint));
}

std::string dims_text(Type type) {
  std::vector<std::string> dims;
  for (Dim dim : type.dims()) dims.push_back(dim.to_string());
  return dims.empty() ? "scalar" : join(dims, "x");
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
  if (file_.is_single()) single_ = choices_[0].executable;
  return {};
}

Result<std::shared_ptr<const Executable>> LoadedModel::load(Image image) const {
  image.threads = threads_of(image.threads, options_);
  return Executable::load(
      image,
      {.team = options_.team, .machine = options_.machine, .memory_limit = options_.memory_limit});
}

std::shared_ptr<const Executable> LoadedModel::for_sizes(size_t sizes) const {
  return sizes < choices_.size() ? choices_[sizes].executable : nullptr;
}

Result<std::shared_ptr<const Executable>> LoadedModel::executable(
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

Result<std::shared_ptr<const Executable>> LoadedModel::has_no(std::span<const Type> inputs,
                                                              uint32_t unit) const {
  // If no choice of sizes is the cause, the binding of sizes names it.
  if (file_.segments() == nullptr) HONE_TRY(bind_ports(file_.inputs(), inputs));
  std::vector<std::string> given;
  for (Type type : inputs) given.push_back(dims_text(type));
  return bad_input("the model was not compiled for inputs of {}", join(given, ", "))
      .with_hint(fmt::format("it has code for {}", choices_text(file_, unit)));
}

Result<std::shared_ptr<const Executable>> LoadedModel::sized(size_t choice,
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
  if (single_ != nullptr) return single_->run(inputs, options, times);
  const auto run_unit = [&](uint32_t unit,
                            std::span<const Tensor> tensors) -> Result<std::vector<Tensor>> {
    std::vector<Type> types = types_of(tensors);
    const auto code = HONE_TRY(executable(unit, types));
    if (file_.segments() != nullptr) HONE_TRY(check_outputs(*code, options_.memory_limit));
    if (times == nullptr) return code->run(tensors, options);
    return code->run(tensors, timed(options, *times, unit, std::move(types)));
  };
  if (file_.segments() == nullptr) return run_unit(0, inputs);
  Bindings sizes = HONE_TRY(bind_ports(file_.inputs(), types_of(inputs)));
  SegmentLimits limits = {.cancel = options.cancel};
  limits.max_bytes = options_.memory_limit;
  for (const Tensor& input : inputs)  // which are not of the run's memory
    limits.max_bytes = checked_add(limits.max_bytes, input.byte_size()).value_or(INT64_MAX);
  std::vector<Tensor> outputs = HONE_TRY(run_segments(*file_.segments(), inputs, run_unit, limits));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const image::Port& port = file_.outputs()[i];
    // Sizes that no input has are those that data gives.
    if (outputs[i].dtype() != port.type.dtype() || outputs[i].type().rank() != port.type.rank())
      return bad_input("output '{}' is {}, not {}", excerpt(port.name),
                       outputs[i].type().to_string(), port.type.to_string());
  }
  return outputs;
}

}  // namespace hone

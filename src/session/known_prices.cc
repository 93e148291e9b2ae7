#include "session/known_prices.h"

#include "base/file.h"
#include "cost/analytic.h"
#include "cost/learned_cost.h"
#include "cost/shipped_model.h"
#include "target/fingerprint.h"
#include "target/presets.h"

namespace hone {
namespace fs = std::filesystem;

Result<std::string> KnownPrices::file_of(const Target& target, std::string_view ending) const {
  if (folder_) return (*folder_ / fmt::format("{:016x}.{}", fingerprint(target), ending)).native();
  return usage_error("prices cannot be kept: none of HONE_PRICES, XDG_DATA_HOME, HOME is set")
      .with_hint("name a file with -o, and pass it to commands as --prices or --cost");
}

Result<std::string> KnownPrices::fitted_file(const Target& target) const {
  return file_of(target, "prices");
}

Result<std::string> KnownPrices::model_file(const Target& target) const {
  return file_of(target, "model");
}

Result<std::string> KnownPrices::plans_file(const Target& target) const {
  return file_of(target, "plans");
}

Result<std::string> KnownPrices::links_file(const Target& target) const {
  return file_of(target, "system");
}

Result<std::string> KnownPrices::data_folder(const Target& target) const {
  return file_of(target, "set");
}

Result<std::optional<FittedFile>> KnownPrices::fitted(const Target& target) const {
  std::error_code failed;
  if (!folder_ || target.gpu) return std::optional<FittedFile>();
  const std::string file = HONE_TRY(fitted_file(target));
  if (!fs::exists(file, failed)) return std::optional<FittedFile>();
  const std::string text = HONE_TRY(read_file(file, kMaxPricesText));
  Result<Prices> prices = parse_prices(text, target.name, file);
  if (!prices.ok())
    return std::move(prices).error().with_hint("'hone calibrate' writes the file again");
  return std::optional(FittedFile{file, *prices});
}

Result<std::optional<KnownModel>> KnownPrices::model(const Target& target) const {
  std::error_code failed;
  if (folder_)
    if (const std::string file = HONE_TRY(model_file(target)); fs::exists(file, failed))
      return std::optional(HONE_TRY(kernel_model_in(file, target)));
  if (!takes_shipped_ || target.gpu) return std::optional<KnownModel>();
  const Result<std::optional<FittedFile>> fitted = this->fitted(target);  // a damaged one: none
  const bool has_fitted = fitted.ok() && *fitted;
  KernelModel shipped =
      HONE_TRY(shipped_model_on(target, has_fitted ? &(*fitted)->prices : nullptr, shipped_));
  if (!shipped.gains()) return std::optional<KnownModel>();
  return std::optional(
      KnownModel{.place = "shipped with hone",
                 .is_shipped = true,
                 .model = std::make_shared<const KernelModel>(std::move(shipped))});
}

Result<std::shared_ptr<const PlanModel>> KnownPrices::plans(const Target& target,
                                                            const Cost& cost) const {
  std::error_code failed;
  if (!folder_) return std::shared_ptr<const PlanModel>();
  const std::string file = HONE_TRY(plans_file(target));
  if (!fs::exists(file, failed)) return std::shared_ptr<const PlanModel>();
  PlanModel model = HONE_TRY(read_plan_model(file));
  if (Status fits = check_is_for(model, target, cost); !fits.ok())
    return std::move(fits).error().within(file);
  return std::make_shared<const PlanModel>(std::move(model));
}

// The learned price with the user's model of whole plans, if that counts.
std::shared_ptr<const Cost> KnownPrices::with_plans(
    std::shared_ptr<const Cost> cost, const Target& target,
    const std::function<void(std::string_view)>& note) const {
  Result<std::shared_ptr<const PlanModel>> found = plans(target, *cost);
  if (!found.ok())
    note(fmt::format("the model of plans is not used: {}", found.error().to_string()));
  if (!found.ok() || *found == nullptr || !(*found)->gains()) return cost;
  note(fmt::format("a model of plans, {}, ranks the best few", plans_file(target).value()));
  return std::make_shared<const LearnedCost>(*cost->learned(), *std::move(found));
}

std::shared_ptr<const Cost> KnownPrices::analytic(const Target& target,
                                                  const std::function<void(std::string_view)>& note,
                                                  const PriceLabels& labels) const {
  const Result<std::optional<FittedFile>> found = fitted(target);
  if (!found.ok()) note(fmt::format("fitted prices are not used: {}", found.error().to_string()));
  if (!found.ok() || !*found) return nullptr;
  note(fmt::format("prices fitted to this target, {} ({}: without)", (*found)->file,
                   labels.without_fitted));
  return std::make_shared<AnalyticCost>(target, (*found)->prices);
}

std::shared_ptr<const Cost> KnownPrices::cost(const Target& target,
                                              const std::function<void(std::string_view)>& note,
                                              const PriceLabels& labels) const {
  std::shared_ptr<const Cost> otherwise = analytic(target, note, labels);
  const Result<std::optional<KnownModel>> found = model(target);
  if (!found.ok()) note(fmt::format("learned prices are not used: {}", found.error().to_string()));
  if (!found.ok() || !*found) return otherwise;
  if (!(*found)->is_shipped)
    note(fmt::format("prices learned on this target, {} ({}: without)", (*found)->place,
                     labels.without_learned));
  return with_plans(learned_cost(target, **found, std::move(otherwise), sureness_), target, note);
}

Result<std::shared_ptr<const Cost>> KnownPrices::cost_by(
    const std::string& word, const Target& target, std::shared_ptr<const Cost> formula,
    const std::function<void(std::string_view)>& note) const {
  std::optional<KnownModel> found;
  if (word != "learned") {
    const Result<std::optional<FittedFile>> fitted = this->fitted(target);  // a damaged one: none
    const bool has_fitted = fitted.ok() && *fitted;
    found = HONE_TRY(kernel_model_in(word, target, has_fitted ? &(*fitted)->prices : nullptr));
  }
  if (!found) found = HONE_TRY(model(target));
  if (!found)
    return bad_input("there is no model of the target '{}'", target.name)
        .with_hint("'hone train cost' makes one, and its file can be named");
  if (word == "learned") note(fmt::format("learned prices, {}", found->place));
  return with_plans(learned_cost(target, *found, std::move(formula), sureness_), target, note);
}

Status KnownPrices::check_keeps(const Target& target) const {
  const fs::path file = HONE_TRY(fitted_file(target));
  std::error_code failed;
  if (file.has_parent_path()) fs::create_directories(file.parent_path(), failed);
  if (failed)
    return bad_input("prices cannot be kept: cannot create '{}': {}", file.parent_path().native(),
                     failed.message())
        .with_hint("HONE_PRICES names another folder, and -o a file");
  return {};
}

Result<std::optional<System>> KnownPrices::measured_links(const Target& target) const {
  std::error_code failed;
  if (!folder_) return std::optional<System>();
  const std::string file = HONE_TRY(links_file(target));
  if (!fs::exists(file, failed)) return std::optional<System>();
  return std::optional(HONE_TRY(parse_system(HONE_TRY(read_file(file, kMaxSystemText)), file)));
}

Result<System> KnownPrices::system(int64_t devices, const Target& target,
                                   const std::function<void(std::string_view)>& note) const {
  System parts = HONE_TRY(preset_system(fmt::format("local:{}", devices), target));
  const Result<std::optional<System>> found = measured_links(target);
  const auto without = [&](const Error& error) {
    note(fmt::format("measured links are not used: {}", error.to_string()));
    return parts;
  };
  if (!found.ok()) return without(found.error());
  if (!*found) return parts;
  System measured = parts;
  measured.links = (*found)->links;
  if (Status good = hone::check(measured); !good.ok())
    return without(std::move(good).error().within(HONE_TRY(links_file(target))));
  note(fmt::format("links measured on this machine, {}", HONE_TRY(links_file(target))));
  return measured;
}

Status KnownPrices::keep_links(const Target& target, const System& measured) const {
  HONE_TRY(check_keeps(target));
  return write_file_atomic(HONE_TRY(links_file(target)), print(measured));
}

Status KnownPrices::keep(const Target& target, const Prices& prices) const {
  HONE_TRY(check_keeps(target));
  return write_file_atomic(HONE_TRY(fitted_file(target)), print(prices, target.name));
}

Status KnownPrices::keep(const Target& target, const KernelModel& model) const {
  HONE_TRY(check_keeps(target));
  KernelModel own = model;  // one that comes with hone may be of another number of cores
  own.target = target.name;
  own.fingerprint = fingerprint(target);
  own.core = core_fingerprint(target);
  return write_kernel_model(HONE_TRY(model_file(target)), own);
}

Status KnownPrices::drop_fitted(const Target& target) const {
  const std::string file = HONE_TRY(fitted_file(target));
  std::error_code failed;
  fs::remove(file, failed);
  if (failed) return bad_input("cannot remove '{}': {}", file, failed.message());
  return {};
}

Result<KnownModel> kernel_model_in(const std::string& file, const Target& target,
                                   const Prices* fitted) {
  Result<KernelModel> model = model_on(HONE_TRY(read_kernel_model(file)), target, fitted);
  if (!model.ok()) return Error(model.error()).within(file);
  return KnownModel{.place = file, .model = std::make_shared<const KernelModel>(*std::move(model))};
}

std::shared_ptr<const Cost> learned_cost(const Target& target, const KnownModel& model,
                                         std::shared_ptr<const Cost> baseline, double sureness) {
  if (baseline == nullptr) baseline = std::make_shared<AnalyticCost>(target);
  return std::make_shared<LearnedCost>(target, model.model, std::move(baseline), model.place,
                                       sureness);
}

}  // namespace hone

#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "cost/cost.h"
#include "cost/kernel_model.h"
#include "cost/plan_model.h"
#include "cost/prices.h"
#include "cost/shipped_model.h"
#include "target/system.h"
#include "target/target.h"

// The prices that hone has of a target. 'hone calibrate' fits prices, 'hone train cost' learns a
// model and 'hone system calibrate' measures messages; a folder has a file of each per target. hone
// ships a model, too.

namespace hone {

struct FittedFile {
  std::string file;
  Prices prices;
};
struct KnownModel {
  std::string place;  // the file, or "shipped with hone"
  bool is_shipped = false;
  std::shared_ptr<const KernelModel> model;
};

// How a face says to do without.
struct PriceLabels {
  std::string_view without_fitted = "--prices default";
  std::string_view without_learned = "--cost analytic";
};

class KnownPrices {
 public:
  // No folder: nothing is kept. A folder that the user has named holds all that counts, so that the
  // shipped model does not.
  // `sureness` is that of learned prices (LearnedCost).
  KnownPrices(std::optional<std::filesystem::path> folder, bool takes_shipped,
              double sureness = kUsualSureness, const ShippedModel& shipped = shipped_model_file())
      : folder_(std::move(folder)),
        takes_shipped_(takes_shipped),
        sureness_(sureness),
        shipped_(shipped) {}

  // None: there is no such file. Errors: it is damaged, or of another target.
  Result<std::optional<FittedFile>> fitted(const Target& target) const;
  // The file's model, else the one that hone ships, beside the fitted prices if it has not learned
  // from the processor. None: nor have its choices gained anything on processors that it was to
  // know nothing of. Errors: the file is damaged, of another target or other features.
  Result<std::optional<KnownModel>> model(const Target& target) const;
  // The user's model of whole plans, for these prices. Null: the file does not exist. Errors: it
  // is damaged, of another target or of other prices.
  Result<std::shared_ptr<const PlanModel>> plans(const Target& target, const Cost& cost) const;
  // The price that the planner chooses by if nobody says how: the model, beside the fitted prices
  // or the default ones. Null: the analytic price with default coefficients. A file that cannot be
  // used costs only speed: the note says so, as it says which files count.
  std::shared_ptr<const Cost> cost(const Target& target,
                                   const std::function<void(std::string_view)>& note,
                                   const PriceLabels& labels = {}) const;
  // The price by a model that the user has asked for, "learned" or a file, beside a formula. An
  // error: there is no such model.
  Result<std::shared_ptr<const Cost>> cost_by(
      const std::string& word, const Target& target, std::shared_ptr<const Cost> formula,
      const std::function<void(std::string_view)>& note) const;
  // The same without a model.
  std::shared_ptr<const Cost> analytic(const Target& target,
                                       const std::function<void(std::string_view)>& note,
                                       const PriceLabels& labels = {}) const;

  // The target as several devices: its parts, and the links that were measured between them, else
  // plausible ones. A file that cannot be used costs speed: the note says so, as it says which file
  // counts.
  Result<System> system(int64_t devices, const Target& target,
                        const std::function<void(std::string_view)>& note) const;
  Status keep_links(const Target& target, const System& measured) const;
  Result<std::string> links_file(const Target& target) const;

  Result<std::string> fitted_file(const Target& target) const;
  Result<std::string> model_file(const Target& target) const;
  Result<std::string> plans_file(const Target& target) const;  // a model of whole plans
  // The folder of measurements that a model is trained on.
  Result<std::string> data_folder(const Target& target) const;
  // Makes the folder: what is wrong is found before the work.
  Status check_keeps(const Target& target) const;
  Status keep(const Target& target, const Prices& prices) const;
  Status keep(const Target& target, const KernelModel& model) const;
  // The defaults count from now on.
  Status drop_fitted(const Target& target) const;

 private:
  std::shared_ptr<const Cost> with_plans(std::shared_ptr<const Cost> cost, const Target& target,
                                         const std::function<void(std::string_view)>& note) const;
  Result<std::string> file_of(const Target& target, std::string_view ending) const;
  Result<std::optional<System>> measured_links(const Target& target) const;

  const std::optional<std::filesystem::path> folder_;
  const bool takes_shipped_;
  const double sureness_;
  const ShippedModel& shipped_;
};

// The model in a file that somebody has named. One of several processors takes the prices that were
// fitted to the target, if it has not learned from this; null: nobody has fitted any.
Result<KnownModel> kernel_model_in(const std::string& file, const Target& target,
                                   const Prices* fitted = nullptr);

// The price by a model. Choices of the baseline stay where others are not so surely cheaper; null:
// the default analytic price.
std::shared_ptr<const Cost> learned_cost(const Target& target, const KnownModel& model,
                                         std::shared_ptr<const Cost> baseline,
                                         double sureness = kUsualSureness);

}  // namespace hone

#include <filesystem>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/native.h"
#include "cli/price_training.h"
#include "cli/prices.h"
#include "learn/data_set.h"
#include "learn/models/train_plan_model.h"
#include "report/plan_choice_text.h"
#include "session/native.h"

namespace hone::cli {
namespace {

namespace fs = std::filesystem;

// Plans of some data sets of one target.
struct PlansOfSets {
  Target target;
  std::vector<PlanPairs> pairs;
};

Result<PlansOfSets> plans_of_sets(const Arguments& arguments, Console& console) {
  std::optional<PlansOfSets> all;
  for (const std::string& folder : arguments.list("SET")) {
    const DataSet set = HONE_TRY(DataSet::open(folder));
    if (!all) all.emplace(PlansOfSets{set.info().target, {}});
    std::vector<PlanPairs> its = HONE_TRY(read_all_plan_pairs(folder));
    size_t pairs = 0;
    for (PlanPairs& each : its) {
      pairs += each.pairs.size();
      all->pairs.push_back(std::move(each));
    }
    console.say(fmt::format("{}: {} pairs of plans of {} programs", folder, pairs, its.size()));
  }
  return *std::move(all);
}

}  // namespace

Status cmd_train_plans(const Arguments& arguments, Console& console) {
  const PlansOfSets data = HONE_TRY(plans_of_sets(arguments, console));
  std::string file = arguments.text("output");
  if (file.empty()) {
    HONE_TRY(user_prices().check_keeps(data.target));
    file = HONE_TRY(user_prices().plans_file(data.target));
  }
  const NativeOptions native = HONE_TRY(native_options(arguments, console));
  PlanTraining options = plan_training(arguments, native, console);
  options.folder = file + ".training";
  if (arguments.given("anew")) fs::remove_all(options.folder);
  const Console::Keeping keeping(console);
  const TrainedPlans trained = HONE_TRY(train_plan_model(data.pairs, data.target, options));
  HONE_TRY(write_plan_model(file, trained.model));
  std::error_code failed;
  fs::remove_all(options.folder, failed);
  console.write(trained_plans_text(trained));
  console.note("wrote {}", file);
  return {};
}

Status cmd_eval_plans(const Arguments& arguments, Console& console) {
  const PlansOfSets data = HONE_TRY(plans_of_sets(arguments, console));
  const NativeOptions native = HONE_TRY(native_options(arguments, console));
  const TrainedPlans trained = HONE_TRY(
      train_plan_model(data.pairs, data.target, plan_training(arguments, native, console)));
  return tell_table(arguments, console, trained_plans_text(trained), trained_plans_json(trained));
}

}  // namespace hone::cli

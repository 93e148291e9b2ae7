#include "cli/arguments.h"
#include "cli/budget.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/log.h"
#include "cli/prices.h"
#include "cli/source.h"
#include "cost/analytic.h"
#include "report/calibration_text.h"
#include "session/native.h"
#include "tune/calibrate.h"

namespace hone::cli {
namespace {

// Where the machine has a learned price, that chooses schedules beside the formula.
std::shared_ptr<const KernelModel> known_model(const Target& target) {
  const Result<std::optional<KnownModel>> found = user_prices().model(target);
  return found.ok() && *found ? (*found)->model : nullptr;  // a damaged one is not used for plans
}

// A model of whole plans has learned by the prices that were.
void tell_of_plans(const Target& target, Console& console) {
  std::shared_ptr<const Cost> cost = user_prices().cost(target, [](std::string_view) {});
  if (cost == nullptr) cost = std::make_shared<AnalyticCost>(target);
  if (const auto plans = user_prices().plans(target, *cost); !plans.ok())
    console.note("the model of plans is not used from now on: {}", plans.error().to_string());
}

// Into the file that is named, or where commands that plan look.
Status keep(const Calibration& calibration, const Target& target, const std::string& output,
            Console& console) {
  if (!output.empty()) return write_text(output, print(calibration.prices, target.name), console);
  if (!calibration.is_better()) {
    console.say("prices stay as they are: the fitted ones are not better");
    return {};
  }
  if (calibration.adapted) {
    HONE_TRY(user_prices().keep(target, *calibration.adapted));
    console.note("wrote {}; commands that plan for this target use it from now on",
                 HONE_TRY(user_prices().model_file(target)));
  }
  if (calibration.is_default()) return user_prices().drop_fitted(target);
  HONE_TRY(user_prices().keep(target, calibration.prices));
  console.note("wrote {}; commands that plan for this target use it from now on",
               HONE_TRY(user_prices().fitted_file(target)));
  return {};
}

}  // namespace

Status cmd_calibrate(const Arguments& arguments, Console& console) {
  CalibrateOptions options;
  options.seconds = HONE_TRY(parse_budget(arguments.text("budget")));
  options.threads = arguments.integer("threads");
  options.seed = static_cast<uint64_t>(arguments.integer("seed"));
  const std::string output = arguments.text("output");

  Target target = HONE_TRY(host_target());
  if (arguments.given("isa"))
    target = restricted(std::move(target), *isa_from_name(arguments.text("isa")));
  HONE_TRY(check_runs_here(target, Console::labels()));

  WantedLog log = HONE_TRY(wanted_log(arguments, console));
  if (output.empty()) HONE_TRY(user_prices().check_keeps(target));
  options.log = log.log.get();
  options.version = HONE_VERSION;
  options.cancel = &console.cancel();
  if (output.empty()) {  // a file has coefficients alone
    options.model = known_model(target);
    options.used = user_prices().cost(target, [](std::string_view) {});
  }
  options.told = [&](std::string_view line) { console.say(line); };
  const Calibration calibration = HONE_TRY(calibrate(target, options));
  if (output != "-") console.write(calibration_text(calibration));
  HONE_TRY(keep(calibration, target, output, console));
  if (output.empty()) tell_of_plans(target, console);
  if (calibration.unwritten) tell_unwritten(*calibration.unwritten, log, console);
  return {};
}

}  // namespace hone::cli

#include <cmath>

#include "base/text.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/native.h"
#include "cli/price_training.h"
#include "cli/prices.h"
#include "cli/programs.h"
#include "cost/analytic.h"
#include "report/price_text.h"
#include "rewrite/prepare.h"
#include "tune/price_race.h"
#include "tune/tuner.h"

#include <nlohmann/json.hpp>

namespace hone::cli {
namespace {

using Json = nlohmann::ordered_json;

Result<std::vector<MeasuredSet>> sets_in(std::span<const std::string> folders, Console& console) {
  std::vector<MeasuredSet> sets;
  for (const std::string& folder : folders)
    sets.push_back(measured_set(HONE_TRY(data_in(folder, console)), folder, console));
  return sets;
}

struct LeftOutTable {
  std::string_view key, title;
  std::vector<PriceTrial> LeftOutTrials::* trials;
};
constexpr LeftOutTable kLeftOut[] = {
    {"processor", "a processor left out", &LeftOutTrials::processor},
    {"family", "families of programs left out", &LeftOutTrials::family},
    {"both", "both left out", &LeftOutTrials::both}};

// The findings of a part of the command: for people, and as fields of a JSON object.
struct Findings {
  std::string text;
  std::vector<std::string> fields;
};

Status eval_left_out(const Arguments& arguments, Console& console, Findings& to) {
  const std::vector<MeasuredSet> sets = HONE_TRY(sets_in(arguments.list("SET"), console));
  std::vector<std::string> others;
  const std::string named = arguments.text("on");
  if (!named.empty())
    for (std::string_view folder : split(named, ',')) others.emplace_back(folder);
  const std::vector<MeasuredSet> on = HONE_TRY(sets_in(others, console));
  const NativeOptions native = HONE_TRY(native_options(arguments, console));
  ModelTraining options = model_training(arguments, native, console);
  options.knows_targets = !arguments.given("without-target");
  const LeftOutTrials trials =
      HONE_TRY(left_out_trials(sets, on, static_cast<size_t>(arguments.integer("parts")), options));
  for (const LeftOutTable& table : kLeftOut) {
    const std::vector<PriceTrial>& its = trials.*table.trials;
    if (its.empty()) {
      to.text +=
          fmt::format("{}: no trial, for which there are too few processors\n\n", table.title);
      continue;
    }
    to.text += fmt::format("{}:\n{}\n", table.title, price_trials_text(its));
    to.fields.push_back(fmt::format("\"{}\": {}", table.key, price_trials_json(its)));
  }
  return {};
}

// The gain of a price's plans over those of the formula; none: it does not count here.
struct PlanGains {
  std::string_view name;
  std::vector<std::optional<double>> gains;  // by model
};

Result<PlanGains> gains_by(std::string_view name, std::span<const HeldBackModel> models,
                           const Target& target, const std::shared_ptr<const Cost>& cost,
                           const PriceRaceOptions& options) {
  PlanGains all{.name = name, .gains = std::vector<std::optional<double>>(models.size())};
  if (cost == nullptr) return all;
  const auto analytic = std::make_shared<const AnalyticCost>(target);
  for (size_t m = 0; m < models.size(); ++m) {
    const PriceRace race = HONE_TRY(race_prices({&models[m], 1}, target, analytic, cost, options));
    if (race.models.empty()) continue;
    const std::optional<PlanDuel>& duel = race.models[0].duel;
    all.gains[m] = duel ? duel->gain() : 1;  // none: they choose the same plan
  }
  return all;
}

Result<PlanGains> tuned_gains(std::span<const HeldBackModel> models, const Target& target,
                              double seconds, Console& console) {
  PlanGains all{.name = "tuned", .gains = std::vector<std::optional<double>>(models.size())};
  for (size_t m = 0; m < models.size() && seconds > 0; ++m) {
    const Graph graph = HONE_TRY(models[m].load());
    all.gains[m] =
        HONE_TRY(tune(graph, target, {.seconds = seconds, .cancel = &console.cancel()})).gain();
  }
  return all;
}

std::string gains_text(std::span<const HeldBackModel> models, std::span<const PlanGains> all) {
  std::vector<std::string> head = {"times as fast as by the analytic price"};
  for (const PlanGains& each : all) head.emplace_back(each.name);
  TextTable table("l" + std::string(all.size(), 'r'), head);
  const auto cell = [](std::optional<double> gain) {
    return gain ? fmt::format("{:.3f}", *gain) : std::string("-");
  };
  std::vector<std::string> means = {"geometric mean"};
  for (const PlanGains& each : all) {
    double sum = 0, count = 0;
    for (const std::optional<double>& gain : each.gains)
      if (gain && *gain > 0) sum += std::log(*gain), ++count;
    means.push_back(cell(count > 0 ? std::optional(std::exp(sum / count)) : std::nullopt));
  }
  for (size_t m = 0; m < models.size(); ++m) {
    std::vector<std::string> row = {models[m].name};
    for (const PlanGains& each : all) row.push_back(cell(each.gains[m]));
    table.add_row(std::move(row));
  }
  table.add_rule();
  table.add_row(std::move(means));
  return table.to_string();
}

// How many times as fast models are as by the analytic price, by name of the other one.
std::string gains_json(std::span<const HeldBackModel> models, std::span<const PlanGains> all) {
  Json json = Json::array();
  for (size_t m = 0; m < models.size(); ++m) {
    Json row = {{"model", models[m].name}};
    for (const PlanGains& each : all)
      if (each.gains[m]) row[std::string(each.name)] = *each.gains[m];
    json.push_back(std::move(row));
  }
  return json.dump(1);
}

// Default plans on this machine, by one thread.
Status eval_plans(const Arguments& arguments, Console& console, Findings& to) {
  const Target target = HONE_TRY(host_target());
  std::vector<HeldBackModel> models;
  for (const std::string& model : arguments.list("plans")) {
    const NamedProgram program = program_of(model, console);
    models.push_back(
        {program.name, [program]() -> Result<Graph> { return prepare(HONE_TRY(program.load())); }});
  }
  const PriceRaceOptions options = {.seconds = static_cast<double>(arguments.integer("seconds")),
                                    .cancel = &console.cancel()};
  // The price that this machine has learned or fitted itself.
  const auto note = [&](std::string_view line) { console.note("{}", line); };
  const std::optional<KnownModel> known = HONE_TRY(user_prices().model(target));
  const bool is_own = known && !known->is_shipped;
  const std::optional<KnownModel> shipped = HONE_TRY(KnownPrices({}, true).model(target));
  std::shared_ptr<const Cost> learned, own;
  if (shipped) learned = learned_cost(target, *shipped, nullptr);
  own = is_own ? learned_cost(target, *known, nullptr) : user_prices().analytic(target, note);
  const std::vector<PlanGains> all = {
      HONE_TRY(gains_by("learned", models, target, learned, options)),
      HONE_TRY(gains_by("adapted", models, target, own, options)),
      HONE_TRY(
          tuned_gains(models, target, static_cast<double>(arguments.integer("tuned")), console))};
  to.text += gains_text(models, all);
  to.fields.push_back(fmt::format("\"plans\": {}", gains_json(models, all)));
  return {};
}

}  // namespace

Status cmd_eval_price(const Arguments& arguments, Console& console) {
  if (!arguments.given("SET") && !arguments.given("plans"))
    return usage_error("name data sets, or models with --plans");
  for (const std::string_view option : {"on", "without-target"})
    if (arguments.given(option) && !arguments.given("SET"))
      return usage_error("--{} is of trials on data sets", option).with_hint("name a data set");
  Findings found;
  if (arguments.given("SET")) HONE_TRY(eval_left_out(arguments, console, found));
  if (arguments.given("plans")) HONE_TRY(eval_plans(arguments, console, found));
  return tell_table(arguments, console, found.text,
                    fmt::format("{{{}}}\n", join(found.fields, ",\n")));
}

}  // namespace hone::cli

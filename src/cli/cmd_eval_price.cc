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

// A price's plans against those of the formula, by model. None: it does not count here, or was not
// tried.
struct PlanGains {
  std::string_view name;
  std::vector<std::optional<PlanDuel>> duels;
  bool is_default = true;  // a price that plans are made by if nobody says how
};

// The duel of a plan with itself.
PlanDuel same_plan() {
  PlanDuel same{.outcome = Outcome::measured};
  same.times.interval = Interval{1, 1};
  return same;
}

Result<PlanGains> gains_by(std::string_view name, std::span<const HeldBackModel> models,
                           const Target& target, const std::shared_ptr<const Cost>& cost,
                           const PriceRaceOptions& options) {
  PlanGains all{.name = name, .duels = std::vector<std::optional<PlanDuel>>(models.size())};
  if (cost == nullptr) return all;
  const auto analytic = std::make_shared<AnalyticCost>(target);
  for (size_t m = 0; m < models.size(); ++m) {
    const PriceRace race = HONE_TRY(race_prices({&models[m], 1}, target, analytic, cost, options));
    if (!race.models.empty()) all.duels[m] = race.models[0].duel.value_or(same_plan());
  }
  return all;
}

// A model has the default plan if no time is left to tune it.
Result<PlanGains> tuned_gains(std::span<const HeldBackModel> models, const Target& target,
                              double seconds, Console& console) {
  PlanGains all{.name = "tuned",
                .duels = std::vector<std::optional<PlanDuel>>(models.size()),
                .is_default = false};
  for (size_t m = 0; m < models.size() && seconds > 0; ++m) {
    const Graph graph = HONE_TRY(models[m].load());
    const Tuned tuned =
        HONE_TRY(tune(graph, target, {.seconds = seconds, .cancel = &console.cancel()}));
    all.duels[m] = tuned.is_default ? same_plan() : tuned.confirmation;
  }
  return all;
}

std::string gain_cell(const std::optional<PlanDuel>& duel) {
  if (!duel) return "-";
  return duel->outcome == Outcome::measured ? fmt::format("{:.3f}", duel->gain())
                                            : std::string(name(duel->outcome));
}

std::string gains_text(std::span<const HeldBackModel> models, std::span<const PlanGains> all) {
  std::vector<std::string> head = {"times as fast as by the analytic price"};
  for (const PlanGains& each : all) head.emplace_back(each.name);
  TextTable table("l" + std::string(all.size(), 'r'), head);
  std::vector<std::string> means = {"geometric mean"};
  for (const PlanGains& each : all) {
    double sum = 0, count = 0;
    for (const std::optional<PlanDuel>& duel : each.duels)
      if (duel && duel->outcome == Outcome::measured) sum += std::log(duel->gain()), ++count;
    means.push_back(count > 0 ? fmt::format("{:.3f}", std::exp(sum / count)) : "-");
  }
  for (size_t m = 0; m < models.size(); ++m) {
    std::vector<std::string> row = {models[m].name};
    for (const PlanGains& each : all) row.push_back(gain_cell(each.duels[m]));
    table.add_row(std::move(row));
  }
  table.add_rule();
  table.add_row(std::move(means));
  return table.to_string();
}

// Models that a default price makes slower than it may.
std::string too_slow_text(std::span<const HeldBackModel> models, std::span<const PlanGains> all) {
  std::string text;
  for (const PlanGains& each : all)
    for (size_t m = 0; m < models.size() && each.is_default; ++m) {
      const std::optional<PlanDuel>& duel = each.duels[m];
      if (!duel || !is_too_slow(*duel)) continue;
      if (duel->outcome == Outcome::measured)
        text += fmt::format("{} takes {:.3f} times as long by the {} price ({:.3f} to {:.3f})\n",
                            models[m].name, duel->times.ratio, each.name, duel->times.interval->low,
                            duel->times.interval->high);
      else
        text +=
            fmt::format("{} by the {} price: {}\n", models[m].name, each.name, name(duel->outcome));
    }
  if (text.empty())
    return fmt::format("no model is surely slower by more than {:.0f} %\n", 100 * kMostSlower);
  return fmt::format("surely slower by more than {:.0f} %:\n{}", 100 * kMostSlower, text);
}

// How many times as fast models are as by the analytic price, by name of the other one.
std::string gains_json(std::span<const HeldBackModel> models, std::span<const PlanGains> all) {
  Json json = Json::array();
  for (size_t m = 0; m < models.size(); ++m) {
    Json row = {{"model", models[m].name}};
    Json slower = Json::array();
    for (const PlanGains& each : all) {
      const std::optional<PlanDuel>& duel = each.duels[m];
      if (!duel) continue;
      const bool has_time = duel->outcome == Outcome::measured;
      row[std::string(each.name)] = has_time ? Json(duel->gain()) : Json(name(duel->outcome));
      if (each.is_default && is_too_slow(*duel)) slower.push_back(each.name);
    }
    row["too_slow_by"] = std::move(slower);
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
    HONE_TRY(models.back().load());  // a race leaves out what cannot be read
  }
  const PriceRaceOptions options = {.seconds = static_cast<double>(arguments.integer("seconds")),
                                    .cancel = &console.cancel()};
  // The price that this machine has learned or fitted itself.
  const auto note = [&](std::string_view line) { console.note("{}", line); };
  const std::optional<KnownModel> known = HONE_TRY(user_prices().model(target));
  const bool is_own = known && !known->is_shipped;
  std::optional<KnownModel> general;
  if (arguments.given("model"))
    general = HONE_TRY(kernel_model_in(arguments.text("model"), target));
  else
    general = HONE_TRY(KnownPrices({}, true).model(target));
  std::shared_ptr<const Cost> learned, own;
  if (general) learned = learned_cost(target, *general, nullptr);
  own = is_own ? learned_cost(target, *known, nullptr) : user_prices().analytic(target, note);
  const std::vector<PlanGains> all = {
      HONE_TRY(gains_by("learned", models, target, learned, options)),
      HONE_TRY(gains_by("adapted", models, target, own, options)),
      HONE_TRY(
          tuned_gains(models, target, static_cast<double>(arguments.integer("tuned")), console))};
  to.text += gains_text(models, all) + too_slow_text(models, all);
  to.fields.push_back(fmt::format("\"plans\": {}", gains_json(models, all)));
  return {};
}

}  // namespace

Status cmd_eval_price(const Arguments& arguments, Console& console) {
  if (!arguments.given("SET") && !arguments.given("plans"))
    return usage_error("name data sets, or models with --plans");
  if (arguments.given("model") && !arguments.given("plans"))
    return usage_error("--model is of plans").with_hint("name models with --plans");
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

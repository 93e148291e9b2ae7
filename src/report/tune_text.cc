#include "report/tune_text.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "report/duel_text.h"

namespace hone {
namespace {

nlohmann::ordered_json json_of(const Tuned& tuned) {
  nlohmann::ordered_json shares = nlohmann::ordered_json::array(), interval;
  for (const TuneShare& share : tuned.shares)
    shares.push_back(
        {{"what", share.kind->name}, {"gain", share.gain}, {"seconds", share.seconds}});
  if (const auto& ratio = tuned.confirmation.times.interval)
    interval = {1 / ratio->high, 1 / ratio->low};
  nlohmann::ordered_json defaults = nlohmann::ordered_json::array();
  for (const DefaultPlan& plan : tuned.defaults) {
    nlohmann::ordered_json one = {{"prices", plan.prices}};
    if (plan.duel.outcome == Outcome::measured) one["gain"] = plan.duel.gain();
    if (const auto& ratio = plan.duel.times.interval)
      one["interval"] = {1 / ratio->high, 1 / ratio->low};
    defaults.push_back(std::move(one));
  }
  return {{"gain", tuned.gain()},
          {"interval", std::move(interval)},
          {"is_default", tuned.is_default},
          {"was_known", tuned.was_known},
          {"stays", tuned.stays.has_value()},
          {"defaults", std::move(defaults)},
          {"starts_from", tuned.start},
          {"shares", std::move(shares)},
          {"kernels", tuned.kernels},
          {"improved", tuned.improved},
          {"trials", tuned.trials},
          {"measured", tuned.measured},
          {"compiles", tuned.compiles},
          {"reused", tuned.reused},
          {"overlap",
           {{"kernels", tuned.overlap.kernels},
            {"known", tuned.overlap.known},
            {"share", tuned.overlap.share}}},
          {"untried", tuned.untried},
          {"least_seconds", tuned.least_seconds},
          {"had_no_time_to_confirm", tuned.confirmation.lacks_time},
          {"seconds", tuned.seconds},
          {"was_cancelled", tuned.was_cancelled}};
}

// Which of several default plans gains are over.
std::string defaults_text(const Tuned& tuned) {
  std::string text;
  size_t best = 0;
  for (size_t i = 1; i < tuned.defaults.size(); ++i) {
    const DefaultPlan& plan = tuned.defaults[i];
    text += fmt::format("the plan by {} is {:.3f}x{} as fast as that by {}\n", plan.prices,
                        plan.duel.gain(), gain_interval_text(plan.duel.times),
                        tuned.defaults[best].prices);
    if (plan.is_best) best = i;
  }
  if (!text.empty())
    text += fmt::format("the default plan is that by {}\n", tuned.defaults[tuned.start].prices);
  return text;
}

}  // namespace

std::string tune_text(const Tuned& tuned) {
  std::string text = defaults_text(tuned);
  if (tuned.confirmation.lacks_time && tuned.is_default) {
    text += fmt::format(
        "the default plan stays: the budget left no room to confirm a better one, which takes {} "
        "runs of each\n",
        DuelOptions::kLeastRuns);
  } else if (tuned.is_default && tuned.least_seconds > 0) {
    text += fmt::format(
        "the default plan stays: to compare plans of this model takes about {}; give a longer "
        "--budget\n",
        format_seconds(tuned.least_seconds));
  } else if (tuned.is_default) {
    text += "the default plan stays: nothing was surely faster\n";
  } else if (tuned.stays) {
    const KnownPlan& known = *tuned.stays;
    text += fmt::format(
        "the log's plan stays: {:.3f}x ({:.3f} to {:.3f}) as fast as the default when it was "
        "confirmed, {}\n",
        known.gain, known.low, known.high,
        tuned.confirmation.lacks_time
            ? "no time to confirm it now"
            : fmt::format("{:.3f}x{} now, which is in doubt", tuned.confirmation.gain(),
                          gain_interval_text(tuned.confirmation.times)));
  } else {
    text += fmt::format("{:.3f}x{} as fast as the default plan: {} instead of {}\n", tuned.gain(),
                        gain_interval_text(tuned.confirmation.times),
                        format_seconds(tuned.confirmation.times.b.median()),
                        format_seconds(tuned.confirmation.times.a.median()));
    for (const TuneShare& share : tuned.shares)
      text += fmt::format("  {:<18} {:.3f}x, after {}\n", share.kind->name, share.gain,
                          format_seconds(share.seconds));
    if (tuned.was_known) text += "  the log knew a plan to begin with\n";
  }
  if (tuned.untried > 0)
    text +=
        fmt::format("plans left untried: {}; a longer --budget has room for them\n", tuned.untried);
  if (tuned.overlap.known > 0)
    text +=
        fmt::format("the log knew {} of the model's {} kernels, {:.0f} % of its time by price\n",
                    tuned.overlap.known, tuned.overlap.kernels, 100 * tuned.overlap.share);
  text += fmt::format(
      "{} of {} kernels have a faster schedule; {} schedules looked at, {} measured, {} compiled, "
      "{} known from the log; {} in all\n",
      tuned.improved, tuned.kernels, tuned.trials, tuned.measured, tuned.compiles, tuned.reused,
      format_seconds(tuned.seconds));
  return text;
}

std::string tune_json(std::span<const TunedGraph> all) {
  if (all.size() == 1) return json_of(all[0].tuned).dump(1) + "\n";
  nlohmann::ordered_json segments = nlohmann::ordered_json::array();
  for (const auto& [name, tuned] : all) {
    segments.push_back({{"segment", name}});
    segments.back().update(json_of(tuned));
  }
  return segments.dump(1) + "\n";
}

}  // namespace hone

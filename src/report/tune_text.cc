#include "report/tune_text.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "report/duel_text.h"

namespace hone {

std::string tune_text(const Tuned& tuned) {
  std::string text;
  if (tuned.confirmation.lacks_time) {
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
  } else {
    text += fmt::format("{:.3f}x{} as fast as the default plan: {} instead of {}\n", tuned.gain(),
                        gain_interval_text(tuned.confirmation),
                        format_seconds(tuned.confirmation.times.b.median()),
                        format_seconds(tuned.confirmation.times.a.median()));
    for (const TuneShare& share : tuned.shares)
      text += fmt::format("  {:<18} {:.3f}x, after {}\n", share.what, share.gain,
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

std::string tune_json(const Tuned& tuned) {
  nlohmann::ordered_json shares = nlohmann::ordered_json::array(), interval;
  for (const TuneShare& share : tuned.shares)
    shares.push_back({{"what", share.what}, {"gain", share.gain}, {"seconds", share.seconds}});
  if (const auto& ratio = tuned.confirmation.times.interval)
    interval = {1 / ratio->high, 1 / ratio->low};
  const nlohmann::ordered_json json = {{"gain", tuned.gain()},
                                       {"interval", std::move(interval)},
                                       {"is_default", tuned.is_default},
                                       {"was_known", tuned.was_known},
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
  return json.dump(1) + "\n";
}

}  // namespace hone

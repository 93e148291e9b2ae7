#include "report/tune_text.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "report/duel_text.h"

namespace hone {
std::string tune_text(const Tuned& tuned) {
  std::string text;
  if (tuned.is_default) {
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
  text += fmt::format(
      "{} of {} kernels have a faster schedule; {} schedules looked at, {} measured, {} compiled, "
      "{} "
      "known from the log; {} in all\n",
      tuned.improved, tuned.kernels, tuned.trials, tuned.measured, tuned.compiles, tuned.reused,
      format_seconds(tuned.seconds));
  return text;
}

std::string tune_json(const Tuned& tuned) {
  nlohmann::ordered_json json;
  json["gain"] = tuned.gain();
  json["is_default"] = tuned.is_default;
  json["was_known"] = tuned.was_known;
  if (tuned.confirmation.times.interval)
    json["interval"] = {1 / tuned.confirmation.times.interval->high,
                        1 / tuned.confirmation.times.interval->low};
  json["shares"] = nlohmann::ordered_json::array();
  for (const TuneShare& share : tuned.shares)
    json["shares"].push_back(
        {{"what", share.what}, {"gain", share.gain}, {"seconds", share.seconds}});
  json["kernels"] = tuned.kernels;
  json["improved"] = tuned.improved;
  json["trials"] = tuned.trials;
  json["measured"] = tuned.measured;
  json["compiles"] = tuned.compiles;
  json["reused"] = tuned.reused;
  json["seconds"] = tuned.seconds;
  json["was_cancelled"] = tuned.was_cancelled;
  return json.dump(1) + "\n";
}

}  // namespace hone

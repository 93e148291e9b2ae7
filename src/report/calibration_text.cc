#include "report/calibration_text.h"

#include "base/text.h"
#include "base/text_table.h"
#include "report/duel_text.h"

namespace hone {
namespace {

std::string gain_text(const Duel& times) {
  return fmt::format("{:.3f}x", 1 / times.ratio) + gain_interval_text(times);
}

// How fast whole models are by the fitted prices, and what follows from it.
std::string race_text(const Calibration& calibration) {
  if (!calibration.race) return "";
  const PriceRace& race = *calibration.race;
  TextTable table("llrr", {"whole models", "as fast as before", "before", "fitted"});
  for (const RacedModel& model : race.models) {
    if (!model.duel)
      table.add_row({model.name, "the same plan", "", ""});
    else if (model.duel->outcome != Outcome::measured)
      table.add_row({model.name, std::string(name(model.duel->outcome)), "", ""});
    else
      table.add_row({model.name, gain_text(model.duel->times),
                     format_seconds(model.duel->times.a.median()),
                     format_seconds(model.duel->times.b.median())});
  }
  if (race.all) table.add_row({"geometric mean", gain_text(*race.all), "", ""});
  std::string text = table.to_string();

  return text + (calibration.is_better()
                     ? "the fitted prices are kept: whole models are surely faster by them\n"
                     : fmt::format("the fitted prices are not kept: {}\n", race.why_not()));
}

}  // namespace

std::string calibration_text(const Calibration& calibration) {
  TextTable table(
      "lrrrrrr", {"kernels", "count", "schedules", "tau before", "after", "error before", "after"});
  const auto add = [&](std::string_view name, const PriceCheck& before, const PriceCheck& after) {
    table.add_row({std::string(name), std::to_string(before.kernels),
                   std::to_string(before.schedules), fmt::format("{:.3f}", before.tau),
                   fmt::format("{:.3f}", after.tau), fmt::format("{:.0f} %", 100 * before.error),
                   fmt::format("{:.0f} %", 100 * after.error)});
  };
  add("fitted to", calibration.fitted_before, calibration.fitted_after);
  add("held out", calibration.held_before, calibration.held_after);
  std::string text = table.to_string();
  if (calibration.adapted_before > 0)
    text += fmt::format(
        "last layers of the learned price: loss {:.4f} before, {:.4f} after, of "
        "kernels left out in turn\n",
        calibration.adapted_before, calibration.adapted_after);
  text += race_text(calibration);
  text += fmt::format("loss {:.4f} before, {:.4f} after; {} compiled, {} known from the log; {}\n",
                      calibration.loss_before, calibration.loss_after, calibration.compiles,
                      calibration.reused, format_seconds(calibration.seconds));
  if (calibration.left_out > 0)
    text += fmt::format("there was no time for {} more kernels\n", calibration.left_out);
  return text;
}

}  // namespace hone

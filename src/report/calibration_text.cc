#include "report/calibration_text.h"

#include "base/text.h"
#include "base/text_table.h"

namespace hone {

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
  text += fmt::format("loss {:.4f} before, {:.4f} after; {} compiled, {} known from the log; {}\n",
                      calibration.loss_before, calibration.loss_after, calibration.compiles,
                      calibration.reused, format_seconds(calibration.seconds));
  if (calibration.left_out > 0)
    text += fmt::format("there was no time for {} more kernels\n", calibration.left_out);
  return text;
}

}  // namespace hone

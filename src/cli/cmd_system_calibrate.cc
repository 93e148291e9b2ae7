#include <algorithm>

#include "base/text.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/machines.h"
#include "cli/source.h"
#include "transport/calibrate_links.h"

namespace hone::cli {
namespace {

constexpr double kPartOfCopies = 0.1;  // of the seconds

std::string gigabytes(double bytes_per_second) {
  return fmt::format("{:.3g} GB/s", bytes_per_second / 1e9);
}
std::string percent(double part) { return fmt::format("{:.0f} %", part * 100); }

std::string table_of(std::span<const LinkCalibration> calibrations) {
  TextTable table("lrrrlrrr", {"transport", "latency", "bandwidth", "median error", "worst error",
                               "gap", "one pair", "two pairs"});
  for (const LinkCalibration& each : calibrations)
    table.add_row({std::string(name(each.transport)), format_seconds(each.alone.latency),
                   gigabytes(each.alone.bytes_per_second), percent(each.alone.median_error),
                   fmt::format("{} at {}", percent(each.alone.worst_error),
                               format_bytes(each.alone.worst_bytes)),
                   format_seconds(each.in_windows.latency), gigabytes(each.one_pair),
                   gigabytes(each.two_pairs)});
  return table.to_string();
}

}  // namespace

Status cmd_system_calibrate(const Arguments& arguments, Console& console) {
  constexpr double kMostSeconds = 60;
  const double seconds = arguments.real("seconds");
  if (!(seconds > 0) || seconds > kMostSeconds)
    return usage_error("--seconds {}; it is above 0 and at most {}", seconds, kMostSeconds);
  const Target target = HONE_TRY(load_target(arguments.text("target")));
  std::vector<TransportKind> wanted;
  for (const TransportKind each : kLocalTransports)
    if (arguments.text("transport") == "all" || arguments.text("transport") == name(each))
      wanted.push_back(each);

  const std::unique_ptr<Progress> progress = console.progress();
  progress->start(static_cast<int64_t>(wanted.size()) * kMeasuredSizes, "sizes of messages");
  const double one_copy = copy_rate(1, seconds * kPartOfCopies / 2);
  const double two_copies = copy_rate(2, seconds * kPartOfCopies / 2);
  const MeasureLinkOptions options = {
      .seconds = seconds * (1 - kPartOfCopies) / static_cast<double>(wanted.size()),
      .progress = progress.get(),
      .cancel = &console.cancel()};
  std::vector<LinkCalibration> calibrations;
  for (const TransportKind each : wanted) {
    HONE_TRY(console.cancel().check());
    progress->now(name(each));
    calibrations.push_back(HONE_TRY(calibrate_links(each, options)));
  }
  progress->finish();

  const std::string output = arguments.text("output");
  if (output != "-") {
    console.write(table_of(calibrations));
    console.print("copies of memory: {} by one thread, {} by two\n", gigabytes(one_copy),
                  gigabytes(two_copies));
  }
  if (output.empty()) return {};
  const System system =
      HONE_TRY(calibrated_system(calibrations.front(), arguments.integer("devices"), target));
  return write_text(output, print(system), console);
}

}  // namespace hone::cli

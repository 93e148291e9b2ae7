#include <algorithm>

#include "base/text.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/machines.h"
#include "cli/prices.h"
#include "cli/processes.h"
#include "cli/source.h"
#include "transport/calibrate_links.h"
#include "transport/mpi_transport.h"

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

using Calibrations = std::vector<LinkCalibration>;

Result<Calibrations> calibrate_here(std::string_view transport, const MeasureLinkOptions& options,
                                    double seconds) {
  std::vector<TransportKind> wanted;
  for (const TransportKind each : kLocalTransports)
    if (transport == "all" || transport == name(each)) wanted.push_back(each);
  options.progress->start(static_cast<int64_t>(wanted.size()) * kMeasuredSizes,
                          "sizes of messages");
  MeasureLinkOptions part = options;
  part.seconds = seconds / static_cast<double>(wanted.size());
  Calibrations calibrations;
  for (const TransportKind each : wanted) {
    HONE_TRY(options.cancel->check());
    options.progress->now(name(each));
    calibrations.push_back(HONE_TRY(calibrate_links(each, part)));
  }
  return calibrations;
}

// Ranks 0 and 1 measure. None: this is another rank than 0.
Result<Calibrations> calibrate_ranks(const Mpi& mpi, Transport& transport,
                                     const MeasureLinkOptions& options) {
  if (mpi.rank() == 1) HONE_TRY(answer_calibration(transport, 0, 1));
  if (mpi.rank() != 0) return Calibrations();
  options.progress->start(kMeasuredSizes, "sizes of messages");
  return Calibrations{HONE_TRY(calibrate_link(TransportKind::mpi, transport, 0, 1, options))};
}

Result<Calibrations> calibrate_mpi(MeasureLinkOptions options, double seconds) {
  const std::shared_ptr<Mpi> mpi =
      HONE_TRY(started_mpi("mpirun -n 2 hone system calibrate --transport mpi"));
  options.seconds = seconds;
  const Result<std::unique_ptr<Transport>> transport = join_mpi(mpi, 1);
  Result<Calibrations> calibrations = transport.ok() ? calibrate_ranks(*mpi, **transport, options)
                                                     : Result<Calibrations>(transport.error());
  if (!calibrations.ok()) mpi->fail();
  return calibrations;
}

}  // namespace

Status cmd_system_calibrate(const Arguments& arguments, Console& console) {
  constexpr double kMostSeconds = 60;
  const double seconds = arguments.real("seconds");
  if (!(seconds > 0) || seconds > kMostSeconds)
    return usage_error("--seconds {}; it is above 0 and at most {}", seconds, kMostSeconds);
  const Target target = HONE_TRY(load_target(arguments.text("target")));
  if (arguments.text("output").empty())  // what is wrong is found before the work
    HONE_TRY(user_prices().check_keeps(HONE_TRY(host_target())));
  const std::string transport = arguments.text("transport");
  const std::unique_ptr<Progress> progress = console.progress();
  const MeasureLinkOptions options = {.progress = progress.get(), .cancel = &console.cancel()};
  const double left = seconds * (1 - kPartOfCopies);
  const Calibrations calibrations = HONE_TRY(
      transport == "mpi" ? calibrate_mpi(options, left) : calibrate_here(transport, options, left));
  if (calibrations.empty()) return {};
  const double one_copy = copy_rate(1, seconds * kPartOfCopies / 2);
  const double two_copies = copy_rate(2, seconds * kPartOfCopies / 2);
  progress->finish();

  const std::string output = arguments.text("output");
  if (output != "-") {
    console.write(table_of(calibrations));
    console.print("copies of memory: {} by one thread, {} by two\n", gigabytes(one_copy),
                  gigabytes(two_copies));
  }
  const System system =
      HONE_TRY(calibrated_system(calibrations.front(), arguments.integer("devices"), target));
  if (!output.empty()) return write_text(output, print(system), console);
  const Target host = HONE_TRY(host_target());
  HONE_TRY(user_prices().keep_links(host, system));
  console.note("wrote {}; --devices plans by the links of {} from now on",
               HONE_TRY(user_prices().links_file(host)), name(calibrations.front().transport));
  return {};
}

}  // namespace hone::cli

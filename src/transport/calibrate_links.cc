#include "transport/calibrate_links.h"

#include <algorithm>
#include <thread>

#include "target/presets.h"

namespace hone {
namespace {

constexpr double kPartOfPairs = 0.1;  // of the time, for each of both rates

// The pair of devices 2i and 2i+1, by two threads.
template <class Measured>
Measured by_pair(const LocalGroup& group, int32_t i,
                 Measured (*measure)(Transport&, int32_t, int32_t, const MeasureLinkOptions&),
                 const MeasureLinkOptions& options) {
  const int32_t from = 2 * i, to = from + 1;
  std::thread answering([&] { (void)answer_link(group.of(to), from, to); });  // both end together
  Measured measured = measure(group.of(from), from, to, options);
  answering.join();
  return measured;
}

// Bytes per second of pairs of devices at once, together.
Result<double> rate_of_pairs(TransportKind transport, int32_t pairs,
                             const MeasureLinkOptions& options) {
  const LocalGroup group = HONE_TRY(LocalGroup::join(transport, 2 * pairs));
  std::vector<Result<double>> rates(static_cast<size_t>(pairs), Result<double>(0.0));
  std::vector<std::thread> threads;
  for (int32_t i = 0; i < pairs; ++i)
    threads.emplace_back(
        [&, i] { rates[static_cast<size_t>(i)] = by_pair(group, i, &measure_rate, options); });
  for (std::thread& thread : threads) thread.join();
  double total = 0;
  for (const Result<double>& rate : rates) total += HONE_TRY(Result<double>(rate));
  return total;
}

}  // namespace

Result<LinkCalibration> calibrate_links(TransportKind transport,
                                        const MeasureLinkOptions& options) {
  MeasureLinkOptions part = options;
  part.seconds = options.seconds * (1 - 2 * kPartOfPairs);
  const LocalGroup group = HONE_TRY(LocalGroup::join(transport, 2));
  const LinkTimes times = HONE_TRY(by_pair(group, 0, &measure_link, part));
  part.seconds = options.seconds * kPartOfPairs;
  return LinkCalibration{.transport = transport,
                         .alone = HONE_TRY(fit_link(times.alone)),
                         .in_windows = HONE_TRY(fit_link(times.in_windows)),
                         .one_pair = HONE_TRY(rate_of_pairs(transport, 1, part)),
                         .two_pairs = HONE_TRY(rate_of_pairs(transport, 2, part))};
}

Result<LinkCalibration> calibrate_link(TransportKind kind, Transport& transport, int32_t from,
                                       int32_t to, const MeasureLinkOptions& options) {
  MeasureLinkOptions part = options;
  part.seconds = options.seconds * (1 - kPartOfPairs);
  const LinkTimes times = HONE_TRY(measure_link(transport, from, to, part));
  part.seconds = options.seconds * kPartOfPairs;
  const double rate = HONE_TRY(measure_rate(transport, from, to, part));
  return LinkCalibration{.transport = kind,
                         .alone = HONE_TRY(fit_link(times.alone)),
                         .in_windows = HONE_TRY(fit_link(times.in_windows)),
                         .one_pair = rate,
                         .two_pairs = rate};
}

Status answer_calibration(Transport& transport, int32_t from, int32_t to) {
  HONE_TRY(answer_link(transport, from, to));
  return answer_link(transport, from, to);
}

Result<System> calibrated_system(const LinkCalibration& calibration, int64_t devices,
                                 const Target& target) {
  System system = HONE_TRY(preset_system(fmt::format("local:{}", devices), target));
  const LinkFit& fit = calibration.alone;
  const auto rate = [](double each) { return std::clamp(each, kMinBandwidth, kMaxBandwidth); };
  // A message crosses the star twice.
  Links star = {.name = std::string(name(calibration.transport)),
                .shape = Shape::star,
                .over = std::string(kAllDevices)};
  star.bytes_per_second = rate(fit.bytes_per_second);
  star.latency = std::min(fit.latency, kMaxLatency) / 2;
  Links bus = {.name = "memory",
               .shape = Shape::bus,
               .over = std::string(kAllDevices),
               .duplex = Duplex::half};
  bus.bytes_per_second = rate(std::max(calibration.two_pairs, fit.bytes_per_second));
  system.name = fmt::format("local:{} by {}", devices, name(calibration.transport));
  system.links = {star, bus};
  HONE_TRY(check(system));
  return system;
}

}  // namespace hone

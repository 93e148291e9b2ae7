#include "tune/similar_kernels.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "cost/kernel_price.h"
#include "kernel/kernel_kind.h"
#include "kernel/kernel_text.h"
#include "learn/kernel_data.h"
#include "measure/samples.h"
#include "target/fingerprint.h"
#include "tune/kernel_meter.h"

namespace hone {
namespace {

constexpr double kFarthest = 3;  // of features: a kernel beyond it says nothing

// The fastest record of a kernel.
struct Fastest {
  double seconds = 0;
  std::string choice;
};

// The share of a condition that is the same for kernels with other inputs.
std::string conditions_of(int64_t threads) {
  const std::string text = MeterConditions{.threads = threads}.text();
  return text.substr(0, text.rfind(' ') + 1);
}

double distance_of(const Features& a, const Features& b) {
  double sum = 0;
  for (size_t f = 0; f < kKernelFeatures; ++f) {
    const double apart = static_cast<double>(a.all()[f]) - static_cast<double>(b.all()[f]);
    sum += apart * apart;
  }
  return std::sqrt(sum);
}

}  // namespace

Features SimilarKernels::features_of(const KernelFacts& facts) const {
  return KernelPrice(facts, target_, Prices(), threads_).of_kernel();
}

Result<SimilarKernels> SimilarKernels::of(const Log& log, const Target& target, int64_t threads) {
  SimilarKernels similar(target, threads);
  const std::string conditions = conditions_of(threads);
  std::map<uint64_t, Fastest> fastest;
  const auto note = [&](const Record& record) -> Status {
    if (!record.conditions.starts_with(conditions) || record.seconds.empty()) return {};
    const double seconds = typical(record.seconds);
    const auto [at, is_new] = fastest.try_emplace(record.subject);
    if (is_new || seconds < at->second.seconds) at->second = {seconds, record.choice};
    return {};
  };
  HONE_TRY(log.visit(
      {.kind = "kernel", .target = fingerprint(target), .outcome = Outcome::measured}, note));
  for (const auto& [subject, record] : fastest) {
    const std::optional<std::string> text = HONE_TRY(log.text("kernel", subject));
    if (!text) continue;
    const Result<KernelBody> body = parse_kernel(*text, "log");
    Result<Schedule> schedule = schedule_of(record.choice);
    if (!body.ok() || !schedule.ok()) continue;
    const KernelFacts facts(*body);
    similar.kernels_.push_back({.kind = std::string(kernel_kind(facts, Algorithm::generic)),
                                .dims = facts.loops.size(),
                                .features = similar.features_of(facts),
                                .fastest = *std::move(schedule)});
  }
  return similar;
}

std::vector<Schedule> SimilarKernels::of(const KernelFacts& facts, size_t most) const {
  const Features features = features_of(facts);
  const std::string_view kind = kernel_kind(facts, Algorithm::generic);
  std::vector<std::pair<double, const Kernel*>> near;
  for (const Kernel& kernel : kernels_) {
    if (kernel.kind != kind || kernel.dims != facts.loops.size()) continue;
    const double distance = distance_of(features, kernel.features);
    if (distance <= kFarthest) near.emplace_back(distance, &kernel);
  }
  std::ranges::sort(near);
  std::vector<Schedule> schedules;
  for (const auto& [distance, kernel] : near) {
    if (schedules.size() == most) break;
    Schedule schedule = fitted_to(kernel->fastest, facts);
    if (std::ranges::find(schedules, schedule) == schedules.end() &&
        check_schedule(facts.body, schedule, target_).ok())
      schedules.push_back(std::move(schedule));
  }
  return schedules;
}

Schedule fitted_to(Schedule schedule, const KernelFacts& facts) {
  const auto fit = [&](std::vector<Tile>& tiles) {
    for (Tile& tile : tiles)
      if (tile.dim >= 0 && static_cast<size_t>(tile.dim) < facts.loops.size())
        tile.count = std::min(
            tile.count, static_cast<int64_t>(facts.loops[static_cast<size_t>(tile.dim)].extent));
  };
  fit(schedule.unroll);
  each_own_field(schedule, [&](std::string_view, auto& field) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(field)>, std::vector<Tile>>)
      fit(field);
  });
  return schedule;
}

}  // namespace hone

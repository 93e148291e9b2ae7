#include "measure/duel.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>

namespace hone {
namespace {

using Clock = std::chrono::steady_clock;
using Rounds = std::span<const std::vector<double>>;

constexpr double kLeastSample = 50e-6;  // seconds: a thousand times what the clock can tell
constexpr int64_t kMostRuns = 100'000;  // of a sample
constexpr size_t kMostRounds = 48;      // 2^48 sets of ranks are numbers without rounding

double median_of(std::vector<double> samples) {
  std::ranges::sort(samples);
  return Timing{std::move(samples)}.median();
}

std::vector<double> joined(Rounds rounds) {
  std::vector<double> all;
  for (const std::vector<double>& one : rounds) {
    HONE_CHECK(!one.empty(), "a round without a run");
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

// Takes n numbers that lie around 0 as often above as below. They have n (n + 1) / 2 means of
// pairs, each number with itself among them. Returns how many of these lie below 0 with a
// probability of at most kDuelError / 2. The number of sets of ranks 1 to n of each sum says how
// likely a sum is.
size_t means_below(size_t n) {
  std::vector<double> sets(n * (n + 1) / 2 + 1, 0);
  sets[0] = 1;
  for (size_t rank = 1; rank <= n; ++rank)
    for (size_t sum = sets.size() - 1; sum >= rank; --sum) sets[sum] += sets[sum - rank];
  const double all = std::exp2(static_cast<double>(n));
  double below = 0;
  size_t count = 0;
  while (count < sets.size() && (below += sets[count]) <= kDuelError / 2 * all) ++count;
  return count;
}

// Sorted.
std::vector<double> means_of_pairs(std::span<const double> numbers) {
  std::vector<double> means;
  means.reserve(numbers.size() * (numbers.size() + 1) / 2);
  for (size_t i = 0; i < numbers.size(); ++i)
    for (size_t j = i; j < numbers.size(); ++j) means.push_back((numbers[i] + numbers[j]) / 2);
  std::ranges::sort(means);
  return means;
}

}  // namespace

Duel judged(Rounds a, Rounds b) {
  HONE_CHECK(a.size() == b.size() && !a.empty(), "{} rounds against {}", a.size(), b.size());
  Duel duel;
  std::vector<double> logs;
  const size_t together = (a.size() + kMostRounds - 1) / kMostRounds;
  for (size_t first = 0; first < a.size(); first += together) {
    const size_t count = std::min(together, a.size() - first);
    const std::vector<double> all_a = joined(a.subspan(first, count)),
                              all_b = joined(b.subspan(first, count));
    duel.a.seconds.insert(duel.a.seconds.end(), all_a.begin(), all_a.end());
    duel.b.seconds.insert(duel.b.seconds.end(), all_b.begin(), all_b.end());
    const double of_a = median_of(all_a), of_b = median_of(all_b);
    // The clock tells nothing of times that it cannot see.
    logs.push_back(of_a > 0 && of_b > 0 ? std::log(of_b / of_a) : 0);
    duel.rounds.push_back({of_a, of_b});
  }
  for (Timing* side : {&duel.a, &duel.b}) std::ranges::sort(side->seconds);
  const Timing means = {means_of_pairs(logs)};
  duel.ratio = std::exp(means.median());
  if (const size_t below = means_below(logs.size()); below > 0)
    duel.interval = Interval{std::exp(means.seconds[below - 1]),
                             std::exp(means.seconds[means.seconds.size() - below])};
  return duel;
}

bool b_begins(int64_t round) { return std::popcount(static_cast<uint64_t>(round)) % 2 != 0; }

Result<Duel> measure_in_turns(int64_t rounds, const CancelToken& cancel, const DuelSide& a,
                              const DuelSide& b) {
  std::vector<std::vector<double>> samples[2];
  for (int64_t round = 0; round < rounds; ++round) {
    const size_t first = b_begins(round) ? 1 : 0;
    for (const DuelSide* side : {&a, &b})
      if (side->leave) side->leave();
    for (const size_t side : {first, 1 - first}) {
      const auto& place = (side == 0 ? a : b).place;
      HONE_TRY(cancel.check());
      if (place) HONE_TRY(place());
    }
    for (const size_t side : {first, 1 - first}) {
      HONE_TRY(cancel.check());
      samples[side].push_back(HONE_TRY((side == 0 ? a : b).run()));
    }
  }
  return judged(samples[0], samples[1]);
}

RunBlock block_of(double seconds, std::function<Status()> run) {
  return [seconds, run = std::move(run)]() -> Result<std::vector<double>> {
    std::vector<double> samples;
    const auto elapsed = [start = Clock::now()] {
      return std::chrono::duration<double>(Clock::now() - start).count();
    };
    const auto runs = [&](int64_t count) -> Result<double> {
      const double all = HONE_TRY(measure_once([&]() -> Status {
        for (int64_t i = 0; i < count; ++i) HONE_TRY(run());
        return {};
      }));
      return all / static_cast<double>(count);
    };
    const double one = HONE_TRY(runs(1));
    const int64_t together = times_in(kLeastSample, one, 1, kMostRuns);
    if (together == 1) samples.push_back(one);
    while (samples.empty() || elapsed() < seconds) samples.push_back(HONE_TRY(runs(together)));
    return samples;
  };
}

}  // namespace hone

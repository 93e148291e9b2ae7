#include "measure/duel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <fstream>
#include <memory>
#include <numbers>
#include <sstream>
#include <string>
#include <utility>

#include "base/rng.h"

namespace hone::HONE_FILE {
namespace {

// ---- A machine that is made up ------------------------------------------------------------------

// The noise that makes times of equal things differ.
struct Noise {
  const char* name;
  double each = 0.005;  // of each run, a deviation
  double place = 0;     // of each place in memory, a deviation
  double second = 0;    // the one that is placed second takes longer by this
  double wave = 0;      // a swing of the machine, in 2 rounds or so
  double slope = 0;     // from the beginning to the end
  double speeds = 0;    // the slower of two speeds; they last for some rounds
  double bursts = 0;    // of ten runs or so, by this factor
  double memory = 0;    // of a slow walk, its deviation
};
constexpr Noise kNoises[] = {
    {.name = "quiet"},
    {.name = "loud", .each = 0.2},
    {.name = "places", .place = 0.03},
    {.name = "order", .place = 0.01, .second = 0.05},
    {.name = "wave", .wave = 0.1},
    {.name = "drift", .slope = 0.6},
    {.name = "two speeds", .speeds = 0.6},
    {.name = "bursts", .bursts = 9},
    {.name = "a slow walk", .memory = 0.1},
    {.name = "all",
     .each = 0.03,
     .place = 0.03,
     .second = 0.02,
     .wave = 0.03,
     .slope = 0.2,
     .speeds = 0.4,
     .bursts = 3,
     .memory = 0.03},
};

class Machine {
 public:
  static constexpr int64_t kRuns = 5;  // of a block

  Machine(const Noise& noise, int64_t rounds, uint64_t seed)
      : noise_(noise), runs_(static_cast<double>(2 * kRuns * rounds)), rng_(seed) {}

  // Takes so long where nothing disturbs.
  DuelSide side(double seconds) {
    auto place = std::make_shared<double>(1);
    return {.run = [this, place, seconds]() -> Result<std::vector<double>> {
              std::vector<double> samples(kRuns);
              for (double& sample : samples) sample = seconds * *place * next();
              return samples;
            },
            .leave = {},
            .place = [this, place]() -> Status {
              const bool is_second = std::exchange(has_first_, !has_first_);
              *place = std::exp(noise_.place * rng_.normal()) * (is_second ? 1 + noise_.second : 1);
              return {};
            }};
  }

 private:
  // How many times as long a run takes now.
  double next() {
    const double now = ++run_;
    if (noise_.speeds > 0 && rng_.chance(0.03)) is_slow_ = !is_slow_;
    if (noise_.bursts > 0 && rng_.chance(0.01)) burst_ = rng_.between(1, 10);
    walk_ = 0.99 * walk_ + 0.141 * noise_.memory * rng_.normal();
    double factor = std::exp(noise_.each * std::abs(rng_.normal()) + walk_);
    factor *= 1 + noise_.wave * std::sin(now * std::numbers::pi / (2 * kRuns + 0.3));
    factor *= 1 + noise_.slope * now / runs_;
    if (is_slow_) factor *= 1 + noise_.speeds;
    if (burst_ > 0 && burst_-- > 0) factor *= 1 + noise_.bursts * rng_.uniform();
    return factor;
  }

  const Noise& noise_;
  const double runs_;  // of all
  Rng rng_;
  double run_ = 0, walk_ = 0;
  int64_t burst_ = 0;
  bool is_slow_ = false, has_first_ = false;
};

Duel duel_on(const Noise& noise, int64_t rounds, double ratio, uint64_t seed) {
  const CancelToken cancel;
  Machine machine(noise, rounds, seed);
  const DuelSide a = machine.side(1e-3), b = machine.side(ratio * 1e-3);
  return measure_in_turns(rounds, cancel, a, b).value();
}

bool has_verdict(const Duel& duel) { return duel.b_is_faster() || duel.b_is_slower(); }

// ---- How often equal sides are told apart -------------------------------------------------------

// More of these pairs of equal sides have a verdict once in a thousand times.
int most_verdicts(int pairs) {
  const double expected = kDuelError * pairs;
  return static_cast<int>(expected + 3.1 * std::sqrt(expected));
}

TEST(Duel, EqualSidesHardlyEverHaveAVerdict) {
  constexpr int kPairs = 1000;  // of each noise
  int all = 0;
  for (const Noise& noise : kNoises) {
    int verdicts = 0;
    for (uint64_t pair = 0; pair < kPairs; ++pair)
      verdicts += has_verdict(duel_on(noise, 8 + static_cast<int64_t>(pair) % 17, 1, pair)) ? 1 : 0;
    EXPECT_LE(verdicts, most_verdicts(kPairs)) << noise.name;
    all += verdicts;
  }
  EXPECT_LE(all, most_verdicts(kPairs * static_cast<int>(std::size(kNoises))));
}

struct Found {
  int right = 0, wrong = 0;
};
Found found_on(const Noise& noise, int64_t rounds, double ratio, int pairs) {
  Found found;
  for (uint64_t pair = 0; pair < static_cast<uint64_t>(pairs); ++pair) {
    const Duel duel = duel_on(noise, rounds, ratio, pair);
    const bool is_slower = duel.b_is_slower();
    if (is_slower || duel.b_is_faster()) ++(is_slower == (ratio > 1) ? found.right : found.wrong);
  }
  return found;
}

TEST(Duel, ADifferenceIsFound) {
  constexpr int kPairs = 200;
  for (double ratio : {0.97, 1.03}) {
    EXPECT_EQ(found_on(kNoises[0], kLeastDuelRounds, ratio, kPairs).right, kPairs) << "quiet";
    EXPECT_GE(found_on(kNoises[2], 24, ratio, kPairs).right, kPairs / 2) << "places";
    EXPECT_GE(found_on(kNoises[5], 24, ratio, kPairs).right, kPairs * 9 / 10) << "drift";
  }
  for (const Noise& noise : kNoises)
    for (double ratio : {0.7, 1 / 0.7}) {
      const Found found = found_on(noise, 24, ratio, kPairs);
      EXPECT_GE(found.right, kPairs * 8 / 10) << noise.name;
      EXPECT_EQ(found.wrong, 0) << noise.name;
    }
}

// The ratio and its interval are about the true one, not about 1.
TEST(Duel, TheIntervalHoldsTheRatio) {
  constexpr int kPairs = 1000;
  int missed = 0;
  for (uint64_t pair = 0; pair < kPairs; ++pair) {
    const Duel duel = duel_on(kNoises[2], 16, 1.2, pair);
    missed += duel.interval->low <= 1.2 && 1.2 <= duel.interval->high ? 0 : 1;
    EXPECT_LE(duel.interval->low, duel.ratio);
    EXPECT_LE(duel.ratio, duel.interval->high);
  }
  EXPECT_LE(missed, most_verdicts(kPairs));
}

// ---- Of real runs -------------------------------------------------------------------------------

// Medians of rounds of a model against itself: "a/b a/b ...", a line for each duel. Times of two
// cores that others used as well (docs/measuring.md).
std::vector<std::array<std::vector<std::vector<double>>, 2>> recorded_duels() {
  std::ifstream file(HONE_TEST_DIR "/measure/data/equal_plans.txt");
  EXPECT_TRUE(file) << "tests/measure/data/equal_plans.txt";
  std::vector<std::array<std::vector<std::vector<double>>, 2>> duels;
  for (std::string line; std::getline(file, line);) {
    auto& duel = duels.emplace_back();
    std::istringstream words(line);
    double a = 0, b = 0;
    for (char slash = 0; words >> a >> slash >> b;) {
      duel[0].push_back({a});
      duel[1].push_back({b});
    }
  }
  return duels;
}

TEST(Duel, RecordedRunsOfOnePlanHardlyEverHaveAVerdict) {
  const auto duels = recorded_duels();
  ASSERT_GE(duels.size(), 100U);
  int verdicts = 0;
  for (const auto& [a, b] : duels) verdicts += has_verdict(judged(a, b)) ? 1 : 0;
  EXPECT_LE(verdicts, most_verdicts(static_cast<int>(duels.size())));
}

// Runs of the same file, one side of which is made longer.
TEST(Duel, ADifferenceOfRecordedRunsIsFound) {
  int found = 0, wrong = 0;
  auto duels = recorded_duels();
  for (auto& [a, b] : duels) {
    for (std::vector<double>& round : b) round[0] *= 1.3;
    const Duel duel = judged(a, b);
    found += duel.b_is_slower() ? 1 : 0;
    wrong += duel.b_is_faster() ? 1 : 0;
  }
  EXPECT_GE(found, static_cast<int>(duels.size()) / 2);
  EXPECT_EQ(wrong, 0);
}

// ---- The protocol -------------------------------------------------------------------------------

TEST(Duel, TakesTurnsAtNewPlaces) {
  std::string order;
  const CancelToken cancel;
  const auto side = [&](char name, double seconds) {
    return DuelSide{.run = [&order, name, seconds]() -> Result<std::vector<double>> {
                      order += name;
                      return std::vector<double>{seconds, 2 * seconds, 3 * seconds};
                    },
                    .leave = [&order] { order += '-'; },
                    .place = [&order, name]() -> Status {
                      order += static_cast<char>(std::toupper(name));
                      return {};
                    }};
  };
  const Duel duel = measure_in_turns(8, cancel, side('a', 2), side('b', 3)).value();
  EXPECT_EQ(order, "--ABab--BAba--BAba--ABab--BAba--ABab--ABab--BAba");
  EXPECT_DOUBLE_EQ(duel.ratio, 1.5);
  EXPECT_DOUBLE_EQ(duel.interval->low, 1.5);
  EXPECT_TRUE(duel.b_is_slower());
  EXPECT_EQ(duel.a.seconds.size(), 24U);
  EXPECT_EQ(duel.rounds.size(), 8U);
  EXPECT_TRUE(std::ranges::is_sorted(duel.a.seconds));
  EXPECT_FALSE(measure_in_turns(7, cancel, side('a', 2), side('b', 3))->interval.has_value());
}

// Runs that the clock can hardly tell apart are measured several together.
TEST(Duel, BlocksHaveNoSamplesBelowTheClock) {
  int64_t runs = 0;
  const std::vector<double> samples = block_of(0.002,
                                               [&]() -> Status {
                                                 ++runs;
                                                 return {};
                                               })()
                                          .value();
  EXPECT_GE(samples.size(), 1U);
  EXPECT_GT(runs, 10 * static_cast<int64_t>(samples.size()));  // more where the machine is idle
}

TEST(Duel, FewOrStrangeTimesHaveNoVerdict) {
  const auto one = [](double a, double b, size_t rounds) {
    return judged(std::vector<std::vector<double>>(rounds, {a}),
                  std::vector<std::vector<double>>(rounds, {b}));
  };
  EXPECT_FALSE(one(1, 2, 7).interval);
  EXPECT_EQ(one(1, 2, 1).ratio, 2);
  EXPECT_TRUE(one(1, 2, 8).b_is_slower());
  EXPECT_FALSE(has_verdict(one(0, 1, 20)));  // shorter than the clock can tell
  EXPECT_FALSE(has_verdict(one(1, 1, 20)));
}

// Neighbours of very many rounds count as one, so that a verdict stays cheap.
TEST(Duel, VeryManyRoundsAreAVerdictToo) {
  const Duel duel = judged(std::vector<std::vector<double>>(100'000, {1}),
                           std::vector<std::vector<double>>(100'000, {1.5}));
  EXPECT_DOUBLE_EQ(duel.ratio, 1.5);
  EXPECT_EQ(duel.a.seconds.size(), 100'000U);
  EXPECT_TRUE(duel.b_is_slower());
}

// The tables of Wilcoxon's test at 1 %: how many of the means of n ranks lie outside.
TEST(Duel, TheIntervalIsThatOfSignedRanks) {
  const std::pair<size_t, size_t> table[] = {{8, 0}, {10, 3}, {12, 7}, {16, 19}, {20, 37}};
  for (const auto& [n, below] : table) {
    std::vector<std::vector<double>> a(n, {1}), b;
    std::vector<double> means;
    for (size_t i = 0; i < n; ++i) b.push_back({std::exp(static_cast<double>(i * i))});
    for (size_t i = 0; i < n; ++i)
      for (size_t j = i; j < n; ++j) means.push_back(static_cast<double>(i * i + j * j) / 2);
    std::ranges::sort(means);
    EXPECT_DOUBLE_EQ(std::log(judged(a, b).interval->low), means[below]) << n;
  }
}

}  // namespace
}  // namespace hone::HONE_FILE

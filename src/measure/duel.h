#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/progress.h"
#include "measure/timing.h"

// Two things that are measured in turns, and whether one of them is surely faster.
// docs/measuring.md says why a verdict is made so.

namespace hone {

// Equal sides are told apart, and an interval misses the true ratio, in at most this share of all
// duels.
inline constexpr double kDuelError = 0.01;
// Fewer rounds have no interval: those of chance agree too often.
inline constexpr int64_t kLeastDuelRounds = 8;

struct Duel {
  struct Round {
    double a = 0, b = 0;  // medians, in seconds
  };
  Timing a, b;
  std::vector<Round> rounds = {};         // in order of time
  double ratio = 1;                       // b's time for one of a's
  std::optional<Interval> interval = {};  // of the ratio; none: too few rounds
  bool b_is_faster() const { return interval && interval->high < 1; }
  bool b_is_slower() const { return interval && interval->low > 1; }
};

// Samples of each round, in seconds; of very many rounds, neighbours count as one. Whoever measures
// has placed both sides anew before each round, and b_begins() has said which one was placed and
// run first. Then the logarithm of a round's ratio is as likely above the true one as as far below
// it, whatever the machine does beside. The ratio and its interval are those of Wilcoxon's
// signed ranks (Hodges and Lehmann).
Duel judged(std::span<const std::vector<double>> a, std::span<const std::vector<double>> b);

// The order of rounds: half of them begin with b, and neither a trend nor a beat of the machine
// falls on one side (Thue and Morse).
bool b_begins(int64_t round);

// One side of a comparison: some runs, and what each took in seconds.
using RunBlock = std::function<Result<std::vector<double>>()>;
struct DuelSide {
  RunBlock run;
  // Gives up its place in memory; then puts code and data at another one, and runs there once.
  // Null: they have no place of their own, as a block that is a process. Both sides leave before
  // either is placed: the system gives pages anew that were freed last, so each would have its own
  // ones again.
  std::function<void()> leave = {};
  std::function<Status()> place = {};
};
// `rounds` is kLeastDuelRounds at least if there is to be an interval.
Result<Duel> measure_in_turns(int64_t rounds, const CancelToken& cancel, const DuelSide& a,
                              const DuelSide& b);

// A block of runs in this process, of about this length, one at least. Runs that are too short for
// the clock are measured several together, and count as one.
RunBlock block_of(double seconds, std::function<Status()> run);

}  // namespace hone

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/team.h"
#include "ir/graph.h"
#include "plan/plan.h"
#include "target/target.h"

// Differential tests compare the outputs of native code under some plan with those of the
// reference.

namespace hone {

// The way to compare outputs with the reference.
enum class Judge : uint8_t {
  // Each op rounded to its type, within the default tolerance. Any graph.
  rounded,
  // As accurate as fp32 is (accuracy.h). Graphs of ops that are continuous.
  accurate,
  // As `rounded`, but each number within a tolerance of its own size, and zeros by their signs: for
  // special numbers (special_judge.h). Any graph.
  special,
};
inline constexpr Judge kJudges[] = {Judge::rounded, Judge::accurate, Judge::special};
std::string_view name(Judge judge);

struct DifferentialCase {
  Graph graph;  // open sizes are those of the inputs
  std::vector<Tensor> inputs;
  Plan plan = {};  // whole or in part
  Isa isa = Isa::v2;
  Judge judge = Judge::rounded;
};

// docs/testing.md describes the text. Reading the text gives the same case.
std::string print(const DifferentialCase& one);
Result<DifferentialCase> parse_case(std::string_view text, std::string_view file = "<text>");

// The case of a seed: a small random graph for one of the levels of instructions up to `highest`.
// The plan is mostly random; sometimes it is the planner's with some heuristics left out. Graphs
// have gradients sometimes, or always: of those that have none, another one is drawn.
enum class Derives : uint8_t { sometimes, always };
DifferentialCase random_case(uint64_t seed, const Target& host, Isa highest,
                             Derives derives = Derives::sometimes);

enum class Verdict : uint8_t {
  passed,
  unstable,  // the reference says different things in its modes, so nothing can be said
  unproved,  // a graph with open sizes is refused as unsupported
  wrong,     // other outputs than the reference's
  refused,   // an error on the way
  fault,     // an exception
  crashed,   // the process ended; whoever started it says so
};
inline constexpr Verdict kVerdicts[] = {Verdict::passed, Verdict::unstable, Verdict::unproved,
                                        Verdict::wrong,  Verdict::refused,  Verdict::fault,
                                        Verdict::crashed};
std::string_view name(Verdict verdict);
inline bool is_failure(Verdict verdict) { return verdict > Verdict::unproved; }

struct DifferentialOutcome {
  Verdict verdict = Verdict::passed;
  std::string reason = {};        // "" if it passed
  std::optional<Plan> plan = {};  // that was carried out, if there is one
};

// Compiles and runs the case in this process: code that is wrong enough takes the caller along.
// `team` has as many threads as the host has cores. Throws std::bad_alloc alone.
DifferentialOutcome run_case(const DifferentialCase& one, const Target& host,
                             const std::shared_ptr<Team>& team);

}  // namespace hone

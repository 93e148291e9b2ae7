#include <gtest/gtest.h>

#include "compile/compilation.h"
#include "ir/text.h"
#include "oracle/differential.h"
#include "plan/random_plan.h"
#include "tests/rewrite/quantized_testing.h"

namespace hone {
namespace {

TEST(Quantized, RandomGraphsAreAsAccurateAsPlainReals) {
  const Target host = host_target().value();
  const std::shared_ptr<Team> team = Team::create({.threads = 1}).value();
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    DifferentialCase one = {.graph = RandomQuantized(rng).graph(), .inputs = {}};
    one.inputs = random_bytes(one.graph, rng);
    one.isa = rng.chance(0.7) ? host.isa : Isa::avx2;
    one.judge = Judge::accurate;
    if (rng.chance(0.5)) {
      const Target target = restricted(host, one.isa);
      one.plan = random_plan(*Compilation(one.graph, target).graph().value(), target, seed);
    }
    const DifferentialOutcome outcome = run_case(one, host, team);
    EXPECT_FALSE(is_failure(outcome.verdict)) << outcome.reason << print(one);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace hone

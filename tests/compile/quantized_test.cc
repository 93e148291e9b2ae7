#include <gtest/gtest.h>

#include "compile/compilation.h"
#include "compile/native_model.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "oracle/differential.h"
#include "plan/random_plan.h"
#include "tests/base/share_testing.h"
#include "tests/rewrite/quantized_testing.h"

namespace hone::HONE_FILE {
namespace {

TEST(Quantized, RandomGraphsAreAsAccurateAsPlainReals) {
  const Target host = host_target().value();
  const std::shared_ptr<Team> team = Team::create({.threads = 1}).value();
  for (uint64_t seed = 0; seed < tested::share_of(16, 2); ++seed) {
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

// A few products of bytes, summed in lanes: each counts.
TEST(Quantized, ShortSumsOfProductsAreWhole) {
  for (int64_t depth : {1, 3, 4, 5, 7, 8, 9, 16, 17, 33})
    for (DType second : {DType::i8, DType::u8}) {
      SCOPED_TRACE(depth);
      Rng rng(static_cast<uint64_t>(depth));
      Builder b;
      const Value x = b.parameter("x", DType::u8, {1, depth});
      const Value w = b.parameter("w", second, {depth, 1});
      const Value y = b.op(Opcode::dot, {x, w},
                           {{"lhs_contract", Ints{1}},
                            {"rhs_contract", Ints{0}},
                            {"accumulate", std::string("i32")}});
      const Graph graph = b.finish({y}).value();
      const std::vector<Tensor> inputs = random_bytes(graph, rng);
      const auto native = NativeModel::make(model_of(graph), host_target().value()).value();
      const Tensor actual = native->run(inputs).value()[0];
      EXPECT_EQ(actual.integer_at(0), evaluate(graph, inputs).value()[0].integer_at(0));
    }
}

}  // namespace
}  // namespace hone::HONE_FILE

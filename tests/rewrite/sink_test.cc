#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "rewrite/passes.h"
#include "zoo/random/random_graph.h"

namespace hone::HONE_FILE {
namespace {

using ::testing::HasSubstr;

// The rest of the graph, as text.
std::string sunk(std::string_view text) {
  const Graph graph = sink_constants(parse_graph(text).value()).value();
  EXPECT_TRUE(verify(graph).ok()) << print(graph);
  return print(remove_dead_code(graph).value());
}

TEST(SinkConstants, MovesTheStateThatALoopHandsOn) {
  EXPECT_EQ(sunk(R"(graph @g(%x: f32[3, 2]) {
    %c = constant [1, 2] : f32[2]
    %d = constant [3, 4] : f32[2]
    %w, %s, %y = scan %c, %d, %x {carried = 2, reverse = true}
      body(%k: f32[2], %h: f32[2], %t: f32[2]) {
        %a = mul %h, %k
        %b = add %a, %t
        return %k, %b, %a
      }
    return %w, %s, %y
  })"),
            R"(graph @g(%x: f32[3, 2]) -> (f32[2], f32[2], f32[3, 2]) {
  %c = constant [1, 2] : f32[2]
  %d = constant [3, 4] : f32[2]
  %s, %y = scan %d, %x {carried = 1, reverse = true} body (%h: f32[2], %t: f32[2]) {
    %k = constant [1, 2] : f32[2]
    %a = mul %h, %k : f32[2]
    %b = add %a, %t : f32[2]
    return %b, %a
  } : f32[2], f32[3, 2]
  return %c, %s, %y
}
)");
}

TEST(SinkConstants, KeepsTheStateThatChanges) {
  const std::string text = sunk(R"(graph @g(%x: f32[3, 2]) {
    %c = constant [1, 2] : f32[2]
    %d = constant [3, 4] : f32[2]
    %a, %b, %y = scan %c, %d, %x {carried = 2}
      body(%k: f32[2], %h: f32[2], %t: f32[2]) { return %h, %k, %t }
    return %a, %b, %y
  })");
  EXPECT_THAT(text, HasSubstr("scan %c, %d, %x {carried = 2}"));
}

TEST(SinkConstants, TakesWhatNoLoopChangesFromBeforeIt) {
  const std::string text = sunk(R"(graph @g(%n: i32[], %k: i32[]) {
    %a, %b = while %n, %k
      condition(%i: i32[], %j: i32[]) {
        %c = compare %i, 10 {direction = lt}
        return %c
      }
      body(%i: i32[], %j: i32[]) {
        %next, %same = scan %i, %j {carried = 2, length = [2]}
          body(%p: i32[], %q: i32[]) {
            %r = add %p, %q
            return %r, %q
          }
        return %next, %same
      }
    return %a, %b
  })");
  EXPECT_THAT(text, HasSubstr("return %a, %k"));
}

// The name of a result goes to what stands for it; the loop still has the result.
TEST(SinkConstants, GivesEachNameToOneValue) {
  const Graph graph = sink_constants(parse_graph(R"(graph @g(%n: i32[], %k: i32[]) {
    %0 = neg %k
    %a, %b = while %n, %0
      condition(%i: i32[], %j: i32[]) {
        %c = compare %i, %j {direction = lt}
        return %c
      }
      body(%i: i32[], %j: i32[]) {
        %next = add %i, 1
        return %next, %j
      }
    return %a, %b
  })")
                                         .value())
                          .value();
  const Result<Graph> again =
      parse_graph(print(graph));  // which refuses a name that is there twice
  ASSERT_TRUE(again.ok()) << again.error().to_string() << print(graph);
  EXPECT_THAT(print(graph), HasSubstr("%b = neg %k"));
}

TEST(SinkConstants, MovesArgumentsOfBranchesAndCallsThroughAllDepths) {
  const std::string text = sunk(R"(graph @g(%p: bool[], %x: f32[2]) {
    %c = constant [1, 2] : f32[2]
    %y = if %p, %x, %c
      then(%a: f32[2], %b: f32[2]) {
        %z = call %a, %b
          callee(%u: f32[2], %v: f32[2]) {
            %s = add %u, %v
            return %s
          }
        return %z
      }
      else(%a: f32[2], %b: f32[2]) { return %b }
    return %y
  })");
  EXPECT_THAT(text, HasSubstr("if %p, %x then (%a: f32[2]) {"));
  EXPECT_THAT(text, HasSubstr("call %a callee (%u: f32[2]) {"));
}

TEST(SinkConstants, ComputesTheSame) {
  int changed = 0;
  for (const Opcode first : {Opcode::scan, Opcode::while_, Opcode::if_, Opcode::call}) {
    for (uint64_t seed = 0; seed < 40; ++seed) {
      SCOPED_TRACE(testing::Message() << name(first) << " " << seed);
      const Graph graph = random_graph({.seed = seed, .first = first});
      const std::vector<Tensor> inputs = random_graph_inputs(graph, seed);
      const Graph after = sink_constants(graph).value();
      ASSERT_TRUE(verify(after).ok());
      changed += structural_hash(after) == structural_hash(graph) ? 0 : 1;
      const std::vector<Tensor> a = evaluate(graph, inputs).value();
      const std::vector<Tensor> b = evaluate(after, inputs).value();
      for (size_t i = 0; i < a.size(); ++i)
        EXPECT_TRUE(std::ranges::equal(a[i].bytes(), b[i].bytes()));
    }
  }
  EXPECT_GT(changed, 0);
}

}  // namespace
}  // namespace hone::HONE_FILE

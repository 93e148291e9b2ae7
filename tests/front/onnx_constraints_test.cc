#include "front/onnx/constraints.h"

#include <gmock/gmock.h>

#include "ir/functional.h"
#include "tests/front/onnx_file.h"

// Demands of ops solved for open sizes, and files whose nodes have some.

namespace hone::onnx_testing::HONE_FILE {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

const Symbol n = Symbol::get("n", 0, 1000), m = Symbol::get("m", 0, 1000),
             k = Symbol::get("k", 0, 1000);

// "n in 3..1000, m = n"; "none".
std::string solution(Demand::Kind kind, Dim size, Dim wanted, bool has_cache = false) {
  const std::optional<Bindings> sizes = onnx_io::solved({kind, {size, wanted}}, has_cache);
  return sizes ? onnx_io::ranges_text(*sizes) : "none";
}

// ---- What ops demand ----------------------------------------------------------------------------

TEST(Demands, AreHeardByTheInnerListener) {
  const DemandListener outer;
  const DemandListener listener;
  Builder b;
  const Value x = b.parameter("x", DType::f32, {n}), y = b.parameter("y", DType::f32, {3});
  (void)(x + y);
  EXPECT_FALSE(b.ok());
  ASSERT_TRUE(listener.last());
  EXPECT_EQ(listener.last()->kind, Demand::Kind::broadcast);
  EXPECT_EQ(listener.last()->dims, (Dims{3, n}));
  EXPECT_FALSE(outer.last());
}

// Types of composites are remembered, as is what they demand.
TEST(Demands, OfCompositesAreToldEachTime) {
  for (int times = 0; times < 2; ++times) {
    const DemandListener listener;
    Builder b;
    const Value x = b.parameter("x", DType::f32, {n, 5, 4, 4});
    b.op(Opcode::depth_to_space, {x}, {{"block", 2}});
    ASSERT_TRUE(listener.last());
    EXPECT_EQ(listener.last()->kind, Demand::Kind::multiple);
    EXPECT_EQ(listener.last()->dims, (Dims{5, 4}));
  }
}

// ---- What solves them ---------------------------------------------------------------------------

TEST(OnnxConstraints, BoundASize) {
  constexpr auto kind = Demand::Kind::at_least;
  EXPECT_EQ(solution(kind, n, 3), "n in 3..1000");
  EXPECT_EQ(solution(kind, floordiv(Dim(n) + 1, 2) - 2, 5), "n in 13..1000");
  EXPECT_EQ(solution(kind, 9, Dim(n) * 2), "n in 0..4");
  EXPECT_EQ(solution(kind, Symbol::get("s", 0, 64, 8), 9), "s in 16..64 step 8");
  EXPECT_EQ(solution(kind, n, 1000), "n = 1000");
  EXPECT_EQ(solution(kind, n, 1001), "none");
  EXPECT_EQ(solution(kind, Dim(n) + m, 3), "none");
  EXPECT_EQ(solution(kind, Dim(n) * 5 - floordiv(n, 2), 3), "none");  // it rises and falls
}

TEST(OnnxConstraints, SolveEquations) {
  constexpr auto kind = Demand::Kind::equal;
  EXPECT_EQ(solution(kind, Dim(n) * 4, 24), "n = 6");
  EXPECT_EQ(solution(kind, Dim(n) * 4, 23), "none");
  EXPECT_EQ(solution(kind, floordiv(n, 2), 3), "n in 6..7");
  EXPECT_EQ(solution(kind, Dim(n) * n, 49), "n = 7");
  EXPECT_EQ(solution(kind, m, n), "m = n");
  EXPECT_EQ(solution(kind, m, Dim(n) * 2), "m = 2*n");
  EXPECT_EQ(solution(kind, Dim(n) + k, m), "m = k + n");
  EXPECT_EQ(solution(kind, Dim(n) + 1, Dim(m) * 3), "m in 1..1000, n = 3*m - 1");
  EXPECT_EQ(solution(kind, Symbol::get("a", 2, 9), Symbol::get("b", 4, 90)), "a = b, b in 4..9");
  EXPECT_EQ(solution(kind, Dim(n) * 2, Dim(m) * 3), "none");
}

TEST(OnnxConstraints, MakeSizesMultiples) {
  constexpr auto kind = Demand::Kind::multiple;
  EXPECT_EQ(solution(kind, n, 6), "n in 0..1000 step 6");
  EXPECT_EQ(solution(kind, Dim(n) * 4, 6), "n in 0..1000 step 3");
  EXPECT_EQ(solution(kind, Dim(n) * 4 + 2, 6), "none");
  EXPECT_EQ(solution(kind, n, 1001), "n in 0..1000 step 1001");
  EXPECT_EQ(solution(kind, Dim(n) * m, 6), "none");
}

TEST(OnnxConstraints, ChooseNothingWhereSizesAreStretched) {
  constexpr auto both = Demand::Kind::broadcast, one = Demand::Kind::stretch;
  EXPECT_EQ(solution(both, n, m), "none");
  EXPECT_EQ(solution(both, n, 256), "none");
  EXPECT_EQ(solution(both, Dim(n) + 2, 3), "n = 1");
  EXPECT_EQ(solution(both, n, Dim(m) + k), "n = k + m");  // a mask beside past and new
  EXPECT_EQ(solution(both, n, Dim(m) + 1), "none");
  EXPECT_EQ(solution(both, n, Dim(m) + 1, /*has_cache=*/true), "n = m + 1");
  EXPECT_EQ(solution(one, 5, n), "n = 5");
}

TEST(OnnxConstraints, LowerBoundsThatAreTooLargeTogether) {
  const Symbol a = Symbol::get("a", 0, 1 << 24), b = Symbol::get("b", 0, 1 << 24);
  const auto sizes = onnx_io::solved({Demand::Kind::elements, {a, b, a, 64}}, false);
  ASSERT_TRUE(sizes);
  EXPECT_EQ(onnx_io::ranges_text(*sizes), "a in 0..262144, b in 0..262144");
  EXPECT_FALSE(onnx_io::solved({Demand::Kind::elements, {a, b, a, b, 64, 64}}, false));
}

// ---- Files --------------------------------------------------------------------------------------

TEST(OnnxConstraints, OfAllNodesAreTold) {
  File file;
  file.graph.input("x", DType::f32, {"n", "2"});
  file.graph.input("y", DType::f32, {"m", "2"});
  file.graph.constant("rows", integers({2}, {-1, 12}));
  file.graph.node("Concat", {"x", "x"}, {"twice"}, {{"axis", 0}});
  file.graph.node("Concat", {"twice", "y"}, {"both"}, {{"axis", 1}}).set_name("beside");
  file.graph.node("Reshape", {"both", "rows"}, {"z"}).set_name("turn");
  file.graph.outputs({"z"});
  Strings notes;
  const Model model =
      file.model({.notice = [&](std::string_view note) { notes.emplace_back(note); }});
  ASSERT_NE(single_graph(model), nullptr);
  EXPECT_EQ(model.inputs[1].type.to_string(), "f32[2*n, 2]");
  EXPECT_EQ(model.outputs[0].type.dim(1).value(), 12);
  EXPECT_THAT(notes, Contains(AllOf(HasSubstr("m = 2*n"), HasSubstr("node 'beside' (Concat)"))));
  EXPECT_THAT(notes, Contains(AllOf(HasSubstr("step 3"), HasSubstr("node 'turn' (Reshape)"))));
}

TEST(OnnxConstraints, ThatNoSizeMeetsAreErrorsOfTheNode) {
  File file;
  file.graph.input("x", DType::f32, {"n", "3"});
  file.graph.constant("rows", integers({2}, {4, 2}));
  file.graph.node("Reshape", {"x", "rows"}, {"z"}).set_name("turn");
  file.graph.outputs({"z"});
  EXPECT_THAT(file.error(), AllOf(HasSubstr("node 'turn' (Reshape)"), HasSubstr("3*n")));
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE

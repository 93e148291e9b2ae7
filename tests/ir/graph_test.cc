#include "ir/graph.h"

#include <gtest/gtest.h>

#include "ir/functional.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;
using tested::says;

Type f32(std::initializer_list<Dim> dims) { return Type::get(DType::f32, dims); }

// y = tanh(x . w) + x, with names.
Graph small_graph(std::string_view prefix = "") {
  Builder b("small");
  std::string p(prefix);
  Value x = b.parameter(p + "x", f32({4, 4}));
  Value w = b.parameter(p + "w", f32({4, 4}));
  Value y = tanh(matmul(x, w)).named(p + "h") + x;
  return b.finish({y.named(p + "y")}).value();
}

void expect_error(const Status& status, std::string text) {
  EXPECT_THAT(status, refuses(ErrorCode::bad_input, std::move(text)));
}

TEST(Graph, AppendChecksOperandsAndInfers) {
  Graph g;
  ValueId x = g.add_parameter(f32({2, 3}), "x");
  ValueId operands[] = {x, x};
  NodeId sum = g.append(Op::get(Opcode::add), operands).value();
  EXPECT_EQ(g.type(g.result(sum)), f32({2, 3}));
  EXPECT_EQ(g.describe(sum), "node '%1' (add)");

  ValueId missing[] = {x, ValueId{9}};
  EXPECT_THAT(g.append(Op::get(Opcode::add), missing).error().what(),
              says("add ... operand 1 ... value 9 ... 2"));
  EXPECT_EQ(g.append(Op::get(Opcode::add), {operands, 1}).error().what(),
            "add: takes 2 operands (lhs, rhs), has 1");
  ValueId absent[] = {x, ValueId::none()};
  EXPECT_EQ(g.append(Op::get(Opcode::add), absent).error().what(), "add: operand 'rhs' is absent");
  EXPECT_EQ(g.node_count(), 2u) << "a refused op leaves no trace";
}

TEST(Graph, OneOpHasOneSpelling) {
  // A list of nothing but the default says what the empty list says.
  auto window = [](Attrs attrs) {
    attrs.emplace_back("kind", "max");
    attrs.emplace_back("window", Ints{2, 2});
    Graph g;
    const ValueId x = g.add_parameter(f32({6, 6}));
    const NodeId n = g.append(Op::get(Opcode::window_reduce, std::move(attrs)), {&x, 1}).value();
    g.set_outputs({g.result(n)});
    return g;
  };
  const Graph plain = window({});
  const Graph spelled = window({{"stride", Ints{1, 1}},
                                {"pad_low", Ints{0, 0}},
                                {"pad_high", Ints{0, 0}},
                                {"input_dilation", Ints{1, 1}},
                                {"window_dilation", Ints{1, 1}}});
  EXPECT_EQ(structural_hash(plain), structural_hash(spelled));
  EXPECT_EQ(plain.op(plain.producer(plain.outputs()[0])),
            spelled.op(spelled.producer(spelled.outputs()[0])));
  EXPECT_NE(structural_hash(plain), structural_hash(window({{"stride", Ints{1, 2}}})));
  EXPECT_NE(structural_hash(plain), structural_hash(window({{"pad_low", Ints{1, 1}}})));
  const Graph strided = window({{"stride", Ints{2, 2}}, {"pad_low", Ints{0, 0}}});
  EXPECT_EQ(strided.op(strided.producer(strided.outputs()[0])).attrs_to_string(),
            "{kind = max, window = [2, 2], stride = [2, 2]}");

  // The length is checked before.
  Graph g;
  const ValueId x = g.add_parameter(f32({6, 6}));
  const Op wrong = Op::get(Opcode::window_reduce,
                           {{"kind", "max"}, {"window", Ints{2, 2}}, {"stride", Ints{1}}});
  EXPECT_FALSE(g.append(wrong, {&x, 1}).ok());
}

TEST(Graph, NamesCanBeGivenChangedAndRemoved) {
  Graph g;
  ValueId x = g.add_parameter(f32({}), "x");
  EXPECT_EQ(g.name(x), "x");
  g.set_name(x, "a much longer name/with:odd bytes");
  EXPECT_EQ(g.name(x), "a much longer name/with:odd bytes");
  g.set_name(x, "");
  EXPECT_EQ(g.name(x), "");
  EXPECT_EQ(g.label(x), "%0");
}

TEST(Graph, VerifyAcceptsWhatBuilderMakes) { EXPECT_TRUE(verify(small_graph()).ok()); }

TEST(Graph, VerifyFindsBrokenInvariants) {
  Graph twice = small_graph();
  twice.set_name(twice.inputs()[1], "x");
  expect_error(verify(twice), "name '%x' ... two values");

  Graph donated = small_graph();
  donated.add_donation(0, 0);
  EXPECT_TRUE(verify(donated).ok());
  donated.add_donation(0, 0);
  expect_error(verify(donated), "input 0 is donated twice");
  Graph no_such = small_graph();
  no_such.add_donation(2, 0);
  expect_error(verify(no_such), "input 2 ... donated ... 2");

  Graph symbols;
  ValueId a = symbols.add_parameter(f32({Symbol::get("N", 1, 4)}));
  symbols.add_parameter(f32({Symbol::get("N", 1, 8)}));
  symbols.set_outputs({a});
  expect_error(verify(symbols), "symbol N ... 1..4 ... 1..8");
}

TEST(Graph, DonationNeedsEqualTypes) {
  Graph g;
  ValueId x = g.add_parameter(f32({2}));
  ValueId y = g.add_parameter(f32({3}));
  g.set_outputs({y});
  g.add_donation(0, 0);
  (void)x;
  expect_error(verify(g), "input 0 ... f32[2] ... donated ... output 0 ... f32[3]");
}

TEST(StructuralHash, SeesComputationNotNamesNorOrderNorDeadNodes) {
  Graph plain = small_graph();
  EXPECT_EQ(structural_hash(plain), structural_hash(small_graph("other/")));

  auto build = [](bool swapped, bool dead) {
    Builder b;
    Value x = b.parameter("x", f32({4}));
    if (dead) exp(x);
    Value first = swapped ? Value() : tanh(x);
    Value second = sqrt(x);
    if (swapped) first = tanh(x);
    return b.finish({first, second}).value();
  };
  EXPECT_EQ(structural_hash(build(false, false)), structural_hash(build(true, true)));
}

TEST(StructuralHash, SeesWhatMatters) {
  auto unary_graph = [](Opcode opcode, Dim size, double constant) {
    Builder b;
    Value x = b.parameter("x", f32({size}));
    return b.finish({unary(opcode, x) + constant}).value();
  };
  uint64_t base = structural_hash(unary_graph(Opcode::exp, 4, 1));
  EXPECT_NE(base, structural_hash(unary_graph(Opcode::log, 4, 1)));
  EXPECT_NE(base, structural_hash(unary_graph(Opcode::exp, 5, 1)));
  EXPECT_NE(base, structural_hash(unary_graph(Opcode::exp, 4, 2)));

  Builder b;
  Value x = b.parameter("x", f32({4})), y = b.parameter("y", f32({4}));
  Graph forward = b.finish({x - y}).value();
  Builder c;
  Value u = c.parameter("x", f32({4})), v = c.parameter("y", f32({4}));
  EXPECT_NE(structural_hash(forward), structural_hash(c.finish({v - u}).value()));
}

TEST(Users, CountsEveryRead) {
  Graph g = small_graph();
  Users users(g);
  ValueId x = g.inputs()[0], w = g.inputs()[1], y = g.outputs()[0];
  EXPECT_EQ(users.of(x).size(), 2u);
  EXPECT_TRUE(users.has_one_use(w));
  EXPECT_TRUE(users.of(y).empty());
  EXPECT_TRUE(users.is_output(y));
}

TEST(Specialize, BindsTypesAttributesAndRegions) {
  Symbol n = Symbol::get("N", 1, 8);
  Builder b;
  Value x = b.parameter("x", DType::f32, {n, 6});
  Value flat = reshape(x, {Dim(n) * 2, 3});
  Value p = b.parameter("p", DType::boolean, {});
  Value args[] = {flat};
  Value r = if_else(
      p, args, [](Builder&, std::span<const Value> v) { return std::vector{v[0] + 1}; },
      [](Builder&, std::span<const Value> v) { return std::vector{-v[0]}; })[0];
  Graph g = b.finish({r}).value();
  EXPECT_EQ(g.symbols(), std::vector{n});
  EXPECT_FALSE(g.is_static());

  Graph bound = specialize(g, {{"N", 4}}).value();
  EXPECT_TRUE(verify(bound).ok());
  EXPECT_TRUE(bound.is_static());
  EXPECT_EQ(bound.type(bound.outputs()[0]), f32({8, 3}));
  EXPECT_EQ(bound.name(bound.inputs()[0]), "x");
}

TEST(Graph, SymbolsInsideOfRegionsCount) {
  // A region may have symbols of its own: here the loop over N ones.
  Symbol n = Symbol::get("N", 1, 8);
  Builder b;
  Value x = b.parameter("x", DType::f32, {});
  Value args[] = {x};
  auto body = [&](Builder& inner, std::span<const Value> v) {
    return std::vector{v[0] + reduce_sum(inner.full(DType::f32, {n}, 1), {0})};
  };
  Value p = b.parameter("p", DType::boolean, {});
  Graph g = b.finish({if_else(p, args, body, body)[0]}).value();
  EXPECT_FALSE(g.is_static());
  EXPECT_EQ(g.symbols(), std::vector{n});
  Graph bound = specialize(g, {{"N", 4}}).value();
  EXPECT_TRUE(bound.is_static());
  EXPECT_TRUE(verify(bound).ok());
}

TEST(Graph, ANodeTakesAtMost96Bytes) {
  Builder b;
  Value x = b.parameter("x", f32({8}));
  for (int i = 0; i < 5000; ++i) x = (tanh(x) + x).named(fmt::format("block{}/sum", i));
  Graph g = b.finish({x}).value();
  EXPECT_LE(g.memory_bytes(), 96 * g.node_count());
}

TEST(BindInputs, SolvesForSymbolsAndNamesWhatDoesNotFit) {
  Symbol n = Symbol::get("N", 2, 8);
  Builder b;
  Value x = b.parameter("x", DType::f32, {n, 6});
  Graph g = b.finish({x}).value();
  Type good[] = {f32({5, 6})};
  EXPECT_EQ(bind_inputs(g, good).value().at("N"), Dim(5));

  Type wrong_size[] = {f32({5, 7})};
  EXPECT_NE(bind_inputs(g, wrong_size).error().what().find("input '%x' is f32[5, 7]"),
            std::string::npos);
  Type out_of_range[] = {f32({9, 6})};
  EXPECT_FALSE(bind_inputs(g, out_of_range).ok());
  EXPECT_EQ(bind_inputs(g, {}).error().what(), "graph 'main' takes 1 inputs, 0 are given");
}

TEST(ExtractSubgraph, OutsideValuesBecomeParameters) {
  Graph g = small_graph();
  NodeId sum = g.producer(g.outputs()[0]);
  NodeId tanh_node = g.producer(g.operands(sum)[0]);
  NodeId nodes[] = {tanh_node, sum};
  Graph part = extract_subgraph(g, nodes, g.outputs()).value();
  EXPECT_TRUE(verify(part).ok());
  EXPECT_EQ(part.inputs().size(), 2u);  // the dot's result and x
  EXPECT_EQ(part.node_count(), 4u);
  NodeId reversed[] = {sum, tanh_node};
  EXPECT_FALSE(extract_subgraph(g, reversed, g.outputs()).ok());
}

TEST(Builder, TheFirstErrorSticksAndSaysWhere) {
  Builder b("broken");
  auto scope = b.scope("layer1");
  Value x = b.parameter("x", f32({2, 3}));
  Value y = b.parameter("y", f32({4, 5}));
  Value z = matmul(x, y);
  for (int i = 0; i < 3; ++i) z = softmax(z + x, 7);  // goes on without harm
  Result<Graph> g = b.finish({z});
  ASSERT_FALSE(g.ok());
  EXPECT_NE(g.error().where().find("graph 'broken', layer1"), std::string::npos)
      << g.error().where();
  EXPECT_EQ(g.error().what().rfind("dot: ", 0), 0u) << g.error().what();
}

TEST(Builder, ScopesPrefixNames) {
  Builder b;
  Value x = b.parameter("x", f32({}));
  {
    auto outer = b.scope("a");
    auto inner = b.scope("b");
    exp(x).named("h");
  }
  Value y = exp(x).named("y");
  Graph g = b.finish({y}).value();
  EXPECT_EQ(g.name(ValueId{1}), "a/b/h");
  EXPECT_EQ(g.name(ValueId{2}), "y");
}

TEST(Functional, BroadcastsAsNumpyDoes) {
  Builder b;
  Value x = b.parameter("x", f32({5, 1, 3}));
  Value y = b.parameter("y", f32({4, 1}));
  EXPECT_EQ((x + y).type(), f32({5, 4, 3}));
  EXPECT_EQ((x * 2).type(), f32({5, 1, 3}));
  EXPECT_TRUE(b.ok());
  (void)(x + b.parameter("z", f32({2})));
  EXPECT_THAT(b.status().error().what(), says("[5, 1, 3] ... [2] ... broadcast"));
}

TEST(Functional, MatmulFollowsNumpy) {
  Builder b;
  auto shape = [&](std::initializer_list<Dim> l, std::initializer_list<Dim> r) {
    return matmul(b.parameter("", f32(l)), b.parameter("", f32(r))).type();
  };
  EXPECT_EQ(shape({2, 3}, {3, 4}), f32({2, 4}));
  EXPECT_EQ(shape({3}, {3, 4}), f32({4}));
  EXPECT_EQ(shape({2, 3}, {3}), f32({2}));
  EXPECT_EQ(shape({7, 2, 3}, {3, 4}), f32({7, 2, 4}));
  EXPECT_EQ(shape({7, 1, 2, 3}, {5, 3, 4}), f32({7, 5, 2, 4}));
  EXPECT_EQ(shape({3}, {5, 3, 4}), f32({5, 4}));
  EXPECT_TRUE(b.ok()) << b.status().error().to_string();
}

}  // namespace
}  // namespace hone::HONE_FILE

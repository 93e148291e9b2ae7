#include <gtest/gtest.h>

#include "ir/functional.h"
#include "rewrite/expand.h"
#include "rewrite/passes.h"
#include "tests/ir/composite_testing.h"

// The raise and expand passes as such; what each composite is raised from stands in its own test.

namespace hone::testing {
namespace {

using In = std::span<const Value>;

Graph built(const std::function<std::vector<Value>(Builder&)>& body) {
  Builder b("test");
  Result<Graph> graph = b.finish(body(b));
  HONE_CHECK(graph.ok(), "{}", graph.error().to_string());
  return std::move(*graph);
}

Value spelled_softmax(Value x) {
  Value e = exp(x - reduce_max(x, {-1}, true));
  return e / reduce_sum(e, {-1}, true);
}

// A transformer block with its weights, by composites.
Value block(Builder& b, Value x) {
  auto weight = [&](const Dims& dims) { return b.parameter("", DType::f32, dims); };
  auto heads = [](Value v) {
    return transpose(reshape(v, {v.dim(0), v.dim(1), 2, 4}), {0, 2, 1, 3});
  };
  Value n = layer_norm(x, weight({8}), weight({8}));
  const Value qkv[] = {heads(matmul(n, weight({8, 8}))), heads(matmul(n, weight({8, 8}))),
                       heads(matmul(n, weight({8, 8})))};
  Value a = b.op(Opcode::attention, qkv);
  a = reshape(transpose(a, {0, 2, 1, 3}), x.dims());
  x = x + matmul(a, weight({8, 8}));
  Value m = rms_norm(x, weight({8}));
  return x + matmul(gelu(matmul(m, weight({8, 16}))) * silu(matmul(m, weight({8, 16}))),
                    weight({16, 8}));
}

Graph transformer(int layers) {
  return built([&](Builder& b) {
    Value x = b.parameter("x", DType::f32, {Symbol::get("N", 0, 64), 5, 8});
    for (int i = 0; i < layers; ++i) x = block(b, x);
    return std::vector<Value>{softmax(x)};
  });
}

TEST(Raise, WholeNetworksComeBack) {
  const Graph graph = transformer(3);
  const Graph expanded = passed(graph, expand_composites);
  EXPECT_GT(expanded.node_count(), 2 * graph.node_count());
  EXPECT_EQ(structural_hash(passed(expanded, raise_composites)), structural_hash(graph));
  // What is raised stays as it is.
  EXPECT_EQ(structural_hash(passed(graph, raise_composites)), structural_hash(graph));
}

TEST(Raise, CompositesInsideOfLargerOnesAreSeenThrough) {
  const Graph graph = raised({"f32[2, 4, 3, 16]", "f32[2, 4, 5, 16]"}, [](In in) {
    Value s = softmax(matmul(in[0], transpose(in[1], {0, 1, 3, 2})) * 0.25);
    return std::vector<Value>{matmul(s, in[1])};
  });
  EXPECT_EQ(ops_of(graph), "attention");
}

TEST(Raise, InteriorValuesThatOthersUseStay) {
  const Graph graph = raised({"f32[4, 7]"}, [](In in) {
    Value e = exp(in[0] - reduce_max(in[0], {1}, true));
    return std::vector<Value>{e / reduce_sum(e, {1}, true), e};
  });
  EXPECT_EQ(ops_of(graph), "reduce reshape broadcast sub exp softmax");
  EXPECT_EQ(graph.opcode(graph.producer(graph.outputs()[0])), Opcode::softmax);
  EXPECT_EQ(graph.opcode(graph.producer(graph.outputs()[1])), Opcode::exp);
}

TEST(Raise, EqualValuesBecomeOne) {
  const Graph graph = raised({"f32[4, 7]"}, [](In in) {
    return std::vector<Value>{spelled_softmax(in[0]) + spelled_softmax(in[0])};
  });
  EXPECT_EQ(ops_of(graph), "softmax add");
}

TEST(Raise, KeepsNamesAndDonations) {
  const Graph graph = built([](Builder& b) {
    Value x = b.parameter("x", DType::f32, {4, 7});
    Value y = spelled_softmax(x).named("y");
    b.donate(x, 0);
    return std::vector<Value>{y};
  });
  const Graph raised = passed(graph, raise_composites);
  EXPECT_EQ(raised.name(raised.outputs()[0]), "y");
  EXPECT_EQ(raised.donations().size(), 1u);
}

TEST(Raise, ResultsThatStoodEarlierAreReplacedForLaterUsers) {
  // present_key is there long before the attention, and the mask is computed from it.
  const Graph graph = built([](Builder& b) {
    Value q = b.parameter("q", DType::f32, {1, 2, 3, 4});
    Value k = b.parameter("k", DType::f32, {1, 2, 3, 4});
    Value past = b.parameter("past", DType::f32, {1, 2, 5, 4});
    Value keys = concat({past, k}, 2).named("keys");
    Value mask = slice(keys, 3, 0, 1);
    mask = transpose(mask, {0, 1, 3, 2});
    Value s = matmul(q, transpose(keys, {0, 1, 3, 2})) * 0.5 + mask;
    return std::vector<Value>{matmul(spelled_softmax(s), keys), keys};
  });
  const Graph raised = passed(graph, raise_composites);
  EXPECT_EQ(ops_of(raised), "concat slice transpose attention");
  EXPECT_EQ(raised.producer(raised.outputs()[0]), raised.producer(raised.outputs()[1]));
  EXPECT_EQ(raised.name(raised.outputs()[1]), "keys");
}

TEST(Raise, ReachesIntoRegions) {
  const Graph graph = built([](Builder& b) {
    Value x = b.parameter("x", DType::f32, {4, 7});
    Value p = b.parameter("p", DType::boolean, {});
    const Value arguments[] = {x};
    return if_else(
        p, arguments, [](Builder&, In in) { return std::vector<Value>{spelled_softmax(in[0])}; },
        [](Builder&, In in) { return std::vector<Value>{maximum(in[0], 0)}; });
  });
  const Graph raised = passed(graph, raise_composites);
  const std::span<const GraphRef> regions = raised.regions(raised.producer(raised.outputs()[0]));
  EXPECT_EQ(ops_of(*regions[0]), "softmax");
  EXPECT_EQ(ops_of(*regions[1]), "relu");
  // And expand out of them.
  const Graph again = passed(raised, expand_composites);
  for (const GraphRef& r : again.regions(again.producer(again.outputs()[0])))
    for (NodeId n : r->nodes()) EXPECT_FALSE(is_composite(r->opcode(n)));
}

TEST(Raise, FactorsOfTheOperandsDoNotHideTheComposite) {
  // Each factor looks like the gate: sums, roots and curves stand on both sides.
  const auto one = {std::string_view("f32[3, 8]"), std::string_view("f32[8]")};
  auto ops = [&](const std::function<Value(In)>& body) {
    const Graph graph = raised(one, [&](In in) { return std::vector<Value>{body(in)}; });
    return ops_of(passed(passed(graph, expand_composites), raise_composites));
  };
  EXPECT_EQ(ops([](In in) { return gelu(in[0] + in[1]); }), "broadcast add gelu");
  EXPECT_EQ(ops([](In in) { return silu(silu(in[0])); }), "silu silu");
  EXPECT_EQ(ops([](In in) { return hard_swish(relu(in[0])); }), "relu hard_swish");
  EXPECT_EQ(ops([](In in) { return rms_norm(rms_norm(in[0], in[1]), in[1]); }),
            "rms_norm rms_norm");
  EXPECT_EQ(ops([](In in) { return softmax(softmax(in[0])); }), "softmax softmax");
  EXPECT_EQ(ops([](In in) { return layer_norm(in[0] * in[1], in[1], in[1]); }),
            "broadcast mul layer_norm");
}

TEST(Raise, NothingKeepsTheSpelledFormAlive) {
  // The layer's output is [time, 1, batch, hidden]; without the 1 it is a value inside of it.
  const Graph graph = built([](Builder& b) {
    Value x = b.parameter("x", DType::f32, {6, 2, 16});
    for (int i = 0; i < 2; ++i) {
      const Value operands[] = {x, b.parameter("", DType::f32, {1, 64, 16}),
                                b.parameter("", DType::f32, {1, 64, 16})};
      x = squeeze(b.ops(Opcode::lstm, operands)[0], 1);
    }
    return std::vector<Value>{x};
  });
  EXPECT_EQ(structural_hash(passed(passed(graph, expand_composites), raise_composites)),
            structural_hash(graph));
}

TEST(Raise, MaterializesOperandsThatAreViews) {
  // The bias stands as [1, 1, 8]; the op wants [8].
  const Graph graph = raised({"f32[2, 5, 8]", "f32[8]", "f32[1, 1, 8]"}, [](In in) {
    Value d = in[0] - reduce_mean(in[0], {2}, true);
    Value v = reduce_mean(d * d, {2}, true);
    return std::vector<Value>{d / sqrt(v + 1e-5) * in[1] + in[2]};
  });
  EXPECT_EQ(ops_of(graph), "reshape layer_norm");
}

TEST(Raise, KeepsWhatIsComputed) {
  const Graph graph = transformer(1);
  std::vector<Tensor> inputs;
  for (Type type : graph.input_types()) {
    const Type bound = type.bind({{"N", 2}}).value();
    inputs.push_back(Array::random(bound.static_dims(), inputs.size() + 1).tensor(DType::f32));
  }
  const Graph expanded = passed(graph, expand_composites);
  const Tensor wanted = (*evaluate(graph, inputs))[0];
  EXPECT_EQ(difference((*evaluate(expanded, inputs))[0], wanted, 1e-6), "");
  EXPECT_EQ(difference((*evaluate(passed(expanded, raise_composites), inputs))[0], wanted, 1e-6),
            "");
}

TEST(Raise, ProductsOfPowersStaySmall) {
  // x, x^2, x^4, ... written as squares: 2^40 factors if they were all spelled out.
  const Graph graph = built([](Builder& b) {
    Value x = b.parameter("x", DType::f32, {4});
    for (int i = 0; i < 40; ++i) x = x * x;
    return std::vector<Value>{x};
  });
  EXPECT_EQ(structural_hash(passed(graph, raise_composites)), structural_hash(graph));
}

TEST(Raise, ManyLayers) {
  const Graph expanded = passed(transformer(100), expand_composites);
  EXPECT_GT(expanded.node_count(), 9000u);
  const Graph raised = passed(expanded, raise_composites);
  int64_t attentions = 0;
  for (NodeId n : raised.nodes()) attentions += raised.opcode(n) == Opcode::attention;
  EXPECT_EQ(attentions, 100);
}

TEST(Expand, ByName) {
  const Graph graph = built([](Builder& b) {
    Value x = b.parameter("x", DType::f32, {4, 7});
    return std::vector<Value>{softmax(gelu(x)).named("y")};
  });
  const Result<Graph> some =
      expand_composites(graph, [](Opcode opcode) { return opcode == Opcode::softmax; });
  ASSERT_TRUE(some.ok());
  EXPECT_EQ(ops_of(*some), "gelu reduce reshape broadcast sub exp reduce reshape broadcast div");
  EXPECT_EQ(some->name(some->outputs()[0]), "y");
}

}  // namespace
}  // namespace hone::testing

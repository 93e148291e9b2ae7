// DynamicQuantizeLSTM and DecoderMaskedMultiHeadAttention of ONNX Runtime, which are no ops of
// random graphs: drawn nodes as native code, under random plans.

#include <gtest/gtest.h>

#include "base/rng.h"
#include "compile/compilation.h"
#include "oracle/differential.h"
#include "plan/random_plan.h"
#include "tests/front/onnx_testing.h"
#include "tests/oracle/host_testing.h"

namespace hone::HONE_FILE {
namespace {

using namespace onnx_testing;  // NOLINT: operands of a node

struct Node {
  std::string_view op;
  std::vector<Operand> operands;
  Attributes attributes;
  size_t outputs;
};

Tensor drawn(Rng& rng, const Ints& dims) {
  Numbers values(static_cast<size_t>(type_of(DType::f32, dims).static_elements()));
  for (double& value : values) value = rng.uniform(-1, 1);
  return reals(dims, values);
}
Tensor whole(Rng& rng, const Ints& dims, DType dtype, int64_t low, int64_t high) {
  Ints values(static_cast<size_t>(type_of(dtype, dims).static_elements()));
  for (int64_t& value : values) value = rng.between(low, high);
  return integers(dims, values, dtype);
}
Operand maybe(Rng& rng, Tensor tensor) { return rng.chance(0.5) ? Operand(tensor) : none(); }
// Data may be constants, too.
Operand given(Rng& rng, Tensor tensor) { return rng.chance(0.3) ? constant(tensor) : tensor; }

Node lstm(Rng& rng) {
  const int64_t time = rng.between(1, 5), batch = rng.between(1, 4), inputs = rng.between(1, 20);
  const int64_t hidden = rng.chance(0.3) ? 16 : rng.between(1, 9), columns = 4 * hidden;
  const char* direction[] = {"forward", "reverse", "bidirectional"};
  const uint64_t way = rng.below(3);
  const int64_t directions = way == 2 ? 2 : 1;
  const DType dtype = rng.chance(0.5) ? DType::i8 : DType::u8;
  const bool is_signed = dtype == DType::i8;
  const Ints per = rng.chance(0.5) ? Ints{directions, columns} : Ints{directions};
  const auto weights = [&](int64_t rows) {
    return constant(whole(rng, {directions, rows, columns}, dtype, is_signed ? -128 : 0,
                          is_signed ? 127 : 255));
  };
  const auto scale = [&] {
    Numbers values(static_cast<size_t>(type_of(DType::f32, per).static_elements()));
    for (double& value : values) value = rng.uniform(0.002, 0.02);
    return constant(reals(per, values));
  };
  const auto zero = [&] {
    return constant(whole(rng, per, dtype, is_signed ? 0 : 120, is_signed ? 0 : 135));
  };
  Node node = {"DynamicQuantizeLSTM",
               {given(rng, drawn(rng, {time, batch, inputs}))},
               {{"hidden_size", hidden}, {"direction", direction[way]}},
               3};
  node.operands.push_back(weights(inputs));
  node.operands.push_back(weights(hidden));
  node.operands.push_back(maybe(rng, drawn(rng, {directions, 8 * hidden})));
  node.operands.push_back(maybe(rng, whole(rng, {batch}, DType::i32, 1, time)));
  node.operands.push_back(maybe(rng, drawn(rng, {directions, batch, hidden})));
  node.operands.push_back(maybe(rng, drawn(rng, {directions, batch, hidden})));
  node.operands.push_back(maybe(rng, drawn(rng, {directions, 3 * hidden})));
  for (int i = 0; i < 2; ++i) {
    node.operands.push_back(scale());
    node.operands.push_back(zero());
  }
  if (rng.chance(0.3)) node.attributes.emplace_back("clip", 0.6);
  return node;
}

Node attention(Rng& rng) {
  const int64_t rows = rng.between(1, 4), heads = rng.between(1, 3), most = rng.between(2, 9);
  const int64_t dim = rng.chance(0.5) ? 8 : rng.between(1, 6), width = heads * dim;
  const Ints token = {rows, 1, width}, cache = {rows, heads, most, dim};
  Node node = {"DecoderMaskedMultiHeadAttention",
               {given(rng, drawn(rng, token))},
               {{"num_heads", heads}},
               3};
  const Operand bias = maybe(rng, drawn(rng, {3 * width}));
  if (rng.chance(0.25)) {  // keys and values in heads: across
    node.operands.insert(node.operands.end(), {drawn(rng, cache), drawn(rng, cache), none(), none(),
                                               none(), none(), none(), none(), none(), bias});
    node.outputs = 1;
    return node;
  }
  const bool is_shared = rng.chance(0.6);
  const int64_t past = is_shared ? rng.between(0, most - 1) : most;
  node.operands.push_back(drawn(rng, token));
  node.operands.push_back(drawn(rng, token));
  node.operands.push_back(maybe(
      rng,
      integers({rows, past + 1}, Ints(static_cast<size_t>(rows * (past + 1)), 1), DType::i32)));
  node.operands.push_back(maybe(rng, drawn(rng, {1, heads, 1, past + 1})));
  node.operands.push_back(drawn(rng, cache));
  node.operands.push_back(drawn(rng, cache));
  node.operands.push_back(is_shared ? given(rng, integers({1}, {past}, DType::i32)) : none());
  node.operands.insert(node.operands.end(), {none(), none(), bias});
  if (is_shared) node.attributes.emplace_back("past_present_share_buffer", 1);
  return node;
}

// True if the reference says one thing in all its modes.
bool check(uint64_t seed) {
  SCOPED_TRACE(seed);
  Rng rng(seed);
  const Node node = rng.chance(0.5) ? lstm(rng) : attention(rng);
  const std::string model = node_model(node.op, 1, node.operands, node.attributes,
                                       {.domain = "com.microsoft", .outputs = node.outputs});
  const Model read = parse_onnx(std::as_bytes(std::span(model)), "node.onnx", ".").value();
  DifferentialCase one = {.graph = *single_graph(read), .inputs = {}};
  for (const Operand& operand : node.operands)
    if (operand.tensor && !operand.is_constant) one.inputs.push_back(operand.tensor);
  one.isa = kIsas[rng.below(static_cast<uint64_t>(host().isa) + 1)];
  if (rng.chance(0.7)) {
    const Target target = restricted(host(), one.isa);
    one.plan = random_plan(*Compilation(one.graph, target).graph().value(), target, seed);
  }
  const DifferentialOutcome outcome = run_case(one, host(), team());
  EXPECT_FALSE(is_failure(outcome.verdict)) << outcome.reason << "\n" << print(one);
  return outcome.verdict == Verdict::passed;
}

TEST(DecoderOps, AsNativeCodeEqualTheReferenceUnderRandomPlans) {
  constexpr uint64_t kCount = 12;
  uint64_t passed = 0;
  for (uint64_t seed = 0; seed < kCount; ++seed) passed += check(seed) ? 1 : 0;
  // A number between two steps of a rounding proves nothing.
  EXPECT_GT(passed, kCount / 2);
}

TEST(DecoderOps, DISABLED_SweepOfNodes) {
  for (uint64_t seed = 1000; seed < 3000; ++seed) check(seed);
}

}  // namespace
}  // namespace hone::HONE_FILE

#include <cmath>

#include "front/onnx/ops/quantize.h"
#include "front/onnx/registry.h"

// Mixtures of experts: each row goes through the few experts that the router rates highest, and
// their results are added by its weights. Here all experts are computed, and those that a row does
// not take count 0 times.

namespace hone::onnx_io {
namespace {

// One of the products of all experts: weights [experts, results, inputs], bias [experts, results].
struct Stage {
  Value weights, bias;
};

struct Experts {
  Value x;               // [rows, width]
  Value router;          // [rows, experts]
  Stage up, down, gate;  // gate: absent where an expert has two products
  int64_t count() const { return router.dim(1).value(); }
};

Value given_rows(Node& n) {
  const Value x = n.in(0);
  n.require_rank(x, "the input", 2, 3);
  return x.rank() == 2 ? x : reshape(x, {x.dim(0) * x.dim(1), x.dim(2)});
}

Experts read_rows(Node& n) {
  Experts e = {.x = given_rows(n), .router = n.in(1), .up = {}, .down = {}, .gate = {}};
  n.require_rank(e.router, "router_probs", 2, 2);
  if (!(e.router.dim(0) == e.x.dim(0)) || !e.router.dim(1).is_static())
    n.bad("router_probs is {} for {} rows", e.router.type().to_string(), e.x.dim(0).to_string());
  return e;
}

void check_stage(Node& n, const Stage& stage, std::string_view what, int64_t experts, Dim inputs) {
  n.require_rank(stage.weights, what, 3, 3);
  if (!stage.weights.dim(0).is(experts) || !(stage.weights.dim(2) == inputs))
    n.bad("the weights {} are {}, want [{}, results, {}]", what, stage.weights.type().to_string(),
          experts, inputs.to_string());
  const Dims per_result = {stage.weights.dim(0), stage.weights.dim(1)};
  if (stage.bias && stage.bias.dims() != per_result)
    n.bad("the bias {} is {} for weights of {}", what, stage.bias.type().to_string(),
          stage.weights.type().to_string());
}

// [rows, experts, inputs] by all weights: [rows, experts, results].
Value through(Value x, const Stage& stage) {
  Value y = x.rank() == 2 ? dot_general(x, stage.weights, {}, {}, {1}, {2})
                          : transpose(dot_general(x, stage.weights, {1}, {0}, {2}, {2}), {1, 0, 2});
  return stage.bias ? y + stage.bias : y;
}

// G sigmoid(alpha G) (L + beta) of gates G and linear parts L, both within the limit.
Value swiglu(Node& n, Value y, int64_t fusion, double alpha, double beta, double limit) {
  const std::optional<Dim> half = y.dim(2).divided_by(2);
  if (!half) n.bad("swiglu takes pairs, and an expert has {} numbers", y.dim(2).to_string());
  Value gate, linear;
  if (fusion == 1) {
    const Value pairs = reshape(y, {y.dim(0), y.dim(1), *half, 2});
    gate = squeeze(slice(pairs, 3, 0, 1), 3), linear = squeeze(slice(pairs, 3, 1, 2), 3);
  } else {
    gate = slice(y, 2, 0, *half), linear = slice(y, 2, *half, y.dim(2));
  }
  if (std::isfinite(limit)) {
    gate = minimum(gate, limit);
    linear = maximum(minimum(linear, limit), -limit);
  }
  return gate * logistic(gate * alpha) * (linear + beta);
}

Value activated_by(Node& n, Value y, Value beside) {
  const std::string kind = n.word("activation_type", "relu");
  const double alpha = n.real("activation_alpha", 1), beta = n.real("activation_beta", 0);
  const double limit = n.real("swiglu_limit", HUGE_VAL);
  const int64_t fusion = n.integer("swiglu_fusion", 0);
  if (fusion < 0 || fusion > 2) n.bad("swiglu_fusion is {}, want 0, 1 or 2", fusion);
  if (kind == "swiglu") {
    if (beside) n.unsupported("swiglu with weights of its own for the linear part");
    if (fusion == 0) n.unsupported("swiglu whose parts are not in one product");
    return swiglu(n, y, fusion, alpha, beta, limit);
  }
  Value z;
  if (kind == "relu")
    z = relu(y);
  else if (kind == "gelu")
    z = gelu(y, /*tanh_form=*/true);  // as ONNX Runtime has it
  else if (kind == "silu")
    z = silu(y);
  else if (kind == "identity")
    z = y;
  else
    n.unsupported("the activation '{}' of experts", kind);
  return beside ? z * beside : z;
}

// How often a row takes each expert: the largest of the softmax, the others 0.
Value routing(Node& n, Value router) {
  Builder& b = n.builder();
  if (n.flag("use_sparse_mixer")) n.unsupported("experts that a sparse mixer chooses");
  const int64_t experts = router.dim(1).value(), k = n.integer("k", 1);
  if (k < 1 || k > experts) n.bad("k is {} of {} experts", k, experts);
  const Value share = softmax(router, 1);
  const std::vector<Value> best =
      b.ops(Opcode::top_k, {{share}}, {{"k", Dims{k}}, {"axis", int64_t{1}}});
  const Value taken = compare("eq", unsqueeze(best[1], 2), iota(b, DType::i64, {1, 1, experts}, 2));
  const Value zero = b.scalar(router.dtype(), 0);
  Value weights = reduce_sum(select(taken, unsqueeze(best[0], 2), zero), {1});
  if (n.flag("normalize_routing_weights")) weights = weights / reduce_sum(weights, {1}, true);
  return weights;
}

void mix(Node& n, const Experts& e) {
  check_stage(n, e.up, "fc1", e.count(), e.x.dim(1));
  const Value up = through(e.x, e.up);
  Value beside;
  if (e.gate.weights) {
    check_stage(n, e.gate, "fc3", e.count(), e.x.dim(1));
    beside = through(e.x, e.gate);
  }
  const Value hidden = activated_by(n, up, beside);
  check_stage(n, e.down, "fc2", e.count(), hidden.dim(2));
  const Value y = through(hidden, e.down);
  const Value sum = reduce_sum(y * unsqueeze(cast(routing(n, e.router), y.dtype()), 2), {1});
  n.out(reshape(sum, n.in(0).dims()));
}

// Weights of a few bits with scales per result, or per block of inputs.
Value dequantized_weights(Node& n, size_t numbers, size_t scales, size_t zeros, DType dtype) {
  const int64_t bits = n.integer("expert_weight_bits", 4), block = n.integer("block_size", 0);
  if (bits != 2 && bits != 4 && bits != 8) n.unsupported("weights of {} bits", bits);
  const Value stored = n.in(numbers);
  Value scale = n.in(scales);
  n.require_rank(stored, "the weights of experts", 3, 3);
  if (stored.dtype() != DType::u8 || !stored.type().is_static())
    n.bad("the weights are {}, want u8", stored.type().to_string());
  Dims dims = stored.dims();
  const int64_t inputs = dims[2].value() * 8 / bits;
  dims[2] = inputs;
  if (block < 0 || block > inputs) n.bad("block_size is {} for {} inputs", block, inputs);
  const int64_t each = block == 0 ? inputs : block;
  if (scale.rank() == 2) scale = unsqueeze(scale, 2);
  const Dims per_block = {dims[0], dims[1], (inputs + each - 1) / each};
  if (scale.dims() != per_block)
    n.bad("the scales are {} for weights of {}", scale.type().to_string(),
          stored.type().to_string());
  const Value values = in_bytes(n, numbers, bits, dims);
  Value zero;
  if (const Value given = n.optional(zeros)) {
    const int64_t blocks = per_block[2].value(), bytes = (blocks * bits + 7) / 8;
    if (given.dtype() != DType::u8 || !(given.type().elements() == dims[0] * dims[1] * Dim(bytes)))
      n.bad("the zero points are {}, want u8 for scales of {}", given.type().to_string(),
            scale.type().to_string());
    zero = slice(in_bytes(n, zeros, bits, {dims[0], dims[1], bytes * 8 / bits}), 2, 0, blocks);
  } else {
    zero = n.builder().full(DType::u8, per_block, static_cast<double>(1 << (bits - 1)));
  }
  return dequantized(n, values, cast(scale, dtype), cast(zero, values.dtype()),
                     {.axis = 2, .block = each});
}

}  // namespace

void map_moe(Node& n) {
  Experts e = read_rows(n);
  e.up = {n.in(2), n.optional(3)};
  e.down = {n.in(4), n.optional(5)};
  e.gate = {n.optional(6), n.optional(7)};
  mix(n, e);
}

void map_quantized_moe(Node& n) {
  Experts e = read_rows(n);
  const DType dtype = e.x.dtype();
  e.up = {dequantized_weights(n, 2, 3, 11, dtype), n.optional(4)};
  e.down = {dequantized_weights(n, 5, 6, 12, dtype), n.optional(7)};
  if (n.has(8)) e.gate = {dequantized_weights(n, 8, 9, 13, dtype), n.optional(10)};
  mix(n, e);
}

}  // namespace hone::onnx_io

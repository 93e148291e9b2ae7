#include "ir/composites/expansion.h"
#include "ir/derivatives/rules.h"

// Elementwise nonlinearities.

namespace hone {
namespace {

using In = std::span<const Value>;

std::vector<Value> expand_relu(Builder&, Op, In in) { return {maximum(in[0], 0)}; }

std::vector<Value> expand_gelu(Builder&, Op op, In in) {
  Value x = in[0];
  if (op.word("form") == "tanh") {
    Value inner = 0.7978845608028654 * (x + 0.044715 * (x * x * x));  // sqrt(2 / pi)
    return {0.5 * x * (1 + tanh(inner))};
  }
  return {0.5 * x * (1 + unary(Opcode::erf, x / 1.4142135623730951))};
}

std::vector<Value> expand_silu(Builder&, Op, In in) { return {in[0] * logistic(in[0])}; }

Value hard_sigmoid_of(Value x, double alpha, double beta) { return clamp(alpha * x + beta, 0, 1); }

std::vector<Value> expand_hard_sigmoid(Builder&, Op op, In in) {
  return {hard_sigmoid_of(in[0], op.real("alpha"), op.real("beta"))};
}

std::vector<Value> expand_hard_swish(Builder&, Op, In in) {
  return {in[0] * hard_sigmoid_of(in[0], 1.0 / 6, 0.5)};
}

// Neither overflows nor loses the tail: exp sees no positive number.
Value softplus_of(Value x) {
  Value tail = unary(Opcode::log1p, exp(-unary(Opcode::abs, x)));
  return maximum(x, 0) + tail;
}

std::vector<Value> expand_softplus(Builder&, Op, In in) { return {softplus_of(in[0])}; }

std::vector<Value> expand_mish(Builder&, Op, In in) { return {in[0] * tanh(softplus_of(in[0]))}; }

std::vector<Value> expand_prelu(Builder& b, Op, In in) {
  Value x = in[0], slope = in[1];
  if (!need_broadcastable(b, "slope", slope, x.dims())) return {};
  if (slope.dtype() != x.dtype()) {
    return failed(b, bad_input("slope is {}, want the element type of x, which is {}",
                               slope.type().to_string(), x.type().to_string()));
  }
  return {select(compare("lt", x, 0), broadcast_to(slope, x.dims()) * x, x)};
}

constexpr AttrSpec kGeluAttrs[] = {
    {"form", AttrKind::word, "erf", "the exact form, or the one by tanh", "erf|tanh"}};
constexpr AttrSpec kHardSigmoidAttrs[] = {
    {"alpha", AttrKind::real, "0.16666666666666666", "slope of the middle piece"},
    {"beta", AttrKind::real, "0.5", "value at 0"}};

}  // namespace

extern const OpDef op_def_relu;
const OpDef op_def_relu = {
    .opcode = Opcode::relu,
    .summary = "max(x, 0)",
    .semantics = "NaN stays NaN. Integers are allowed; unsigned ones stay as they are.",
    .operands = "x",
    .dtypes = kNumber,
    .expand = expand_relu,
    .derivative = &derivative_relu};

extern const OpDef op_def_gelu;
const OpDef op_def_gelu = {
    .opcode = Opcode::gelu,
    .summary = "x times the normal distribution function of x",
    .semantics =
        "form erf: x/2 * (1 + erf(x / sqrt 2)). form tanh: x/2 * (1 + tanh(sqrt(2/pi) * "
        "(x + 0.044715 x^3))). NaN stays NaN; -inf gives NaN (-inf times 0).",
    .operands = "x",
    .attrs = kGeluAttrs,
    .dtypes = kReal,
    .expand = expand_gelu};

extern const OpDef op_def_silu;
const OpDef op_def_silu = {.opcode = Opcode::silu,
                           .summary = "x * logistic(x)",
                           .semantics = "NaN stays NaN; -inf gives NaN (-inf times 0).",
                           .operands = "x",
                           .dtypes = kReal,
                           .expand = expand_silu};

extern const OpDef op_def_hard_swish;
const OpDef op_def_hard_swish = {
    .opcode = Opcode::hard_swish,
    .summary = "x * hard_sigmoid(x)",
    .semantics = "x * max(0, min(1, x/6 + 1/2)). NaN stays NaN; -inf gives NaN (-inf times 0).",
    .operands = "x",
    .dtypes = kReal,
    .expand = expand_hard_swish};

extern const OpDef op_def_hard_sigmoid;
const OpDef op_def_hard_sigmoid = {.opcode = Opcode::hard_sigmoid,
                                   .summary = "max(0, min(1, alpha * x + beta))",
                                   .semantics = "NaN stays NaN.",
                                   .operands = "x",
                                   .attrs = kHardSigmoidAttrs,
                                   .dtypes = kReal,
                                   .expand = expand_hard_sigmoid};

extern const OpDef op_def_mish;
const OpDef op_def_mish = {.opcode = Opcode::mish,
                           .summary = "x * tanh(softplus(x))",
                           .semantics = "NaN stays NaN; -inf gives NaN (-inf times 0).",
                           .operands = "x",
                           .dtypes = kReal,
                           .expand = expand_mish};

extern const OpDef op_def_softplus;
const OpDef op_def_softplus = {
    .opcode = Opcode::softplus,
    .summary = "log(1 + exp(x))",
    .semantics =
        "Computed as max(x, 0) + log1p(exp(-|x|)), which does not overflow: a large x "
        "gives x. NaN stays NaN.",
    .operands = "x",
    .dtypes = kReal,
    .expand = expand_softplus,
    .derivative = &derivative_softplus};

extern const OpDef op_def_prelu;
const OpDef op_def_prelu = {
    .opcode = Opcode::prelu,
    .summary = "x where x >= 0, slope * x elsewhere",
    .semantics =
        "slope broadcasts to x as in numpy and has its element type. NaN stays NaN. "
        "Integer products wrap.",
    .operands = "x, slope",
    .dtypes = kNumber,
    .expand = expand_prelu};

}  // namespace hone

#include <algorithm>

#include "front/onnx/ops/windows.h"
#include "front/onnx/registry.h"

// Activations, products and convolutions with what follows them, as ONNX Runtime's fusions write
// them.

namespace hone::onnx_io {

// ---- Activations --------------------------------------------------------------------------------

void map_contributed_gelu(Node& n) { n.out(gelu(n.in())); }

void map_bias_gelu(Node& n) { n.out(gelu(n.in(0) + n.in(1))); }

void map_fast_gelu(Node& n) {
  Value bias = n.optional(1);
  n.out(gelu(bias ? n.in(0) + bias : n.in(0), true));
}

void map_quick_gelu(Node& n) {
  Value x = n.in();
  const double alpha = n.real("alpha", 1.702);
  n.out(alpha == 1 ? silu(x) : x * logistic(x * alpha));
}

// The left half of the last dim times the gelu of the right one.
void map_bias_split_gelu(Node& n) {
  std::vector<Value> halves = split(n.in(0) + n.in(1), -1, 2);
  n.out(halves[0] * gelu(halves[1]));
}

void map_bias_add(Node& n) { n.out(n.in(0) + n.in(1) + n.in(2)); }

// Softmax over all dims from the axis on.
void map_bias_softmax(Node& n) {
  Value x = n.in(0), bias = n.in(1);
  n.require_rank(x, "the data", 1);
  const int axis = n.axis("axis", x.rank(), 1);
  n.ignore("is_inner_broadcast");  // the shapes tell it
  if (bias.rank() > x.rank()) {
    n.bad("the bias is {}, the data {}", bias.type().to_string(), x.type().to_string());
  }
  Value sum = x + bias;
  n.out(reshape(softmax(flatten(sum, axis), -1), sum.dims()));
}

namespace {

// The activation behind a product or a convolution. Parameters by the activation's own order.
struct Activation {
  std::string name;
  std::vector<double> parameters;

  double parameter(Node& n, size_t i, std::optional<double> fallback) const {
    if (i < parameters.size()) return parameters[i];
    if (!fallback) n.bad("{} lacks parameter {}", name, i);
    return *fallback;
  }
  Value apply(Node& n, Value x) const;
};

Value Activation::apply(Node& n, Value x) const {
  auto p = [&](size_t i, std::optional<double> fallback) { return parameter(n, i, fallback); };
  if (name.empty()) return x;
  if (name == "Relu") return relu(x);
  if (name == "Tanh") return tanh(x);
  if (name == "Sigmoid") return logistic(x);
  if (name == "Silu") return silu(x);
  if (name == "Softplus") return unary(Opcode::softplus, x);
  if (name == "Gelu") return gelu(x);
  if (name == "Softsign") return x / (unary(Opcode::abs, x) + 1);
  if (name == "LeakyRelu") return select(compare("ge", x, 0), x, x * p(0, 0.01));
  if (name == "ThresholdedRelu") {
    return select(compare("gt", x, p(0, 1)), x, n.builder().scalar(x.dtype(), 0));
  }
  if (name == "Elu") return select(compare("gt", x, 0), x, unary(Opcode::expm1, x) * p(0, 1));
  if (name == "Clip") return minimum(maximum(x, p(0, std::nullopt)), p(1, std::nullopt));
  if (name == "HardSigmoid") {
    return n.builder().op(Opcode::hard_sigmoid, {x}, {{"alpha", p(0, 0.2)}, {"beta", p(1, 0.5)}});
  }
  if (name == "ScaledTanh") return tanh(x * p(1, 1)) * p(0, 1);
  if (name == "ParametricSoftplus") return unary(Opcode::softplus, x * p(1, 1)) * p(0, 1);
  n.unsupported("the activation '{}'", name);
}

// The form with a list of parameters, and the one with an attribute for each.
Activation listed_activation(Node& n) {
  return {n.word("activation", ""), n.reals("activation_params")};
}
Activation named_activation(Node& n) {
  Activation a = {n.word("activation", ""), {}};
  for (std::string_view attribute : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    if (!n.has_attribute(attribute)) break;
    a.parameters.push_back(n.real(attribute));
  }
  n.ignore("activation_axis");
  if (a.name == "Softmax") n.unsupported("the activation '{}'", a.name);
  return a;
}

// ---- Products -----------------------------------------------------------------------------------

// First dim 0 moves behind the batch dims, where the rows stand; then the last two change places.
Value arranged(Value x, bool batch, bool swapped) {
  const int64_t rank = x.rank();
  if (rank < 2) return x;
  Ints order;
  for (int64_t i = 0; i < rank; ++i) order.push_back(i);
  if (batch) std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  if (swapped) std::swap(order[order.size() - 1], order[order.size() - 2]);
  return transpose(x, order);
}

Value fused_product(Node& n) {
  Value a = n.in(0), b = n.in(1);
  n.require_rank(a, "A", 1);
  n.require_rank(b, "B", 1);
  a = arranged(a, n.flag("transBatchA"), n.flag("transA"));
  b = arranged(b, n.flag("transBatchB"), n.flag("transB"));
  const double alpha = n.real("alpha", 1);
  Value y = matmul(a, b);
  return alpha == 1 ? y : y * alpha;
}

}  // namespace

void map_fused_matmul(Node& n) { n.out(fused_product(n)); }

void map_fused_matmul_activation(Node& n) { n.out(named_activation(n).apply(n, fused_product(n))); }

void map_gemm_fast_gelu(Node& n) {
  Value y = matmul(n.in(0), n.in(1));
  if (Value bias = n.optional(2)) y = y + bias;
  n.out(gelu(y, true));
}

void map_fused_gemm(Node& n) {
  Value a = n.in(0), b = n.in(1), c = n.optional(2);
  n.require_rank(a, "A", 2, 2);
  n.require_rank(b, "B", 2, 2);
  if (!is_real(a.dtype())) n.bad("A is {}, want reals", name(a.dtype()));
  const double alpha = n.real("alpha", 1), beta = n.real("beta", 1);
  Value y = matmul(arranged(a, false, n.flag("transA")), arranged(b, false, n.flag("transB")));
  if (alpha != 1) y = y * alpha;
  if (c && beta != 0) y = y + broadcast_to(beta == 1 ? c : c * beta, y.dims());
  n.out(named_activation(n).apply(n, y));
}

// ---- Convolutions -------------------------------------------------------------------------------

namespace {

// conv(x, w) + bias + addend, activated.
Value fused_convolution(Node& n, Value x, Value addend) {
  Value y = convolution(n, x, n.in(1));
  if (Value bias = n.optional(2)) y = y + per_channel(bias, y);
  if (addend) y = y + addend;
  return listed_activation(n).apply(n, y);
}

}  // namespace

void map_fused_conv(Node& n) { n.out(fused_convolution(n, n.in(0), n.optional(3))); }

void map_nhwc_conv(Node& n) {
  n.require_rank(n.in(0), "X", 3);
  Value addend = n.optional(3);
  if (addend) n.require_rank(addend, "Z", n.in(0).rank(), n.in(0).rank());
  Value y = fused_convolution(n, channels_first(n.in(0)), addend ? channels_first(addend) : addend);
  n.out(channels_last(y));
}

}  // namespace hone::onnx_io

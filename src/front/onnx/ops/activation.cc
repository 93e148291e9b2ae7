#include <algorithm>

#include "front/onnx/ops/helpers.h"
#include "front/onnx/registry.h"

namespace hone::onnx_io {
namespace {

// x where x > 0, alpha * (e^x - 1) elsewhere
Value exponential_unit(Value x, double alpha) {
  return select(compare("gt", x, 0), x, unary(Opcode::expm1, x) * alpha);
}

void map_composite(Node& n, Opcode opcode) { n.out(unary(opcode, n.in())); }

}  // namespace

void map_relu(Node& n) { n.out(relu(n.in())); }

void map_sigmoid(Node& n) { n.out(logistic(n.in())); }

void map_mish(Node& n) { map_composite(n, Opcode::mish); }
void map_softplus(Node& n) { map_composite(n, Opcode::softplus); }
void map_hard_swish(Node& n) { map_composite(n, Opcode::hard_swish); }

void map_softsign(Node& n) {
  Value x = n.in();
  n.out(x / (1.0 + unary(Opcode::abs, x)));
}

void map_gelu(Node& n) {
  std::string approximate = n.word("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    n.bad("approximate is '{}', must be none or tanh", approximate);
  n.out(gelu(n.in(), approximate == "tanh"));
}

namespace {

Value swish(Value x, double alpha) { return alpha == 1 ? silu(x) : x * logistic(x * alpha); }

}  // namespace

void map_swish(Node& n) { n.out(swish(n.in(), n.real("alpha", 1))); }

// The operands do not broadcast.
void map_swiglu(Node& n) {
  Value gate = n.in(), x = n.in(1);
  if (gate.dims() != x.dims())
    n.bad("operands {} and {} differ", gate.type().to_string(), x.type().to_string());
  n.out(swish(gate, n.real("alpha", 1)) * x);
}

void map_hard_sigmoid(Node& n) {
  double alpha = n.real("alpha", 0.2);
  // 1/6, as its exporters mean it.
  if (static_cast<float>(alpha) == static_cast<float>(1.0 / 6)) alpha = 1.0 / 6;
  Attrs attrs = {{"alpha", alpha}, {"beta", n.real("beta", 0.5)}};
  n.out(n.builder().op(Opcode::hard_sigmoid, {n.in()}, std::move(attrs)));
}

void map_elu(Node& n) { n.out(exponential_unit(n.in(), n.real("alpha", 1))); }

// max(0, x) + min(0, alpha * (e^(x / alpha) - 1))
void map_celu(Node& n) {
  Value x = n.in();
  double alpha = n.real("alpha", 1);
  n.out(maximum(x, 0) + minimum(unary(Opcode::expm1, x / alpha) * alpha, 0));
}

void map_selu(Node& n) {
  bool rough = n.version() < 6;
  double alpha = n.real("alpha", rough ? 1.6732 : 1.6732632);
  double gamma = n.real("gamma", rough ? 1.0507 : 1.050701);
  n.out(exponential_unit(n.in(), alpha) * gamma);
}

void map_leaky_relu(Node& n) {
  Value x = n.in();
  Value slope = n.builder().scalar(x.dtype(), n.real("alpha", 0.01));
  n.out(n.builder().op(Opcode::prelu, {x, slope}));
}

// Before version 7 a vector of slopes is for the channels.
void map_prelu(Node& n) {
  Value x = n.in(0), slope = n.in(1);
  if (slope.rank() > x.rank())
    n.bad("slope {} does not stretch to {}", slope.type().to_string(), x.type().to_string());
  bool by_channel = n.version() < 7 && slope.rank() == 1 && !slope.dim(0).is(1) && x.rank() > 2;
  if (by_channel) {
    Dims dims(static_cast<size_t>(x.rank() - 1), 1);
    dims[0] = slope.dim(0);
    slope = reshape(slope, dims);
  }
  n.out(n.builder().op(Opcode::prelu, {x, slope}));
}

void map_thresholded_relu(Node& n) {
  Value x = n.in();
  n.out(select(compare("gt", x, n.real("alpha", 1)), x, n.builder().scalar(x.dtype(), 0)));
}

// For integers too: their sums with the bias are cut toward zero.
void map_shrink(Node& n) {
  Value x = n.in();
  double bias = n.real("bias", 0), lambda = n.real("lambd", 0.5);
  Value y = is_real(x.dtype()) ? x : cast(x, DType::f64);
  Value above = select(compare("gt", y, lambda), y - bias, n.builder().scalar(y.dtype(), 0));
  n.out(cast(select(compare("lt", y, -lambda), y + bias, above), x.dtype()));
}

// ---- Along an axis ------------------------------------------------------------------------------

namespace {

// Applies `f` along the axis. Before version 13 all dims from the axis on count as one.
template <class F>
void along_axis(Node& n, const F& f) {
  Value x = n.in();
  bool merges = n.version() < 13;
  int axis = n.axis("axis", x.rank(), merges ? 1 : -1);
  // The last axis goes by the name that it has by default.
  if (!merges) return n.out(f(x, axis == x.rank() - 1 ? -1 : axis));
  // Dims of 1 need no merging.
  Dims dims = x.dims();
  auto is_wide = [](Dim d) { return !d.is(1); };
  auto wide = std::find_if(dims.begin() + axis, dims.end(), is_wide);
  if (wide == dims.end()) return n.out(f(x, axis));
  if (std::none_of(wide + 1, dims.end(), is_wide))
    return n.out(f(x, static_cast<int>(wide - dims.begin())));
  n.out(reshape(f(flatten(x, axis), axis), dims));
}

}  // namespace

void map_softmax(Node& n) {
  along_axis(n, [](Value x, int axis) { return softmax(x, axis); });
}

void map_log_softmax(Node& n) {
  along_axis(n, [](Value x, int axis) { return log_softmax(x, axis); });
}

// 1 at the first maximum, 0 elsewhere.
void map_hardmax(Node& n) {
  along_axis(n, [](Value x, int axis) {
    if (axis < 0) axis += x.rank();
    if (x.dim(axis).is(0)) return x;
    Attrs attrs = {{"depth", Dims{x.dim(axis)}}, {"axis", int64_t{axis}}, {"dtype", x.dtype()}};
    return x.builder().op(Opcode::one_hot, {arg_extreme(x, "max", axis)}, std::move(attrs));
  });
}

}  // namespace hone::onnx_io

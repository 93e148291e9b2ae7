#include <limits>

#include "front/onnx/ops/helpers.h"
#include "front/onnx/registry.h"
#include "tensor/counting.h"

namespace hone::onnx_io {
namespace {

// The axes to reduce: all axes if none are named, unless the node says that this means none.
struct Reduction {
  Value x;
  Ints axes;
  bool keep;

  Value operator()(std::string_view kind, Value v) const {
    return axes.empty() ? v : reduce(kind, v, axes, keep);
  }
};

// Axes are an operand from version `operand_since` on, before an attribute.
Reduction reduction(Node& n, int operand_since = 18) {
  Reduction r = {n.in(), {}, n.flag("keepdims", true)};
  bool by_operand = n.version() >= operand_since;
  if (!by_operand) r.axes = n.ints("axes");
  if (by_operand && n.has(1)) r.axes = n.integers(1);
  bool none = by_operand && n.flag("noop_with_empty_axes");
  if (r.axes.empty() && !none) {
    r.axes = counting(0, r.x.rank());
  }
  r.axes = n.axes_in(r.axes, r.x.rank());
  return r;
}

// Roots and logarithms of integers are computed on reals and cut toward zero.
Value as_real(Value x) { return is_real(x.dtype()) ? x : cast(x, DType::f64); }

Value square_sum(const Reduction& r) { return r("sum", r.x * r.x); }

void map_extreme(Node& n, std::string_view kind, std::string_view of_bools) {
  Reduction r = reduction(n);
  n.out(r(is_bool(r.x.dtype()) ? of_bools : kind, r.x));
}

}  // namespace

void map_reduce_sum(Node& n) {
  Reduction r = reduction(n, 13);
  n.out(r("sum", r.x));
}

void map_reduce_prod(Node& n) {
  Reduction r = reduction(n);
  n.out(r("product", r.x));
}

void map_reduce_max(Node& n) { map_extreme(n, "max", "or"); }
void map_reduce_min(Node& n) { map_extreme(n, "min", "and"); }

void map_reduce_mean(Node& n) {
  Reduction r = reduction(n);
  n.out(r.axes.empty() ? r.x : reduce_mean(r.x, r.axes, r.keep));
}

void map_reduce_l1(Node& n) {
  Reduction r = reduction(n);
  n.out(r("sum", unary(Opcode::abs, r.x)));
}

void map_reduce_l2(Node& n) {
  Reduction r = reduction(n);
  n.out(cast(sqrt(as_real(square_sum(r))), r.x.dtype()));
}

void map_reduce_sum_square(Node& n) { n.out(square_sum(reduction(n))); }

void map_reduce_log_sum(Node& n) {
  Reduction r = reduction(n);
  n.out(cast(log(as_real(r("sum", r.x))), r.x.dtype()));
}

// The greatest element is subtracted before exp, which then does not overflow, unless it is
// infinite.
void map_reduce_log_sum_exp(Node& n) {
  Reduction r = reduction(n);
  Value x = as_real(r.x);
  if (r.axes.empty()) return n.out(r.x);
  Value most = reduce_max(x, r.axes, true);
  most = select(unary(Opcode::is_finite, most), most, x.builder().scalar(x.dtype(), 0));
  Value sum = log(reduce_sum(exp(x - most), r.axes, true)) + most;
  n.out(cast(r.keep ? sum : reduce_sum(sum, r.axes), r.x.dtype()));
}

// ---- Along one axis -----------------------------------------------------------------------------

namespace {

// The number that every number of the type exceeds or equals, or the other end.
Tensor extreme(DType dtype, bool highest) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (is_real(dtype)) return Tensor::scalar(dtype, highest ? kInfinity : -kInfinity);
  IntegerLimits limits = integer_limits(dtype);
  return Tensor::from_integers(Type::scalar(dtype), {{highest ? limits.highest : limits.lowest}});
}

}  // namespace

Value arg_extreme(Value x, std::string_view kind, int axis, bool last) {
  Builder& b = x.builder();
  Attrs attrs = {{"kind", std::string(kind)}, {"axis", int64_t{axis}}, {"last", last}};
  Dim size = x.dim(axis);
  if (size.is_static() || size.range().low > 0) return b.op(Opcode::arg_reduce, {x}, attrs);
  // An element that loses against all others makes sure that there is one.
  Dims low(static_cast<size_t>(x.rank()), 0), high = low;
  (last ? low : high)[static_cast<size_t>(axis)] = 1;
  Value loser = b.constant(extreme(x.dtype(), kind == "min"));
  x = b.op(Opcode::pad, {x, loser}, {{"low", low}, {"high", high}});
  Value index = b.op(Opcode::arg_reduce, {x}, attrs);
  return last ? index - 1 : index;
}

namespace {

void map_arg_extreme(Node& n, std::string_view kind) {
  Value x = n.in();
  int axis = n.axis("axis", x.rank(), 0);
  bool last = n.version() >= 12 && n.flag("select_last_index");
  Value index = arg_extreme(x, kind, axis, last);
  n.out(n.flag("keepdims", true) ? unsqueeze(index, axis) : index);
}

}  // namespace

void map_arg_max(Node& n) { map_arg_extreme(n, "max"); }
void map_arg_min(Node& n) { map_arg_extreme(n, "min"); }

namespace {

int running_axis(Node& n) {
  Ints axis = n.integers(1);
  if (axis.size() != 1) n.bad("the axis must be one number, there are {}", axis.size());
  return n.axis_in(axis[0], n.in().rank());
}

}  // namespace

void map_cum_sum(Node& n) {
  Attrs attrs = {{"axis", int64_t{running_axis(n)}},
                 {"exclusive", n.flag("exclusive")},
                 {"reverse", n.flag("reverse")}};
  n.out(n.builder().op(Opcode::cumsum, {n.in()}, std::move(attrs)));
}

void map_cum_prod(Node& n) {
  n.out(cumulative("product", n.in(), running_axis(n), n.flag("exclusive"), n.flag("reverse")));
}

// x over its norm; zeros stay zeros.
void map_lp_normalization(Node& n) {
  Value x = n.in();
  int64_t p = n.integer("p", 2);
  int axis = n.axis("axis", x.rank(), -1);
  if (p != 1 && p != 2) n.bad("p is {}, must be 1 or 2", p);
  Value norm = p == 1 ? reduce_sum(unary(Opcode::abs, x), {axis}, true)
                      : sqrt(reduce_sum(x * x, {axis}, true));
  n.out(select(compare("eq", norm, 0), n.builder().scalar(x.dtype(), 0), x / norm));
}

// (x - mean) / (deviation + 1e-9), as the standard's function for it spells it.
void map_mean_variance_normalization(Node& n) {
  Value x = n.in();
  Ints axes = n.axes_in(n.has_attribute("axes") ? n.ints("axes") : Ints{0, 2, 3}, x.rank());
  Value centered = x - reduce_mean(x, axes, true);
  Value deviation = sqrt(reduce_mean(centered * centered, axes, true));
  n.out(centered / (deviation + 1e-9));
}

}  // namespace hone::onnx_io

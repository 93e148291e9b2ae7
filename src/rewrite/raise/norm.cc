#include <algorithm>
#include <cmath>

#include "ir/composites/expansion.h"
#include "rewrite/raise/guess.h"

namespace hone {
namespace {

// ---- Softmax ------------------------------------------------------------------------------------

struct Shifted {
  Form x;
  int64_t axis;
};

// x - max(x, axis)
std::optional<Shifted> shifted_by_max(Guess& g, Form f) {
  if (!g.is(f, Opcode::add)) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const Form shift = g.negated(g.operand(f, i));
    if (shift == kNoForm) continue;
    const Form max = g.core(shift), x = g.operand(f, 1 - i);
    if (!g.is(max, Opcode::reduce) || g.operand(max, 0) != x) continue;
    const Ints& axes = g.forms.op(max).ints("axes");
    if (axes.size() == 1) return Shifted{x, axes[0]};
  }
  return std::nullopt;
}

Op with_axis(const Guess& g, Opcode opcode, const Shifted& s) {
  return Op::get(opcode, {{"axis", from_back(s.axis, g.forms.type(s.x).rank())}});
}

bool guess_softmax(Guess& g) {
  for (Form e : g.factors(g.root, Opcode::exp)) {
    const auto shifted = shifted_by_max(g, g.operand(e, 0));
    if (shifted && g.propose(with_axis(g, Opcode::softmax, *shifted), {shifted->x})) return true;
  }
  return false;
}

bool guess_log_softmax(Guess& g) {
  for (size_t i = 0; i < 2; ++i) {
    const auto shifted = shifted_by_max(g, g.operand(g.root, i));
    if (shifted && g.propose(with_axis(g, Opcode::log_softmax, *shifted), {shifted->x}))
      return true;
  }
  return false;
}

// ---- Standardized values ------------------------------------------------------------------------

// The two ways to read a root: product + bias, or a product alone.
struct Affine {
  Form product;
  Form bias;
};

std::vector<Affine> affine_readings(Guess& g) {
  if (!g.is(g.root, Opcode::add)) return {{g.root, kNoForm}};
  const Form a = g.operand(g.root, 0), b = g.operand(g.root, 1);
  return {{a, b}, {b, a}};
}

// The reduced value of a mean: number * sum(value).
Form summed_value(Guess& g, Form mean) {
  const std::vector<Form> sums = g.factors_with_core(mean, Opcode::reduce);
  return sums.empty() ? kNoForm : g.core(sums[0]);
}

// centered * 1/sqrt(mean(centered^2) + epsilon) * scale + bias
struct Standardized {
  Form centered = kNoForm;
  Form rest = kNoForm;  // the product without the root
  Form bias = kNoForm;
  Ints axes;
  double epsilon = 0;

  // kNoForm if there is nothing else.
  Form rest_without(Guess& g, Form factor) const {
    const Form others = g.divided(rest, factor);
    return others == kNoForm || g.forms.is_splat(others, 1) ? kNoForm : others;
  }
};

std::vector<Standardized> standardized_readings(Guess& g) {
  std::vector<Standardized> readings;
  for (const Affine& a : affine_readings(g)) {
    for (Form deviation : g.factors_with_core(a.product, Opcode::rsqrt)) {
      const Form variance = g.operand(g.core(deviation), 0);
      if (!g.is(variance, Opcode::add)) continue;
      const auto sum = g.beside_splat(variance);
      const Form reduced = sum ? summed_value(g, sum->first) : kNoForm;
      if (reduced == kNoForm || g.forms.op(reduced).ints("axes").empty()) continue;
      const Form centered = g.square_root(g.operand(reduced, 0));
      if (centered == kNoForm) continue;
      readings.push_back({centered, g.divided(a.product, deviation), a.bias,
                          g.forms.op(reduced).ints("axes"),
                          recovered(g.forms.type(g.root).dtype(), sum->second)});
    }
  }
  return readings;
}

// The x of x - mean(x).
Form uncentered(Guess& g, Form centered) {
  if (!g.is(centered, Opcode::add)) return kNoForm;
  for (size_t i = 0; i < 2; ++i) {
    const Form x = g.operand(centered, 1 - i);
    const Form reduced = summed_value(g, g.operand(centered, i));
    if (reduced != kNoForm && g.operand(reduced, 0) == x) return x;
  }
  return kNoForm;
}

// A value over the dims from `axis` on.
Form inner_operand(Guess& g, Form f, int axis) {
  if (f == kNoForm) return kNoForm;
  const Type type = g.forms.type(f);
  return g.unbroadcast(f, dims_from(type.dims(), axis, type.rank()), int_range(axis, type.rank()));
}

// A vector along an axis.
Form channel_operand(Guess& g, Form f, int axis) {
  if (f == kNoForm || axis >= g.forms.type(f).rank()) return kNoForm;
  return g.unbroadcast(f, {g.forms.type(f).dim(axis)}, {axis});
}

bool guess_layer_norm(Guess& g) {
  for (const Standardized& s : standardized_readings(g)) {
    const Form x = uncentered(g, s.centered);
    if (x == kNoForm) continue;
    const int axis = static_cast<int>(s.axes[0]);
    const Form scale = inner_operand(g, s.rest_without(g, s.centered), axis);
    const Form bias = inner_operand(g, s.bias, axis);
    if (s.bias != kNoForm && bias == kNoForm) continue;
    const Op op = Op::get(Opcode::layer_norm, {{"axis", from_back(axis, g.forms.type(x).rank())},
                                               {"epsilon", s.epsilon}});
    if (g.propose(op, {x, scale, bias})) return true;
  }
  return false;
}

bool guess_rms_norm(Guess& g) {
  for (const Standardized& s : standardized_readings(g)) {
    const int axis = static_cast<int>(s.axes[0]);
    const Form scale = inner_operand(g, s.rest_without(g, s.centered), axis);
    const int rank = g.forms.type(s.centered).rank();
    const Op op =
        Op::get(Opcode::rms_norm, {{"axis", from_back(axis, rank)}, {"epsilon", s.epsilon}});
    if (g.propose(op, {s.centered, scale})) return true;
  }
  return false;
}

bool guess_instance_norm(Guess& g) {
  for (const Standardized& s : standardized_readings(g)) {
    const Form x = uncentered(g, s.centered);
    const Form scale = channel_operand(g, s.rest_without(g, s.centered), 1);
    const Form bias = channel_operand(g, s.bias, 1);
    if (x == kNoForm || scale == kNoForm || bias == kNoForm) continue;
    const Op op = Op::get(Opcode::instance_norm, {{"epsilon", s.epsilon}});
    if (g.propose(op, {x, scale, bias})) return true;
  }
  return false;
}

// The values are standardized as [batch, groups, rest].
bool guess_group_norm(Guess& g) {
  for (const Standardized& s : standardized_readings(g)) {
    const Form grouped = uncentered(g, s.centered);
    if (grouped == kNoForm || g.forms.type(grouped).rank() != 3) continue;
    const Dim groups = g.forms.type(grouped).dim(1);
    const Dims dims = g.forms.dims(g.root);
    if (!groups.is_static()) continue;
    const Form y = g.forms.reshape(s.centered, dims);
    const Form scale = channel_operand(g, s.rest_without(g, y), 1);
    const Form bias = channel_operand(g, s.bias, 1);
    if (scale == kNoForm || bias == kNoForm) continue;
    const Op op = Op::get(Opcode::group_norm, {{"groups", groups.value()}, {"epsilon", s.epsilon}});
    if (g.propose(op, {g.forms.reshape(grouped, dims), scale, bias})) return true;
  }
  return false;
}

// ---- Given statistics ---------------------------------------------------------------------------

// The axis that a vector is laid along. Where all is of size 1, it could be any.
std::optional<int> laid_along(const Guess& g, Form f) {
  constexpr int kStandardAxis = 1;
  if (g.is(f, Opcode::broadcast)) {
    const Ints& map = g.forms.op(f).ints("map");
    if (map.size() > 1) return std::nullopt;
    return map.empty() ? kStandardAxis : static_cast<int>(map[0]);
  }
  std::optional<int> axis;
  for (int i = 0; i < g.forms.type(f).rank(); ++i) {
    if (g.forms.type(f).dim(i).is(1)) continue;
    if (axis) return std::nullopt;
    axis = i;
  }
  return axis.value_or(kStandardAxis);
}

// `deviation` is one of the factors of the product.
bool batch_norm_of(Guess& g, const Affine& a, Form deviation) {
  const auto axis = laid_along(g, deviation);
  const Form shifted = g.operand(g.core(deviation), 0);
  if (!axis || !g.is(shifted, Opcode::add)) return false;
  const auto sum = g.beside_splat(shifted);
  const Form bias = channel_operand(g, a.bias, *axis);
  if (!sum || bias == kNoForm) return false;
  const DType dtype = g.forms.type(g.root).dtype();
  const Op op = Op::get(Opcode::batch_norm,
                        {{"epsilon", recovered(dtype, sum->second)}, {"axis", int64_t{*axis}}});
  const Form variance = g.forms.reshape(sum->first, {g.forms.type(g.root).dim(*axis)});
  const Form rest = g.divided(a.product, deviation);
  for (Form centered : g.factors(rest, Opcode::add)) {
    const Form scale = channel_operand(g, g.divided(rest, centered), *axis);
    if (scale == kNoForm) continue;
    for (size_t i = 0; i < 2; ++i) {
      const Form mean = channel_operand(g, g.forms.scaled(g.operand(centered, i), -1), *axis);
      const Form x = g.operand(centered, 1 - i);
      if (mean != kNoForm && g.propose(op, {x, scale, bias, mean, variance})) return true;
    }
  }
  return false;
}

bool guess_batch_norm(Guess& g) {
  for (const Affine& a : affine_readings(g))
    for (Form deviation : g.factors_with_core(a.product, Opcode::rsqrt))
      if (batch_norm_of(g, a, deviation)) return true;
  return false;
}

// The base and exponent of 1 / base^exponent.
std::optional<std::pair<Form, double>> inverse_power(const Guess& g, Form f) {
  if (g.is(f, Opcode::rsqrt)) return std::pair(g.operand(f, 0), 0.5);
  if (!g.forms.is(f, FormKind::inverse)) return std::nullopt;
  const Form power = g.operand(f, 0);
  if (!g.is(power, Opcode::pow)) return std::pair(power, 1.0);
  if (!g.forms.is(g.operand(power, 1), FormKind::splat)) return std::nullopt;
  return std::pair(g.operand(power, 0), g.forms.number(g.operand(power, 1)));
}

// x / (bias + alpha/size * sum(x^2))^beta
bool guess_lrn(Guess& g) {
  for (Form f : g.forms.factors(g.root).list) {
    const auto power = inverse_power(g, f);
    if (!power || !g.is(power->first, Opcode::add)) continue;
    const auto sum = g.beside_splat(power->first);
    const Form x = g.divided(g.root, f);
    if (!sum || x == kNoForm) continue;
    const std::vector<Form> windows = g.factors(sum->first, Opcode::window_reduce);
    if (windows.empty()) continue;
    const Ints& sizes = g.forms.op(windows[0]).ints("window");
    if (sizes.size() < 2) continue;
    const DType dtype = g.forms.type(x).dtype();
    const double size = static_cast<double>(sizes[1]);
    const Op op =
        Op::get(Opcode::lrn, {{"size", sizes[1]},
                              {"alpha", recovered(dtype, g.forms.factors(sum->first).number, size)},
                              {"beta", recovered(dtype, power->second)},
                              {"bias", recovered(dtype, sum->second)}});
    if (g.propose(op, {x})) return true;
  }
  return false;
}

constexpr RaiseRule kNormRules[] = {
    {Opcode::add, guess_instance_norm}, {Opcode::add, guess_group_norm},
    {Opcode::add, guess_batch_norm},    {Opcode::add, guess_layer_norm},
    {Opcode::add, guess_log_softmax},   {Opcode::mul, guess_softmax},
    {Opcode::mul, guess_layer_norm},    {Opcode::mul, guess_rms_norm},
    {Opcode::mul, guess_lrn},
};

}  // namespace

std::span<const RaiseRule> norm_rules() { return kNormRules; }

}  // namespace hone

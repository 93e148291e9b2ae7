#include <algorithm>

#include "ir/composites/expansion.h"
#include "rewrite/raise/guess.h"

namespace hone {
namespace {

// How a scale or zero point lies over x.
struct Spread {
  Form value;
  int64_t axis;
  int64_t block;
};

constexpr int64_t kStandardAxis = 1;

// One number, a vector along an axis, or blocks along an axis, that spreads to `f`.
std::vector<Spread> spreads_of(Guess& g, Form f) {
  const Type type = g.forms.type(f);
  std::vector<Spread> spreads;
  if (g.forms.is(f, FormKind::splat)) {
    spreads.push_back({g.unbroadcast(f, {}, {}), kStandardAxis, 0});
    return spreads;
  }
  if (g.is(f, Opcode::broadcast)) {
    const Ints& map = g.forms.op(f).ints("map");
    if (map.empty()) spreads.push_back({g.operand(f, 0), kStandardAxis, 0});
    if (map.size() == 1) spreads.push_back({g.operand(f, 0), map[0], 0});
  }
  // Blocks: [.., blocks, ..] repeated to [.., blocks, block, ..], joined, and perhaps cut.
  Form joined = g.is(f, Opcode::slice) ? g.operand(f, 0) : f;
  if (g.is(joined, Opcode::reshape)) joined = g.operand(joined, 0);
  if (!g.is(joined, Opcode::broadcast)) return spreads;
  for (Dim d : g.forms.dims(joined)) {
    if (!d.is_static() || d.value() < 2) continue;
    for (int axis = 0; axis < type.rank(); ++axis) {
      const Dims dims = with_dim(g.forms.dims(f), axis, ceildiv(type.dim(axis), d.value()));
      if (!(product(dims) == product(g.forms.dims(g.operand(joined, 0))))) continue;
      spreads.push_back({g.forms.reshape(g.operand(joined, 0), dims), axis, d.value()});
    }
  }
  return spreads;
}

// The zero point, before its conversion, that is spread like the scale.
Form zero_point(Guess& g, Form zero, const Spread& like, DType dtype) {
  if (zero == kNoForm) return kNoForm;
  for (const Spread& s : spreads_of(g, zero)) {
    const Type type = g.forms.type(s.value);
    if (type.with_dtype(DType::f32) != g.forms.type(like.value).with_dtype(DType::f32)) continue;
    if (s.block != like.block || s.axis != like.axis) continue;
    if (g.forms.is(s.value, FormKind::splat))
      return g.forms.splat(type.with_dtype(dtype), g.forms.number(s.value));
    if (g.is(s.value, Opcode::cast)) return g.operand(s.value, 0);
  }
  return kNoForm;
}

// cast(round(x / scale) + zero)
bool guess_quantize(Guess& g) {
  const DType dtype = g.forms.type(g.root).dtype();
  Form sum = g.operand(g.root, 0);
  if (!is_real(g.forms.type(sum).dtype())) return false;
  std::vector<std::pair<Form, Form>> readings = {{sum, kNoForm}};
  if (g.is(sum, Opcode::add)) {
    readings = {{g.operand(sum, 0), g.operand(sum, 1)}, {g.operand(sum, 1), g.operand(sum, 0)}};
  }
  for (auto [quotient, zero] : readings) {
    if (g.is(quotient, Opcode::round)) quotient = g.operand(quotient, 0);
    // Short reals: select(is_inf(y), y, clamped y)
    else if (g.is(quotient, Opcode::select))
      quotient = g.operand(quotient, 1);
    else
      continue;
    const Factors factors = g.forms.factors(quotient);
    std::vector<Form> scales;
    for (Form f : factors.list) scales.push_back(f);
    scales.push_back(kNoForm);  // a scale that is one constant
    for (Form f : scales) {
      Form x = kNoForm, scale = kNoForm;
      if (f == kNoForm) {
        x = g.forms.product(g.forms.type(quotient), {1, factors.list});
        scale = g.forms.splat(g.forms.type(quotient), 1 / factors.number);
      } else {
        x = g.divided(quotient, f);
        scale = g.forms.inverse(f);
      }
      for (const Spread& s : spreads_of(g, scale)) {
        const Form point = zero_point(g, zero, s, dtype);
        if (zero != kNoForm && point == kNoForm) continue;
        const Op op =
            Op::get(Opcode::quantize, {{"axis", s.axis}, {"dtype", dtype}, {"block", s.block}});
        if (g.propose(op, {x, s.value, point})) return true;
      }
    }
  }
  return false;
}

// cast(x - zero) * scale
bool guess_dequantize(Guess& g) {
  const Factors factors = g.forms.factors(g.root);
  for (Form wide : factors.list) {
    if (!g.is(wide, Opcode::cast) && !g.is(wide, Opcode::add)) continue;
    const Form scale = g.divided(g.root, wide);
    if (scale == kNoForm) continue;
    // Integers: cast(cast(x) - cast(zero)); reals: cast(x) - cast(zero).
    const Form difference = g.is(wide, Opcode::cast) ? g.operand(wide, 0) : wide;
    Form x = difference, zero = kNoForm;
    if (g.is(difference, Opcode::sub)) {
      x = g.operand(difference, 0), zero = g.operand(difference, 1);
    } else if (g.is(difference, Opcode::add)) {
      const bool first = g.negated(g.operand(difference, 1)) != kNoForm;
      x = g.operand(difference, first ? 0 : 1);
      zero = g.negated(g.operand(difference, first ? 1 : 0));
      if (zero == kNoForm) continue;
    }
    if (zero != kNoForm && g.is(x, Opcode::cast)) x = g.operand(x, 0);
    for (const Spread& s : spreads_of(g, scale)) {
      const Form point = zero_point(g, zero, s, g.forms.type(x).dtype());
      if (zero != kNoForm && point == kNoForm) continue;
      const Op op = Op::get(Opcode::dequantize, {{"axis", s.axis}, {"block", s.block}});
      if (g.propose(op, {x, s.value, point})) return true;
    }
  }
  return false;
}

constexpr RaiseRule kQuantizeRules[] = {
    {Opcode::cast, guess_quantize},
    {Opcode::mul, guess_dequantize},
};

}  // namespace

std::span<const RaiseRule> quantize_rules() { return kQuantizeRules; }

}  // namespace hone

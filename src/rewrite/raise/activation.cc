#include <cmath>

#include "ir/functional.h"
#include "rewrite/raise/guess.h"

namespace hone {
namespace {

using In = std::span<const Value>;

constexpr double kSqrt2 = 1.4142135623730951;

// ---- Other spellings ----------------------------------------------------------------------------

// x * (1 + 0.044715 x^2) inside of tanh.
std::vector<Value> factored_gelu(Builder&, Op, In in) {
  Value x = in[0];
  Value inner = 0.7978845608028654 * (x * (1 + 0.044715 * (x * x)));
  return {0.5 * x * (1 + tanh(inner))};
}

// x * relu6(x + 3) / 6
std::vector<Value> relu6_hard_swish(Builder&, Op, In in) {
  Value x = in[0];
  return {x * maximum(minimum(x + 3, 6), 0) / 6};
}

// Where exp overflows, tanh has long been 1.
std::vector<Value> plain_mish(Builder&, Op, In in) {
  return {in[0] * tanh(unary(Opcode::log1p, exp(in[0])))};
}

std::vector<Value> prelu_above(Builder&, Op, In in) {
  Value x = in[0];
  return {select(compare("gt", x, 0), x, broadcast_to(in[1], x.dims()) * x)};
}
std::vector<Value> prelu_not_below(Builder&, Op, In in) {
  Value x = in[0];
  return {select(compare("ge", x, 0), x, broadcast_to(in[1], x.dims()) * x)};
}

// ---- Guesses ------------------------------------------------------------------------------------

bool guess_relu(Guess& g) {
  const Form x = g.beside(g.root, 0);
  return x != kNoForm && g.propose(Op::get(Opcode::relu), {x});
}

// max(min(alpha * x + beta, 1), 0)
bool guess_hard_sigmoid(Guess& g) {
  const Form bounded = g.beside(g.root, 0);
  if (bounded == kNoForm || !g.is(bounded, Opcode::min)) return false;
  const Form line = g.beside(bounded, 1);
  if (line == kNoForm || !g.is(line, Opcode::add)) return false;
  const auto sum = g.beside_splat(line);
  if (!sum) return false;
  const auto [slope, beta] = *sum;
  const DType dtype = g.forms.type(slope).dtype();
  const double number = g.forms.factors(slope).number;
  auto propose = [&](double alpha) {
    const Form x = g.forms.scaled(slope, 1 / g.forms.snapped(dtype, alpha));
    return g.propose(
        Op::get(Opcode::hard_sigmoid, {{"alpha", alpha}, {"beta", recovered(dtype, beta)}}), {x});
  };
  for (double alpha : {1.0 / 6, 0.2})
    if (propose(alpha)) return true;
  return propose(recovered(dtype, number));
}

bool guess_hard_swish(Guess& g) {
  const Op op = Op::get(Opcode::hard_swish);
  for (Form gate : g.factors(g.root, Opcode::max)) {
    const Form bounded = g.beside(gate, 0);
    if (bounded == kNoForm || !g.is(bounded, Opcode::min)) continue;
    const auto high = g.beside_splat(bounded);
    if (!high || !g.is(high->first, Opcode::add)) continue;
    const auto line = g.beside_splat(high->first);
    if (!line) continue;
    if (g.propose(op, {g.forms.scaled(line->first, 6)}) ||
        g.propose(op, {line->first}, relu6_hard_swish)) {
      return true;
    }
  }
  return false;
}

// The argument of tanh is number * (x + ..) or number * x * (1 + ..).
bool guess_tanh_gelu(Guess& g, Form argument) {
  const Op op = Op::get(Opcode::gelu, {{"form", "tanh"}});
  for (Form sum : g.factors(argument, Opcode::add)) {
    for (Form x : {g.operand(sum, 0), g.operand(sum, 1)})
      if (g.propose(op, {x})) return true;
    Factors rest = g.forms.factors(g.divided(argument, sum));
    rest.number = 1;
    const Form x = g.forms.product(g.forms.type(argument), std::move(rest));
    if (g.propose(op, {x}, factored_gelu)) return true;
  }
  return false;
}

bool guess_gelu(Guess& g) {
  for (Form gate : g.factors(g.root, Opcode::add)) {
    const Form curve = g.beside(gate, 1);
    if (curve == kNoForm) continue;
    if (g.is(curve, Opcode::tanh) && guess_tanh_gelu(g, g.operand(curve, 0))) return true;
    if (g.is(curve, Opcode::erf) &&
        g.propose(Op::get(Opcode::gelu), {g.forms.scaled(g.operand(curve, 0), kSqrt2)})) {
      return true;
    }
  }
  return false;
}

bool guess_silu(Guess& g) {
  for (Form gate : g.factors(g.root, Opcode::logistic))
    if (g.propose(Op::get(Opcode::silu), {g.operand(gate, 0)})) return true;
  return false;
}

// The x of max(x, 0) in a sum.
Form hinge(const Guess& g, Form sum) {
  for (size_t i = 0; i < 2; ++i) {
    const Form f = g.operand(sum, i);
    if (g.is(f, Opcode::max)) return g.beside(f, 0);
  }
  return kNoForm;
}

bool guess_softplus(Guess& g) {
  const Form x = hinge(g, g.root);
  return x != kNoForm && g.propose(Op::get(Opcode::softplus), {x});
}

bool guess_mish(Guess& g) {
  const Op op = Op::get(Opcode::mish);
  for (Form gate : g.factors(g.root, Opcode::tanh)) {
    const Form inner = g.operand(gate, 0);
    if (g.is(inner, Opcode::add)) {
      const Form x = hinge(g, inner);
      if (x != kNoForm && g.propose(op, {x})) return true;
    } else if (g.is(inner, Opcode::log1p) && g.is(g.operand(inner, 0), Opcode::exp)) {
      if (g.propose(op, {g.operand(g.operand(inner, 0), 0)}, plain_mish)) return true;
    }
  }
  return false;
}

bool guess_prelu(Guess& g) {
  const Form test = g.operand(g.root, 0);
  if (!g.is(test, Opcode::compare)) return false;
  const bool below = g.forms.is_splat(g.operand(test, 1), 0);  // x < 0, not 0 < x
  const Form x = g.operand(test, below ? 0 : 1);
  const Form sloped = g.operand(g.root, below ? 1 : 2);
  if (g.operand(g.root, below ? 2 : 1) != x) return false;
  Form slope = g.divided(sloped, x);
  if (slope == kNoForm && g.is(sloped, Opcode::mul))
    slope = g.operand(sloped, g.operand(sloped, 0) == x ? 1 : 0);
  if (slope == kNoForm) return false;
  const Op op = Op::get(Opcode::prelu);
  for (Form operand : g.numpy_operands(slope)) {
    if (below ? g.propose(op, {x, operand})
              : g.propose(op, {x, operand}, prelu_above) ||
                    g.propose(op, {x, operand}, prelu_not_below)) {
      return true;
    }
  }
  return false;
}

constexpr RaiseRule kActivationRules[] = {
    {Opcode::max, guess_hard_sigmoid}, {Opcode::max, guess_relu},
    {Opcode::mul, guess_hard_swish},   {Opcode::mul, guess_gelu},
    {Opcode::mul, guess_silu},         {Opcode::mul, guess_mish},
    {Opcode::add, guess_softplus},     {Opcode::select, guess_prelu},
};

}  // namespace

std::span<const RaiseRule> activation_rules() { return kActivationRules; }

}  // namespace hone

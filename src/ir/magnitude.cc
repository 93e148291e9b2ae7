#include "ir/magnitude.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "ir/access.h"
#include "ir/op_def.h"

namespace hone {
namespace {

constexpr double kLog2OfE = std::numbers::log2e;
constexpr double kLargestLog = 10.6;    // |log x| < 2^10.6 of every f64 above 0
constexpr double kNearOne = -53;        // what 1 differs from the next f64 by
constexpr double kOfIntegers = 64;      // no integer has more bits
constexpr double kQuarterTurn = 0.652;  // log2 of pi/2, rounded up

double log2_of_sum(double a, double b) {
  const double most = std::max(a, b);
  return std::isfinite(most) ? most + std::log2(1 + std::exp2(std::min(a, b) - most)) : most;
}

Magnitude either(Magnitude a, Magnitude b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high), a.is_sum || b.is_sum,
          a.is_positive && b.is_positive};
}

// ---- By op --------------------------------------------------------------------------------------

using M = Magnitude;
using In = const MeasuredOp&;

M product(M a, M b) {
  if (a.is_zero() || b.is_zero()) return M::zero();
  return {a.low + b.low, a.high + b.high, a.is_sum || b.is_sum, a.is_positive && b.is_positive};
}

// The sum of this many terms.
M sum_of(M each, double terms) {
  if (terms < 1 || each.is_zero()) return M::zero();
  each.high += std::log2(terms);
  each.is_sum = each.is_sum || (terms > 1 && !each.is_positive);
  return each;
}

// How many points of the iteration space make an element.
double terms_of(In in) {
  const Application application{in.op, in.types};
  if (!has_access(application)) return M::kAny;
  const AccessRelation relation = access_of(application, {&in.result, 1});
  double terms = 1;
  for (size_t d = 0; d < relation.dims.size(); ++d)
    if (relation.dims[d].kind == IterKind::reduction) terms *= mean_trips(relation.dims, d);
  return terms;
}

M absolute(In in) {
  M x = in.operands[0];
  x.is_positive = true;
  return x;
}
M one_or_zero(In) { return {0, 0, false, false}; }
M added(In in) {
  M a = in.operands[0], b = in.operands[1];
  if (b.is_zero()) return a;
  if (in.op.opcode() == Opcode::sub) b.is_positive = false;
  if (a.is_zero()) return b;
  const bool adds_up = a.is_positive && b.is_positive;
  return {std::min(a.low, b.low), log2_of_sum(a.high, b.high), a.is_sum || b.is_sum || !adds_up,
          adds_up};
}
M multiplied(In in) { return product(in.operands[0], in.operands[1]); }
M divided(In in) {
  const M a = in.operands[0], b = in.operands[1];
  if (a.is_zero()) return M::zero();
  if (b.is_zero()) return M();
  return {a.low - b.high, b.is_sum ? M::kAny : a.high - b.low, a.is_sum,
          a.is_positive && b.is_positive};
}
M larger(In in) {
  M both = either(in.operands[0], in.operands[1]);
  both.is_positive = in.operands[0].is_positive || in.operands[1].is_positive;
  return both;
}
M smaller(In in) {
  const M a = in.operands[0], b = in.operands[1];
  M both = either(a, b);
  if (both.is_positive) both.high = std::min(a.high, b.high);
  return both;
}
// Whole numbers that are next to it.
M whole(In in) {
  const M x = in.operands[0];
  return {0, std::max(x.high, 0.) + 1, false, x.is_positive};
}
M exponential(In in) {
  const double most = std::exp2(in.operands[0].high) * kLog2OfE;
  return {-most, most, false, true};
}
M logarithm(In in) { return {kNearOne - 1, kLargestLog, in.operands[0].is_sum, false}; }
M root(In in) {
  const M x = in.operands[0];
  return {x.low / 2, x.high / 2, x.is_sum, true};
}
M inverse_root(In in) {
  const M x = in.operands[0];
  if (x.is_zero()) return M();
  return {-x.high / 2, x.is_sum ? M::kAny : -x.low / 2, false, true};
}
// Odd, and about x where x is small.
M bounded(In in, double high) {
  const M x = in.operands[0];
  return {std::min(x.low, 0.) - 1, std::min(high, x.high + 1), x.is_sum, x.is_positive};
}
M at_most_one(In in) { return bounded(in, 0); }
M angle(In in) { return bounded(in, kQuarterTurn); }
M wave(In) { return {M::kNone, 0, true, false}; }
M logistic(In in) { return {-std::exp2(in.operands[0].high) * kLog2OfE - 1, 0, false, true}; }
M converted(In in) {
  const DType from = in.types[0].dtype();
  M x = in.operands[0];
  if (is_real(from) && bits(in.result.dtype()) < 32) --x.low, ++x.high;  // by rounding
  if (is_real(from)) return x;
  if (is_bool(from)) return {0, 0, false, true};
  return is_integer(from) ? M{0, kOfIntegers, false, !is_signed(from)} : M();
}
M places(In in) {
  double most = 0;
  for (Dim dim : in.result.dims())
    most = std::max(most, static_cast<double>(std::max<int64_t>(dim.range().high, 1)));
  return {0, std::log2(most), false, true};
}
// Elements of the operands that are of the result's type.
M moved(In in) {
  std::optional<M> all;
  for (size_t o = 0; o < in.operands.size(); ++o)
    if (in.types[o] && in.types[o].dtype() == in.result.dtype())
      all = all ? either(*all, in.operands[o]) : in.operands[o];
  return all.value_or(M());
}
M combined(In in) {
  const std::string& kind = in.op.word("kind");
  const M x = in.operands[0];
  if (kind == "max" || kind == "min") return x;
  const double terms = terms_of(in);
  if (kind == "sum") return sum_of(x, terms);
  if (kind != "product" || x.is_zero()) return M();
  return {std::min(x.low, 0.) * terms, std::max(x.high, 0.) * terms, x.is_sum, x.is_positive};
}
M contracted(In in) { return sum_of(product(in.operands[0], in.operands[1]), terms_of(in)); }

struct Row {
  Opcode opcode;
  M (*of)(In);
};
constexpr Row kRows[] = {
    {Opcode::iota, places},
    {Opcode::neg,
     [](In in) {
       return M{in.operands[0].low, in.operands[0].high, in.operands[0].is_sum,
                in.operands[0].is_zero()};
     }},
    {Opcode::abs, absolute},
    {Opcode::sign, one_or_zero},
    {Opcode::floor, whole},
    {Opcode::ceil, whole},
    {Opcode::round, whole},
    {Opcode::trunc, whole},
    {Opcode::exp, exponential},
    {Opcode::log, logarithm},
    {Opcode::sqrt, root},
    {Opcode::rsqrt, inverse_root},
    {Opcode::sin, wave},
    {Opcode::cos, wave},
    {Opcode::atan, angle},
    {Opcode::tanh, at_most_one},
    {Opcode::erf, at_most_one},
    {Opcode::logistic, logistic},
    {Opcode::add, added},
    {Opcode::sub, added},
    {Opcode::mul, multiplied},
    {Opcode::div, divided},
    {Opcode::max, larger},
    {Opcode::min, smaller},
    {Opcode::select, moved},
    {Opcode::cast, converted},
    {Opcode::broadcast, moved},
    {Opcode::reshape, moved},
    {Opcode::transpose, moved},
    {Opcode::slice, moved},
    {Opcode::pad, moved},
    {Opcode::concat, moved},
    {Opcode::reverse, moved},
    {Opcode::dynamic_slice, moved},
    {Opcode::dynamic_update, moved},
    {Opcode::gather, moved},
    {Opcode::dot, contracted},
    {Opcode::conv, contracted},
    {Opcode::reduce, combined},
    {Opcode::window_reduce, combined},
};

// ---- Quotients ----------------------------------------------------------------------------------

class GraphMagnitudes {
 public:
  GraphMagnitudes(const Graph& graph, const MagnitudeSources& sources)
      : graph_(graph), sources_(sources), values_(graph.value_count()) {}

  std::vector<M> run() {
    for (NodeId n : graph_.nodes()) {
      if (graph_.opcode(n) == Opcode::parameter) {
        values_[graph_.result(n).index] = sources_.input(graph_.result(n));
      } else if (graph_.opcode(n) == Opcode::constant) {
        values_[graph_.result(n).index] = sources_.constant(graph_.constant(n));
      } else if (graph_.results(n).size() == 1 && graph_.regions(n).empty()) {
        values_[graph_.result(n).index] = of_node(n);
      }
    }
    return std::move(values_);
  }

 private:
  M of_node(NodeId n) const {
    std::vector<M> operands;
    for (ValueId v : graph_.operands(n)) operands.push_back(v.is_none() ? M() : values_[v.index]);
    const std::vector<Type> types = graph_.operand_types(n);
    M found = magnitude_of({graph_.op(n), operands, types, graph_.type(graph_.result(n))});
    if (graph_.opcode(n) != Opcode::div && graph_.opcode(n) != Opcode::mul) return found;
    if (const std::optional<double> most = of_its_own_sum(n))
      found.high = std::min(found.high, *most);
    return found;
  }

  // x / sum(x) of numbers that are not below 0 is at most 1. x / sqrt(c * sum(x * x) + e), written
  // as a product by rsqrt or not, is at most c^-1/2.
  std::optional<double> of_its_own_sum(NodeId n) const {
    const auto operands = graph_.operands(n);
    for (size_t o = 0; o < 2; ++o) {
      if (o == 0 && graph_.opcode(n) == Opcode::div) continue;  // the other one divides
      const ValueId x = operands[1 - o];
      if (const auto most = of_its_own_sum(x, operands[o], graph_.opcode(n))) return most;
    }
    return std::nullopt;
  }

  std::optional<double> of_its_own_sum(ValueId x, ValueId by, Opcode how) const {
    const NodeId spread = graph_.producer(by);
    if (graph_.opcode(spread) != Opcode::broadcast) return std::nullopt;
    ValueId v = graph_.operands(spread)[0];
    double factor = 0;  // log2 of c
    bool has_root = false;
    for (;;) {
      const NodeId at = graph_.producer(v);
      const Opcode opcode = graph_.opcode(at);
      const auto inner = graph_.operands(at);
      if (opcode == Opcode::reduce) {
        if (graph_.op(at).word("kind") != "sum" || !is_spread_back(at, spread)) return std::nullopt;
        if (!has_root)
          return how == Opcode::div && factor == 0 && inner[0] == x && values_[x.index].is_positive
                     ? std::optional(0.)
                     : std::nullopt;
        return is_square_of(inner[0], x) ? std::optional(-factor / 2) : std::nullopt;
      }
      if (opcode == Opcode::reshape) {
        v = inner[0];
      } else if (!has_root &&
                 (opcode == Opcode::rsqrt ? how == Opcode::mul
                                          : opcode == Opcode::sqrt && how == Opcode::div)) {
        has_root = true;
        v = inner[0];
      } else if (opcode == Opcode::add || opcode == Opcode::mul || opcode == Opcode::div) {
        const bool first = is_known(inner[0]);
        if (opcode == Opcode::div ? !is_known(inner[1]) : first == is_known(inner[1]))
          return std::nullopt;
        const M known = values_[inner[first && opcode != Opcode::div ? 0 : 1].index];
        if (!known.is_positive || !has_root) return std::nullopt;
        if (opcode == Opcode::mul) factor += known.low;
        if (opcode == Opcode::div) factor -= known.high;
        v = inner[first && opcode != Opcode::div ? 1 : 0];
      } else {
        return std::nullopt;
      }
    }
  }

  // Made of constants alone, as far as one looks: a number that was broadcast.
  bool is_known(ValueId v) const {
    const NodeId n = graph_.producer(v);
    if (graph_.opcode(n) == Opcode::constant) return !values_[v.index].is_zero();
    return graph_.opcode(n) == Opcode::broadcast && is_known(graph_.operands(n)[0]);
  }

  bool is_square_of(ValueId square, ValueId x) const {
    const NodeId n = graph_.producer(square);
    return graph_.opcode(n) == Opcode::mul && graph_.operands(n)[0] == x &&
           graph_.operands(n)[1] == x;
  }

  // Each element meets the sum that it is a term of. The spread value has the dims that are kept,
  // at their places, or all dims with 1 in the place of those that were summed.
  bool is_spread_back(NodeId reduce, NodeId spread) const {
    const Type whole = graph_.type(graph_.operands(reduce)[0]);
    const Type small = graph_.type(graph_.operands(spread)[0]);
    const std::span<const Dim> spread_dims = graph_.type(graph_.result(spread)).dims();
    if (!std::ranges::equal(whole.dims(), spread_dims)) return false;
    const Ints& axes = graph_.op(reduce).ints("axes");
    const Ints& map = graph_.op(spread).ints("map");
    const auto is_summed = [&](int d) { return std::ranges::find(axes, d) != axes.end(); };
    Ints kept, all;
    bool keeps_rank = small.rank() == whole.rank();
    for (int d = 0; d < whole.rank(); ++d) {
      all.push_back(d);
      if (!is_summed(d)) kept.push_back(d);
      keeps_rank = keeps_rank && small.dim(d) == (is_summed(d) ? Dim(1) : whole.dim(d));
    }
    if (keeps_rank && map == all) return true;
    if (map != kept || small.rank() != static_cast<int>(kept.size())) return false;
    for (int i = 0; i < small.rank(); ++i)
      if (small.dim(i) != whole.dim(static_cast<int>(kept[static_cast<size_t>(i)]))) return false;
    return true;
  }

  const Graph& graph_;
  const MagnitudeSources& sources_;
  std::vector<M> values_;
};

}  // namespace

Magnitude magnitude_of(const Tensor& constant) {
  if (!is_real(constant.dtype())) return M();
  constexpr int64_t kChunk = 4096;
  std::vector<double> numbers;
  double least = M::kAny, most = 0;
  bool is_positive = true;
  for (int64_t begin = 0; begin < constant.elements(); begin += kChunk) {
    numbers.resize(static_cast<size_t>(std::min(kChunk, constant.elements() - begin)));
    constant.read_reals(begin, numbers);
    for (double number : numbers) {
      if (std::isnan(number)) return M();
      is_positive = is_positive && number >= 0;
      const double size = std::abs(number);
      if (size == 0) continue;
      least = std::min(least, size);
      most = std::max(most, size);
    }
  }
  if (most == 0) return M::zero();
  return {std::log2(least), std::log2(most), false, is_positive};
}

Magnitude magnitude_of(const MeasuredOp& measured) {
  if (is_bool(measured.result.dtype())) return {0, 0, false, true};
  if (!is_real(measured.result.dtype())) return M();
  const auto row = std::ranges::find(kRows, measured.op.opcode(), &Row::opcode);
  return row == std::end(kRows) ? M() : row->of(measured);
}

std::vector<Magnitude> magnitudes_of(const Graph& graph, const MagnitudeSources& sources) {
  return GraphMagnitudes(graph, sources).run();
}

}  // namespace hone

#include "front/onnx/constraints.h"

#include <algorithm>
#include <numeric>

#include "base/checked_math.h"
#include "base/text.h"
#include "front/onnx/flow.h"
#include "front/onnx/frame.h"
#include "front/onnx/signature.h"
#include "tensor/dim_compute.h"

namespace hone::onnx_io {
namespace {

constexpr int64_t kMostMultiple = 65536;  // that a size has to be one of
constexpr int64_t kLeastBound = 1 << 16;  // of a size: real ones go so far

// ---- One symbol --------------------------------------------------------------------------------

// How a size goes with its symbols, and which signs it has.
struct Trend {
  bool rises = false, falls = false;
  bool is_negative = false, is_positive = false;  // or may be
};

// For compute_dim().
struct TrendAlgebra {
  Trend number(int64_t n) { return {false, false, n < 0, n > 0}; }
  Trend symbol(Symbol s) { return {true, false, s.min() < 0, s.max() > 0}; }
  Trend add(Trend a, Trend b) {
    return {a.rises || b.rises, a.falls || b.falls, a.is_negative || b.is_negative,
            a.is_positive || b.is_positive};
  }
  Trend multiply(Trend a, Trend b) {
    const auto grows = [](Trend x, Trend times) {
      return (x.rises && times.is_positive) || (x.falls && times.is_negative);
    };
    const auto shrinks = [](Trend x, Trend times) {
      return (x.falls && times.is_positive) || (x.rises && times.is_negative);
    };
    return {grows(a, b) || grows(b, a), shrinks(a, b) || shrinks(b, a),
            (a.is_negative && b.is_positive) || (a.is_positive && b.is_negative),
            (a.is_positive && b.is_positive) || (a.is_negative && b.is_negative)};
  }
  Trend divide(Trend a, int64_t, int64_t) { return a; }
};

// A size of one symbol that never falls, or never rises, as that one grows.
struct Slope {
  Dim size;
  Symbol symbol;
  bool rises;

  static std::optional<Slope> of(Dim size) {
    const std::vector<Symbol> symbols = size.symbols();
    if (symbols.size() != 1) return {};
    TrendAlgebra algebra;
    const Trend trend = compute_dim(size, algebra);
    if (trend.rises && trend.falls) return {};
    return Slope{size, symbols[0], trend.rises};
  }

  int64_t first() const { return ceil_div(symbol.min(), symbol.multiple_of()); }
  int64_t last() const { return floor_div(symbol.max(), symbol.multiple_of()); }
  int64_t at(int64_t step) const {
    return size.bind({{symbol.name(), step * symbol.multiple_of()}}).value();
  }
  // The first step at which the size has come to `number` (it falls: is below), or last() + 1.
  int64_t step_to(int64_t number) const {
    int64_t low = first(), high = last() + 1;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if ((at(middle) >= number) == rises)
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  }
  // The symbol for these steps; null if there are none.
  std::optional<Bindings> within(int64_t from, int64_t to) const {
    if (from > to) return {};
    const int64_t unit = symbol.multiple_of();
    if (from == to) return Bindings{{symbol.name(), from * unit}};
    return Bindings{{symbol.name(), Symbol::get(symbol.name(), from * unit, to * unit, unit)}};
  }
};

std::optional<Bindings> at_least(Dim size, Dim least) {
  const std::optional<Slope> slope = Slope::of(size - least);
  if (!slope) return {};
  const int64_t turn = slope->step_to(0);
  return slope->rises ? slope->within(turn, slope->last())
                      : slope->within(slope->first(), turn - 1);
}

// For one symbol.
std::optional<Bindings> zero(Dim difference) {
  std::optional<Slope> slope = Slope::of(difference);
  if (!slope) return {};
  if (!slope->rises) slope = Slope{Dim(0) - difference, slope->symbol, true};
  return slope->within(slope->step_to(0), slope->step_to(1) - 1);
}

// ---- Several symbols ---------------------------------------------------------------------------

bool has(Dim dim, Symbol symbol) {
  const std::vector<Symbol> symbols = dim.symbols();
  return std::ranges::find(symbols, symbol) != symbols.end();
}

std::optional<Symbol> plain_symbol(Dim dim) {
  const std::vector<Symbol> symbols = dim.symbols();
  if (symbols.size() == 1 && dim == Dim(symbols[0])) return symbols[0];
  return {};
}

// Both become one symbol, which has the name of the second.
std::optional<Bindings> united(Symbol a, Symbol b) {
  const int64_t step = std::lcm(a.multiple_of(), b.multiple_of());
  const int64_t low = ceil_div(std::max(a.min(), b.min()), step) * step;
  const int64_t high = floor_div(std::min(a.max(), b.max()), step) * step;
  if (low > high || step > kMostMultiple) return {};
  const Dim both = low == high ? Dim(low) : Dim(Symbol::get(b.name(), low, high, step));
  return Bindings{{a.name(), both}, {b.name(), both}};
}

// The symbol is what the size says, if that is always one of its numbers.
std::optional<Bindings> replaced(Symbol symbol, Dim size) {
  Bindings sizes;
  if (size.range().low < symbol.min()) {
    std::optional<Bindings> more = at_least(size, symbol.min());
    if (!more) return {};
    sizes = *std::move(more);
    size = size.bind(sizes);
  }
  if (!check_binding(symbol, size).ok()) return {};
  sizes.insert_or_assign(symbol.name(), size);
  return sizes;
}

std::optional<Bindings> equal(Dim size, Dim wanted) {
  const Dim difference = size - wanted;
  if (difference.symbols().size() == 1) return zero(difference);
  const std::optional<Symbol> a = plain_symbol(size), b = plain_symbol(wanted);
  if (a && b) return united(*a, *b);
  if (a && !has(wanted, *a)) return replaced(*a, wanted);
  if (b && !has(size, *b)) return replaced(*b, size);
  for (Symbol symbol : difference.symbols()) {
    if (symbol.min() > 0 || symbol.multiple_of() != 1) continue;
    const Dim rest = difference.bind({{symbol.name(), 0}});
    if (difference == rest + symbol) return replaced(symbol, Dim(0) - rest);
    if (difference == rest - symbol) return replaced(symbol, rest);
  }
  return {};
}

bool may_be(Dim size, int64_t number) {
  return size.range().low <= number && number <= size.range().high;
}

// A size of an input that has to be what the file computes from others: total = past + new. Where
// 1 would do, too, it has to be a sum of sizes; one of a size and a number tells no more than that
// a cache grows by it.
bool is_meant(Dim size, Dim computed, bool has_cache) {
  const std::optional<Symbol> symbol = plain_symbol(size);
  if (!symbol || computed.is_static() || plain_symbol(computed) || has(computed, *symbol))
    return false;
  return (computed.symbols().size() > 1 || has_cache) && computed.range().low >= 0;
}

// `both`: the wanted size may be 1 as well.
std::optional<Bindings> stretched(Dim size, Dim wanted, bool both, bool has_cache) {
  const bool is_one = may_be(size, 1), wants_one = both && may_be(wanted, 1);
  if (!is_one && !wants_one) return equal(size, wanted);
  const bool may_differ = !may_be(size - wanted, 0);
  if (may_differ && is_one != wants_one) return equal(is_one ? size : wanted, 1);
  if (is_meant(size, wanted, has_cache) || is_meant(wanted, size, has_cache))
    return equal(size, wanted);
  return {};
}

std::optional<Bindings> multiple(Dim size, Dim of) {
  const std::optional<LinearDim> linear = as_linear(size);
  if (!linear || !of.is_static() || of.value() < 1 || linear->offset % of.value() != 0) return {};
  const Symbol symbol = linear->symbol;
  const int64_t times = of.value() / std::gcd(linear->factor, of.value());
  if (times > kMostMultiple || linear->step > kMostMultiple) return {};
  const int64_t step = std::lcm(linear->step * times, symbol.multiple_of());
  if (step > kMostMultiple || ceil_div(symbol.min(), step) > floor_div(symbol.max(), step))
    return {};
  return Bindings{{symbol.name(), Symbol::get(symbol.name(), symbol.min(), symbol.max(), step)}};
}

// ---- Sizes that are too large together ---------------------------------------------------------

int64_t value_within(Symbol symbol, int64_t number) {
  return floor_div(std::min(number, symbol.max()), symbol.multiple_of()) * symbol.multiple_of();
}

// The largest bound for all of them, a power of two, below which the dims are those of a type.
std::optional<Bindings> bounds_within_limits(const Dims& dims) {
  for (int64_t most = int64_t{1} << 30; most >= kLeastBound; most /= 2) {
    Bindings less;
    for (Dim dim : dims)
      for (Symbol symbol : dim.symbols())
        if (symbol.max() > most && symbol.min() <= value_within(symbol, most))
          less.emplace(symbol.name(),
                       Symbol::get(symbol.name(), symbol.min(), most, symbol.multiple_of()));
    int64_t elements = 1;
    for (Dim dim : dims)
      elements = (Dim(elements) * std::max<int64_t>(dim.bind(less).range().high, 1)).value();
    if (!less.empty() && elements <= kMaxSymbolicElements) return less;
  }
  return {};
}

// ---- Tables ------------------------------------------------------------------------------------

// Open sizes that the flow sees as the file has them.
bool are_untouched(const Flow& flow, const Bindings& sizes) {
  return std::ranges::all_of(sizes, [&](const auto& size) {
    return flow.names().open_sizes.contains(size.first) && !flow.narrowed().contains(size.first);
  });
}

// For an operand whose size is measured, since a table might end before it.
std::optional<Constraint> table_constraint(Frame& frame, Flow& flow, const onnx::NodeProto& node) {
  for (const std::string& name : node.input()) {
    const Slot* slot = name.empty() ? nullptr : frame.find_or_null(name);
    if (slot == nullptr || !slot->is_tensor()) continue;
    for (Dim dim : flow.seen(slot->type).dims())
      for (Symbol symbol : dim.symbols()) {
        const auto found = flow.names().measured.find(symbol.name());
        if (found == flow.names().measured.end()) continue;
        const auto& [known_for, why] = found->second;
        if (are_untouched(flow, known_for)) return Constraint{known_for, bad_input("{}", why)};
      }
  }
  return {};
}

// Without sizes that stay as they are.
bool narrows(Bindings& sizes, const Demand& demand) {
  for (Dim dim : demand.dims)
    for (Symbol symbol : dim.symbols()) {
      const auto at = sizes.find(symbol.name());
      if (at != sizes.end() && at->second == Dim(symbol)) sizes.erase(at);
    }
  return !sizes.empty();
}

// For numbers.
bool holds(const Demand& demand) {
  const int64_t size = demand.dims[0].value(), wanted = demand.dims[1].value();
  switch (demand.kind) {
    case Demand::Kind::at_least: return size >= wanted;
    case Demand::Kind::equal: return size == wanted;
    case Demand::Kind::stretch: return size == wanted || size == 1;
    case Demand::Kind::broadcast: return size == wanted || size == 1 || wanted == 1;
    case Demand::Kind::multiple: return wanted > 0 && size % wanted == 0;
    case Demand::Kind::elements: break;
  }
  return true;
}

bool has_subgraph(const onnx::NodeProto& node) {
  return std::ranges::any_of(node.attribute(), [](const auto& a) { return a.has_g(); });
}

}  // namespace

std::optional<Bindings> solved(const Demand& demand, bool has_cache) {
  const auto of = [&](auto solve, auto... more) {
    return solve(demand.dims[0], demand.dims[1], more...);
  };
  std::optional<Bindings> sizes;
  switch (demand.kind) {
    case Demand::Kind::at_least: sizes = of(at_least); break;
    case Demand::Kind::equal: sizes = of(equal); break;
    case Demand::Kind::stretch: sizes = of(stretched, false, has_cache); break;
    case Demand::Kind::broadcast: sizes = of(stretched, true, has_cache); break;
    case Demand::Kind::multiple: sizes = of(multiple); break;
    case Demand::Kind::elements: sizes = bounds_within_limits(demand.dims); break;
  }
  if (!sizes || !narrows(*sizes, demand)) return {};
  return sizes;
}

std::optional<Bindings> witness(const Demand& demand) {
  constexpr int64_t kNumbers[] = {4, 2, 3, 1, 6, 8, 5, 7, 12, 0};  // 1 is broadcast
  constexpr size_t kMostSymbols = 4;
  std::vector<Symbol> symbols;
  for (Dim dim : demand.dims)
    for (Symbol symbol : dim.symbols())
      if (std::ranges::find(symbols, symbol) == symbols.end()) symbols.push_back(symbol);
  if (demand.kind == Demand::Kind::elements || symbols.size() > kMostSymbols) return {};
  if (symbols.empty()) return holds(demand) ? std::optional(Bindings()) : std::nullopt;
  const Symbol first = symbols.front();
  Ints numbers(std::begin(kNumbers), std::end(kNumbers));
  if (symbols.size() == 1) {  // the equation may have a solution of its own
    const std::optional<Bindings> exact = zero(demand.dims[0] - demand.dims[1]);
    if (exact) numbers.insert(numbers.begin(), exact->begin()->second.range().low);
  }
  for (int64_t number : numbers) {
    if (!check_binding(first, number).ok()) continue;
    const Bindings one = {{first.name(), number}};
    Demand rest = demand;
    for (Dim& dim : rest.dims) dim = dim.bind(one);
    std::optional<Bindings> found = witness(rest);
    if (!found) continue;
    found->insert(one.begin(), one.end());
    return found;
  }
  return {};
}

std::optional<Constraint> constraint_of(Frame& frame, Flow& flow, const onnx::NodeProto& node,
                                        const std::optional<Demand>& demand, const Error& error) {
  if (has_subgraph(node)) return {};  // what its nodes need is found in there
  if (std::optional<Constraint> table = table_constraint(frame, flow, node)) return table;
  if (!demand) return {};
  for (Dim dim : demand->dims)
    for (Symbol symbol : dim.symbols())
      if (!flow.names().open_sizes.contains(symbol.name())) return {};
  const onnx::GraphProto& graph = frame.file().model().graph();
  std::optional<Bindings> sizes = solved(*demand, declares_growth(graph, /*if_unknown=*/false));
  if (!sizes) return {};
  return Constraint{*std::move(sizes), error};
}

void narrow_further(Bindings& sizes, const Bindings& found) {
  for (auto& [name, dim] : sizes) dim = dim.bind(found);
  for (const auto& [name, dim] : found) sizes.insert_or_assign(name, dim);
}

Bindings needed_by_both(const Bindings& a, const Bindings& b, const std::vector<Symbol>& now) {
  Bindings both;
  for (Symbol symbol : now) {
    const auto x = a.find(symbol.name()), y = b.find(symbol.name());
    if (x == a.end() || y == b.end()) continue;
    if (x->second == y->second) {
      both.emplace(symbol.name(), x->second);
      continue;
    }
    const Range one = x->second.range(), other = y->second.range();
    const int64_t low = std::min(one.low, other.low), high = std::max(one.high, other.high);
    if (low > symbol.min() || high < symbol.max())
      if (low < high && symbol.multiple_of() == 1)
        both.emplace(symbol.name(), Symbol::get(symbol.name(), low, high));
  }
  return both;
}

std::string ranges_text(const Bindings& sizes) {
  std::vector<std::string> parts;
  for (const auto& [name, dim] : sizes) {
    const std::vector<Symbol> symbols = dim.symbols();
    const bool is_own = symbols.size() == 1 && symbols[0].name() == name;
    if (!is_own) {
      parts.push_back(fmt::format("{} = {}", name, dim.to_string()));
      continue;
    }
    parts.push_back(fmt::format("{} in {}..{}", name, symbols[0].min(), symbols[0].max()));
    if (symbols[0].multiple_of() != 1)
      parts.back() += fmt::format(" step {}", symbols[0].multiple_of());
  }
  return join(parts, ", ");
}

}  // namespace hone::onnx_io

#include "front/onnx/narrow.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/checked_math.h"
#include "base/text.h"
#include "front/onnx/deferred.h"
#include "front/onnx/import.h"
#include "front/onnx/signature.h"

namespace hone::onnx_io {
namespace {

constexpr size_t kMostSymbols = 8;        // of one node
constexpr int64_t kMostNodes = 50'000;    // that are imported to find ranges for one of the file
constexpr size_t kMostCandidates = 32;    // numbers of the node itself that a size may have to be
constexpr int64_t kMostMultiple = 65536;  // that is tried
constexpr int64_t kFewNumbers = 20;       // from 0 on, all of which are tried
constexpr int64_t kLeastBound = 1 << 16;  // of a size: real ones go so far
// Sizes to try for one that fits.
constexpr int64_t kPoints[] = {4, 7, 1, 2, 3, 8, 16, 32, 64, 224, 256, 512, 1024, 4096, 16000};

// Tries the node alone, with other sizes.
class Probe {
 public:
  Probe(Frame& frame, Flow& flow, const onnx::NodeProto& node);

  // Open sizes of inputs, in order of appearance; none if others stand beside them, whose numbers
  // could matter.
  const std::vector<Symbol>& symbols() const { return symbols_; }
  // Numbers that stand beside them: sizes and elements of operands.
  const Ints& candidates() const { return candidates_; }
  // The sizes of operands that depend on open ones.
  Dims open_dims() const;
  bool fits(const Bindings& sizes);
  // The sizes of the operands for these numbers.
  Ints dims_for(const Bindings& sizes) const;
  // True if so much was tried that nothing fits any more.
  bool is_exhausted() const { return nodes_left_ <= 0; }

 private:
  struct Operand {
    std::string name;
    Type type;
    std::optional<Tensor> constant;
    Elements contents;
  };

  void add(const std::string& name, Slot& slot);
  void look_at(Dim dim);
  bool define(Frame& frame, Flow& flow, const Operand& operand, const Bindings& sizes) const;

  Frame& around_;
  Flow& flow_;
  const onnx::NodeProto& node_;
  std::vector<Operand> operands_;
  std::vector<Symbol> symbols_;
  bool has_others_ = false;
  Ints candidates_;
  int64_t nodes_left_ = kMostNodes;
};

Probe::Probe(Frame& frame, Flow& flow, const onnx::NodeProto& node)
    : around_(frame), flow_(flow), node_(node) {
  std::set<std::string> names(node.input().begin(), node.input().end());
  for (const std::string& name : names)
    if (Slot* slot = name.empty() ? nullptr : frame.find_or_null(name)) add(name, *slot);
  if (has_others_) symbols_.clear();
}

void Probe::add(const std::string& name, Slot& slot) {
  if (!slot.is_tensor()) {
    has_others_ = true;
    return;
  }
  for (Dim dim : slot.type.dims()) look_at(flow_.seen(dim));
  if (slot.flow == nullptr) {
    if (slot.constant.elements() > Contents::kMaxElements) return;
    for (int64_t i = 0; is_integer(slot.type.dtype()) && i < slot.constant.elements(); ++i)
      look_at(slot.constant.integer_at(i));
    return;  // seen from inside as it is
  }
  Operand operand = {name, flow_.seen(slot.type), slot.flow->constant_of(slot), {}};
  if (!operand.constant) operand.contents = flow_.seen(slot.flow->known(slot));
  for (const Element& element : operand.contents)
    if (element) look_at(*element);
  operands_.push_back(std::move(operand));
}

void Probe::look_at(Dim dim) {
  if (dim.is_static()) {
    const bool is_new = std::ranges::find(candidates_, dim.value()) == candidates_.end();
    if (dim.value() > 1 && is_new && candidates_.size() < kMostCandidates)
      candidates_.push_back(dim.value());
    return;
  }
  for (Symbol symbol : dim.symbols()) {
    has_others_ |= !flow_.names().open_sizes.contains(symbol.name());
    if (std::ranges::find(symbols_, symbol) == symbols_.end()) symbols_.push_back(symbol);
  }
}

bool Probe::define(Frame& frame, Flow& flow, const Operand& operand, const Bindings& sizes) const {
  if (operand.constant) {
    frame.define(operand.name, flow.constant(operand.name, *operand.constant));
    return true;
  }
  const Result<Type> type = operand.type.bind(sizes);
  if (!type.ok()) return false;
  Elements contents = operand.contents;
  for (Element& element : contents)
    if (element) element = element->bind(sizes);
  frame.define(operand.name, flow.external(operand.name, *type, std::move(contents)));
  return true;
}

bool Probe::fits(const Bindings& sizes) {
  const bool is_legal = std::ranges::all_of(
      symbols_, [&](Symbol symbol) { return check_binding(symbol, sizes.at(symbol.name())).ok(); });
  if (!is_legal || nodes_left_ <= 0) return false;
  Flow::Names names;
  names.open_sizes = flow_.names().open_sizes;
  Flow flow(std::move(names), Flow::Kind::body, "probe");
  Frame inside(around_);
  const int64_t before = inside.node_count();  // the limit of nodes counts those that are tried
  bool is_typed = false;
  try {
    is_typed = std::ranges::all_of(
        operands_, [&](const Operand& operand) { return define(inside, flow, operand, sizes); });
    if (is_typed) import_node(inside, flow, node_);
  } catch (const Failure&) {
    is_typed = false;
  }
  nodes_left_ -= 1 + inside.node_count() - before;
  return is_typed;
}

Dims Probe::open_dims() const {
  Dims dims;
  for (const Operand& operand : operands_)
    for (Dim dim : operand.type.dims())
      if (!dim.is_static() && std::ranges::find(dims, dim) == dims.end()) dims.push_back(dim);
  return dims;
}

Ints Probe::dims_for(const Bindings& sizes) const {
  Ints dims;
  for (const Operand& operand : operands_)
    for (Dim dim : operand.type.dims()) {
      const Dim bound = dim.bind(sizes);
      if (bound.is_static() && bound.value() > 1) dims.push_back(bound.value());
    }
  return dims;
}

// The farthest number between `from` and `to` for which `holds`, which holds for `from` and, once
// it does not, for none behind.
int64_t farthest(int64_t from, int64_t to, const std::function<bool(int64_t)>& holds) {
  if (from == to || holds(to)) return to;
  while (std::abs(to - from) > 1) {
    const int64_t middle = from + (to - from) / 2;
    (holds(middle) ? from : to) = middle;
  }
  return from;
}

bool is_multiple(int64_t number, Dim range) {
  return range.is_static() ? range.is(number) : number % range.symbols().front().multiple_of() == 0;
}

// A size that other sizes may have to equal, which then are the same symbol.
struct Size {
  Symbol symbol;
  std::vector<std::string> names;
  int64_t point = 0;  // at which the node fits
  Dim range = 0;      // for which it fits
};

class Search {
 public:
  explicit Search(Probe& probe) : probe_(probe) {
    for (Symbol symbol : probe.symbols()) sizes_.push_back({symbol, {symbol.name()}});
  }

  std::optional<Bindings> run() {
    while (!sizes_.empty() && sizes_.size() <= kMostSymbols && find_point()) {
      if (find_ranges() && !probe_.is_exhausted()) return ranges();
      if (!unify()) break;
    }
    return {};
  }

 private:
  using Part = const std::function<Dim(const Size&)>&;

  Bindings bindings(Part part) const {
    Bindings all;
    for (const Size& size : sizes_)
      for (const std::string& name : size.names) all.emplace(name, part(size));
    return all;
  }
  // All others are numbers.
  bool fits_with(const Size& one, Dim value) {
    return probe_.fits(
        bindings([&](const Size& size) { return &size == &one ? value : size.point; }));
  }
  static Dim within(Symbol symbol, int64_t low, int64_t high) {
    const int64_t step = symbol.multiple_of();
    return low == high ? Dim(low) : Dim(Symbol::get(symbol.name(), low, high, step));
  }
  bool find_point();
  bool point_fits(int64_t others, const Size* one, int64_t number);
  bool find_ranges();
  std::optional<Dim> range_of(const Size& one);
  std::optional<Dim> interval_of(const Size& one);
  std::optional<Dim> multiple_of(const Size& one);
  Ints numbers_beside(const Bindings& others);
  bool refuses_outside(const Size& one);
  bool are_real_numbers() const;
  std::optional<Bindings> ranges() const;
  bool unify();
  bool must_be_equal(const Size& a, const Size& b);

  Probe& probe_;
  std::vector<Size> sizes_;
};

bool Search::point_fits(int64_t others, const Size* one, int64_t number) {
  for (Size& size : sizes_) size.point = value_near(size.symbol, &size == one ? number : others);
  return probe_.fits(bindings([](const Size& size) { return size.point; }));
}

bool Search::find_point() {
  for (int64_t point : kPoints)
    if (point_fits(point, nullptr, 0)) return true;
  for (const Size& one : sizes_)
    for (int64_t number : probe_.candidates())
      for (int64_t others : kPoints)
        if (point_fits(others, &one, number)) return true;
  return false;
}

std::optional<Dim> Search::interval_of(const Size& one) {
  const Symbol symbol = one.symbol;
  const int64_t point = one.point;
  if (symbol.multiple_of() != 1) return {};
  const int64_t high = farthest(
      point, symbol.max(), [&](int64_t to) { return fits_with(one, within(symbol, point, to)); });
  const int64_t low = farthest(point, symbol.min(), [&](int64_t from) {
    return fits_with(one, within(symbol, from, high));
  });
  return within(symbol, low, high);
}

std::optional<Dim> Search::multiple_of(const Size& one) {
  const Symbol symbol = one.symbol;
  Ints steps = probe_.candidates();
  for (int64_t step = 2; step <= 16; ++step) steps.push_back(step);
  std::ranges::sort(steps);
  for (int64_t step : steps) {
    step = std::lcm(std::min(step, kMostMultiple), symbol.multiple_of());
    if (step > kMostMultiple || step == symbol.multiple_of()) continue;
    if (ceil_div(symbol.min(), step) > floor_div(symbol.max(), step)) continue;
    const Dim range = Symbol::get(symbol.name(), symbol.min(), symbol.max(), step);
    if (fits_with(one, range)) return range;
  }
  return {};
}

std::optional<Dim> Search::range_of(const Size& one) {
  if (fits_with(one, one.symbol)) return Dim(one.symbol);
  const std::optional<Dim> interval = interval_of(one);
  if (interval && !interval->is_static()) return interval;
  if (std::optional<Dim> multiple = multiple_of(one)) return multiple;
  return interval;
}

// The numbers that a size may have to be beside these of others: those of the operands, and what
// gives them if the operand is half as long as the size, has lost an end, and the like.
Ints Search::numbers_beside(const Bindings& others) {
  Ints numbers(std::begin(kPoints), std::end(kPoints));
  for (int64_t number = 0; number <= kFewNumbers; ++number) numbers.push_back(number);
  Ints seen = probe_.dims_for(others);
  seen.insert(seen.end(), probe_.candidates().begin(), probe_.candidates().end());
  for (int64_t dim : seen)
    for (int64_t times : {1, 2, 3, 4})
      for (int64_t more = -2; more <= 2; ++more) numbers.push_back(dim * times + more);
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

// The node takes none of the numbers that the range of the size lost, whatever the other sizes are:
// of both, those are tried that nodes often want.
bool Search::refuses_outside(const Size& one) {
  const Symbol symbol = one.symbol;
  if (one.range == Dim(symbol)) return true;
  const Range range = one.range.range();
  const auto is_lost = [&](int64_t number) {
    return check_binding(symbol, number).ok() &&
           (number < range.low || number > range.high || !is_multiple(number, one.range));
  };
  const size_t trials = sizes_.size() == 1 ? 1 : std::size(kPoints);
  for (size_t trial = 0; trial <= trials; ++trial) {
    const auto other = [&](const Size& size) {
      return trial == 0 ? size.point : value_near(size.symbol, kPoints[trial - 1]);
    };
    const auto with = [&](int64_t number) {
      return bindings([&](const Size& size) { return Dim(&size == &one ? number : other(size)); });
    };
    Ints numbers = numbers_beside(with(one.point));
    for (int64_t edge : {range.low - 1, range.high + 1, symbol.min(), symbol.max()})
      numbers.push_back(edge);
    for (int64_t number : numbers)
      if (is_lost(number) && probe_.fits(with(number))) return false;
  }
  return true;
}

// Two sizes that became numbers may have to go together, as n = 2*m: these must be numbers that the
// node itself has.
bool Search::are_real_numbers() const {
  const auto is_number = [](const Size& size) { return size.range.is_static(); };
  if (std::ranges::count_if(sizes_, is_number) < 2) return true;
  return std::ranges::all_of(sizes_, [&](const Size& size) {
    return !is_number(size) ||
           std::ranges::find(probe_.candidates(), size.range.value()) != probe_.candidates().end();
  });
}

bool Search::find_ranges() {
  for (Size& one : sizes_) {
    const std::optional<Dim> range = range_of(one);
    if (!range) return false;
    one.range = *range;
  }
  if (!are_real_numbers()) return false;
  if (!probe_.fits(bindings([](const Size& size) { return size.range; }))) return false;
  return std::ranges::all_of(sizes_, [&](const Size& one) { return refuses_outside(one); });
}

// Without sizes that stay as they are.
std::optional<Bindings> Search::ranges() const {
  Bindings found;
  for (const Size& size : sizes_)
    for (const std::string& name : size.names) found.emplace(name, size.range);
  for (Symbol symbol : probe_.symbols())
    if (found.at(symbol.name()) == Dim(symbol)) found.erase(symbol.name());
  return found.empty() ? std::nullopt : std::optional(found);
}

// For two sizes that take numbers if they are equal, and are refused if they differ.
bool Search::must_be_equal(const Size& a, const Size& b) {
  constexpr int64_t kNumbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 12, 260, 520};
  const auto is_legal = [](const Size& size, int64_t number) {
    return check_binding(size.symbol, number).ok();
  };
  int equal = 0;
  for (int64_t x : kNumbers)
    for (int64_t y : kNumbers) {
      if (!is_legal(a, x) || !is_legal(b, y)) continue;
      for (int64_t others : {int64_t{-1}, x, y}) {
        const bool fits = probe_.fits(bindings([&](const Size& size) -> Dim {
          if (&size == &a) return x;
          if (&size == &b) return y;
          return others < 0 ? size.point : value_near(size.symbol, others);
        }));
        if (fits && x != y) return false;
        equal += fits;
      }
    }
  return equal > 2;
}

// Makes one of two sizes that must be equal.
bool Search::unify() {
  for (size_t a = 0; a < sizes_.size(); ++a)
    for (size_t b = a + 1; b < sizes_.size(); ++b) {
      const Symbol x = sizes_[a].symbol, y = sizes_[b].symbol;
      const int64_t low = std::max(x.min(), y.min()), high = std::min(x.max(), y.max());
      if (x.multiple_of() != 1 || y.multiple_of() != 1 || low >= high) continue;
      if (!must_be_equal(sizes_[a], sizes_[b])) continue;
      sizes_[a].symbol = Symbol::get(x.name(), low, high);
      sizes_[a].names.insert(sizes_[a].names.end(), sizes_[b].names.begin(), sizes_[b].names.end());
      sizes_.erase(sizes_.begin() + static_cast<std::ptrdiff_t>(b));
      return true;
    }
  return false;
}

Bindings unchanged(const std::vector<Symbol>& symbols) {
  Bindings all;
  for (Symbol symbol : symbols) all.emplace(symbol.name(), symbol);
  return all;
}

// ---- Sizes that are too large together ---------------------------------------------------------

// The largest bound for all of them below which the node has types.
std::optional<Bindings> bounds_within_limits(Probe& probe) {
  for (int64_t most = int64_t{1} << 30; most >= kLeastBound; most /= 2) {
    Bindings less;
    for (Symbol symbol : probe.symbols())
      if (symbol.max() > most && symbol.min() <= value_near(symbol, most))
        less.emplace(symbol.name(),
                     Symbol::get(symbol.name(), symbol.min(), most, symbol.multiple_of()));
    Bindings all = less;
    all.merge(unchanged(probe.symbols()));
    if (!less.empty() && probe.fits(all)) return less;
  }
  return {};
}

// ---- Sizes that must be what the file computes -------------------------------------------------

// What the node takes for the size beside the computed one.
enum class Others { none, one, some };
Others taken_others(Probe& probe, Symbol size, Dim computed) {
  Others taken = Others::none;
  for (int64_t number : {2, 3, 5}) {
    Bindings sizes;
    for (Symbol symbol : probe.symbols()) sizes.emplace(symbol.name(), value_near(symbol, number));
    const int64_t value = computed.bind(sizes).value();
    for (int64_t other : {int64_t{1}, value + 1, value + 2, value - 1, 2 * value, value + 9}) {
      sizes.insert_or_assign(size.name(), other);
      if (other < 1 || other == value || !probe.fits(sizes)) continue;
      if (other != 1) return Others::some;
      taken = Others::one;
    }
  }
  return taken;
}

// A size of an input that has to be what the file computes from others: total = past + new. Where
// 1 would do, too, it has to be a sum of sizes; one of a size and a number tells no more than that
// a cache grows by it.
std::optional<Bindings> computed_size(Probe& probe, bool has_cache) {
  const Dims dims = probe.open_dims();
  for (Symbol size : probe.symbols()) {
    if (std::ranges::find(dims, Dim(size)) == dims.end()) continue;
    for (Dim computed : dims) {
      const std::vector<Symbol> parts = computed.symbols();
      const bool is_plain = parts.size() == 1 && computed == Dim(parts[0]);
      if (is_plain || std::ranges::find(parts, size) != parts.end()) continue;
      if (computed.range().low < 0 || !check_binding(size, computed).ok()) continue;
      Bindings all = unchanged(probe.symbols());
      all.insert_or_assign(size.name(), computed);
      if (!probe.fits(all)) continue;
      const Others others = taken_others(probe, size, computed);
      const bool is_meant = parts.size() > 1 || has_cache;
      if (others == Others::none || (others == Others::one && is_meant))
        return Bindings{{size.name(), computed}};
    }
  }
  return {};
}

// ---- Tables ------------------------------------------------------------------------------------

// Of an operand whose size is measured since a table might end before it.
std::optional<NeedRanges> table_ranges(Frame& frame, Flow& flow, const onnx::NodeProto& node) {
  for (const std::string& name : node.input()) {
    const Slot* slot = name.empty() ? nullptr : frame.find_or_null(name);
    if (slot == nullptr || !slot->is_tensor()) continue;
    for (Dim dim : flow.seen(slot->type).dims())
      for (Symbol symbol : dim.symbols()) {
        const auto found = flow.names().measured.find(symbol.name());
        if (found == flow.names().measured.end()) continue;
        const auto& [known_for, why] = found->second;
        if (std::ranges::all_of(known_for, [&](const auto& size) {
              return flow.names().open_sizes.contains(size.first);
            }))
          return NeedRanges{known_for, bad_input("{}", why)};
      }
  }
  return {};
}

bool has_subgraph(const onnx::NodeProto& node) {
  return std::ranges::any_of(node.attribute(), [](const auto& a) { return a.has_g(); });
}

}  // namespace

std::optional<NeedRanges> needed_ranges(Frame& frame, Flow& flow, const onnx::NodeProto& node,
                                        const Error& error) {
  if (has_subgraph(node)) return {};  // what its nodes need is found in there
  if (std::optional<NeedRanges> need = table_ranges(frame, flow, node)) return need;
  Probe probe(frame, flow, node);
  if (probe.symbols().empty() || probe.symbols().size() > kMostSymbols) return {};
  std::optional<Bindings> found;
  if (error.code() == ErrorCode::limit) found = bounds_within_limits(probe);
  const onnx::GraphProto& graph = frame.file().model().graph();
  if (!found) found = computed_size(probe, declares_growth(graph, /*if_unknown=*/false));
  if (!found) found = Search(probe).run();
  if (!found) return {};
  return NeedRanges{*std::move(found), error};
}

int64_t value_near(Symbol symbol, int64_t number) {
  const int64_t step = symbol.multiple_of();
  return std::clamp(number / step * step, ceil_div(symbol.min(), step) * step,
                    floor_div(symbol.max(), step) * step);
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

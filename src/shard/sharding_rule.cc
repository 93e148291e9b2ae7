#include "shard/sharding_rule.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include "base/text.h"
#include "ir/access.h"
#include "ir/application.h"
#include "ir/graph.h"
#include "ir/op_facts.h"

namespace hone {
namespace {

size_t at_index(int i) { return static_cast<size_t>(i); }

// An index as a sum of digits: times * (iter / step), each of a full range.
struct Digit {
  int iter;
  int64_t step;
  int64_t times;
};
struct Digits {
  int64_t constant = 0;
  std::vector<Digit> digits = {};
  std::set<int> iters = {};  // all that it mentions
  bool is_sum = true;        // it is nothing but the sum above
};

class DigitAlgebra {
 public:
  explicit DigitAlgebra(std::span<const IterDim> dims) : dims_(dims) {}

  Digits number(Dim value) const { return {.constant = value.value()}; }
  Digits iter(int i) const { return {.digits = {{i, 1, 1}}, .iters = {i}}; }
  Digits add(Digits a, const Digits& b) const {
    a.constant += b.constant;
    a.digits.insert(a.digits.end(), b.digits.begin(), b.digits.end());
    a.iters.insert(b.iters.begin(), b.iters.end());
    a.is_sum = a.is_sum && b.is_sum;
    return a;
  }
  Digits multiply(Digits a, Dim factor) const {
    a.constant *= factor.value();
    for (Digit& digit : a.digits) digit.times *= factor.value();
    return a;
  }
  Digits floordiv(Digits a, Dim positive) const {
    const bool is_digit = a.is_sum && a.constant == 0 && a.digits.size() == 1;
    if (!is_digit || a.digits[0].times != 1) return opaque(std::move(a));
    const int64_t step = a.digits[0].step * positive.value();
    if (dims_[at_index(a.digits[0].iter)].extent.value() % step != 0) return opaque(std::move(a));
    a.digits[0].step = step;
    return a;
  }
  Digits mod(Digits a, Dim) const { return opaque(std::move(a)); }

 private:
  static Digits opaque(Digits a) {
    a.is_sum = false;
    return a;
  }
  std::span<const IterDim> dims_;
};

// Reads a rule off an access relation.
class RuleOfAccess {
 public:
  RuleOfAccess(const Application& application, std::span<const Type> results)
      : application_(application), results_(results), relation_(access_of(application, results)) {
    find_steps();
    for (size_t i = 0; i < relation_.dims.size(); ++i) add_iter(i);
  }

  ShardingRule take() {
    for (size_t i = 0; i < relation_.results.size(); ++i)
      rule_.results.push_back(tensor({&relation_.results[i], 1}, results_[i], -1));
    for (int i = 0; i < application_.count(); ++i) {
      const Type type = application_.operand(i);
      rule_.operands.push_back(
          type ? tensor(at_index(i) < relation_.operands.size()
                            ? std::span<const Access>(relation_.operands[at_index(i)])
                            : std::span<const Access>(),
                        type, i)
               : TensorFactors());
    }
    return std::move(rule_);
  }

 private:
  int add(int64_t size, FactorKind kind, bool is_blocked = false) {
    rule_.factors.push_back({size, kind, is_blocked});
    return static_cast<int>(rule_.factors.size()) - 1;
  }
  void raise(const DimFactors& list, FactorKind kind, bool is_blocked = false) {
    for (const int f : list) {
      Factor& factor = rule_.factors[at_index(f)];
      factor.kind = std::max(factor.kind, kind);
      factor.is_blocked = factor.is_blocked || is_blocked;
    }
  }

  Digits digits_of(const IndexExpr& index) const {
    DigitAlgebra algebra(relation_.dims);
    return index.compute(algebra);
  }

  // Where an iteration dim is cut: conv reads `feature / group size`.
  void find_steps() {
    steps_.assign(relation_.dims.size(), {});
    const auto look = [&](const Access& access) {
      for (const IndexExpr& index : access.index)
        for (const Digit& digit : digits_of(index).digits)
          if (digit.step > 1) steps_[at_index(digit.iter)].insert(digit.step);
    };
    for (const std::vector<Access>& operand : relation_.operands)
      std::ranges::for_each(operand, look);
    std::ranges::for_each(relation_.results, look);
  }

  FactorKind kind_of(size_t i) const {
    const IterDim& dim = relation_.dims[i];
    if (dim.kind == IterKind::parallel) return FactorKind::pass;
    if (dim.kind == IterKind::reduction)
      return dim.divided_by < 0 ? FactorKind::reduction : FactorKind::replication;
    // A scan of sums: each device scans its part and adds what stands before it.
    const bool is_scan = std::ranges::any_of(relation_.results, [&](const Access& access) {
      return std::ranges::any_of(access.index, [&](const IndexExpr& index) {
        return index.mentions(static_cast<int>(i));
      });
    });
    return is_scan ? FactorKind::permutation : FactorKind::replication;
  }

  void add_iter(size_t i) {
    DimFactors& list = of_iter_.emplace_back();
    int64_t left = relation_.dims[i].extent.value();
    for (auto step = steps_[i].rbegin(); step != steps_[i].rend(); ++step) {
      if (left % *step != 0) continue;
      list.push_back(add(left / *step, kind_of(i)));
      left = *step;
    }
    list.push_back(add(left, kind_of(i)));
  }

  // The factors of iter / step.
  DimFactors upper(const Digit& digit) const {
    const DimFactors& all = of_iter_[at_index(digit.iter)];
    if (digit.step == 1) return all;
    DimFactors list;
    int64_t left = relation_.dims[at_index(digit.iter)].extent.value();
    for (const int f : all) {
      if (left <= digit.step) break;
      list.push_back(f);
      left /= rule_.factors[at_index(f)].size;
    }
    return list;
  }

  // Digits that stand side by side and fill the dim.
  std::optional<DimFactors> filled_by(Digits sum, int64_t size) const {
    if (!sum.is_sum || sum.constant != 0) return std::nullopt;
    const auto range_of = [&](const Digit& digit) {
      return relation_.dims[at_index(digit.iter)].extent.value() / digit.step;
    };
    if (sum.digits.size() > 1)
      std::erase_if(sum.digits, [&](const Digit& digit) { return range_of(digit) == 1; });
    std::ranges::sort(sum.digits, std::greater(), &Digit::times);
    DimFactors list;
    int64_t left = size;
    for (const Digit& digit : sum.digits) {
      if (digit.times < 1 || digit.times * range_of(digit) != left) return std::nullopt;
      left = digit.times;
      const DimFactors more = upper(digit);
      list.insert(list.end(), more.begin(), more.end());
    }
    if (left != 1) return std::nullopt;
    return list;
  }

  // True: elements come to stand where the data says; the tensor holds what is new.
  bool is_written_by_data(int operand) const {
    const int8_t updates = application_.op.def().traits.updates;
    return updates != 0 && operand == updates;
  }

  // Another operand reads along the iteration dim too: a kernel.
  bool is_read_elsewhere(int iter, int operand) const {
    for (size_t i = 0; i < relation_.operands.size(); ++i)
      for (const Access& access : relation_.operands[i])
        for (const IndexExpr& index : access.index)
          if (static_cast<int>(i) != operand && index.mentions(iter)) return true;
    return false;
  }

  DimFactors addressed(const std::set<int>& iters, int64_t size, int operand) {
    std::optional<int> found;
    for (const int i : iters) {
      const int64_t extent = relation_.dims[at_index(i)].extent.value();
      if (extent > 1 || extent == size) found = i;
    }
    // A part of the dim may be written anywhere; all of it stands where it is, or is left out.
    if (is_written_by_data(operand)) {
      if (found && relation_.dims[at_index(*found)].extent.value() == size)
        return of_iter_[at_index(*found)];
      return {add(size, FactorKind::replication)};
    }
    // Each device gives what it has.
    if (!found) return {add(size, FactorKind::reduction)};
    const DimFactors& list = of_iter_[at_index(*found)];
    const bool is_part = relation_.dims[at_index(*found)].extent.value() != size;
    raise(list, FactorKind::replication, is_part || list.size() > 1);
    if (is_part) return {add(size, FactorKind::reduction)};
    if (list.size() > 1) return {add(size, FactorKind::replication)};
    return list;
  }

  // Elements around the place of the result: a window, or a part.
  DimFactors around(const std::set<int>& iters, int64_t size, int operand) {
    std::vector<int> places, windows;
    for (const int i : iters)
      (relation_.dims[at_index(i)].kind == IterKind::reduction ? windows : places).push_back(i);
    if (places.size() != 1 || windows.size() > 1) {
      for (const int i : iters) raise(of_iter_[at_index(i)], FactorKind::replication);
      return {add(size, FactorKind::replication)};
    }
    const DimFactors& place = of_iter_[at_index(places[0])];
    raise(place, FactorKind::permutation);
    if (windows.empty() || !is_read_elsewhere(windows[0], operand)) return place;
    // The longer one of kernel and result divides the dim first.
    const DimFactors& window = of_iter_[at_index(windows[0])];
    const bool is_wide = relation_.dims[at_index(windows[0])].extent.value() >
                         relation_.dims[at_index(places[0])].extent.value();
    DimFactors list = is_wide ? window : place;
    const DimFactors& minor = is_wide ? place : window;
    list.insert(list.end(), minor.begin(), minor.end());
    return list;
  }

  DimFactors dim(std::span<const Access> accesses, int d, int64_t size, int operand) {
    bool is_addressed = false, is_everything = false, agree = true, is_guarded = false;
    std::set<int> iters;
    std::optional<IndexExpr> first;
    for (const Access& access : accesses) {
      if (at_index(d) >= access.index.size()) {
        is_everything = true;
        continue;
      }
      const IndexExpr& index = access.index[at_index(d)];
      const Digits sum = digits_of(index);
      iters.insert(sum.iters.begin(), sum.iters.end());
      is_addressed = is_addressed || access.is_data_dependent(d);
      agree = agree && (!first || *first == index);
      first = index;
      for (const Guard& guard : access.guards)
        for (const int i : sum.iters)
          if (guard.value.mentions(i) && relation_.dims[at_index(i)].kind == IterKind::parallel)
            is_guarded = true;
    }
    if (is_everything || !first)
      return {add(size, accesses.empty() ? FactorKind::pass : FactorKind::replication,
                  !accesses.empty())};
    if (is_addressed && (size > 1 || is_written_by_data(operand)))
      return addressed(iters, size, operand);
    // One place for all: the device that has the element gives it.
    if (iters.empty())
      return {add(size, size <= 1 ? FactorKind::pass
                        : agree   ? FactorKind::reduction
                                  : FactorKind::replication)};
    if (agree && !is_guarded)
      if (std::optional<DimFactors> list = filled_by(digits_of(*first), size)) return *list;
    return around(iters, size, operand);
  }

  TensorFactors tensor(std::span<const Access> accesses, Type type, int operand) {
    TensorFactors factors;
    for (int d = 0; d < type.rank(); ++d)
      factors.push_back(dim(accesses, d, type.dim(d).value(), operand));
    return factors;
  }

  const Application& application_;
  const std::span<const Type> results_;
  const AccessRelation relation_;
  std::vector<std::set<int64_t>> steps_;
  std::vector<DimFactors> of_iter_;
  ShardingRule rule_;
};

// The elements stay in their order: the digits of their place in the finest dims that both shapes
// are made of.
ShardingRule rule_of_regrouping(Type from, Type to) {
  ShardingRule rule;
  rule.operands.resize(1, TensorFactors(at_index(from.rank())));
  rule.results.resize(1, TensorFactors(at_index(to.rank())));
  TensorFactors& left = rule.operands[0];
  TensorFactors& right = rule.results[0];
  const auto add = [&](DimFactors* in, DimFactors* out, int64_t size) {
    if (size == 1) return;
    rule.factors.push_back({.size = size});
    const int factor = static_cast<int>(rule.factors.size()) - 1;
    if (in != nullptr) in->push_back(factor);
    if (out != nullptr) out->push_back(factor);
  };
  int i = 0, k = 0;
  int64_t left_size = 1, right_size = 1;        // what is left of the dims at hand
  int64_t left_product = 1, right_product = 1;  // of the factors so far
  const auto dim_of = [](TensorFactors& tensor, int d) { return &tensor[at_index(d - 1)]; };
  while (true) {
    while (left_size == 1 && i < from.rank()) left_size = from.dim(i++).value();
    while (right_size == 1 && k < to.rank()) right_size = to.dim(k++).value();
    if (left_size == 1 && right_size == 1) break;
    if (left_product == right_product) {
      const int64_t common = std::gcd(left_size, right_size);
      if (common > 1) {
        add(dim_of(left, i), dim_of(right, k), common);
        left_size /= common, left_product *= common;
        right_size /= common, right_product *= common;
        continue;
      }
      add(dim_of(left, i), nullptr, left_size);
      left_product *= left_size, left_size = 1;
      add(nullptr, dim_of(right, k), right_size);
      right_product *= right_size, right_size = 1;
      continue;
    }
    // The side that is behind catches up, or leaves what it shares for later.
    const bool is_left = left_product < right_product;
    int64_t& size = is_left ? left_size : right_size;
    int64_t& product = is_left ? left_product : right_product;
    const int64_t ahead = is_left ? right_product : left_product;
    int64_t part = size;
    if (ahead % product == 0 && size % (ahead / product) == 0)
      part = ahead / product;
    else if (const int64_t other = is_left ? right_size : left_size; std::gcd(size, other) < size)
      part = size / std::gcd(size, other);
    add(is_left ? dim_of(left, i) : nullptr, is_left ? nullptr : dim_of(right, k), part);
    product *= part;
    size /= part;
  }
  return rule;
}

// Every dim is whole on each device.
ShardingRule rule_of_whole(std::span<const Type> operands, std::span<const Type> results) {
  ShardingRule rule;
  const auto add = [&](std::span<const Type> types, std::vector<TensorFactors>& tensors) {
    for (const Type type : types) {
      TensorFactors& tensor = tensors.emplace_back();
      for (int d = 0; type && d < type.rank(); ++d) {
        rule.factors.push_back({type.dim(d).value(), FactorKind::replication, true});
        tensor.push_back({static_cast<int>(rule.factors.size()) - 1});
      }
    }
  };
  add(operands, rule.operands);
  add(results, rule.results);
  return rule;
}

bool is_empty(std::span<const Type> types) {
  return std::ranges::any_of(types, [](Type type) {
    return type && std::ranges::any_of(type.dims(), [](Dim dim) { return dim.is(0); });
  });
}

std::string factor_name(int number) {
  std::string name(1, static_cast<char>('i' + number % 18));
  if (number >= 18) name += fmt::format("_{}", number / 18);
  return name;
}

}  // namespace

Result<ShardingRule> sharding_rule(const Application& application, std::span<const Type> results) {
  if (is_composite(application.op.opcode())) {
    const Graph spelled = HONE_TRY(expansion(application.op, application.operands));
    ShardingRule rule = HONE_TRY(sharding_rule(spelled));
    // Inputs of the expansion are the operands that are present.
    std::vector<TensorFactors> operands;
    for (size_t i = 0, next = 0; i < application.operands.size(); ++i)
      operands.push_back(application.operands[i] ? rule.operands[next++] : TensorFactors());
    rule.operands = std::move(operands);
    return rule;
  }
  if (regroups_dims(application.op.opcode()) && !is_empty(application.operands))
    return rule_of_regrouping(application.operand(0), results[0]);
  const bool moves_nothing = regroups_dims(application.op.opcode());
  if (moves_nothing || !has_access(application))
    return rule_of_whole(application.operands, results);
  return RuleOfAccess(application, results).take();
}

std::string to_string(const ShardingRule& rule) {
  std::vector<int> numbers(rule.factors.size(), -1);
  std::vector<int> order;
  const auto name_of = [&](int factor) {
    int& number = numbers[at_index(factor)];
    if (number < 0) {
      number = static_cast<int>(order.size());
      order.push_back(factor);
    }
    return factor_name(number);
  };
  const auto tensors_text = [&](const std::vector<TensorFactors>& tensors) {
    std::vector<std::string> texts;
    for (const TensorFactors& tensor : tensors) {
      std::vector<std::string> dims;
      for (const DimFactors& dim : tensor) {
        std::string& text = dims.emplace_back();
        for (const int factor : dim) text += name_of(factor);
        if (dim.empty()) text = "1";
      }
      texts.push_back(fmt::format("[{}]", join(dims, ", ")));
    }
    return fmt::format("({})", join(texts, ", "));
  };
  const std::string operands = tensors_text(rule.operands);
  std::string text = fmt::format("{}->{}", operands, tensors_text(rule.results));
  std::vector<std::string> sizes;
  for (const int factor : order)
    sizes.push_back(fmt::format("{}={}", name_of(factor), rule.factors[at_index(factor)].size));
  if (!sizes.empty()) text += fmt::format(" {{{}}}", join(sizes, ", "));
  const auto list = [&](std::string_view name, const auto& has) {
    std::vector<std::string> found;
    for (const int factor : order)
      if (has(rule.factors[at_index(factor)])) found.push_back(name_of(factor));
    if (!found.empty()) text += fmt::format(" {}={{{}}}", name, join(found, ", "));
  };
  list("reduction", [](const Factor& f) { return f.kind == FactorKind::reduction; });
  list("permutation", [](const Factor& f) { return f.kind == FactorKind::permutation; });
  list("replication", [](const Factor& f) { return f.kind == FactorKind::replication; });
  list("blocked", [](const Factor& f) { return f.is_blocked; });
  return text;
}

}  // namespace hone

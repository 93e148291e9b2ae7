#include "prove/sum_form.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "rules/exact.h"

namespace hone {
namespace {

constexpr int kMaxSteps = 20000;
constexpr size_t kMaxSumTerms = 512;
constexpr int64_t kMaxUnrolled = 16;
constexpr size_t kMaxWeight = 256;  // of a position
constexpr int64_t kMaxPower = 8;    // of an exp that is spelled out
constexpr size_t kMaxCompared = 20000;
constexpr std::string_view kExp = "exp";

// The factor, if the form is nothing else.
const SumFactor* only_factor(const SumForm& form) {
  const bool is_one = form.size() == 1 && form[0].factor.is(1) && form[0].bound.empty() &&
                      form[0].guards.empty() && form[0].factors.size() == 1;
  return is_one ? form[0].factors[0].get() : nullptr;
}

bool is_exponential(const SumFactor& factor) {
  return factor.kind == SumFactor::function && factor.key == kExp;
}

// How many factors a form has, those of its operands and sets included; at most `most`.
size_t weight(const SumForm& form, size_t most) {
  size_t sum = 1;
  const auto add = [&](const SumForm& part) {
    if (sum < most) sum += weight(part, most - sum);
  };
  for (const SumTerm& term : form)
    for (const auto& factor : term.factors) {
      ++sum;
      for (const SumForm& operand : factor->operands) add(operand);
      for (const SetMember& member : factor->set) add(member.value);
      if (sum >= most) return most;
    }
  return sum;
}

bool mentions(const SumForm& form, int variable);

bool mentions(const SumFactor& factor, int variable) {
  const auto in = [&](const auto& list) {
    return std::ranges::any_of(list, [&](const IndexForm& f) { return f.mentions(variable); });
  };
  return in(factor.index) ||
         std::ranges::any_of(factor.operands,
                             [&](const SumForm& f) { return mentions(f, variable); }) ||
         std::ranges::any_of(factor.set, [&](const SetMember& member) {
           return in(member.guards) || mentions(member.value, variable);
         });
}

bool mentions(const SumForm& form, int variable) {
  return std::ranges::any_of(form, [&](const SumTerm& term) {
    return std::ranges::any_of(term.guards,
                               [&](const IndexForm& f) { return f.mentions(variable); }) ||
           std::ranges::any_of(term.factors,
                               [&](const auto& factor) { return mentions(*factor, variable); });
  });
}

// One of several members that say the same, by the names of their variables, stays.
void drop_equal_members(std::vector<SetMember>& set, const LoopVariables& variables) {
  const std::vector<std::string> names = plain_names(variables);
  std::set<std::string> texts;
  std::erase_if(set, [&](const SetMember& member) {
    if (!member.bound.empty() || !member.guards.empty()) return false;
    const std::optional<std::string> text = canonical_text(member.value, variables, names);
    return text && !texts.insert(*text).second;
  });
}

struct IndexAlgebra {
  const std::vector<IndexForm>& iters;
  const LoopVariables& variables;
  std::optional<Refinement>& wanted;

  IndexForm number(Dim d) { return d; }
  IndexForm iter(int i) { return iters[static_cast<size_t>(i)]; }
  IndexForm add(const IndexForm& a, const IndexForm& b) { return a + b; }
  IndexForm multiply(const IndexForm& a, Dim factor) { return a * factor; }
  IndexForm floordiv(const IndexForm& a, Dim d) {
    return divide(a, d, variables, &wanted).quotient;
  }
  IndexForm mod(const IndexForm& a, Dim d) { return divide(a, d, variables, &wanted).remainder; }
};

}  // namespace

// ---- Elements -----------------------------------------------------------------------------------

SumForm FormMaker::element(ValueId v, const std::vector<IndexForm>& index) {
  if (!counts()) return {};
  if (++steps_ > kMaxSteps) {
    fail("the forms are too large");
    return {};
  }
  const NodeId n = graph_.producer(v);
  const Op op = graph_.op(n);
  if (op.opcode() == Opcode::parameter) {
    const auto inputs = graph_.inputs();
    const auto at = std::ranges::find(inputs, v) - inputs.begin();
    return single(std::make_shared<SumFactor>(
        SumFactor{.kind = SumFactor::element,
                  .key = fmt::format("x{}", at),
                  .index = index,
                  .is_bool = graph_.type(v).dtype() == DType::boolean}));
  }
  if (op.opcode() == Opcode::iota) return place(graph_.type(v), op.integer("axis"), index);
  if (op.opcode() == Opcode::constant) return constant(graph_.constant(n), index);
  if (class_of(op.opcode()) == OpClass::elementwise) return pointwise(n, index);
  const OpClass op_class = class_of(op.opcode());
  const bool reduces = op_class == OpClass::contraction || fold_of(op).has_value();
  if (op_class != OpClass::movement && !reduces) {
    fail(fmt::format("'{}' has no form", op.name()));
    return {};
  }
  const std::vector<Type> operands = graph_.operand_types(n);
  const std::vector<Type> results = graph_.result_types(n);
  const AccessRelation relation = access_of({.op = op, .operands = operands}, results);
  return reduces ? reduced(n, relation, index) : moved(n, relation, index);
}

SumForm FormMaker::constant(const Tensor& tensor, const std::vector<IndexForm>& index) {
  const double first = tensor.elements() > 0 ? tensor.real_at(0) : 0;
  bool is_splat = true;
  for (int64_t i = 1; i < tensor.elements(); ++i) is_splat = is_splat && tensor.real_at(i) == first;
  if (!is_splat)
    return single(std::make_shared<SumFactor>(
        SumFactor{.kind = SumFactor::element,
                  .key = fmt::format("constant {:x}", tensor.content_hash()),
                  .index = index}));
  if (first == 0) return {};
  if (std::abs(first) <= 0x1p53 && first == std::floor(first))
    return {SumTerm{.factor = static_cast<int64_t>(first)}};
  return function(fmt::format("number {:a}", first), {});
}

SumForm FormMaker::pointwise(NodeId n, const std::vector<IndexForm>& index) {
  const Op op = graph_.op(n);
  if (op.opcode() == Opcode::compare) return comparison(n, index);
  if (op.opcode() == Opcode::select) return selected(n, index);
  std::vector<SumForm> x;
  for (ValueId v : graph_.operands(n)) x.push_back(element(v, index));
  if (!counts()) return {};
  const auto add = [](SumForm a, const SumForm& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  const Opcode opcode = op.opcode();
  if (opcode == Opcode::add) return add(x[0], x[1]);
  if (opcode == Opcode::sub) return add(x[0], scaled(x[1], -1));
  if (opcode == Opcode::neg) return scaled(x[0], -1);
  if (opcode == Opcode::mul) return product(x[0], x[1]);
  if (opcode == Opcode::div) return product(x[0], inverse(x[1]));
  if (opcode == Opcode::max)
    return largest_of({{.guards = {}, .value = x[0]}, {.guards = {}, .value = x[1]}});
  if (opcode == Opcode::min)
    return scaled(largest_of({{.guards = {}, .value = scaled(x[0], -1)},
                              {.guards = {}, .value = scaled(x[1], -1)}}),
                  -1);
  if (opcode == Opcode::abs) {
    // The second form is made anew, so that its bound variables are its own.
    SumForm other = scaled(element(graph_.operands(n)[0], index), -1);
    return largest_of({{.guards = {}, .value = x[0]}, {.guards = {}, .value = std::move(other)}});
  }
  if (opcode == Opcode::exp) return exponential(x[0]);
  const bool is_bool = graph_.type(graph_.result(n)).dtype() == DType::boolean;
  if (is_bool)
    if (std::optional<SumForm> form = logical(opcode, x)) return *std::move(form);
  return function(std::string(op.name()) + op.attrs_to_string(), std::move(x), is_bool);
}

IndexForm FormMaker::index_of(const IndexExpr& expr, const std::vector<IndexForm>& iters) {
  IndexAlgebra algebra = {iters, variables_, wanted};
  IndexForm form = expr.compute(algebra);
  if (form.weight() > kMaxWeight || !form.is_exact()) {
    fail("the positions are too large");
    return IndexForm(0);
  }
  return form;
}

bool FormMaker::guards_of(const Access& access, const std::vector<IndexForm>& iters,
                          std::vector<IndexForm>& open) {
  for (const Guard& guard : access.guards) {
    const IndexForm value = index_of(guard.value, iters);
    for (IndexForm side : {value - IndexForm(guard.lower), IndexForm(guard.upper - 1) - value})
      if (!holds(side, open)) return false;
  }
  return true;
}

SumForm FormMaker::read(ValueId operand, const Access& access,
                        const std::vector<IndexForm>& iters) {
  std::vector<IndexForm> index;
  for (const IndexExpr& expr : access.index) index.push_back(index_of(expr, iters));
  return element(operand, index);
}

SumForm FormMaker::moved(NodeId n, const AccessRelation& relation,
                         const std::vector<IndexForm>& index) {
  SumForm sum;
  const auto guarded = [&](SumForm form, const std::vector<IndexForm>& guards, Dim factor) {
    for (SumTerm& term : form) {
      term.guards.insert(term.guards.end(), guards.begin(), guards.end());
      term.factor *= factor;
      check_size(term.factor);
      sum.push_back(std::move(term));
    }
  };
  // A pad's value is read wherever its operand is not.
  const bool is_pad = graph_.opcode(n) == Opcode::pad;
  const size_t operands = is_pad ? 1 : relation.operands.size();
  for (size_t o = 0; o < operands; ++o) {
    for (const Access& access : relation.operands[o]) {
      std::vector<IndexForm> open;
      const bool may_read = guards_of(access, index, open);
      if (!counts()) return {};
      if (may_read) guarded(read(graph_.operands(n)[o], access, index), open, 1);
      if (!is_pad) continue;
      if (!may_read || !open.empty()) guarded(element(graph_.operands(n)[1], {}), {}, 1);
      if (may_read && !open.empty()) guarded(element(graph_.operands(n)[1], {}), open, -1);
    }
  }
  return sum;
}

template <class List>
List FormMaker::unrolled(const Loop& loop, std::span<const Dim> extents,
                         const std::function<List(const std::vector<IndexForm>&)>& body) {
  if (extents.empty()) return over<List>(loop, body);
  const Dim extent = extents[0];
  List all;
  if (extent.is(1) || (unrolls_ && extent.is_static() && extent.value() <= kMaxUnrolled)) {
    for (int64_t i = 0; i < extent.value(); ++i) {
      Loop one = loop;
      one.iters.push_back(IndexForm(i));
      List part = unrolled<List>(one, extents.subspan(1), body);
      if (!counts()) return {};
      std::ranges::move(part, std::back_inserter(all));
    }
    return all;
  }
  Loop next = loop;
  next.variables.push_back(variables_.add(extent));
  next.iters.push_back(IndexForm::variable(next.variables.back()));
  return unrolled<List>(next, extents.subspan(1), body);
}

// The bodies for all values of the loop's variables, refined until their forms are simple.
template <class List>
List FormMaker::over(Loop loop, const std::function<List(const std::vector<IndexForm>&)>& body) {
  for (;;) {
    if (++steps_ > kMaxSteps) fail("the forms are too large");
    const size_t mark = script_.size();
    script_.emplace_back("s");
    List list = body(loop.iters);
    if (!fault.empty()) return {};
    if (!wanted) {
      for (auto& one : list)
        one.bound.insert(one.bound.end(), loop.variables.begin(), loop.variables.end());
      return list;
    }
    const auto mine = std::ranges::find(loop.variables, wanted->variable);
    if (mine == loop.variables.end()) return {};
    const Refinement refinement = *wanted;
    wanted.reset();
    const auto put = [&](Loop& into, const IndexForm& form) {
      for (IndexForm& iter : into.iters) iter = iter.with(refinement.variable, form, variables_);
    };
    const Dim extent = variables_.extent(refinement.variable);
    script_.resize(mark);
    script_.push_back(
        step_text(refinement, static_cast<size_t>(mine - loop.variables.begin()), extent));
    loop.variables.erase(mine);
    if (refinement.kind == Refinement::digits) {
      const int high = variables_.add(*extent.divided_by(refinement.at));
      const int low = variables_.add(refinement.at);
      put(loop, IndexForm::variable(high) * refinement.at + IndexForm::variable(low));
      loop.variables.insert(loop.variables.end(), {high, low});
      continue;
    }
    Loop rest = loop;
    const int before = variables_.add(refinement.at);
    const int behind = variables_.add(extent - refinement.at);
    put(loop, IndexForm::variable(before, variables_));
    put(rest, IndexForm::variable(behind, variables_) + IndexForm(refinement.at));
    loop.variables.push_back(before);
    rest.variables.push_back(behind);
    List first = over<List>(std::move(loop), body);
    if (!counts()) return {};
    List second = over<List>(std::move(rest), body);
    if (!counts()) return {};
    std::ranges::move(second, std::back_inserter(first));
    return first;
  }
}

SumForm FormMaker::reduced(NodeId n, const AccessRelation& relation,
                           const std::vector<IndexForm>& index) {
  const std::optional<Fold> fold = fold_of(graph_.op(n));
  if (fold == Fold::product) {
    fail("products over a dim have no form");
    return {};
  }
  Dims extents;
  for (size_t i = index.size(); i < relation.dims.size(); ++i)
    extents.push_back(relation.dims[i].extent);
  const auto operands = graph_.operands(n);
  // The product of what a point reads, or what it reads; nothing outside of the guards.
  const auto at_point = [&](const std::vector<IndexForm>& iters,
                            std::vector<IndexForm>& open) -> std::optional<SumForm> {
    SumForm all = {SumTerm{}};
    for (size_t o = 0; o < operands.size(); ++o) {
      const Access& access = relation.operands[o][0];
      std::vector<IndexForm> guards;
      if (!guards_of(access, iters, guards) || !counts()) return std::nullopt;
      open.insert(open.end(), guards.begin(), guards.end());
      all = product(all, read(operands[o], access, iters));
      if (!counts()) return std::nullopt;
    }
    return all;
  };
  if (!fold || *fold == Fold::sum) {
    SumForm sum =
        unrolled<SumForm>({.iters = index, .variables = {}}, extents,
                          [&](const std::vector<IndexForm>& iters) -> SumForm {
                            std::vector<IndexForm> open;
                            SumForm form = at_point(iters, open).value_or(SumForm());
                            for (SumTerm& term : form)
                              term.guards.insert(term.guards.end(), open.begin(), open.end());
                            return form;
                          });
    for (SumTerm& term : sum) simplify(term);
    if (sum.size() > kMaxSumTerms) fail("the forms are too large");
    return sum;
  }
  const Dim sign = *fold == Fold::largest ? 1 : -1;
  using Set = std::vector<SetMember>;
  Set set = unrolled<Set>(
      {.iters = index, .variables = {}}, extents, [&](const std::vector<IndexForm>& iters) -> Set {
        std::vector<IndexForm> open;
        std::optional<SumForm> form = at_point(iters, open);
        if (!form) return {};
        return {SetMember{
            .bound = {}, .guards = std::move(open), .value = scaled(std::move(*form), sign)}};
      });
  return scaled(largest_of(std::move(set)), sign);
}

std::string step_text(const Refinement& refinement, size_t place, Dim extent) {
  if (refinement.kind == Refinement::cut)
    return fmt::format("cut {} {}", place, refinement.at.to_string());
  return fmt::format("digits {} {} by {}", place, refinement.at.to_string(),
                     extent.divided_by(refinement.at)->to_string());
}

// ---- Arithmetic ---------------------------------------------------------------------------------

SumForm FormMaker::scaled(SumForm a, Dim factor) {
  for (SumTerm& term : a) {
    term.factor *= factor;
    check_size(term.factor);
  }
  return a;
}

void FormMaker::check_size(Dim factor) {
  if (!is_exact(factor)) fail("the factors are too large");
}

SumForm FormMaker::product(const SumForm& a, const SumForm& b) {
  SumForm result;
  if (a.size() * b.size() > kMaxSumTerms) {
    fail("the forms are too large");
    return {};
  }
  for (const SumTerm& x : a) {
    for (const SumTerm& y : b) {
      SumTerm term = x;
      term.factor *= y.factor;
      check_size(term.factor);
      term.bound.insert(term.bound.end(), y.bound.begin(), y.bound.end());
      term.guards.insert(term.guards.end(), y.guards.begin(), y.guards.end());
      term.factors.insert(term.factors.end(), y.factors.begin(), y.factors.end());
      cancel_exponentials(term);
      drop_equal_bools(term);
      if (!term.factor.is(0)) result.push_back(std::move(term));
    }
  }
  return result;
}

// A power of exp(t) for each term, where it is small and whole.
SumForm FormMaker::exponential(const SumForm& a) {
  SumForm result = {SumTerm{}};
  for (const SumTerm& term : a) {
    SumTerm one = term;
    int64_t times = 1;
    if (term.factor.is_static() && std::abs(term.factor.value()) <= kMaxPower) {
      times = std::abs(term.factor.value());
      one.factor = term.factor.value() < 0 ? -1 : 1;
    }
    const SumForm power = single(std::make_shared<SumFactor>(SumFactor{
        .kind = SumFactor::function, .key = std::string(kExp), .operands = {{std::move(one)}}}));
    for (int64_t i = 0; i < times && counts(); ++i) result = product(result, power);
  }
  return result;
}

void FormMaker::cancel_exponentials(SumTerm& term) {
  std::vector<size_t> places;
  for (size_t f = 0; f < term.factors.size(); ++f)
    if (is_exponential(*term.factors[f])) places.push_back(f);
  if (places.size() < 2) return;
  const std::vector<std::string> names = plain_names(variables_);
  std::multimap<std::string, size_t> waiting;  // by the text of what would cancel it
  std::set<size_t> gone;
  for (size_t f : places) {
    const SumForm& operand = term.factors[f]->operands[0];
    compared_ += weight(operand, kMaxCompared);
    if (compared_ > kMaxCompared) return fail("the forms are too large");
    const auto text = canonical_text(operand, variables_, names);
    const auto opposite = canonical_text(scaled(operand, -1), variables_, names);
    if (!text || !opposite) continue;
    if (const auto other = waiting.find(*text); other != waiting.end()) {
      gone.insert({f, other->second});
      waiting.erase(other);
    } else {
      waiting.emplace(*opposite, f);
    }
  }
  std::vector<std::shared_ptr<const SumFactor>> left;
  for (size_t f = 0; f < term.factors.size(); ++f)
    if (!gone.contains(f)) left.push_back(term.factors[f]);
  term.factors = std::move(left);
}

// For one product: the product of the inverses; the inverse of exp(t) is exp(-t). A sum in all
// terms with one exp, which the sum does not change, has it in front.
SumForm FormMaker::inverse(const SumForm& a) {
  if (a.size() == 1 && a[0].guards.empty()) {
    SumTerm rest = a[0];
    SumForm result = {SumTerm{}};
    std::erase_if(rest.factors, [&](const auto& factor) {
      const auto in = [&](int v) { return mentions(*factor, v); };
      if (!is_exponential(*factor) || std::ranges::any_of(rest.bound, in)) return false;
      result = product(result, exponential(scaled(factor->operands[0], -1)));
      return true;
    });
    const bool is_one = rest.factors.empty() && rest.bound.empty() && rest.factor.is(1);
    if (is_one) return result;
    if (rest.factors.size() < a[0].factors.size()) return product(result, inverse({rest}));
  }
  const bool is_product = a.size() == 1 && a[0].bound.empty() && a[0].guards.empty() &&
                          (a[0].factor.is(1) || a[0].factor.is(-1)) && a[0].factors.size() > 1;
  if (!is_product) return function("inverse", {a});
  SumForm result = {SumTerm{.factor = a[0].factor}};
  for (const auto& factor : a[0].factors)
    result = product(result, function("inverse", {single(factor)}));
  return result;
}

SumForm FormMaker::function(std::string key, std::vector<SumForm> operands, bool is_bool) {
  return single(std::make_shared<SumFactor>(SumFactor{.kind = SumFactor::function,
                                                      .key = std::move(key),
                                                      .operands = std::move(operands),
                                                      .is_bool = is_bool}));
}

// The largest of a set in a set stands for its members.
SumForm FormMaker::largest_of(std::vector<SetMember> members) {
  std::vector<SetMember> set;
  for (SetMember& member : members) {
    std::erase_if(member.bound, [&](int v) {
      const auto in = [v](const IndexForm& f) { return f.mentions(v); };
      return !std::ranges::any_of(member.guards, in) && !mentions(member.value, v) &&
             provably_le(1, variables_.extent(v));
    });
    const SumFactor* inner = only_factor(member.value);
    if (inner == nullptr || inner->kind != SumFactor::largest || inner->set.empty()) {
      set.push_back(std::move(member));
      continue;
    }
    for (SetMember one : inner->set) {
      one.bound.insert(one.bound.end(), member.bound.begin(), member.bound.end());
      one.guards.insert(one.guards.end(), member.guards.begin(), member.guards.end());
      set.push_back(std::move(one));
    }
  }
  if (set.size() > kMaxSumTerms) fail("the forms are too large");
  drop_equal_members(set, variables_);
  if (set.size() == 1 && set[0].bound.empty() && set[0].guards.empty()) return set[0].value;
  return single(
      std::make_shared<SumFactor>(SumFactor{.kind = SumFactor::largest, .set = std::move(set)}));
}

// A variable that nothing depends on multiplies by its extent.
void FormMaker::simplify(SumTerm& term) {
  put_equal(term);
  std::erase_if(term.bound, [&](int v) {
    const bool in_guards =
        std::ranges::any_of(term.guards, [&](const IndexForm& f) { return f.mentions(v); });
    const bool in_factors =
        std::ranges::any_of(term.factors, [&](const auto& factor) { return mentions(*factor, v); });
    if (in_guards || in_factors) return false;
    term.factor *= variables_.extent(v);
    return true;
  });
  check_size(term.factor);
}

}  // namespace hone

#include "rules/checker/forms.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

#include "ir/algebra.h"
#include "ir/op_facts.h"

namespace hone::checker {

Error refused(std::string_view why) { return check_failed("{}", why); }

Form single(Factor factor) {
  return {Term{.factors = {std::make_shared<const Factor>(std::move(factor))}}};
}

Form times(Form form, const Whole& factor) {
  for (Term& term : form) term.factor = term.factor * factor;
  return form;
}

Form plus(Form a, Form b) {
  std::ranges::move(b, std::back_inserter(a));
  return a;
}

Form opposite(const Form& a) { return plus({Term()}, times(a, -1)); }

namespace {

constexpr size_t kMaxWork = 40000;         // elements that are spelled out
constexpr size_t kMaxProductTerms = 1024;  // of a product
constexpr int64_t kMaxSpelledOut = 16;

// How much there is to write down; beyond kMaxWork it does not count on.
size_t size_of(const Form& form) {
  size_t size = 1;
  for (const Term& term : form)
    for (const auto& factor : term.factors) {
      size += 1 + factor->index.size();
      for (const Form& operand : factor->operands) size += size_of(operand);
      for (const Member& member : factor->set) size += size_of(member.value);
      if (size > kMaxWork) return size;
    }
  return size;
}

// The exp of this, if the factor is one.
const Form* exponent_of(const Factor& factor) {
  const bool is_exp = factor.kind == Factor::function && factor.key == "exp";
  return is_exp ? &factor.operands[0] : nullptr;
}

// a >= 0 with all factors divided by what they have in common.
Whole tightened(const Whole& a) {
  int64_t common = 0;
  for (const auto& [monomial, coefficient] : a.terms())
    if (!monomial.empty()) {
      if (coefficient == INT64_MIN) return a;
      common = std::gcd(common, coefficient);
    }
  if (common <= 1) return a;
  Whole rest = a - Whole(a.constant());
  const int64_t constant = a.constant();
  const int64_t down = constant / common - (constant % common < 0 ? 1 : 0);
  return *rest.divided_by(common) + Whole(down);
}

bool mentions(const Form& form, uint32_t loop, const Atoms& atoms);

bool mentions(const std::vector<Whole>& list, uint32_t loop, const Atoms& atoms) {
  return std::ranges::any_of(list, [&](const Whole& a) { return atoms.mentions(a, loop); });
}

bool mentions(const Factor& factor, uint32_t loop, const Atoms& atoms) {
  return mentions(factor.index, loop, atoms) ||
         std::ranges::any_of(factor.operands,
                             [&](const Form& form) { return mentions(form, loop, atoms); }) ||
         std::ranges::any_of(factor.set, [&](const Member& member) {
           return mentions(member.guards, loop, atoms) || mentions(member.value, loop, atoms);
         });
}

bool mentions(const Form& form, uint32_t loop, const Atoms& atoms) {
  return std::ranges::any_of(form, [&](const Term& term) {
    return mentions(term.guards, loop, atoms) ||
           std::ranges::any_of(term.factors,
                               [&](const auto& factor) { return mentions(*factor, loop, atoms); });
  });
}

struct Algebra {
  const std::vector<Whole>& index;
  Atoms& atoms;
  const std::function<Whole(Dim)>& size;

  Whole number(Dim d) { return size(d); }
  Whole iter(int i) { return index[static_cast<size_t>(i)]; }
  Whole add(const Whole& a, const Whole& b) { return a + b; }
  Whole multiply(const Whole& a, Dim d) { return a * size(d); }
  Whole floordiv(const Whole& a, Dim d) { return atoms.divide(a, size(d)).quotient; }
  Whole mod(const Whole& a, Dim d) { return atoms.divide(a, size(d)).remainder; }
};

enum class FoldKind : uint8_t { sum, largest, smallest, other };

FoldKind fold_kind(Op op) {
  const OpClass op_class = class_of(op.opcode());
  if (op_class == OpClass::contraction) return FoldKind::sum;
  if (!combines_by_kind(op.opcode())) return FoldKind::other;
  const std::string& kind = op.word("kind");
  return kind == "sum"   ? FoldKind::sum
         : kind == "max" ? FoldKind::largest
         : kind == "min" ? FoldKind::smallest
                         : FoldKind::other;
}

}  // namespace

// ---- Places -------------------------------------------------------------------------------------

Result<std::vector<Place>> divided(const Place& place, const Step& step, Atoms& atoms) {
  if (step.position >= place.loops.size())
    return refused(fmt::format("there is no loop {} to divide", step.position));
  const uint32_t loop = place.loops[step.position];
  const Whole extent = atoms[loop].of;
  const Whole at = HONE_TRY(atoms.parse(step.at));
  if (!atoms.is_never_negative(at)) return refused(fmt::format("{} may be negative", step.at));
  Place without = place;
  without.loops.erase(without.loops.begin() + static_cast<ptrdiff_t>(step.position));
  const auto with = [&](const Whole& value, std::initializer_list<uint32_t> loops) {
    Place part = without;
    for (Whole& index : part.index) index = atoms.put(index, loop, value);
    part.loops.insert(part.loops.end(), loops);
    return part;
  };
  if (step.word == "digits") {
    const Whole quotient = HONE_TRY(atoms.parse(step.quotient));
    if (!(at * quotient == extent))
      return refused(fmt::format("{} times {} is not all of the loop", step.at, step.quotient));
    const uint32_t high = atoms.add_loop(quotient), low = atoms.add_loop(at);
    return std::vector<Place>{with(Whole::atom(high) * at + Whole::atom(low), {high, low})};
  }
  if (!atoms.is_never_negative(extent - at))
    return refused(fmt::format("{} may be after the end of the loop", step.at));
  const uint32_t before = atoms.add_loop(at), behind = atoms.add_loop(extent - at);
  // A loop with one place stands there.
  const auto value = [&](uint32_t part) {
    return atoms[part].of.is(1) ? Whole(0) : Whole::atom(part);
  };
  return std::vector<Place>{with(value(before), {before}), with(value(behind) + at, {behind})};
}

// ---- Elements -----------------------------------------------------------------------------------

Result<Whole> Speller::size(Dim dim) {
  return dim.is_static() ? Result<Whole>(Whole(dim.value())) : atoms_.parse(dim.to_string());
}

Result<Whole> Speller::position(const IndexExpr& expr, const std::vector<Whole>& index) {
  Error fault = refused("");
  bool is_good = true;
  const std::function<Whole(Dim)> size_or_bad = [&](Dim dim) {
    Result<Whole> value = size(dim);
    if (value.ok()) return *value;
    if (is_good) fault = std::move(value).error();
    is_good = false;
    return Whole::bad();
  };
  Algebra algebra = {index, atoms_, size_or_bad};
  Whole value = expr.compute(algebra);
  if (!is_good) return fault;
  if (value.is_bad()) return refused("a position is too large");
  return value;
}

Result<bool> Speller::may_hold(const Whole& bound, std::vector<Whole>& open) {
  const Whole side = tightened(bound);
  const Step* step = steps_.next();
  if (step == nullptr) return refused("the steps end too early");
  if (step->word == "o") {
    open.push_back(side);
  } else if (step->word == "y") {
    if (!atoms_.is_never_negative(side)) return refused("a bound is not known to hold");
  } else if (step->word == "n") {
    if (!atoms_.is_never_negative(Whole(-1) - side))
      return refused("a bound is not known to be missed");
    return false;
  } else {
    return refused("a step for a bound is missing");
  }
  return true;
}

Result<bool> Speller::may_read(const Access& access, const std::vector<Whole>& index,
                               std::vector<Whole>& open) {
  for (const Guard& guard : access.guards) {
    const Whole value = HONE_TRY(position(guard.value, index));
    const Whole lower = HONE_TRY(size(guard.lower)), upper = HONE_TRY(size(guard.upper));
    for (const Whole& bound : {value - lower, upper - 1 - value})
      if (!HONE_TRY(may_hold(bound, open))) return false;
  }
  return true;
}

Result<Form> Speller::element(ValueId v, const std::vector<Whole>& index) {
  if (++work_ > kMaxWork) return refused("the forms are too large");
  const NodeId n = graph_.producer(v);
  const Op op = graph_.op(n);
  if (is_parameter(op.opcode())) {
    const auto inputs = graph_.inputs();
    const auto at = std::ranges::find(inputs, v) - inputs.begin();
    return single({.kind = Factor::element,
                   .key = fmt::format("x{}", at),
                   .index = index,
                   .is_bool = graph_.type(v).dtype() == DType::boolean});
  }
  if (is_constant(op.opcode())) return constant(graph_.constant(n), index);
  if (graph_.results(n).size() != 1) return refused("an op has several results");
  const OpClass op_class = class_of(op.opcode());
  if (op_class == OpClass::elementwise) return pointwise(n, index);
  if (op.opcode() == Opcode::iota) {
    const int64_t axis = op.integer("axis");
    const Type type = graph_.type(v);
    const bool is_f32 = type.dtype() == DType::f32;
    if ((!is_f32 && type.dtype() != DType::f64) ||
        type.dim(static_cast<int>(axis)).range().high > 16'777'216)
      return refused("an iota is rounded");
    const Whole& place = index[static_cast<size_t>(axis)];
    return single({.kind = Factor::element, .key = "place", .index = {place}});
  }
  const bool folds = fold_kind(op) != FoldKind::other;
  if (op_class != OpClass::movement && !folds)
    return refused(fmt::format("'{}' has no form", op.name()));
  const std::vector<Type> operands = graph_.operand_types(n), results = graph_.result_types(n);
  const AccessRelation relation = access_of({.op = op, .operands = operands}, results);
  if (relation.results[0].index != identity_index(results[0].rank()))
    return refused("an op's places are not those of its result");
  for (const auto& pieces : relation.operands)
    for (const Access& piece : pieces)
      if (std::ranges::find(piece.data_dependent, true) != piece.data_dependent.end())
        return refused("an op reads where data says");
  return folds ? reduced(n, relation, index) : moved(n, relation, index);
}

Result<Form> Speller::constant(const Tensor& tensor, const std::vector<Whole>& index) {
  if (tensor.elements() > 4096) return refused("a constant is too large");
  std::set<double> values;
  std::string all;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    values.insert(tensor.real_at(i));
    all += fmt::format(" {:a}", tensor.real_at(i));
  }
  if (values.empty()) return Form();
  const double first = *values.begin();
  if (values.size() > 1 || std::isnan(first))
    return single({.kind = Factor::element,
                   .key = fmt::format("constant {}{}", tensor.type().to_string(), all),
                   .index = index});
  if (first == 0) return Form();
  if (std::abs(first) <= 0x1p53 && first == std::floor(first))
    return Form{Term{.factor = static_cast<int64_t>(first)}};
  return single({.kind = Factor::function, .key = fmt::format("number {:a}", first)});
}

// The algebra for compute(): elements of operands at the index, in sums of products.
struct Speller::FormAlgebra {
  using Computed = Result<Form>;
  Speller& speller;
  const NodeId node;
  const std::vector<Whole>& index;
  const bool is_bool = speller.graph_.type(speller.graph_.result(node)).dtype() == DType::boolean;

  Computed element(ValueId v) { return speller.element(v, index); }

  bool takes_bools() const { return is_bool; }
  Computed sum(ValueId a, ValueId b) { return sum_of(a, b, 1); }
  Computed difference(ValueId a, ValueId b) { return sum_of(a, b, -1); }
  Computed negative(ValueId a) { return times(HONE_TRY(element(a)), -1); }
  Computed product(ValueId a, ValueId b) {
    const Form first = HONE_TRY(element(a));
    return speller.product(first, HONE_TRY(element(b)));
  }
  Computed quotient(ValueId a, ValueId b) {
    const Form first = HONE_TRY(element(a)), second = HONE_TRY(element(b));
    return speller.product(first, HONE_TRY(speller.inverse(second)));
  }
  Computed largest(ValueId a, ValueId b) { return largest_of(a, 1, b, 1); }
  Computed smallest(ValueId a, ValueId b) { return times(HONE_TRY(largest_of(a, -1, b, -1)), -1); }
  // The operand is spelled out twice, each time with loops of its own.
  Computed size(ValueId a) { return largest_of(a, 1, a, -1); }
  Computed exponential(ValueId a) { return speller.exp_of(HONE_TRY(element(a)), 1); }
  Computed choice(ValueId, ValueId, ValueId) { return speller.chosen(node, index); }
  Computed comparison(std::string_view, ValueId, ValueId) { return speller.compared(node, index); }
  Computed opposite(ValueId a) { return checker::opposite(HONE_TRY(element(a))); }
  Computed both(ValueId a, ValueId b) { return product(a, b); }
  Computed either(ValueId a, ValueId b) { return sum_without_both(a, b, 1); }
  Computed differ(ValueId a, ValueId b) { return sum_without_both(a, b, 2); }
  Computed function(Op op, std::span<const ValueId> x) {
    std::vector<Form> operands;
    for (ValueId v : x) operands.push_back(HONE_TRY(element(v)));
    return single({.kind = Factor::function,
                   .key = std::string(op.name()) + op.attrs_to_string(),
                   .operands = std::move(operands),
                   .is_bool = is_bool});
  }

 private:
  Computed sum_of(ValueId a, ValueId b, int64_t factor) {
    Form first = HONE_TRY(element(a));
    return plus(std::move(first), times(HONE_TRY(element(b)), factor));
  }
  Computed largest_of(ValueId a, int64_t of_a, ValueId b, int64_t of_b) {
    Form first = times(HONE_TRY(element(a)), of_a);
    Form second = times(HONE_TRY(element(b)), of_b);
    return speller.largest_of(
        {Member{.value = std::move(first)}, Member{.value = std::move(second)}});
  }
  Computed sum_without_both(ValueId a, ValueId b, int64_t each) {
    const Form first = HONE_TRY(element(a)), second = HONE_TRY(element(b));
    const Form in_both = HONE_TRY(speller.product(first, second));
    return plus(plus(first, second), times(in_both, -each));
  }
};

Result<Form> Speller::pointwise(NodeId n, const std::vector<Whole>& index) {
  for (ValueId v : graph_.operands(n))
    if (v.is_none()) return refused("an operand is absent");
  FormAlgebra algebra = {*this, n, index};
  return compute(algebra, graph_.op(n), graph_.operands(n));
}

Result<Form> Speller::read(ValueId v, const Access& access, const std::vector<Whole>& index) {
  std::vector<Whole> at;
  for (const IndexExpr& expr : access.index) at.push_back(HONE_TRY(position(expr, index)));
  return element(v, at);
}

// The elements of all operands where their guards hold, and of a pad its value elsewhere.
Result<Form> Speller::moved(NodeId n, const AccessRelation& relation,
                            const std::vector<Whole>& index) {
  Form sum;
  const auto add = [&](Form form, const std::vector<Whole>& guards, const Whole& factor) {
    for (Term& term : form) {
      term.guards.insert(term.guards.end(), guards.begin(), guards.end());
      term.factor = term.factor * factor;
      sum.push_back(std::move(term));
    }
  };
  const auto operands = graph_.operands(n);
  const bool is_pad = graph_.opcode(n) == Opcode::pad;
  for (size_t o = 0; o < (is_pad ? 1 : operands.size()); ++o) {
    if (is_pad && relation.operands[o].size() != 1) return refused("a pad reads in pieces");
    for (const Access& access : relation.operands[o]) {
      std::vector<Whole> open;
      const bool may = HONE_TRY(may_read(access, index, open));
      if (may) add(HONE_TRY(read(operands[o], access, index)), open, 1);
      if (!is_pad) continue;
      if (!may || !open.empty()) add(HONE_TRY(element(operands[1], {})), {}, 1);
      if (may && !open.empty()) add(HONE_TRY(element(operands[1], {})), open, -1);
    }
  }
  return sum;
}

// ---- Products -----------------------------------------------------------------------------------

Result<Form> Speller::product(const Form& a, const Form& b) {
  if (a.size() * b.size() > kMaxProductTerms) return refused("a product is too large");
  Form all;
  for (const Term& x : a)
    for (const Term& y : b) {
      Term both = x;
      both.factor = x.factor * y.factor;
      both.bound.insert(both.bound.end(), y.bound.begin(), y.bound.end());
      both.guards.insert(both.guards.end(), y.guards.begin(), y.guards.end());
      both.factors.insert(both.factors.end(), y.factors.begin(), y.factors.end());
      HONE_TRY(drop_exps(both));
      HONE_TRY(drop_powers(both));
      all.push_back(std::move(both));
    }
  return all;
}

// exp(sign*a) by the law exp(x + y) = exp(x) * exp(y): a factor for each term of a, several equal
// ones for a small whole multiple.
Result<Form> Speller::exp_of(const Form& a, int64_t sign) {
  constexpr int64_t kMaxEqual = 8;
  Form all = {Term()};
  for (const Term& term : a) {
    Term exponent = term;
    exponent.factor = exponent.factor * Whole(sign);
    int64_t count = 1;
    for (int64_t n = 0; n <= kMaxEqual; ++n)
      for (int64_t of : {int64_t{1}, int64_t{-1}})
        if (exponent.factor.is(n * of)) {
          count = n;
          exponent.factor = of;
          n = kMaxEqual;
          break;
        }
    const Form one = single({.kind = Factor::function, .key = "exp", .operands = {Form{exponent}}});
    for (int64_t i = 0; i < count; ++i) all = HONE_TRY(product(all, one));
  }
  return all;
}

// exp(x) * exp(-x) is 1.
Status Speller::drop_exps(Term& term) {
  std::map<uint32_t, std::string> names;
  for (uint32_t i = 0; i < atoms_.size(); ++i) names[i] = fmt::format("v{}", i);
  struct Exponent {
    size_t place;
    std::string text, negative;
    bool is_gone = false;
  };
  std::vector<Exponent> exponents;
  for (size_t i = 0; i < term.factors.size(); ++i)
    if (exponent_of(*term.factors[i]) != nullptr) exponents.push_back({i, "", ""});
  if (exponents.size() < 2) return {};
  for (Exponent& one : exponents) {
    const Form& of = *exponent_of(*term.factors[one.place]);
    work_ += size_of(of);
    if (work_ > kMaxWork) return refused("the forms are too large");
    one.text = HONE_TRY(text_of(of, atoms_, names));
    one.negative = HONE_TRY(text_of(times(of, -1), atoms_, names));
  }
  for (size_t i = 0; i < exponents.size(); ++i)
    for (size_t j = i + 1; j < exponents.size() && !exponents[i].is_gone; ++j)
      if (!exponents[j].is_gone && exponents[j].text == exponents[i].negative)
        exponents[i].is_gone = exponents[j].is_gone = true;
  for (size_t i = exponents.size(); i-- > 0;)
    if (exponents[i].is_gone)
      term.factors.erase(term.factors.begin() + static_cast<ptrdiff_t>(exponents[i].place));
  return {};
}

// 1/(+-x*y) is +-(1/x)*(1/y), and 1/exp(x) is exp(-x). An exp that no loop of a sum changes is a
// factor of the sum.
Result<Form> Speller::inverse(const Form& a) {
  const auto of = [](Form form) {
    return single({.kind = Factor::function, .key = "inverse", .operands = {std::move(form)}});
  };
  if (a.size() != 1 || !a[0].guards.empty()) return of(a);
  Term inner = a[0];
  inner.factors.clear();
  Form outside = {Term()};
  for (const auto& factor : a[0].factors) {
    const Form* x = exponent_of(*factor);
    const bool is_free = x != nullptr && std::ranges::none_of(a[0].bound, [&](uint32_t loop) {
                           return mentions(*factor, loop, atoms_);
                         });
    if (!is_free) inner.factors.push_back(factor);
    if (is_free) outside = HONE_TRY(product(outside, HONE_TRY(exp_of(*x, -1))));
  }
  if (!inner.bound.empty()) return product(outside, of({inner}));
  if (inner.factors.empty() && inner.factor.is(1)) return outside;
  if (inner.factors.size() < 2 || !(inner.factor.is(1) || inner.factor.is(-1)))
    return product(outside, of({inner}));
  Form all = times(std::move(outside), inner.factor);
  for (const auto& factor : inner.factors) {
    const Form one = of({Term{.factors = {factor}}});
    all = HONE_TRY(product(all, one));
  }
  return all;
}

// ---- Reductions ---------------------------------------------------------------------------------

// The result of the point of a reduction; nothing outside of the guards.
Result<std::vector<Member>> Speller::point(NodeId n, const AccessRelation& relation,
                                           const Place& place) {
  Member member = {.value = {Term()}};
  for (size_t o = 0; o < graph_.operands(n).size(); ++o) {
    if (relation.operands[o].size() != 1) return refused("a reduction reads in pieces");
    const Access& access = relation.operands[o][0];
    if (!HONE_TRY(may_read(access, place.index, member.guards))) return std::vector<Member>();
    member.value =
        HONE_TRY(product(member.value, HONE_TRY(read(graph_.operands(n)[o], access, place.index))));
  }
  member.bound = place.loops;
  return std::vector<Member>{std::move(member)};
}

// Along the steps: s spells out, cut and digits divide a loop.
Result<std::vector<Member>> Speller::points(NodeId n, const AccessRelation& relation,
                                            const Place& place) {
  const Step* step = steps_.next();
  if (step == nullptr || ++work_ > kMaxWork) return refused("the steps end too early");
  if (step->word == "s") return point(n, relation, place);
  if (step->word != "cut" && step->word != "digits") return refused("a step for a loop is missing");
  std::vector<Member> all;
  for (const Place& part : HONE_TRY(divided(place, *step, atoms_)))
    std::ranges::move(HONE_TRY(points(n, relation, part)), std::back_inserter(all));
  return all;
}

Result<std::vector<Member>> Speller::points(NodeId n, const AccessRelation& relation,
                                            const Place& place, std::span<const Dim> extents) {
  if (extents.empty()) return points(n, relation, place);
  std::vector<Member> all;
  const auto go_on = [&](const Whole& index, std::optional<uint32_t> loop) -> Status {
    Place next = place;
    next.index.push_back(index);
    if (loop) next.loops.push_back(*loop);
    std::ranges::move(
        HONE_TRY(points(n, relation, next, extents.subspan(1))), std::back_inserter(all));
    return {};
  };
  const bool is_short = extents[0].is_static() && extents[0].value() <= kMaxSpelledOut;
  if (extents[0].is(1) || (unrolls_ && is_short)) {
    for (int64_t i = 0; i < extents[0].value(); ++i) HONE_TRY(go_on(i, std::nullopt));
  } else {
    const uint32_t loop = atoms_.add_loop(HONE_TRY(size(extents[0])));
    HONE_TRY(go_on(Whole::atom(loop), loop));
  }
  return all;
}

Result<Form> Speller::reduced(NodeId n, const AccessRelation& relation,
                              const std::vector<Whole>& index) {
  Dims extents;
  for (size_t i = index.size(); i < relation.dims.size(); ++i) {
    const IterDim& dim = relation.dims[i];
    if (dim.kind != IterKind::reduction || dim.divided_by >= 0)
      return refused("an op reduces in an order");
    extents.push_back(dim.extent);
  }
  std::vector<Member> members =
      HONE_TRY(points(n, relation, {.index = index, .loops = {}}, extents));
  const FoldKind fold = fold_kind(graph_.op(n));
  if (fold != FoldKind::sum) {
    const Whole sign = fold == FoldKind::largest ? 1 : -1;
    for (Member& member : members) member.value = times(std::move(member.value), sign);
    return times(HONE_TRY(largest_of(std::move(members))), sign);
  }
  Form sum;
  for (const Member& member : members)
    for (Term term : member.value) {
      term.guards.insert(term.guards.end(), member.guards.begin(), member.guards.end());
      term.bound.insert(term.bound.end(), member.bound.begin(), member.bound.end());
      put_known(term);
      // A loop that nothing depends on multiplies.
      std::erase_if(term.bound, [&](uint32_t loop) {
        const auto in = [&](const auto& factor) { return mentions(*factor, loop, atoms_); };
        if (mentions(term.guards, loop, atoms_) || std::ranges::any_of(term.factors, in))
          return false;
        term.factor = term.factor * atoms_[loop].of;
        return true;
      });
      sum.push_back(std::move(term));
    }
  return sum;
}

// The largest of a set in a set stands for its members. A loop that a member does not mention, and
// that is not empty, is left out.
Result<Form> Speller::largest_of(std::vector<Member> members) {
  std::vector<Member> set;
  for (Member& member : members) {
    std::erase_if(member.bound, [&](uint32_t loop) {
      return !mentions(member.guards, loop, atoms_) && !mentions(member.value, loop, atoms_) &&
             atoms_.is_never_negative(atoms_[loop].of - 1);
    });
    const Form& value = member.value;
    const bool is_set = value.size() == 1 && value[0].factor.is(1) && value[0].bound.empty() &&
                        value[0].guards.empty() && value[0].factors.size() == 1 &&
                        value[0].factors[0]->kind == Factor::largest;
    if (!is_set) {
      set.push_back(std::move(member));
      continue;
    }
    for (Member inner : value[0].factors[0]->set) {
      inner.bound.insert(inner.bound.end(), member.bound.begin(), member.bound.end());
      inner.guards.insert(inner.guards.end(), member.guards.begin(), member.guards.end());
      set.push_back(std::move(inner));
    }
  }
  if (set.size() > kMaxProductTerms) return refused("a set is too large");
  // One of equal members stays.
  std::set<std::string> texts;
  std::map<uint32_t, std::string> names;
  for (uint32_t i = 0; i < atoms_.size(); ++i) names[i] = fmt::format("v{}", i);
  std::vector<Member> different;
  for (Member& member : set) {
    const bool is_plain = member.bound.empty() && member.guards.empty();
    if (is_plain && !texts.insert(HONE_TRY(text_of(member.value, atoms_, names))).second) continue;
    different.push_back(std::move(member));
  }
  if (different.size() == 1 && different[0].bound.empty() && different[0].guards.empty())
    return different[0].value;
  return single({.kind = Factor::largest, .set = std::move(different)});
}

}  // namespace hone::checker

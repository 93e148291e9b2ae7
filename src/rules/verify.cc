#include "rules/verify.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "rules/exact.h"
#include "rules/numbers.h"
#include "rules/prove.h"
#include "rules/sizes.h"

namespace hone {
namespace {

template <class Numbers>
using Lists = std::vector<std::vector<typename Numbers::Number>>;

template <class Numbers>
struct SideElements {
  Lists<Numbers> left, right;
};

// Both sides of the same inputs. `inputs` makes a number for each element.
template <class Numbers, class Inputs>
Result<SideElements<Numbers>> evaluate_sides(const RuleSides& sides, Numbers& numbers,
                                             const Inputs& input) {
  ReadTables tables;
  ExactEvaluator<Numbers> evaluator(numbers, tables);
  Lists<Numbers> inputs;
  uint64_t next = 0;
  for (ValueId v : sides.left.inputs()) {
    auto& elements = inputs.emplace_back();
    const Type type = sides.left.type(v);
    for (int64_t i = 0; i < type.static_elements(); ++i) elements.push_back(input(type, next++));
  }
  return SideElements<Numbers>{HONE_TRY(evaluator.run(sides.left, inputs)),
                               HONE_TRY(evaluator.run(sides.right, inputs))};
}

std::optional<Counterexample> at_element(const RuleSides& sides, const Bindings& sizes,
                                         size_t output, size_t element) {
  Counterexample found = {.sizes = sizes, .output = output, .index = {}};
  const Ints dims = sides.left.output_types()[output].static_dims();
  for (size_t i = dims.size(); i-- > 0;) {
    found.index.insert(found.index.begin(), static_cast<int64_t>(element) % dims[i]);
    element /= static_cast<size_t>(dims[i]);
  }
  return found;
}

template <class Numbers>
std::optional<Counterexample> first_difference(const RuleSides& sides, const Bindings& sizes,
                                               const SideElements<Numbers>& elements) {
  for (size_t o = 0; o < elements.left.size(); ++o)
    for (size_t e = 0; e < elements.left[o].size(); ++e)
      if (!(elements.left[o][e] == elements.right[o][e])) return at_element(sides, sizes, o, e);
  return std::nullopt;
}

// ---- The bound of the identity test -------------------------------------------------------------

// Degrees of numerator and denominator of elements as rational functions of the inputs and of what
// functions give.
class Degrees {
 public:
  struct Number {
    double above = 0, below = 0;
    double sum() const { return above + below; }
  };

  double functions = 0;  // how many were computed
  double deepest = 0;    // of their operands

  Number number(double) const { return {}; }
  Number add(Number a, Number b) const {
    return {std::max(a.above + b.below, b.above + a.below), a.below + b.below};
  }
  Number negate(Number a) const { return a; }
  Number multiply(Number a, Number b) const { return {a.above + b.above, a.below + b.below}; }
  Number divide(Number a, Number b) const { return {a.above + b.below, a.below + b.above}; }
  Number largest(std::span<const Number> list) { return function(0, list); }
  Number compare(std::string_view, Number a, Number b) {
    const Number both[] = {a, b};
    return function(0, both);
  }
  Number select(Number predicate, Number a, Number b) {
    const Number all[] = {predicate, a, b};
    return function(0, all);
  }
  Number function(uint64_t, std::span<const Number> operands) {
    ++functions;
    for (const Number& x : operands) deepest = std::max(deepest, x.sum());
    return {1, 0};
  }
};

// One test misses a difference if a polynomial that is not 0 is 0 at a random point: the difference
// itself, a denominator, or the difference of two operands of functions, which would then give one
// number for two. A polynomial of degree d is 0 with a probability of at most d/p.
Result<double> log2_of_missing(const RuleSides& sides) {
  Degrees degrees;
  const auto elements = HONE_TRY(
      evaluate_sides(sides, degrees, [](Type, uint64_t) { return Degrees::Number{1, 0}; }));
  double highest = 1;
  for (const auto* side : {&elements.left, &elements.right})
    for (const auto& list : *side)
      for (const Degrees::Number& x : list) highest = std::max(highest, x.sum());
  const double pairs = degrees.functions * degrees.functions / 2;
  return std::log2(4 * highest + 2 * pairs * degrees.deepest) - 61;
}

// ---- Tests at given sizes -----------------------------------------------------------------------

constexpr int kOrderedTests = 24;

Result<std::optional<Counterexample>> field_test(const RuleSides& sides, const Bindings& sizes,
                                                 Rng& rng) {
  FieldNumbers numbers(rng.next());
  const auto elements = HONE_TRY(evaluate_sides(
      sides, numbers, [&](Type, uint64_t) { return FieldElement::from_residue(rng.next()); }));
  return first_difference<FieldNumbers>(sides, sizes, elements);
}

// Numbers of a small range, so that there are equal ones, and of a larger one.
Result<std::optional<Counterexample>> ordered_test(const RuleSides& sides, const Bindings& sizes,
                                                   int64_t range, Rng& rng) {
  OrderedNumbers numbers(rng.next());
  const auto elements = HONE_TRY(evaluate_sides(
      sides, numbers,
      [&](Type type, uint64_t) {
        const bool is_bool = type.dtype() == DType::boolean;
        return __int128{is_bool ? rng.between(0, 1) : rng.between(-range, range)};
      }));
  if (!numbers.exact()) return over_limit("the numbers grow beyond 2^100");
  return first_difference<OrderedNumbers>(sides, sizes, elements);
}

size_t elements_of(const RuleSides& sides) {
  size_t count = 0;
  for (Type type : sides.left.output_types()) count += static_cast<size_t>(type.static_elements());
  return count;
}

bool is_about_order(const RuleSides& sides) {
  return hone::is_about_order(sides.left) || hone::is_about_order(sides.right);
}

}  // namespace

std::string Counterexample::to_string() const {
  std::string place;
  for (int64_t i : index) place += fmt::format("{}{}", place.empty() ? "" : ", ", i);
  return fmt::format("at {} element [{}] of result {} differs", hone::to_string(sizes), place,
                     output);
}

Result<IdentityTest> test_identity(const Rule& rule, const VerifyOptions& options) {
  Rng rng(options.seed);
  std::vector<Bindings> tested = distinct_sizes(rule, options.sizes, rng);
  for (Bindings& sizes : small_sizes(rule, 1, 1)) tested.push_back(std::move(sizes));
  if (tested.empty()) return unsupported("no sizes were found that the rule admits");
  IdentityTest test;
  for (const Bindings& sizes : tested) {
    const RuleSides sides = HONE_TRY(at_sizes(rule, sizes));
    ++test.sizes;
    test.elements = std::max(test.elements, elements_of(sides));
    int tests = kOrderedTests;
    if (!is_about_order(sides)) {
      const double missing = HONE_TRY(log2_of_missing(sides));
      if (missing >= 0) return over_limit("the degrees are too high for the identity test");
      tests = std::max(1, static_cast<int>(std::ceil(options.log2_error / missing)));
      test.log2_error = std::max(test.log2_error.value_or(-1e9), missing * tests);
    }
    for (int i = 0; i < tests && !test.counterexample; ++i)
      test.counterexample = is_about_order(sides)
                                ? HONE_TRY(ordered_test(sides, sizes, i % 2 == 0 ? 3 : 1000, rng))
                                : HONE_TRY(field_test(sides, sizes, rng));
    if (test.counterexample) return test;
  }
  return test;
}

Result<SmallTest> test_small(const Rule& rule, int64_t values, size_t limit) {
  SmallTest test;
  for (const Bindings& sizes : small_sizes(rule, values, limit)) {
    const RuleSides sides = HONE_TRY(at_sizes(rule, sizes));
    Polynomials numbers;
    const auto elements = HONE_TRY(
        evaluate_sides(sides, numbers, [&](Type, uint64_t id) { return numbers.variable(id); }));
    if (!numbers.exact())
      return over_limit("the polynomials at {} are too large", to_string(sizes));
    test.difference = first_difference<Polynomials>(sides, sizes, elements);
    if (test.difference) return test;
    ++test.sizes;
  }
  return test;
}

Result<RuleVerdict> verify(const Rule& rule, const VerifyOptions& options) {
  RuleVerdict verdict;
  HONE_TRY(check(rule));
  verdict.identity = HONE_TRY(test_identity(rule, options));
  if (verdict.refuted()) return verdict;
  verdict.rung = Rung::sampled;
  if (options.floats) {
    const FloatTest floats = HONE_TRY(test_floats(rule, options.seed));
    verdict.floats = floats.effect;
    verdict.float_fault = floats.fault;
  }
  const Result<SmallTest> small = test_small(rule);
  if (!small.ok())
    verdict.stopped = small.error().what();
  else if (small->difference)
    verdict.stopped = "no common form " + small->difference->to_string();
  else if (small->sizes > 0)
    verdict.rung = Rung::small, verdict.small_sizes = small->sizes;
  const Proof proof = prove(rule);
  verdict.boxes = proof.boxes;
  if (proof.proved)
    verdict.rung = Rung::all_sizes, verdict.stopped = "";
  else if (verdict.stopped.empty())
    verdict.stopped = proof.stopped;
  return verdict;
}

}  // namespace hone

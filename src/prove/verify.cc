#include "prove/verify.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "prove/prove.h"
#include "rules/exact.h"
#include "rules/float_needs.h"
#include "rules/numbers.h"
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

template <class Numbers>
void add_differences(const SideElements<Numbers>& elements, std::vector<Differences>& found) {
  for (size_t o = 0; o < elements.left.size(); ++o)
    for (size_t e = 0; e < elements.left[o].size(); ++e)
      if (!(elements.left[o][e] == elements.right[o][e])) found[o].at[e] = true;
}

template <class Numbers>
std::optional<Counterexample> first_difference(const RuleSides& sides, const Bindings& sizes,
                                               const SideElements<Numbers>& elements) {
  for (size_t o = 0; o < elements.left.size(); ++o)
    for (size_t e = 0; e < elements.left[o].size(); ++e)
      if (!(elements.left[o][e] == elements.right[o][e]))
        return counterexample_at(sides, sizes, o, e);
  return std::nullopt;
}

// ---- The bound of the identity test -------------------------------------------------------------

// The elements as rational functions, with whole coefficients, of the inputs and of
// what functions give.
class Degrees {
 public:
  struct Number {
    double above = 0, below = 0;  // degrees of numerator and denominator
    double bits = 0;              // of the coefficients of both
    double halvings = 0;          // by how many twos they were multiplied to be whole
    double sum() const { return above + below; }
  };

  double functions = 0;  // how many were computed
  double deepest = 0;    // of their operands
  double widest = 0;     // of the bits of these

  Number number(double value) const {
    if (value == 0 || !std::isfinite(value)) return {};
    if (value == std::floor(value)) return {.bits = std::log2(std::abs(value)) + 1};
    return {.bits = 53, .halvings = std::max(0., 53. - std::ilogb(value))};
  }
  Number add(Number a, Number b) const {
    const double halvings = std::max(a.halvings, b.halvings);
    const bool are_polynomials = a.below == 0 && b.below == 0;
    const double bits =
        are_polynomials ? std::max(a.bits + halvings - a.halvings, b.bits + halvings - b.halvings)
                        : a.bits + b.bits + a.halvings + b.halvings;
    return {std::max(a.above + b.below, b.above + a.below), a.below + b.below, bits + 1,
            are_polynomials ? halvings : a.halvings + b.halvings};
  }
  Number negate(Number a) const { return a; }
  Number multiply(Number a, Number b) const {
    return {a.above + b.above, a.below + b.below, a.bits + b.bits + 1, a.halvings + b.halvings};
  }
  Number divide(Number a, Number b) const {
    return {a.above + b.below, a.below + b.above, a.bits + b.bits + 1, a.halvings + b.halvings};
  }
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
    for (const Number& x : operands) {
      deepest = std::max(deepest, x.sum());
      widest = std::max(widest, x.bits + x.halvings);
    }
    return {1, 0, 1, 0};
  }
};

// One test misses a difference if a polynomial that is not 0 is 0 at a random point. It may be the
// difference itself, a denominator, or the difference of two operands of functions, which would
// then give one number for two. A polynomial of degree d is 0 with a probability of at most d/p,
// unless the prime p divides all its coefficients. There are more than 2^55 primes, and a
// coefficient has at most one of them for 61 of its bits.
Result<double> log2_of_missing(const RuleSides& sides) {
  Degrees degrees;
  const auto elements = HONE_TRY(
      evaluate_sides(sides, degrees, [](Type, uint64_t) { return Degrees::Number{1, 0, 1, 0}; }));
  double highest = 1, widest = 1;
  for (const auto* side : {&elements.left, &elements.right})
    for (const auto& list : *side)
      for (const Degrees::Number& x : list) {
        highest = std::max(highest, x.sum());
        widest = std::max(widest, x.bits + x.halvings);
      }
  const double pairs = degrees.functions * degrees.functions / 2;
  const double of_points = (4 * highest + 2 * pairs * degrees.deepest) * 0x1p-61;
  const double of_primes = (4 * widest + 2 * pairs * degrees.widest) / 61 * 0x1p-55;
  return std::log2(of_points + of_primes);
}

// ---- Tests at given sizes -----------------------------------------------------------------------

// Rules about order that differ at few orders of few elements are found by testing many of them.
constexpr size_t kOrderedElements = 1000;
constexpr size_t kFewestOrderedTests = 24;

Result<SideElements<PrimeNumbers>> prime_elements(const RuleSides& sides, Rng& rng) {
  PrimeNumbers numbers(rng);
  return evaluate_sides(sides, numbers, [&](Type, uint64_t) { return rng.below(numbers.prime()); });
}

Result<std::optional<Counterexample>> prime_test(const RuleSides& sides, const Bindings& sizes,
                                                 Rng& rng) {
  const auto elements = HONE_TRY(prime_elements(sides, rng));
  return first_difference<PrimeNumbers>(sides, sizes, elements);
}

// The whole constants of both sides: what is said of order may change there.
std::vector<int64_t> constants_of(const RuleSides& sides) {
  std::vector<int64_t> found = {0};
  for (const Graph* graph : {&sides.left, &sides.right})
    for (NodeId n : graph->nodes()) {
      if (graph->opcode(n) != Opcode::constant || graph->constant(n).elements() == 0) continue;
      const double value = graph->constant(n).real_at(0);
      if (std::abs(value) <= 0x1p53) found.push_back(std::llround(value));
    }
  return found;
}

// Numbers of a range, and some about constants. Numbers of a small range are often equal.
Result<SideElements<OrderedNumbers>> ordered_elements(const RuleSides& sides, int64_t range,
                                                      Rng& rng) {
  OrderedNumbers numbers(rng.next());
  const std::vector<int64_t> constants = constants_of(sides);
  const auto elements = HONE_TRY(evaluate_sides(
      sides, numbers,
      [&](Type type, uint64_t) {
        if (type.dtype() == DType::boolean) return __int128{rng.between(0, 1)};
        const int64_t sign = rng.chance(0.5) ? 1 : -1;
        const int64_t about = rng.chance(0.3) ? sign * rng.pick(constants) : 0;
        return __int128{about + rng.between(-range, range)};
      }));
  if (!numbers.exact()) return over_limit("the numbers grow beyond 2^100");
  return elements;
}

Result<std::optional<Counterexample>> ordered_test(const RuleSides& sides, const Bindings& sizes,
                                                   int64_t range, Rng& rng) {
  const auto elements = HONE_TRY(ordered_elements(sides, range, rng));
  return first_difference<OrderedNumbers>(sides, sizes, elements);
}

// Small, middle and large numbers by turns. Where large ones grow too much, smaller ones do.
Result<std::optional<Counterexample>> ordered_test(const RuleSides& sides, const Bindings& sizes,
                                                   int turn, Rng& rng) {
  constexpr int64_t kRanges[] = {3, 1000, int64_t{1} << 40};
  auto found = ordered_test(sides, sizes, kRanges[turn % 3], rng);
  if (!found.ok() && found.error().code() == ErrorCode::limit && turn % 3 == 2)
    return ordered_test(sides, sizes, kRanges[0], rng);
  return found;
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

Counterexample counterexample_at(const RuleSides& sides, const Bindings& sizes, size_t output,
                                 size_t element) {
  Counterexample found = {.sizes = sizes, .output = output, .index = {}};
  const Ints dims = sides.left.output_types()[output].static_dims();
  for (size_t i = dims.size(); i-- > 0;) {
    found.index.insert(found.index.begin(), static_cast<int64_t>(element) % dims[i]);
    element /= static_cast<size_t>(dims[i]);
  }
  return found;
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
    int tests = static_cast<int>(
        std::max(kFewestOrderedTests, kOrderedElements / std::max<size_t>(1, elements_of(sides))));
    if (!is_about_order(sides)) {
      const double missing = HONE_TRY(log2_of_missing(sides));
      if (missing >= 0) return over_limit("the degrees are too high for the identity test");
      tests = std::max(1, static_cast<int>(std::ceil(options.log2_error / missing)));
      test.log2_error = std::max(test.log2_error.value_or(-1e9), missing * tests);
    }
    for (int i = 0; i < tests && !test.counterexample; ++i)
      test.counterexample = is_about_order(sides) ? HONE_TRY(ordered_test(sides, sizes, i, rng))
                                                  : HONE_TRY(prime_test(sides, sizes, rng));
    if (test.counterexample) return test;
  }
  return test;
}

Result<std::optional<Counterexample>> test_at(const Rule& rule, const Bindings& sizes,
                                              uint64_t seed) {
  constexpr int kQuickTests = 6;
  Rng rng(seed);
  const RuleSides sides = HONE_TRY(at_sizes(rule, sizes));
  if (!is_about_order(sides)) return prime_test(sides, sizes, rng);
  for (int i = 0; i < kQuickTests; ++i)
    if (auto found = HONE_TRY(ordered_test(sides, sizes, i, rng))) return found;
  return std::optional<Counterexample>();
}

Result<std::vector<Differences>> differences_at(const Rule& rule, const Bindings& sizes,
                                                uint64_t seed) {
  Rng rng(seed);
  const RuleSides sides = HONE_TRY(at_sizes(rule, sizes));
  std::vector<Differences> found;
  for (Type type : sides.left.output_types())
    found.push_back({type.static_dims(),
                     std::vector<bool>(static_cast<size_t>(type.static_elements()), false)});
  if (!is_about_order(sides)) {
    add_differences(HONE_TRY(prime_elements(sides, rng)), found);
    return found;
  }
  constexpr int64_t kRange = 1000;
  for (size_t i = 0; i < kFewestOrderedTests; ++i)
    add_differences(HONE_TRY(ordered_elements(sides, kRange, rng)), found);
  return found;
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

namespace {

// exp is a random function to the identity test, which knows no law of it. A rule that differs
// there holds all the same if it is proved and its sides agree in doubles.
Result<bool> holds_by_law(const Rule& rule, const VerifyOptions& options) {
  const auto has_exp = [](const Graph& graph) {
    bool has = false;
    for (NodeId n : graph.nodes()) has = has || graph.opcode(n) == Opcode::exp;
    return has;
  };
  if (!has_exp(rule.left) && !has_exp(rule.right)) return false;
  if (!prove(rule).proved) return false;
  return !HONE_TRY(test_reals(rule, options)).has_value();
}

void climb_to_small(const Rule& rule, RuleVerdict& verdict) {
  const Result<SmallTest> small = test_small(rule);
  if (!small.ok())
    verdict.stopped = small.error().what();
  else if (small->difference)
    verdict.stopped = "no common form " + small->difference->to_string();
  else if (small->sizes > 0)
    verdict.rung = Rung::small, verdict.small_sizes = small->sizes;
}

}  // namespace

void say(Rule& rule, const RuleVerdict& verdict) {
  rule.rung = verdict.rung;
  rule.floats = verdict.floats;
  rule.within = verdict.within;
}

Result<RuleVerdict> verify(const Rule& rule, const VerifyOptions& options) {
  RuleVerdict verdict;
  HONE_TRY(check(rule));
  verdict.identity = HONE_TRY(test_identity(rule, options));
  if (verdict.refuted() && HONE_TRY(holds_by_law(rule, options)))
    verdict.identity.counterexample.reset(), verdict.identity.log2_error.reset();
  if (verdict.refuted()) return verdict;
  verdict.rung = Rung::sampled;
  if (options.floats) {
    const FloatTest floats = HONE_TRY(test_floats(rule, options.seed));
    verdict.floats = floats.effect;
    verdict.float_fault = floats.fault;
    verdict.within = HONE_TRY(float_needs(rule));
  }
  Proof proof = prove(rule);
  if (!proof.proved || options.small) climb_to_small(rule, verdict);
  verdict.boxes = proof.boxes;
  verdict.certificate = std::move(proof.certificate);
  if (proof.proved)
    verdict.rung = Rung::all_sizes, verdict.stopped = "";
  else if (verdict.stopped.empty())
    verdict.stopped = proof.stopped;
  return verdict;
}

}  // namespace hone

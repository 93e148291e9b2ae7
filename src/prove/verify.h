#pragma once

#include <optional>
#include <string>

#include "rules/rule.h"

// The ladder of verification. A rule is refuted by a counterexample, or climbs as far as it goes.

namespace hone {

// Where the sides differ.
struct Counterexample {
  Bindings sizes;
  size_t output = 0;
  Ints index;  // of the element

  std::string to_string() const;  // "at M = 2, N = 3 element [0, 1] of result 0 differs"
};

struct RuleSides;
// The counterexample at element `element`, in row-major order, of a result.
Counterexample counterexample_at(const RuleSides& sides, const Bindings& sizes, size_t output,
                                 size_t element);

// The test of all elements on random numbers.
struct IdentityTest {
  std::optional<Counterexample> counterexample;
  size_t sizes = 0;     // how many were tested
  size_t elements = 0;  // how many were compared, at the largest sizes
  // If the sides differ at tested sizes, the test misses it with a probability of at most 2^this.
  // Nothing: of rules about order and of those that need a law of exp, where no bound is known.
  std::optional<double> log2_error;
};

struct VerifyOptions {
  uint64_t seed = 1;
  double log2_error = -80;  // the identity test repeats until its bound is below
  size_t sizes = 3;         // distinct ones, beside the smallest
  bool floats = true;       // run the float gate
  bool small = true;        // test small sizes of what is proved for all, too
};

struct RuleVerdict {
  Rung rung = Rung::none;
  FloatEffect floats = FloatEffect::unknown;
  IdentityTest identity;
  size_t small_sizes = 0;       // at which the elements are the same polynomials
  size_t boxes = 0;             // parts of the results that the proof told apart
  std::string stopped;          // why the next rung was not reached
  std::string float_fault;      // of finite_only and real_only: what differs
  std::vector<ValueId> within;  // Rule::within
  std::string certificate;      // of the proof for all sizes

  bool refuted() const { return identity.counterexample.has_value(); }
};

// The rule says what was shown of it.
void say(Rule& rule, const RuleVerdict& verdict);

// An error: the rule cannot be tested, for an op that has no exact evaluation or for want of sizes.
Result<RuleVerdict> verify(const Rule& rule, const VerifyOptions& options = {});

Result<IdentityTest> test_identity(const Rule& rule, const VerifyOptions& options = {});

// One quick test at these sizes, which the rule admits.
Result<std::optional<Counterexample>> test_at(const Rule& rule, const Bindings& sizes,
                                              uint64_t seed = 1);

// Which elements of a result differ at these sizes, in row-major order.
struct Differences {
  Ints dims;
  std::vector<bool> at;
};
// Compares all results, on random numbers.
Result<std::vector<Differences>> differences_at(const Rule& rule, const Bindings& sizes,
                                                uint64_t seed = 1);

struct SmallTest {
  std::optional<Counterexample> difference;  // of the forms: no proof that the values differ
  size_t sizes = 0;
};
// True if all elements are the same polynomials, at all sizes among the first `values` of each
// symbol (at most `limit`).
Result<SmallTest> test_small(const Rule& rule, int64_t values = 3, size_t limit = 64);

// True if the sides differ in doubles by more than these round, on small numbers.
Result<std::optional<Counterexample>> test_reals(const Rule& rule,
                                                 const VerifyOptions& options = {});

struct FloatTest {
  FloatEffect effect = FloatEffect::unknown;
  std::string fault;  // of finite_only and real_only: what differs
};
Result<FloatTest> test_floats(const Rule& rule, uint64_t seed = 1);

}  // namespace hone

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/rng.h"
#include "ir/reference/domain.h"

// The numbers that rules are evaluated with (exact.h).

namespace hone {

// The field of 2^61 - 1. An op that is neither a ring operation nor a quotient is a random function
// of its key and its operands. So nothing is true of it but that equal operands give equal results.
class FieldNumbers {
 public:
  using Number = FieldElement;

  explicit FieldNumbers(uint64_t seed) : seed_(seed) {}

  Number number(double value) const;  // infinity and NaN are functions of nothing
  Number add(Number a, Number b) const { return a + b; }
  Number negate(Number a) const { return -a; }
  Number multiply(Number a, Number b) const { return a * b; }
  Number divide(Number a, Number b) const { return a / b; }
  Number largest(std::span<const Number> list) const;
  Number compare(std::string_view direction, Number a, Number b) const;
  Number select(Number predicate, Number a, Number b) const;
  Number function(uint64_t key, std::span<const Number> operands) const;

 private:
  uint64_t seed_;
};

// The same in a field of another prime. No fixed prime will do for a proof by chance: 61 doublings
// are 1 modulo 2^61 - 1. A prime that is drawn after the rule is known divides few numbers.
class PrimeNumbers {
 public:
  using Number = uint64_t;

  // Draws one of the more than 2^55 primes between 2^61 and 2^62.
  explicit PrimeNumbers(Rng& rng);
  uint64_t prime() const { return prime_; }

  Number number(double value) const;
  Number add(Number a, Number b) const { return (a + b) % prime_; }
  Number negate(Number a) const { return a == 0 ? 0 : prime_ - a; }
  Number multiply(Number a, Number b) const;
  Number divide(Number a, Number b) const;  // 0 by 0, as in the other field
  Number largest(std::span<const Number> list) const;
  Number compare(std::string_view direction, Number a, Number b) const;
  Number select(Number predicate, Number a, Number b) const;
  Number function(uint64_t key, std::span<const Number> operands) const;

 private:
  Number power(Number base, uint64_t exponent) const;

  uint64_t prime_;
  uint64_t seed_;
};

// Whole numbers with their order. Quotients, and constants that are not whole, are random functions
// of their operands. Numbers that grow beyond 2^100 are no longer exact: exact() is false.
class OrderedNumbers {
 public:
  using Number = __int128;

  explicit OrderedNumbers(uint64_t seed) : seed_(seed) {}
  bool exact() const { return exact_; }

  Number number(double value) const;
  Number add(Number a, Number b) { return checked(a + b); }
  Number negate(Number a) const { return -a; }
  Number multiply(Number a, Number b);
  Number divide(Number a, Number b) const;
  Number largest(std::span<const Number> list) const;
  Number compare(std::string_view direction, Number a, Number b) const;
  Number select(Number predicate, Number a, Number b) const { return predicate != 0 ? a : b; }
  Number function(uint64_t key, std::span<const Number> operands) const;

 private:
  Number checked(Number a);

  uint64_t seed_;
  bool exact_ = true;
};

// Polynomials with whole coefficients over input elements and over what functions make of
// polynomials. Two that are equal as functions have one number, if no law of a function is needed
// but that the largest of numbers depends on their set.
class Polynomials {
 public:
  using Number = uint32_t;                    // of one polynomial, which stands once in the table
  using Monomial = std::vector<uint32_t>;     // atoms, sorted, repeats for powers
  using Terms = std::map<Monomial, int64_t>;  // none with coefficient 0

  Polynomials();
  // False: coefficients or polynomials grew too large; what was computed since means nothing.
  bool exact() const { return exact_; }
  const Terms& terms_of(Number a) const { return *polynomials_[a]; }

  Number variable(uint64_t id);
  Number number(double value);
  Number add(Number a, Number b);
  Number negate(Number a);
  Number multiply(Number a, Number b);
  Number divide(Number a, Number b);
  Number largest(std::span<const Number> list);
  Number compare(std::string_view direction, Number a, Number b);
  Number select(Number predicate, Number a, Number b);
  Number function(uint64_t key, std::span<const Number> operands);

 private:
  struct Atom {
    uint64_t key = 0;                // of the function, or of the variable
    std::vector<uint32_t> operands;  // polynomials
    auto operator<=>(const Atom&) const = default;
  };

  std::optional<int64_t> constant(Number a) const;
  Number intern(Terms terms);
  uint32_t atom(uint64_t key, std::vector<uint32_t> operands);
  Number of_atom(uint32_t atom);
  Number inverse(Number a);
  void add_term(Terms& terms, const Monomial& monomial, int64_t coefficient);

  std::map<Terms, Number> numbers_;
  std::vector<const Terms*> polynomials_;  // keys of numbers_
  size_t stored_ = 0;                      // terms of all of them
  std::vector<Atom> atoms_;
  std::map<Atom, uint32_t> atom_ids_;
  bool exact_ = true;
};

}  // namespace hone

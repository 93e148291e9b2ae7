#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

// Whole numbers that the checker of certificates computes with: polynomials over atoms, which are
// symbols, variables of loops, quotients and remainders. Nothing here knows the prover or its dims.

namespace hone::checker {

// Sorted numbers of atoms; repeats are powers.
using Monomial = std::vector<uint32_t>;

// Exact, or bad for good: what overflows is equal to nothing and proves nothing.
class Whole {
 public:
  Whole(int64_t number = 0) {  // NOLINT: implicit
    if (number != 0) terms_[{}] = number;
  }
  static Whole atom(uint32_t atom);
  static Whole bad();

  bool is_bad() const { return is_bad_; }
  bool is(int64_t number) const { return *this == Whole(number); }
  std::optional<int64_t> as_number() const;
  int64_t constant() const;  // of the polynomial
  const std::map<Monomial, int64_t>& terms() const { return terms_; }
  bool mentions(uint32_t atom) const;

  friend Whole operator+(const Whole& a, const Whole& b);
  friend Whole operator*(const Whole& a, const Whole& b);
  friend Whole operator-(const Whole& a, const Whole& b) { return a + b * Whole(-1); }
  // The q with q * divisor == this, if there is one.
  std::optional<Whole> divided_by(const Whole& divisor) const;
  // False of bad ones.
  friend bool operator==(const Whole& a, const Whole& b) {
    return !a.is_bad_ && !b.is_bad_ && a.terms_ == b.terms_;
  }

 private:
  void add(const Monomial& monomial, int64_t coefficient);

  std::map<Monomial, int64_t> terms_;  // none is 0
  bool is_bad_ = false;
};

// The known facts about atoms.
class Atoms {
 public:
  enum Kind : uint8_t { symbol, loop, quotient, remainder };
  struct Atom {
    Kind kind;
    std::string name = "";                // of a symbol
    int64_t low = 0, high = 0, step = 1;  // of a symbol / step
    Whole of = {};                        // a loop counts from 0 to below it; what is divided
    Whole divisor = {};
  };

  // The symbol as a number: step times the atom.
  Status add_symbol(const std::string& name, int64_t low, int64_t high, int64_t step);
  uint32_t add_loop(const Whole& extent);
  const Atom& operator[](uint32_t atom) const { return atoms_[atom]; }
  size_t size() const { return atoms_.size(); }

  // Rounded down. The divisor is positive.
  struct Parts {
    Whole quotient, remainder;
  };
  Parts divide(const Whole& a, const Whole& divisor);
  // The number with another one in the place of an atom.
  Whole put(const Whole& a, uint32_t atom, const Whole& value);
  bool mentions(const Whole& a, uint32_t atom) const;  // inside of quotients, too

  // True if it is proved that a >= 0 for all values of the atoms.
  bool is_never_negative(const Whole& a) const { return is_never_negative(a, 0); }
  // The meaning of "2*(N + 3)/4"; only symbols are known.
  Result<Whole> parse(std::string_view text);

 private:
  class Parser;
  uint32_t intern(Kind kind, const Whole& of, const Whole& divisor);
  bool is_never_negative(const Whole& a, int depth) const;
  bool of_symbols(const Whole& a) const;

  std::vector<Atom> atoms_;
  mutable size_t work_ = 0;
};

}  // namespace hone::checker

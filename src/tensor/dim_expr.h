#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tensor/dim.h"

// How symbolic dims are stored; for the files dim*.cc alone.
//
// A symbol whose values are multiples of m is held as m * atom, the atom standing for symbol / m.
// So all that follows from divisibility (floordiv(N, 8) * 8 == N) is plain arithmetic.

namespace hone {

// Each of these stores its hash, because making an expression needs the hashes of all its parts.
struct SymbolData {
  std::string name;
  int64_t min;
  int64_t max;
  int64_t multiple_of;
  size_t hash_;

  SymbolData(std::string_view name, int64_t min, int64_t max, int64_t multiple_of);
  size_t hash() const { return hash_; }
  bool operator==(const SymbolData&) const = default;
};

// Either symbol / multiple_of, or floordiv(dividend, divisor).
struct DimAtom {
  const SymbolData* symbol = nullptr;
  const DimExpr* dividend = nullptr;
  int64_t divisor = 1;
  size_t hash_;

  explicit DimAtom(const SymbolData* symbol);
  DimAtom(const DimExpr* dividend, int64_t divisor);
  size_t hash() const { return hash_; }
  bool operator==(const DimAtom&) const = default;
};

// A product of one or more atoms, sorted; a repeated atom is a power.
struct DimMonomial {
  std::vector<const DimAtom*> atoms;
  size_t hash_;

  explicit DimMonomial(std::vector<const DimAtom*> sorted);
  size_t hash() const { return hash_; }
  bool operator==(const DimMonomial&) const = default;
};

struct DimTerm {
  const DimMonomial* monomial;
  int64_t coefficient;  // not 0
  bool operator==(const DimTerm&) const = default;
};

// The sum of the terms and the constant. There is at least one term; they are sorted by degree,
// highest first, then by their atoms.
struct DimExpr {
  std::vector<DimTerm> terms;
  int64_t constant = 0;
  size_t hash_ = 0;
  // The range, computed when first asked for; every thread computes the same.
  mutable std::atomic<bool> range_known{false};
  mutable std::atomic<int64_t> low{0};
  mutable std::atomic<int64_t> high{0};

  DimExpr() = default;
  DimExpr(DimExpr&& other) noexcept
      : terms(std::move(other.terms)), constant(other.constant), hash_(other.hash_) {}

  size_t hash() const { return hash_; }
  bool operator==(const DimExpr& other) const {
    return constant == other.constant && terms == other.terms;
  }

  // The only ways from and to a Dim. `of` wants the terms sorted and without zeros.
  static Dim of(std::vector<DimTerm> terms, int64_t constant);
  static Dim of(const DimAtom& atom);
  static Dim of(const DimTerm& term);
  static const DimExpr* get(Dim dim) { return dim.expr_; }
  static Dim wrap(const DimExpr* expr) { return Dim(expr); }
  static const SymbolData* get(Symbol symbol) { return symbol.data_; }
  static Symbol wrap(const SymbolData* data) { return Symbol(data); }
};

// A structural order, the same in every run.
std::strong_ordering compare(const DimAtom* a, const DimAtom* b);
std::strong_ordering compare(const DimMonomial* a, const DimMonomial* b);
std::strong_ordering compare(const DimExpr* a, const DimExpr* b);

const DimMonomial* multiply(const DimMonomial* a, const DimMonomial* b);
// The monomial q with q * b == a (null for 1), if there is one.
std::optional<const DimMonomial*> divide(const DimMonomial* a, const DimMonomial* b);

Range range_of(const DimExpr* expr);  // dim_range.cc
Range range_of(const DimAtom* atom);

inline int64_t saturated_add(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return a < 0 ? -kDimLimit : kDimLimit;
  return sum > kDimLimit ? kDimLimit : sum < -kDimLimit ? -kDimLimit : sum;
}

inline int64_t saturated_multiply(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    return (a < 0) != (b < 0) ? -kDimLimit : kDimLimit;
  }
  return product > kDimLimit ? kDimLimit : product < -kDimLimit ? -kDimLimit : product;
}

}  // namespace hone

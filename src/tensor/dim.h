#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

// A dim is a number or a quasi-affine expression of bounded symbols.
//
// Expressions are polynomials over atoms, an atom being a symbol or floordiv(expression, positive
// number). They are kept in one canonical form and interned, so equality is a pointer comparison:
// N + N == 2*N, (2*N)/2 == N, (N/4)/2 == N/8. Numbers saturate at +-2^62 instead of overflowing; no
// type accepts such a size.

namespace hone {

// Inclusive bounds of a value.
struct Range {
  int64_t low = 0;
  int64_t high = 0;
  bool operator==(const Range&) const = default;
};

inline constexpr int64_t kDimLimit = int64_t{1} << 62;

struct DimExpr;     // dim_expr.h
struct SymbolData;  // dim_expr.h

// A named unknown with min <= value <= max and value % multiple_of == 0. Two symbols are the same
// if all four agree; the verifier refuses one name with two meanings inside a graph.
class Symbol {
 public:
  // For a name and limits that are known to be good: is_symbol_name(name), -2^62 <= min <= max
  // <= 2^62, multiple_of >= 1, and some multiple lies within min..max.
  static Symbol get(std::string_view name, int64_t min, int64_t max, int64_t multiple_of = 1);
  const std::string& name() const;
  int64_t min() const;
  int64_t max() const;
  int64_t multiple_of() const;
  bool operator==(const Symbol&) const = default;

 private:
  friend class Dim;
  friend struct DimExpr;
  explicit Symbol(const SymbolData* data) : data_(data) {}
  const SymbolData* data_;
};

bool is_symbol_name(std::string_view text);  // [A-Za-z_][A-Za-z0-9_]*

class Dim;
using Bindings = std::map<std::string, Dim, std::less<>>;  // symbol name -> what stands for it

class Dim {
 public:
  Dim() = default;
  Dim(int64_t number) : number_(saturated(number)) {}  // NOLINT: implicit
  Dim(int number) : number_(number) {}                 // NOLINT: implicit
  Dim(Symbol symbol);                                  // NOLINT: implicit

  bool is_static() const { return expr_ == nullptr; }
  int64_t value() const;  // HONE_CHECK(is_static())
  bool is(int64_t number) const { return is_static() && number_ == number; }

  Range range() const;                       // bounds that hold for every binding
  bool divisible_by(int64_t divisor) const;  // provably, for every binding
  std::vector<Symbol> symbols() const;       // in order of first appearance, without repeats
  size_t term_count() const;                 // of the polynomial, to bound the cost of products
  size_t atom_count() const;                 // symbols and divisions as written, repeats included

  // Replaces the symbols that are bound. Each must fit its symbol (see check_binding).
  Dim bind(const Bindings& bindings) const;
  // The q for which q * divisor equals this for every binding, if it provably exists.
  std::optional<Dim> divided_by(Dim divisor) const;

  // "12", "N", "2*N + 1", "(N + 3)/4" where / rounds down.
  std::string to_string() const;
  size_t hash() const;

  // Structural equality of canonical forms: the two are equal for every binding.
  // False means "not provably equal".
  bool operator==(const Dim&) const = default;

  // Numbers are done inline, the rest out of line.
  friend Dim operator+(Dim a, Dim b) {
    int64_t sum = 0;
    if (a.is_static() && b.is_static() && !__builtin_add_overflow(a.number_, b.number_, &sum)) {
      return sum;
    }
    return add(a, b, 1);
  }
  friend Dim operator-(Dim a, Dim b) {
    int64_t difference = 0;
    if (a.is_static() && b.is_static() &&
        !__builtin_sub_overflow(a.number_, b.number_, &difference)) {
      return difference;
    }
    return add(a, b, -1);
  }
  friend Dim operator*(Dim a, Dim b) {
    int64_t product = 0;
    if (a.is_static() && b.is_static() && !__builtin_mul_overflow(a.number_, b.number_, &product)) {
      return product;
    }
    return multiply(a, b);
  }

 private:
  friend struct DimExpr;
  explicit Dim(const DimExpr* expr) : expr_(expr) {}
  static int64_t saturated(int64_t number) {
    return number > kDimLimit ? kDimLimit : number < -kDimLimit ? -kDimLimit : number;
  }
  static Dim add(Dim a, Dim b, int64_t factor);  // a + b * factor
  static Dim multiply(Dim a, Dim b);

  const DimExpr* expr_ = nullptr;
  int64_t number_ = 0;  // 0 if symbolic
};

Dim floordiv(Dim a, int64_t positive);
Dim mod(Dim a, int64_t positive);  // a - floordiv(a, c)*c
Dim ceildiv(Dim a, int64_t positive);
inline Dim& operator+=(Dim& a, Dim b) { return a = a + b; }
inline Dim& operator*=(Dim& a, Dim b) { return a = a * b; }

// True only if it holds for every binding.
bool provably_le(Dim a, Dim b);
bool provably_lt(Dim a, Dim b);

// Parses what to_string prints, with the symbols in scope.
Result<Dim> parse_dim(std::string_view text, const std::vector<Symbol>& scope);

// True if the value may stand for the symbol. A number must be within min..max and a multiple of
// multiple_of; an expression must provably be a multiple and not provably be out of bounds.
Status check_binding(Symbol symbol, Dim value);

// Finds the symbol values for which `pattern` equals `actual`, adding to `bindings`; used to bind a
// graph's parameters to the shapes of real inputs. Solves a*N + b; other forms are only checked
// once their symbols are bound. Checks range and divisibility of what it binds.
Status match_dim(Dim pattern, int64_t actual, Bindings& bindings);

}  // namespace hone

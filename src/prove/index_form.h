#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tensor/type.h"

// Positions as sums over variables with ranges, for proofs that hold at all sizes.

namespace hone {

class IndexForm;

// True if no number of the dim saturated.
bool is_exact(Dim dim);

// The variables of a proof: v counts from 0 up to, and without, extent(v).
class LoopVariables {
 public:
  int add(Dim extent) {
    extents_.push_back(extent);
    return static_cast<int>(extents_.size()) - 1;
  }
  Dim extent(int v) const { return extents_[static_cast<size_t>(v)]; }
  size_t size() const { return extents_.size(); }

 private:
  Dims extents_;
};

// A fact that would simplify a position: another form of one variable.
struct Refinement {
  enum Kind : uint8_t {
    digits,  // v = at * high + low, with low < at
    cut      // v < at, or v = at + rest
  };
  Kind kind;
  int variable;
  Dim at;
};

// constant + sum of factor * (variable, or quotient or remainder of another form).
class IndexForm {
 public:
  struct Term {
    Dim factor;
    int variable = -1;  // -1: inner / divisor, or its remainder
    std::shared_ptr<const IndexForm> inner = nullptr;
    Dim divisor = 1;
    bool is_remainder = false;
  };

  IndexForm(Dim constant) : constant_(constant) {}  // NOLINT: implicit
  static IndexForm variable(int v);
  static IndexForm variable(int v, const LoopVariables& variables);  // 0, if it can be nothing else
  static IndexForm quotient_of(std::shared_ptr<const IndexForm> inner, Dim divisor,
                               bool is_remainder);  // as it is; divide() simplifies

  Dim constant() const { return constant_; }
  std::span<const Term> terms() const { return terms_; }

  friend IndexForm operator+(const IndexForm& a, const IndexForm& b);
  friend IndexForm operator*(const IndexForm& a, Dim factor);
  friend IndexForm operator-(const IndexForm& a, const IndexForm& b) { return a + b * -1; }

  // With another form in the place of a variable.
  IndexForm with(int variable, const IndexForm& form, const LoopVariables& variables) const;
  bool mentions(int variable) const;
  // weight() is the number of terms that are written down, with those of inner forms. is_exact()
  // tells whether all numbers are far from those at which dims saturate. Only such forms are equal
  // if their texts are.
  size_t weight() const;
  bool is_exact() const;
  // Bounds that hold for all values of the variables; nullopt: none is known.
  std::optional<Dim> lowest(const LoopVariables& variables) const;
  std::optional<Dim> highest(const LoopVariables& variables) const;
  // names[v] stands for variable v. Forms that are equal term by term have one text.
  std::string text(std::span<const std::string> names) const;

 private:
  void add(const Term& term);

  Dim constant_;
  std::vector<Term> terms_;  // no factor is 0, nothing stands twice
};

// Quotient and remainder by a positive divisor. If `wanted` is given and a refinement of a variable
// would simplify them, it is put there.
struct Division {
  IndexForm quotient, remainder;
};
Division divide(const IndexForm& a, Dim divisor, const LoopVariables& variables,
                std::optional<Refinement>* wanted = nullptr);

// True if a >= 0 for all values (true), for none (false), or neither is known. The form is given
// the least numbers that say the same. A refinement that would decide it is put into `wanted`.
std::optional<bool> is_never_negative(IndexForm& a, const LoopVariables& variables,
                                      std::optional<Refinement>& wanted);

}  // namespace hone

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dim.h"

// Where in a tensor a point of an iteration space lies.

namespace hone {

enum class IterKind : uint8_t {
  parallel,    // points are independent; every result element belongs to one
  reduction,   // points are combined in any order
  sequential,  // points are combined in order; a result that is indexed by the dim depends on all
               // points up to its own
};

struct IterDim {
  std::string_view name;
  Dim extent;
  IterKind kind = IterKind::parallel;
  // For a reduction that data divides: the parallel dim among whose points its own are divided, so
  // that all of them together take about `extent`. -1: each takes all.
  int divided_by = -1;
};

// A quasi-affine function of the iteration point: sums, products with dims, floordiv and mod by
// positive dims. A cheap value, kept as a sum in which no atom (iter, floordiv, mod) stands twice.
class IndexExpr {
 public:
  IndexExpr(Dim number);                                 // NOLINT: implicit
  IndexExpr(int number) : IndexExpr(Dim(number)) {}      // NOLINT: implicit
  IndexExpr(int64_t number) : IndexExpr(Dim(number)) {}  // NOLINT: implicit
  static IndexExpr iter(int iter_dim);

  friend IndexExpr operator+(IndexExpr a, IndexExpr b);
  friend IndexExpr operator-(IndexExpr a, IndexExpr b);
  friend IndexExpr operator*(IndexExpr a, Dim factor);
  friend IndexExpr floordiv(IndexExpr a, Dim positive);
  friend IndexExpr mod(IndexExpr a, Dim positive);

  // Static dims only:
  int64_t at(std::span<const int64_t> point) const;
  Range over(std::span<const Range> box) const;  // bounds over a box of iteration points
  // Shrinks the box towards the points whose value is in `target`. The result holds all of these
  // points, perhaps more. False: there are none.
  bool narrow(Range target, std::span<Range> box) const;
  // If the expression is a*iter(d) + (terms without iter(d)): a; 0 if it does not depend on d;
  // nullopt if it depends on d in another way.
  std::optional<int64_t> coefficient(int iter_dim) const;
  bool mentions(int iter_dim) const;  // symbolic dims too
  std::optional<Dim> as_constant() const;
  bool operator==(const IndexExpr& other) const { return *node_ == *other.node_; }

  // The expression with another one in the place of each iter.
  IndexExpr substitute(std::span<const IndexExpr> iters) const;
  // Writes the expression down in another language. The algebra says how:
  //   T number(Dim); T iter(int); T add(T, T); T multiply(T, Dim);
  //   T floordiv(T, Dim positive); T mod(T, Dim positive);  // both rounded down
  template <class Algebra>
  auto compute(Algebra& algebra) const -> decltype(algebra.iter(0)) {
    return compute(*node_, algebra);
  }

  std::string to_string(std::span<const IterDim> dims) const;

 private:
  // constant + sum of factor * atom. Atoms are distinct, factors are not 0.
  struct Node {
    enum class Kind : uint8_t { iter, quotient, remainder };
    struct Term {
      Dim factor;
      Kind kind;
      int iter = 0;  // kind iter
      std::shared_ptr<const Node> inner =
          nullptr;  // the others: inner / divisor, inner mod divisor
      Dim divisor = 1;

      bool same_atom(const Term& other) const;
    };
    Dim constant;
    std::vector<Term> terms = {};

    bool operator==(const Node& other) const;
    void add(const Term& term);
  };
  explicit IndexExpr(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  static void split(const IndexExpr& a, Dim divisor, Node& whole, Node& rest);
  static int64_t value(const Node& node, std::span<const int64_t> point);
  static Range bounds(const Node& node, std::span<const Range> box);
  static bool narrow(const Node& node, Range target, std::span<Range> box);
  static bool mentions(const Node& node, int iter_dim);
  static std::string text(const Node& node, std::span<const IterDim> dims);
  template <class Algebra>
  static auto compute(const Node& node, Algebra& algebra) -> decltype(algebra.iter(0)) {
    using T = decltype(algebra.iter(0));
    std::optional<T> sum;
    for (const Node::Term& term : node.terms) {
      T atom = term.kind == Node::Kind::iter ? algebra.iter(term.iter)
               : term.kind == Node::Kind::quotient
                   ? algebra.floordiv(compute(*term.inner, algebra), term.divisor)
                   : algebra.mod(compute(*term.inner, algebra), term.divisor);
      if (!term.factor.is(1)) atom = algebra.multiply(atom, term.factor);
      sum = sum ? algebra.add(*sum, atom) : atom;
    }
    if (!sum) return algebra.number(node.constant);
    return node.constant.is(0) ? *sum : algebra.add(*sum, algebra.number(node.constant));
  }
  std::shared_ptr<const Node> node_;
};

}  // namespace hone

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checked_math.h"
#include "ir/index_expr.h"

namespace hone {

namespace {

// Far beyond every index, so that clamping there loses nothing that a tensor could hold.
constexpr int64_t kFar = int64_t{1} << 61;

int64_t clamped(__int128 value) {
  return static_cast<int64_t>(std::clamp<__int128>(value, -kFar, kFar));
}

Range sum(Range a, Range b) {
  return {clamped(static_cast<__int128>(a.low) + b.low),
          clamped(static_cast<__int128>(a.high) + b.high)};
}

Range difference(Range a, Range b) {
  return {clamped(static_cast<__int128>(a.low) - b.low),
          clamped(static_cast<__int128>(a.high) - b.high)};
}

Range scaled(Range a, int64_t factor) {
  int64_t x = clamped(static_cast<__int128>(a.low) * factor);
  int64_t y = clamped(static_cast<__int128>(a.high) * factor);
  return factor >= 0 ? Range{x, y} : Range{y, x};
}

// The values v with factor * v in `target`.
Range unscaled(Range target, int64_t factor) {
  if (factor > 0) return {ceil_div(target.low, factor), floor_div(target.high, factor)};
  return {ceil_div(target.high, factor), floor_div(target.low, factor)};
}

Range remainder_range(Range inner, int64_t divisor) {
  if (floor_div(inner.low, divisor) == floor_div(inner.high, divisor)) {
    return {floor_mod(inner.low, divisor), floor_mod(inner.high, divisor)};
  }
  return {0, divisor - 1};
}

// The part of `inner` between its first and its last value whose remainder is in `target`.
Range with_remainder(Range inner, int64_t divisor, Range target) {
  target = {std::max<int64_t>(target.low, 0), std::min(target.high, divisor - 1)};
  if (target.low > target.high) return {0, -1};
  int64_t first = floor_mod(inner.low, divisor);
  if (first < target.low) inner.low += target.low - first;
  if (first > target.high) inner.low += divisor - first + target.low;
  int64_t last = floor_mod(inner.high, divisor);
  if (last > target.high) inner.high -= last - target.high;
  if (last < target.low) inner.high -= last + divisor - target.high;
  return inner;
}

}  // namespace

bool IndexExpr::Node::Term::same_atom(const Term& other) const {
  if (kind != other.kind) return false;
  if (kind == Kind::iter) return iter == other.iter;
  return divisor == other.divisor && *inner == *other.inner;
}

bool IndexExpr::Node::operator==(const Node& other) const {
  if (constant != other.constant || terms.size() != other.terms.size()) return false;
  return std::all_of(terms.begin(), terms.end(), [&](const Term& term) {
    return std::any_of(other.terms.begin(), other.terms.end(), [&](const Term& theirs) {
      return term.factor == theirs.factor && term.same_atom(theirs);
    });
  });
}

void IndexExpr::Node::add(const Term& term) {
  auto found = std::find_if(terms.begin(), terms.end(),
                            [&](const Term& mine) { return mine.same_atom(term); });
  if (found == terms.end()) {
    if (!term.factor.is(0)) terms.push_back(term);
    return;
  }
  found->factor += term.factor;
  if (found->factor.is(0)) terms.erase(found);
}

// ---- Building -----------------------------------------------------------------------------------

IndexExpr::IndexExpr(Dim number) : node_(std::make_shared<Node>(Node{number})) {}

IndexExpr IndexExpr::iter(int iter_dim) {
  auto node = std::make_shared<Node>();
  node->terms.push_back({.factor = 1, .kind = Node::Kind::iter, .iter = iter_dim});
  return IndexExpr(std::move(node));
}

IndexExpr operator+(IndexExpr a, IndexExpr b) {
  auto node = std::make_shared<IndexExpr::Node>(*a.node_);
  node->constant += b.node_->constant;
  for (const IndexExpr::Node::Term& term : b.node_->terms) node->add(term);
  return IndexExpr(std::move(node));
}

IndexExpr operator-(IndexExpr a, IndexExpr b) { return std::move(a) + std::move(b) * Dim(-1); }

IndexExpr operator*(IndexExpr a, Dim factor) {
  if (factor.is(0)) return 0;
  auto node = std::make_shared<IndexExpr::Node>(*a.node_);
  node->constant *= factor;
  for (IndexExpr::Node::Term& term : node->terms) term.factor *= factor;
  return IndexExpr(std::move(node));
}

// Splits the expression into whole * divisor + rest, term by term.
void IndexExpr::split(const IndexExpr& a, Dim divisor, Node& whole, Node& rest) {
  for (const Node::Term& term : a.node_->terms) {
    std::optional<Dim> quotient = term.factor.divided_by(divisor);
    Node::Term part = term;
    if (quotient) part.factor = *quotient;
    (quotient ? whole : rest).terms.push_back(part);
  }
  std::optional<Dim> quotient = a.node_->constant.divided_by(divisor);
  (quotient ? whole : rest).constant = quotient.value_or(a.node_->constant);
}

IndexExpr floordiv(IndexExpr a, Dim positive) {
  if (positive.is(1)) return a;
  auto whole = std::make_shared<IndexExpr::Node>();
  auto rest = std::make_shared<IndexExpr::Node>();
  IndexExpr::split(a, positive, *whole, *rest);
  if (rest->terms.empty() && positive.is_static()) {
    whole->constant += floordiv(rest->constant, positive.value());
  } else if (!rest->terms.empty() || !rest->constant.is(0)) {
    whole->add({.factor = 1,
                .kind = IndexExpr::Node::Kind::quotient,
                .inner = std::move(rest),
                .divisor = positive});
  }
  return IndexExpr(std::move(whole));
}

IndexExpr mod(IndexExpr a, Dim positive) {
  if (positive.is(1)) return 0;
  // mod(x, 32) differs from x by a multiple of 32, so by one of each divisor of 32.
  const auto is_superfluous = [&](const IndexExpr::Node::Term& term) {
    return term.kind == IndexExpr::Node::Kind::remainder &&
           (term.factor * term.divisor).divided_by(positive);
  };
  if (std::ranges::any_of(a.node_->terms, is_superfluous)) {
    IndexExpr inside = a.node_->constant;
    for (const IndexExpr::Node::Term& term : a.node_->terms) {
      const IndexExpr::Node alone = {0, {term}};
      inside =
          inside + (is_superfluous(term) ? IndexExpr(term.inner) * term.factor
                                         : IndexExpr(std::make_shared<IndexExpr::Node>(alone)));
    }
    return mod(inside, positive);
  }
  IndexExpr::Node whole;
  auto rest = std::make_shared<IndexExpr::Node>();
  IndexExpr::split(a, positive, whole, *rest);
  if (rest->terms.empty() && positive.is_static()) return mod(rest->constant, positive.value());
  if (rest->terms.empty() && rest->constant.is(0)) return 0;
  auto node = std::make_shared<IndexExpr::Node>();
  node->terms.push_back({.factor = 1,
                         .kind = IndexExpr::Node::Kind::remainder,
                         .inner = std::move(rest),
                         .divisor = positive});
  return IndexExpr(std::move(node));
}

namespace {

struct Substitution {
  std::span<const IndexExpr> iters;
  IndexExpr number(Dim dim) { return dim; }
  IndexExpr iter(int dim) { return iters[static_cast<size_t>(dim)]; }
  IndexExpr add(IndexExpr a, IndexExpr b) { return std::move(a) + std::move(b); }
  IndexExpr multiply(IndexExpr a, Dim factor) { return std::move(a) * factor; }
  IndexExpr floordiv(IndexExpr a, Dim positive) { return hone::floordiv(std::move(a), positive); }
  IndexExpr mod(IndexExpr a, Dim positive) { return hone::mod(std::move(a), positive); }
};

}  // namespace

IndexExpr IndexExpr::substitute(std::span<const IndexExpr> iters) const {
  Substitution substitution{iters};
  return compute(substitution);
}

// ---- Reading ------------------------------------------------------------------------------------

int64_t IndexExpr::value(const Node& node, std::span<const int64_t> point) {
  int64_t total = node.constant.value();
  for (const Node::Term& term : node.terms) {
    int64_t atom = 0;
    switch (term.kind) {
      case Node::Kind::iter: atom = point[static_cast<size_t>(term.iter)]; break;
      case Node::Kind::quotient:
        atom = floor_div(value(*term.inner, point), term.divisor.value());
        break;
      case Node::Kind::remainder:
        atom = floor_mod(value(*term.inner, point), term.divisor.value());
        break;
    }
    total += term.factor.value() * atom;
  }
  return total;
}

int64_t IndexExpr::at(std::span<const int64_t> point) const { return value(*node_, point); }

Range IndexExpr::bounds(const Node& node, std::span<const Range> box) {
  Range total = {node.constant.value(), node.constant.value()};
  for (const Node::Term& term : node.terms) {
    Range atom;
    if (term.kind == Node::Kind::iter) {
      atom = box[static_cast<size_t>(term.iter)];
    } else {
      Range inner = bounds(*term.inner, box);
      int64_t divisor = term.divisor.value();
      atom = term.kind == Node::Kind::remainder
                 ? remainder_range(inner, divisor)
                 : Range{floor_div(inner.low, divisor), floor_div(inner.high, divisor)};
    }
    total = sum(total, scaled(atom, term.factor.value()));
  }
  return total;
}

Range IndexExpr::over(std::span<const Range> box) const { return bounds(*node_, box); }

// Solves for each atom in turn, with the others anywhere in their bounds.
bool IndexExpr::narrow(const Node& node, Range target, std::span<Range> box) {
  Range reachable = bounds(node, box);
  if (reachable.high < target.low || reachable.low > target.high) return false;
  for (const Node::Term& term : node.terms) {
    Node atom{.constant = 0, .terms = {term}};
    Range others = difference(bounds(node, box), bounds(atom, box));
    Range wanted = {clamped(static_cast<__int128>(target.low) - others.high),
                    clamped(static_cast<__int128>(target.high) - others.low)};
    wanted = unscaled(wanted, term.factor.value());
    if (term.kind == Node::Kind::iter) {
      Range& range = box[static_cast<size_t>(term.iter)];
      range = {std::max(range.low, wanted.low), std::min(range.high, wanted.high)};
      if (range.low > range.high) return false;
      continue;
    }
    int64_t divisor = term.divisor.value();
    Range inner = term.kind == Node::Kind::quotient
                      ? sum(scaled(wanted, divisor), {0, divisor - 1})
                      : with_remainder(bounds(*term.inner, box), divisor, wanted);
    if (inner.low > inner.high || !narrow(*term.inner, inner, box)) return false;
  }
  return true;
}

bool IndexExpr::narrow(Range target, std::span<Range> box) const {
  return narrow(*node_, target, box);
}

bool IndexExpr::mentions(const Node& node, int iter_dim) {
  return std::any_of(node.terms.begin(), node.terms.end(), [&](const Node::Term& term) {
    return term.kind == Node::Kind::iter ? term.iter == iter_dim : mentions(*term.inner, iter_dim);
  });
}

bool IndexExpr::mentions(int iter_dim) const { return mentions(*node_, iter_dim); }

std::optional<int64_t> IndexExpr::coefficient(int iter_dim) const {
  int64_t result = 0;
  for (const Node::Term& term : node_->terms) {
    if (term.kind == Node::Kind::iter) {
      if (term.iter != iter_dim) continue;
      if (!term.factor.is_static()) return std::nullopt;
      result = term.factor.value();
    } else if (mentions(*term.inner, iter_dim)) {
      return std::nullopt;
    }
  }
  return result;
}

std::optional<Dim> IndexExpr::as_constant() const {
  if (!node_->terms.empty()) return std::nullopt;
  return node_->constant;
}

// ---- Printing -----------------------------------------------------------------------------------

namespace {

// A dim as one factor or divisor: "4", "N", "(N + 1)".
std::string parenthesized(Dim dim) {
  std::string text = dim.to_string();
  bool plain = text.find_first_of(" +-/*") == std::string::npos;
  return plain ? text : "(" + text + ")";
}

}  // namespace

std::string IndexExpr::text(const Node& node, std::span<const IterDim> dims) {
  std::string out;
  auto append = [&](bool minus, const std::string& part) {
    if (out.empty()) {
      out = minus ? "-" + part : part;
    } else {
      out += (minus ? " - " : " + ") + part;
    }
  };
  for (const Node::Term& term : node.terms) {
    std::string atom;
    if (term.kind == Node::Kind::iter) {
      atom = dims[static_cast<size_t>(term.iter)].name;
    } else {
      atom = fmt::format("{}({}, {})", term.kind == Node::Kind::quotient ? "floordiv" : "mod",
                         text(*term.inner, dims), term.divisor.to_string());
    }
    bool minus = term.factor.is_static() && term.factor.value() < 0;
    Dim factor = minus ? Dim(0) - term.factor : term.factor;
    append(minus, factor.is(1) ? atom : parenthesized(factor) + "*" + atom);
  }
  if (out.empty() || !node.constant.is(0)) {
    std::string constant = node.constant.to_string();
    bool minus = constant.front() == '-';
    append(minus, constant.substr(minus ? 1 : 0));
  }
  return out;
}

std::string IndexExpr::to_string(std::span<const IterDim> dims) const { return text(*node_, dims); }

}  // namespace hone

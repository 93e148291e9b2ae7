#include "prove/order_form.h"

#include <algorithm>
#include <map>
#include <set>

namespace hone {
namespace {

constexpr size_t kMaxPieces = 160;
constexpr int64_t kMaxFactor = int64_t{1} << 30;

// A linear form: whole factors of what has a text. The text "" stands for 1.
using Linear = std::map<std::string, int64_t>;
using Pieces = std::set<Linear>;  // their largest

// A form of sums and maxima is the difference of the largest of two sets.
struct Difference {
  Pieces above, below;
};

// The factors of a piece, by the number of what they are of.
using Point = std::vector<int64_t>;

// v strictly between a and b is not a corner of what they span: without it the largest is the same.
bool is_between(const Point& v, const Point& a, const Point& b) {
  int64_t part = 0, whole = 0;  // v - a is part/whole of b - a
  for (size_t key = 0; key < v.size(); ++key) {
    const int64_t to_v = v[key] - a[key], to_b = b[key] - a[key];
    if (whole == 0 && to_b != 0) part = to_v, whole = to_b;
    if (static_cast<__int128>(to_v) * whole != static_cast<__int128>(to_b) * part) return false;
    if (whole == 0 && to_v != 0) return false;
  }
  if (whole < 0) part = -part, whole = -whole;
  return 0 < part && part < whole;
}

class Maker {
 public:
  Maker(const LoopVariables& variables, const std::vector<std::string>& names)
      : variables_(variables), names_(names) {}

  bool is_good = true;

  Difference of(const SumForm& form) {
    Linear rest;
    Difference all = {{Linear()}, {Linear()}};
    for (const SumTerm& term : form) {
      const std::optional<int64_t> factor = number_of(term.factor);
      if (!is_set(term) || !factor) {
        add(rest, term);
        continue;
      }
      Difference set = of(term.factors[0]->set);
      if (*factor < 0) std::swap(set.above, set.below);
      all.above = sum(all.above, scaled(set.above, std::abs(*factor)));
      all.below = sum(all.below, scaled(set.below, std::abs(*factor)));
    }
    all.above = sum(all.above, {rest});
    return all;
  }

  // Only the corners of what the pieces span.
  static Pieces corners(const Pieces& pieces) {
    std::map<std::string_view, size_t> keys;
    for (const Linear& piece : pieces)
      for (const auto& [key, factor] : piece) keys.emplace(key, keys.size());
    std::vector<Point> points;
    for (const Linear& piece : pieces) {
      Point& point = points.emplace_back(keys.size(), 0);
      for (const auto& [key, factor] : piece) point[keys.at(key)] = factor;
    }
    Pieces left;
    size_t at = 0;
    for (const Linear& piece : pieces) {
      const Point& v = points[at++];
      const bool is_inside = std::ranges::any_of(points, [&](const Point& a) {
        return std::ranges::any_of(points, [&](const Point& b) { return is_between(v, a, b); });
      });
      if (!is_inside) left.insert(piece);
    }
    return left;
  }

 private:
  static std::optional<int64_t> number_of(Dim factor) {
    if (!factor.is_static() || std::abs(factor.value()) > kMaxFactor) return std::nullopt;
    return factor.value();
  }

  static bool is_set(const SumTerm& term) {
    return term.bound.empty() && term.guards.empty() && term.factors.size() == 1 &&
           term.factors[0]->kind == SumFactor::largest && !term.factors[0]->set.empty() &&
           std::ranges::all_of(term.factors[0]->set, [](const SetMember& member) {
             return member.bound.empty() && member.guards.empty();
           });
  }

  void add(Linear& rest, SumTerm term) {
    int64_t factor = 1;
    if (const std::optional<int64_t> number = number_of(term.factor))
      factor = *number, term.factor = 1;
    const bool is_one =
        term.factor.is(1) && term.bound.empty() && term.guards.empty() && term.factors.empty();
    std::optional<std::string> text = "";
    if (!is_one) text = canonical_text({term}, variables_, names_);
    if (!text) is_good = false;
    if (!is_good) return;
    int64_t& at = rest[*text];
    at += factor;
    is_good = is_good && std::abs(at) <= kMaxFactor;
    if (at == 0) rest.erase(*text);
  }

  // The largest of differences: each above, with what is below all others, over all below.
  Difference of(const std::vector<SetMember>& set) {
    std::vector<Difference> members;
    for (const SetMember& member : set) members.push_back(of(member.value));
    Difference all = {{}, {Linear()}};
    for (const Difference& member : members) all.below = sum(all.below, member.below);
    for (size_t m = 0; m < members.size(); ++m) {
      Pieces above = members[m].above;
      for (size_t other = 0; other < members.size(); ++other)
        if (other != m) above = sum(above, members[other].below);
      all.above.insert(above.begin(), above.end());
    }
    if (all.above.size() > kMaxPieces) is_good = false;
    return all;
  }

  Pieces sum(const Pieces& a, const Pieces& b) {
    if (a.size() * b.size() > kMaxPieces * 4) is_good = false;
    if (!is_good) return {Linear()};
    Pieces all;
    for (const Linear& x : a)
      for (const Linear& y : b) {
        Linear both = x;
        for (const auto& [key, factor] : y) {
          int64_t& at = both[key];
          at += factor;
          is_good = is_good && std::abs(at) <= kMaxFactor;
          if (at == 0) both.erase(key);
        }
        all.insert(std::move(both));
      }
    if (a.size() > 1 && b.size() > 1) all = corners(all);
    if (all.size() > kMaxPieces) is_good = false;
    return all;
  }

  Pieces scaled(const Pieces& pieces, int64_t factor) {
    Pieces all;
    for (Linear one : pieces) {
      for (auto& [key, number] : one) {
        number *= factor;
        is_good = is_good && std::abs(number) <= kMaxFactor;
      }
      all.insert(std::move(one));
    }
    return all;
  }

  const LoopVariables& variables_;
  const std::vector<std::string>& names_;
};

}  // namespace

bool is_equal_by_order(const SumForm& left, const SumForm& right, const LoopVariables& variables,
                       const std::vector<std::string>& names) {
  SumForm form = left;
  for (SumTerm term : right) {
    term.factor *= -1;
    form.push_back(std::move(term));
  }
  Maker maker(variables, names);
  const Difference difference = maker.of(form);
  return maker.is_good && Maker::corners(difference.above) == Maker::corners(difference.below);
}

}  // namespace hone

#include <algorithm>
#include <cstdlib>

#include "rules/checker/forms.h"

// Forms of sums and maxima. Each is written as max(A) - max(B), where A and B are lists of points:
// the whole factors of a linear form. The difference of two sides is 0 if A and B span one hull.

namespace hone::checker {
namespace {

using Point = std::vector<int64_t>;
using Points = std::vector<Point>;

constexpr size_t kMaxPoints = 1000;
constexpr int64_t kMaxNumber = int64_t{1} << 31;

struct Pair {
  Points plus, minus;
};

class Hulls {
 public:
  Hulls(const Atoms& atoms, const std::map<uint32_t, std::string>& names)
      : atoms_(atoms), names_(names) {}

  Result<bool> are_equal(const Form& left, const Form& right) {
    HONE_TRY(collect(left));
    HONE_TRY(collect(right));
    const Pair a = HONE_TRY(pair_of(left)), b = HONE_TRY(pair_of(right));
    const Points one = corners(HONE_TRY(sums(a.plus, b.minus)));
    const Points other = corners(HONE_TRY(sums(b.plus, a.minus)));
    return one == other;
  }

 private:
  static bool is_maximum(const Term& term) {
    const std::optional<int64_t> factor = term.factor.as_number();
    if (!factor || std::abs(*factor) > kMaxNumber || !term.bound.empty() || !term.guards.empty() ||
        term.factors.size() != 1)
      return false;
    const Factor& only = *term.factors[0];
    return only.kind == Factor::largest && !only.set.empty() &&
           std::ranges::all_of(only.set, [](const Member& member) {
             return member.bound.empty() && member.guards.empty();
           });
  }

  // The term of which this one is a multiple, as a text, and the factor.
  Result<std::pair<std::string, int64_t>> unit_of(Term term) {
    int64_t count = 1;
    if (const std::optional<int64_t> factor = term.factor.as_number()) {
      count = *factor;
      term.factor = 1;
    }
    return std::pair(HONE_TRY(text_of({std::move(term)}, atoms_, names_)), count);
  }

  // Gives each unit a coordinate.
  Status collect(const Form& form) {
    for (const Term& term : form) {
      if (!is_maximum(term)) {
        units_.emplace(HONE_TRY(unit_of(term)).first, units_.size());
        continue;
      }
      for (const Member& member : term.factors[0]->set) HONE_TRY(collect(member.value));
    }
    return {};
  }

  Result<Pair> pair_of(const Form& form) {
    Point line(units_.size(), 0);
    Pair all = {{line}, {line}};
    for (const Term& term : form) {
      if (!is_maximum(term)) {
        const auto [unit, count] = HONE_TRY(unit_of(term));
        int64_t& at = line[units_.at(unit)];
        if (__builtin_add_overflow(at, count, &at) || std::abs(at) > kMaxNumber)
          return check_failed("a factor is too large");
        continue;
      }
      const int64_t factor = *term.factor.as_number();
      if (factor == 0) continue;
      Pair maximum = HONE_TRY(maximum_of(term.factors[0]->set));
      for (Points* points : {&maximum.plus, &maximum.minus})
        for (Point& point : *points)
          for (int64_t& x : point) x *= std::abs(factor);
      if (factor < 0) std::swap(maximum.plus, maximum.minus);
      all.plus = HONE_TRY(sums(all.plus, maximum.plus));
      all.minus = HONE_TRY(sums(all.minus, maximum.minus));
    }
    all.plus = HONE_TRY(sums(all.plus, {line}));
    return all;
  }

  // max_m (A_m - B_m) = max_m (A_m + the sum of the other B) - the sum of all B
  Result<Pair> maximum_of(const std::vector<Member>& set) {
    std::vector<Pair> pairs;
    for (const Member& member : set) pairs.push_back(HONE_TRY(pair_of(member.value)));
    Pair all = {{}, {Point(units_.size(), 0)}};
    for (const Pair& pair : pairs) all.minus = HONE_TRY(sums(all.minus, pair.minus));
    for (size_t m = 0; m < pairs.size(); ++m) {
      Points points = pairs[m].plus;
      for (size_t other = 0; other < pairs.size(); ++other)
        if (other != m) points = HONE_TRY(sums(points, pairs[other].minus));
      all.plus.insert(all.plus.end(), points.begin(), points.end());
    }
    return all;
  }

  static Result<Points> sums(const Points& a, const Points& b) {
    if (a.size() * b.size() > kMaxPoints) return check_failed("maxima are too large");
    Points all;
    for (const Point& x : a)
      for (const Point& y : b) {
        Point sum = x;
        for (size_t i = 0; i < sum.size(); ++i) {
          sum[i] += y[i];
          if (std::abs(sum[i]) > kMaxNumber) return check_failed("a factor is too large");
        }
        all.push_back(std::move(sum));
      }
    return corners(std::move(all));
  }

  // The points that lie strictly between no two others. All corners of the hull are among them.
  static Points corners(Points points) {
    std::ranges::sort(points);
    points.erase(std::ranges::unique(points).begin(), points.end());
    Points left;
    for (const Point& p : points) {
      bool is_corner = true;
      for (size_t a = 0; a < points.size() && is_corner; ++a)
        for (size_t b = a + 1; b < points.size() && is_corner; ++b)
          is_corner = !lies_between(p, points[a], points[b]);
      if (is_corner) left.push_back(p);
    }
    return left;
  }

  // p - a and b - p have one direction, and neither is 0.
  static bool lies_between(const Point& p, const Point& a, const Point& b) {
    if (p == a || p == b) return false;
    for (size_t i = 0; i < p.size(); ++i) {
      const __int128 before = p[i] - a[i], behind = b[i] - p[i];
      if (before * behind < 0) return false;
      for (size_t j = i + 1; j < p.size(); ++j)
        if (before * (b[j] - p[j]) != behind * (p[j] - a[j])) return false;
    }
    return true;
  }

  const Atoms& atoms_;
  const std::map<uint32_t, std::string>& names_;
  std::map<std::string, size_t> units_;
};

}  // namespace

Result<bool> is_zero_by_order(const Form& left, const Form& right, const Atoms& atoms,
                              const std::map<uint32_t, std::string>& names) {
  return Hulls(atoms, names).are_equal(left, right);
}

}  // namespace hone::checker

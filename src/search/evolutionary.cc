#include <cmath>

#include "search/search.h"

namespace hone {
namespace {

constexpr size_t kPopulation = 32;
constexpr size_t kTournament = 3;
constexpr size_t kChildren = 16;           // of a generation, or a batch where that is more
constexpr double kStrangers = 0.1;         // the share of children that are drawn
constexpr double kCrossed = 0.5;           // of the others, those with two parents
constexpr double kChanged = 0.5;           // of these, those that are changed, too
constexpr int kMostStaleGenerations = 12;  // generations without a better point

class Population {
 public:
  explicit Population(SearchRun& run) : run_(run) { add(run.best()); }

  // The price that a child has to be below.
  double limit() const {
    return members_.size() < kPopulation ? std::numeric_limits<double>::infinity()
                                         : run_.cost(members_.back());
  }

  std::optional<Point> child() {
    Rng& rng = run_.rng();
    if (members_.size() < kPopulation / 4 || rng.chance(kStrangers))
      return rng.chance(0.5) ? run_.draw() : run_.space().step(parent(), rng);
    const Point a = parent();
    std::optional<Point> child;
    if (rng.chance(kCrossed)) child = run_.space().cross(a, parent(), rng);
    if (child && *child != a && !rng.chance(kChanged)) return child;
    return run_.space().step(child.value_or(a), rng);
  }

  void add(Point point) {
    if (!std::isfinite(run_.cost(point))) return;
    const auto order = [&](Point a, Point b) {
      return std::pair(run_.cost(a), a) < std::pair(run_.cost(b), b);
    };
    members_.insert(std::ranges::upper_bound(members_, point, order), point);
    if (members_.size() > kPopulation) members_.pop_back();
  }

  // The best alone stays.
  void begin_again() {
    if (!members_.empty()) members_.resize(1);
  }

 private:
  // The cheapest of some: they stand in order.
  Point parent() {
    if (members_.empty()) return run_.space().start();
    size_t at = members_.size();
    for (size_t i = 0; i < kTournament; ++i)
      at = std::min<size_t>(at, run_.rng().below(members_.size()));
    return members_[at];
  }

  SearchRun& run_;
  std::vector<Point> members_;  // the cheapest first
};

class Evolutionary : public Search {
  Status look(SearchRun& run) const override {
    Population population(run);
    int stale = 0;
    for (;;) {
      const std::vector<Point> children =
          run.fresh(std::max(kChildren, run.batch()), [&] { return population.child(); });
      if (children.empty()) return {};
      const double before = run.least();
      const bool goes_on = run.price(children, population.limit());
      if (!goes_on) return {};
      for (Point child : children) population.add(child);
      stale = run.least() < before ? 0 : stale + 1;
      if (stale < kMostStaleGenerations) continue;
      population.begin_again();
      stale = 0;
    }
  }
};

}  // namespace

const Search& evolutionary_search() {
  static const Evolutionary search;
  return search;
}

}  // namespace hone

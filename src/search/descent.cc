#include <numeric>

#include "search/search.h"

namespace hone {
namespace {

constexpr size_t kMostAlong = 64;          // neighbours along one coordinate
constexpr double kDescentsFromBest = 0.5;  // the share of descents that begin near the best
constexpr int64_t kMostKicks = 4;          // steps from there

class Descent : public Search {
  Status look(SearchRun& run) const override {
    Point from = run.best();
    while (descend(run, from)) {
      const std::vector<Point> next = run.fresh(1, [&] { return elsewhere(run); });
      if (next.empty() || !run.price(next)) break;
      from = next[0];
    }
    return {};
  }

  // Until no coordinate leads down. False: the run is over.
  static bool descend(SearchRun& run, Point at) {
    for (bool moves = true; moves;) {
      moves = false;
      std::vector<size_t> order(run.space().coordinates(at));
      std::iota(order.begin(), order.end(), 0);
      run.rng().shuffle(order);
      for (size_t along : order) {
        const Point before = at;
        if (!descend(run, at, along)) return false;
        moves = moves || at != before;
      }
    }
    return true;
  }

  // Along one coordinate, as long as it leads down.
  static bool descend(SearchRun& run, Point& at, size_t along) {
    for (;;) {
      if (along >= run.space().coordinates(at)) return true;
      const std::vector<Point> next = run.space().neighbours(at, along, kMostAlong, run.rng());
      if (!run.price(next, run.cost(at))) return false;
      const auto best = std::ranges::min_element(next, {}, [&](Point p) { return run.cost(p); });
      if (best == next.end() || !(run.cost(*best) < run.cost(at))) return true;
      at = *best;
    }
  }

  static std::optional<Point> elsewhere(SearchRun& run) {
    if (!run.rng().chance(kDescentsFromBest)) return run.draw();
    Point at = run.best();
    for (int64_t left = run.rng().between(1, kMostKicks); left > 0; --left)
      at = run.space().step(at, run.rng()).value_or(at);
    return at;
  }
};

}  // namespace

const Search& descent_search() {
  static const Descent search;
  return search;
}

}  // namespace hone

#include <cmath>

#include "search/search.h"

namespace hone {
namespace {

constexpr double kHot = 0.2, kCold = 0.001;  // how far up a step goes, as a share of the price
constexpr int64_t kShortest = 128, kLongest = 8192;  // steps of a walk; each is twice as long
constexpr int kMostIdle = 50;                        // steps to known points that end a walk
constexpr double kFromBest = 0.5;                    // the share of walks that begin at the best

class Annealing : public Search {
  Status look(SearchRun& run) const override {
    Point from = run.best();
    for (int64_t steps = kShortest; walk(run, from, steps); steps = std::min(2 * steps, kLongest)) {
      from = run.best();
      if (run.rng().chance(kFromBest)) continue;
      const std::vector<Point> drawn = run.fresh(1, [&] { return run.draw(); });
      if (drawn.empty() || !run.price(drawn)) break;
      from = drawn[0];
    }
    return {};
  }

  // False: the run is over.
  static bool walk(SearchRun& run, Point at, int64_t steps) {
    int idle = 0;
    Rng& rng = run.rng();
    for (int64_t i = 0; i < steps && idle < kMostIdle; ++i) {
      const double done = static_cast<double>(i) / static_cast<double>(steps);
      const double heat = kHot * std::pow(kCold / kHot, done);
      const double limit = run.cost(at) * (1 - heat * std::log1p(-rng.uniform()));
      std::vector<Point> next;
      for (size_t n = 0; n < run.batch(); ++n)
        if (const std::optional<Point> point = run.space().step(at, rng)) next.push_back(*point);
      const int64_t before = run.trials();
      if (!run.price(next, limit)) return false;
      idle = run.trials() > before ? 0 : idle + 1;
      const auto taken =
          std::ranges::find_if(next, [&](Point point) { return run.cost(point) < limit; });
      if (taken != next.end()) at = *taken;
    }
    return true;
  }
};

}  // namespace

const Search& annealing_search() {
  static const Annealing search;
  return search;
}

}  // namespace hone

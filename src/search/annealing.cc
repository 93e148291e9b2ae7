#include <cmath>

#include "search/search.h"

namespace hone {
namespace {

constexpr double kCold = 0.01;       // the heat at the end of a walk, of that at first
constexpr double kFirstRise = 0.05;  // before any step was seen
constexpr double kForget = 0.02;     // how fast earlier steps are forgotten
constexpr int64_t kShortest = 128, kLongest = 8192;  // steps of a walk; each is twice as long
constexpr int kMostIdle = 50;                        // steps to known points that end a walk
constexpr double kFromBest = 0.5;                    // the share of walks that begin at the best

// The share by which steps make a price higher: their geometric mean. The heat of a walk
// is of that size, so that a space with small steps is not walked at random.
class Rise {
 public:
  void add(double before, double after) {
    if (!(after > before) || !std::isfinite(after)) return;
    const double share = std::clamp((after - before) / before, 1e-6, 1.0);
    log_ += kForget * (std::log(share) - log_);
  }
  double mean() const { return std::exp(log_); }

 private:
  double log_ = std::log(kFirstRise);
};

class Annealing : public Search {
  Status look(SearchRun& run) const override {
    Rise rise;
    Point from = run.best();
    for (int64_t steps = kShortest; walk(run, from, steps, rise);
         steps = std::min(2 * steps, kLongest)) {
      from = run.best();
      if (run.rng().chance(kFromBest)) continue;
      const std::vector<Point> drawn = run.fresh(1, [&] { return run.draw(); });
      if (drawn.empty() || !run.price(drawn)) break;
      from = drawn[0];
    }
    return {};
  }

  // False: the run is over.
  static bool walk(SearchRun& run, Point at, int64_t steps, Rise& rise) {
    int idle = 0;
    Rng& rng = run.rng();
    for (int64_t i = 0; i < steps && idle < kMostIdle; ++i) {
      const double done = static_cast<double>(i) / static_cast<double>(steps);
      const double heat = rise.mean() * std::pow(kCold, done);
      const double limit = run.cost(at) * (1 - heat * std::log1p(-rng.uniform()));
      std::vector<Point> next;
      for (size_t n = 0; n < run.batch(); ++n)
        if (const std::optional<Point> point = run.space().step(at, rng)) next.push_back(*point);
      const int64_t before = run.trials();
      if (!run.price(next, limit)) return false;
      idle = run.trials() > before ? 0 : idle + 1;
      for (Point point : next) rise.add(run.cost(at), run.cost(point));
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

#include <cmath>
#include <unordered_set>

#include "search/search.h"

namespace hone {
namespace {

constexpr size_t kWidth = 8;
constexpr size_t kMostBeamAlong = 16;  // neighbours along one coordinate

class Beam : public Search {
  Status look(SearchRun& run) const override {
    std::unordered_set<Point> expanded;
    std::vector<Point> beam = {run.best()};
    for (;;) {
      std::vector<Point> next;
      for (Point point : beam)
        if (expanded.insert(point).second) add_neighbours(run, point, next);
      if (next.empty()) {
        beam = run.fresh(kWidth, [&] { return run.draw(); });
        if (beam.empty() || !run.price(beam)) return {};
        continue;
      }
      const double limit =
          beam.size() < kWidth ? std::numeric_limits<double>::infinity() : run.cost(beam.back());
      if (!run.price(next, limit)) return {};
      beam = best_of(run, std::move(beam), next);
    }
  }

  static void add_neighbours(SearchRun& run, Point of, std::vector<Point>& next) {
    SearchSpace& space = run.space();
    for (size_t along = 0; along < space.coordinates(of) && run.may_go_on(); ++along)
      for (Point point : space.neighbours(of, along, kMostBeamAlong, run.rng()))
        next.push_back(point);
  }

  // The points of the beam and around it; the cheapest first.
  static std::vector<Point> best_of(const SearchRun& run, std::vector<Point> beam,
                                    const std::vector<Point>& next) {
    beam.insert(beam.end(), next.begin(), next.end());
    std::ranges::sort(beam, {}, [&](Point point) { return std::pair(run.cost(point), point); });
    beam.erase(std::unique(beam.begin(), beam.end()), beam.end());
    if (beam.size() > kWidth) beam.resize(kWidth);
    return beam;
  }
};

}  // namespace

const Search& beam_search() {
  static const Beam search;
  return search;
}

}  // namespace hone

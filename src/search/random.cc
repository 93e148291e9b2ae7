#include "search/search.h"

namespace hone {
namespace {

class RandomSearch : public Search {
  Status look(SearchRun& run) const override {
    for (;;) {
      const std::vector<Point> points = run.fresh(run.batch(), [&] { return run.draw(); });
      if (points.empty() || !run.price(points, run.least())) return {};
    }
  }
};

}  // namespace

const Search& random_search() {
  static const RandomSearch search;
  return search;
}

}  // namespace hone

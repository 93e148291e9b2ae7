// The search of docs/search.md: a walk that goes to a neighbour whenever that costs less.

#include <gtest/gtest.h>

#include "tests/search/toy_testing.h"

namespace hone::HONE_FILE {
namespace {

class Downhill : public Search {
  Status look(SearchRun& run) const override {
    Point at = run.best();  // the start has its price already
    for (int failed = 0; failed < 100;) {
      const std::optional<Point> next = run.space().step(at, run.rng());
      if (!next) break;
      if (!run.price(*next, run.cost(at))) break;  // out of budget, or cancelled
      const bool is_lower = run.cost(*next) < run.cost(at);
      failed = is_lower ? 0 : failed + 1;
      if (is_lower) at = *next;
    }
    return {};
  }
};

TEST(OwnSearch, FindsTheFloorOfABowl) {
  Grid grid(3, 20);
  PriceBy prices([&](Point point) {
    double price = 1;
    for (uint32_t at : grid.place(point)) price += std::pow(at - 11.0, 2);
    return price;
  });
  const SearchResult found = Downhill().run(grid, prices, {.budget = {.trials = 1000}}).value();
  EXPECT_EQ(found.cost, 1);
  EXPECT_EQ(found.end, SearchEnd::done);
}

}  // namespace
}  // namespace hone::HONE_FILE

#include "search/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/says_testing.h"
#include "tests/search/toy_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const Search& search(std::string_view name) { return *find_search(name).value(); }

double noise(Grid& grid, Point point) {
  return 1 + static_cast<double>(hash_string(grid.text(point)) % 1000);
}

// A bowl whose floor is rough, with one lowest point.
double bowl(Grid& grid, Point point) {
  double price = 1;
  for (size_t i = 0; const uint32_t at : grid.place(point)) {
    const double away = at - 7.0 + static_cast<double>(i++);
    price += away * away;
  }
  return price +
         0.5 * static_cast<double>(hash_string(grid.text(point)) % 2) * std::min(price - 1, 1.0);
}

SearchResult run_on(const Grid& like, std::string_view name, uint64_t seed, int64_t trials) {
  Grid grid = like;
  PriceBy prices([&](Point point) { return bowl(grid, point); }, 4);
  return search(name).run(grid, prices, {.budget = {.trials = trials}, .seed = seed}).value();
}

TEST(Search, ExhaustiveFindsTheLowestOfAll) {
  Grid grid(3, 6);
  std::map<Point, double> known;
  PriceBy prices([&](Point point) { return known[point] = noise(grid, point); }, 7);
  const SearchResult found = search("exhaustive").run(grid, prices).value();
  EXPECT_EQ(found.trials, 216);
  EXPECT_EQ(found.end, SearchEnd::done);
  double least = kInfinity;
  for (const auto& [point, price] : known) least = std::min(least, price);
  EXPECT_EQ(found.cost, least);
  EXPECT_EQ(known.at(found.best), least);
  EXPECT_EQ(found.start_cost, known.at(grid.start()));
}

// A space of 10,000 points.
TEST(Search, ReachesTheLowestOfABowlInFewTrials) {
  const Grid grid(4, 10);
  for (std::string_view name : {"evolutionary", "annealing", "beam", "descent"}) {
    for (uint64_t seed = 0; seed < 5; ++seed) {
      SCOPED_TRACE(fmt::format("{} {}", name, seed));
      EXPECT_EQ(run_on(grid, name, seed, 3000).cost, 1);
    }
  }
}

TEST(Search, GivesTheSameAgain) {
  for (const SearchRow& row : for_any_space()) {
    SCOPED_TRACE(row.name);
    std::vector<std::vector<std::pair<int64_t, Point>>> histories;
    for (uint64_t seed : {1, 1, 2}) {
      Grid grid(4, 10);
      PriceBy prices([&](Point point) { return noise(grid, point); }, 3);
      const SearchResult found =
          row.get().run(grid, prices, {.budget = {.trials = 500}, .seed = seed}).value();
      EXPECT_LE(found.trials, 500);
      EXPECT_LE(found.cost, found.start_cost);
      auto& history = histories.emplace_back();
      double last = kInfinity;
      for (const Improvement& one : found.history) {
        history.emplace_back(one.trial, one.point);
        EXPECT_LT(one.cost, last);
        last = one.cost;
      }
      EXPECT_EQ(found.history.back().point, found.best);
    }
    EXPECT_EQ(histories[0], histories[1]);
    if (row.name != "exhaustive") EXPECT_NE(histories[0], histories[2]);
  }
}

TEST(Search, StopsAtEachBudget) {
  for (const SearchRow& row : for_any_space()) {
    SCOPED_TRACE(row.name);
    const auto run = [&](const SearchBudget& budget, size_t batch) {
      Grid grid(4, 10);
      PriceBy prices([&](Point point) { return noise(grid, point); }, batch);
      const SearchResult found = row.get().run(grid, prices, {.budget = budget}).value();
      EXPECT_EQ(std::ssize(prices.asked()), found.trials);
      return found;
    };
    for (int64_t trials : {1, 2, 50, 51}) {
      const SearchResult found = run({.trials = trials}, 8);
      EXPECT_EQ(found.trials, trials);
      EXPECT_EQ(found.end, SearchEnd::trials);
    }
    EXPECT_EQ(run({.compiles = 33}, 8).trials, 33);
    EXPECT_EQ(run({.compiles = 33}, 8).end, SearchEnd::compiles);
    const SearchResult brief = run({.seconds = 1e-9}, 1);
    EXPECT_EQ(brief.end, SearchEnd::seconds);
    EXPECT_LE(brief.trials, 1);
  }
}

TEST(Search, RefusesBudgetsOfNothing) {
  Grid grid(1, 1);
  PriceBy prices([](Point) { return 1; });
  for (const SearchBudget& budget :
       {SearchBudget{.seconds = 0}, SearchBudget{.seconds = -1}, SearchBudget{.seconds = NAN},
        SearchBudget{.trials = 0}, SearchBudget{.trials = -3}, SearchBudget{.compiles = 0}}) {
    const Result<SearchResult> refused = search("random").run(grid, prices, {.budget = budget});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code(), ErrorCode::usage);
    EXPECT_THAT(refused.error().hint(), says("seconds, trials and compiles"));
  }
  EXPECT_TRUE(prices.asked().empty());
}

TEST(Search, NamesWhatThereIs) {
  const Result<const Search*> unknown = find_search("evolution");
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().what(), HasSubstr("no search 'evolution'"));
  EXPECT_THAT(unknown.error().hint(), HasSubstr("exhaustive, random, evolutionary"));
  for (const SearchRow& row : searches()) EXPECT_EQ(*find_search(row.name), &row.get());
}

TEST(Search, GivesTheBestSoFarWhenCancelled) {
  for (const SearchRow& row : for_any_space()) {
    SCOPED_TRACE(row.name);
    Grid grid(4, 10);
    CancelToken cancel;
    double least = kInfinity;
    int asked = 0;
    PriceBy prices([&](Point point) {
      if (++asked == 40) cancel.cancel();
      least = std::min(least, noise(grid, point));
      return noise(grid, point);
    });
    const SearchResult found = row.get().run(grid, prices, {.cancel = &cancel}).value();
    EXPECT_EQ(found.end, SearchEnd::cancelled);
    EXPECT_EQ(found.trials, 40);
    EXPECT_EQ(found.cost, least);
  }
}

TEST(Search, EndsWhereNothingIsLeft) {
  for (const SearchRow& row : for_any_space()) {
    SCOPED_TRACE(row.name);
    Grid one(3, 1), few(2, 2);
    PriceBy price_one([](Point) { return 1; });
    PriceBy price_few([](Point) { return 2; }, 3);
    const SearchResult alone = row.get().run(one, price_one).value();
    EXPECT_EQ(alone.trials, 1);
    EXPECT_EQ(alone.best, one.start());
    EXPECT_EQ(alone.end, SearchEnd::done);
    const SearchResult all = row.get().run(few, price_few).value();
    EXPECT_EQ(all.trials, 4);
    EXPECT_EQ(all.end, SearchEnd::done);
  }
}

TEST(Search, KeepsTheStartWhereAllIsRefused) {
  for (const SearchRow& row : for_any_space()) {
    SCOPED_TRACE(row.name);
    Grid grid(2, 5);
    PriceBy prices([](Point point) { return point % 2 == 0 ? kInfinity : NAN; });
    const SearchResult found = row.get().run(grid, prices, {.budget = {.trials = 100}}).value();
    EXPECT_EQ(found.best, grid.start());
    EXPECT_EQ(found.cost, kInfinity);
  }
}

TEST(Search, ReportsWhatTheObjectiveReports) {
  class Broken : public Pricer {
    Status price(std::span<const Point>, double, std::span<double>) override {
      return bad_input("no price today");
    }
  };
  Grid grid(2, 2);
  Broken broken;
  const Result<SearchResult> found = search("beam").run(grid, broken);
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.error().what(), HasSubstr("no price today"));
}

// A line of numbers, of which nothing is known but steps.
TEST(Search, NeedsNoMoreThanNeighbours) {
  class Line : public SearchSpace {
    Point start() override { return 0; }
    std::vector<Point> neighbours(Point of, size_t, size_t, Rng& rng) override {
      const Point right = std::min<Point>(of + 1, 20), left = of == 0 ? 0 : of - 1;
      return rng.chance(0.5) ? std::vector{left, right} : std::vector{right, left};
    }
    std::string text(Point point) override { return fmt::format("{}", point); }
  };
  for (const SearchRow& row : for_any_space()) {
    SCOPED_TRACE(row.name);
    Line line;
    PriceBy prices([](Point point) { return std::abs(point - 12.0) + 1; });
    const Result<SearchResult> found = row.get().run(line, prices, {.budget = {.trials = 1000}});
    if (row.name == "exhaustive") {
      ASSERT_FALSE(found.ok());
      EXPECT_THAT(found.error().what(), HasSubstr("cannot be listed"));
    } else {
      EXPECT_EQ(found.value().cost, 1);
    }
  }
}

}  // namespace
}  // namespace hone::HONE_FILE

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/search/toy_testing.h"

namespace hone::HONE_FILE {
namespace {

// Sums of random local prices, each counted. A share of them is refused.
class Sums : public SearchSpace, public FactoredSpace {
 public:
  Sums(std::vector<uint32_t> domains, std::vector<std::vector<uint32_t>> scopes, uint64_t seed,
       double refused = 0)
      : domains_(std::move(domains)),
        scopes_(std::move(scopes)),
        seed_(seed),
        refused_(refused),
        start_(point(std::vector<uint32_t>(domains_.size(), 0))) {}

  Point start() override { return start_; }
  size_t coordinates(Point) override { return domains_.size(); }
  std::vector<Point> neighbours(Point of, size_t along, size_t, Rng&) override {
    std::vector<uint32_t> values = places_[of];
    std::vector<Point> points;
    for (values[along] = 0; values[along] < domains_[along]; ++values[along])
      if (values != places_[of]) points.push_back(point(values));
    return points;
  }
  std::string text(Point point) override {
    return fmt::format("{}", fmt::join(places_[point], " "));
  }
  Status each(const PointVisit& visit) override {
    std::vector<uint32_t> values(domains_.size(), 0);
    for (;;) {
      if (!visit(point(values))) return {};
      size_t i = 0;
      while (i < values.size() && ++values[i] == domains_[i]) values[i++] = 0;
      if (i == values.size()) return {};
    }
  }
  FactoredSpace* factors() override { return this; }
  std::span<const uint32_t> domains() const override { return domains_; }
  std::span<const std::vector<uint32_t>> scopes() const override { return scopes_; }
  Result<double> local(size_t factor, std::span<const uint32_t> values) override {
    ++asked;
    Rng rng(Hasher(seed_).add(factor).add_range(values).value());
    const bool is_start = std::ranges::all_of(values, [](uint32_t value) { return value == 0; });
    if (!is_start && rng.chance(refused_)) return std::numeric_limits<double>::infinity();
    return rng.between(1, 1000);  // whole numbers have one sum
  }
  std::vector<uint32_t> values(uint32_t point) const override { return places_[point]; }
  uint32_t point(std::span<const uint32_t> values) override {
    const std::vector<uint32_t> place(values.begin(), values.end());
    const auto [at, is_new] = points_.try_emplace(place, static_cast<Point>(places_.size()));
    if (is_new) places_.push_back(place);
    return at->second;
  }
  double sum(Point point) {
    double seconds = 7;
    for (size_t f = 0; f < scopes_.size(); ++f) {
      std::vector<uint32_t> values;
      for (uint32_t v : scopes_[f]) values.push_back(places_[point][v]);
      seconds += local(f, values).value();
    }
    return seconds;
  }

  int64_t asked = 0;

 private:
  const std::vector<uint32_t> domains_;
  const std::vector<std::vector<uint32_t>> scopes_;
  const uint64_t seed_;
  const double refused_;
  std::map<std::vector<uint32_t>, Point> points_;
  std::vector<std::vector<uint32_t>> places_;
  const Point start_;
};

SearchResult run(std::string_view search, Sums& space, const SearchBudget& budget = {}) {
  PriceBy prices([&](Point point) { return space.sum(point); });
  return find_search(search).value()->run(space, prices, {.budget = budget}).value();
}

// A tree: each variable but the first shares a factor with one before it, some have one alone.
Sums tree(uint64_t seed, uint32_t variables, uint32_t most, bool is_chain) {
  Rng rng(seed);
  std::vector<uint32_t> domains;
  std::vector<std::vector<uint32_t>> scopes;
  for (uint32_t v = 0; v < variables; ++v) {
    domains.push_back(static_cast<uint32_t>(rng.between(1, most)));
    if (v > 0) scopes.push_back({is_chain ? v - 1 : static_cast<uint32_t>(rng.below(v)), v});
    if (rng.chance(0.3)) scopes.push_back({v});
  }
  return {domains, scopes, seed, rng.chance(0.3) ? 0.3 : 0};
}

TEST(Dynamic, IsExactOnChainsAndTrees) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Sums one = tree(seed, 6, 4, seed % 2 == 0), other = tree(seed, 6, 4, seed % 2 == 0);
    const SearchResult exact = run("dynamic", one);
    EXPECT_EQ(exact.cost, run("exhaustive", other).cost);
    EXPECT_EQ(exact.end, SearchEnd::done);
  }
}

// So it is wherever tables are small, for instance around a loop.
TEST(Dynamic, IsExactAroundALoop) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<std::vector<uint32_t>> scopes = {{0, 1, 2}, {2, 3}, {3, 4}, {4, 0}, {5}};
    Sums one({3, 3, 3, 3, 3, 3}, scopes, seed), other({3, 3, 3, 3, 3, 3}, scopes, seed);
    EXPECT_EQ(run("dynamic", one).cost, run("exhaustive", other).cost);
  }
}

TEST(Dynamic, AsksForEachLocalPriceOnce) {
  Sums chain = tree(3, 2000, 5, true);
  PriceBy prices([](Point) { return 1; });  // asks for none itself
  const SearchResult found =
      find_search("dynamic").value()->run(chain, prices, {.seed = 1}).value();
  EXPECT_EQ(found.end, SearchEnd::done);
  EXPECT_EQ(found.trials, chain.asked + std::ssize(prices.asked()));
  EXPECT_LE(chain.asked, 25 * 2000 + 5 * 2000);
}

// Where each speaks of all, tables would have 8^12 entries.
TEST(Dynamic, KeepsVariablesWhereTablesAreTooLarge) {
  std::vector<uint32_t> domains(12, 8), all;
  for (uint32_t v = 0; v < 12; ++v) all.push_back(v);
  for (uint64_t seed = 0; seed < 3; ++seed) {
    Sums dense(domains, {all, all}, seed);
    const SearchResult found = run("dynamic", dense, {.trials = 20000});
    EXPECT_LT(found.cost, found.start_cost);
    EXPECT_EQ(found.cost, dense.sum(found.best));
  }
}

TEST(Dynamic, KeepsWhatItHasWhenTheBudgetEnds) {
  double last = std::numeric_limits<double>::infinity();
  for (int64_t trials : {1, 10, 300, 3000, 100000}) {
    Sums graph = tree(5, 100, 8, false);
    const SearchResult found = run("dynamic", graph, {.trials = trials});
    EXPECT_LE(found.trials, trials);
    EXPECT_LE(found.cost, last);
    last = found.cost;
  }
  Sums graph = tree(5, 100, 8, false);
  EXPECT_EQ(last, run("dynamic", graph).cost);
}

TEST(Dynamic, RefusesSpacesWithoutLocalPrices) {
  Grid grid(2, 2);
  PriceBy prices([](Point) { return 1; });
  const Result<SearchResult> refused = find_search("dynamic").value()->run(grid, prices);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::unsupported);
  EXPECT_THAT(refused.error().hint(), testing::HasSubstr("any other one"));
}

}  // namespace
}  // namespace hone::HONE_FILE

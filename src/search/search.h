#pragma once

#include <algorithm>
#include <span>
#include <string_view>

#include "base/progress.h"
#include "search/space.h"

namespace hone {

// Gives a search the price of points, in seconds; infinity: the point cannot be carried
// out. Many at once, as candidates may share a compile unit. A price at or above the limit may be
// any number that is not below it. An error ends the search.
class Pricer {
 public:
  virtual ~Pricer() = default;
  virtual Status price(std::span<const Point> points, double limit, std::span<double> seconds) = 0;
  // How many points it likes to price at once. It is never asked for more.
  virtual size_t batch() const { return 1; }
  // The number of compilations so far; a point compiles one at most.
  virtual int64_t compiles() const { return 0; }
};

struct SearchBudget {
  static constexpr int64_t kUnlimited = INT64_MAX;
  double seconds = std::numeric_limits<double>::infinity();
  int64_t trials = kUnlimited;  // points, and local prices, that are priced
  int64_t compiles = kUnlimited;
};

struct SearchOptions {
  SearchBudget budget = {};
  uint64_t seed = 0;
  Progress* progress = nullptr;  // counts trials; started by the caller
  const CancelToken* cancel = nullptr;
};

enum class SearchEnd : uint8_t { done, seconds, trials, compiles, cancelled };
std::string_view name(SearchEnd end);

struct Improvement {
  int64_t trial = 0;   // from 1
  double seconds = 0;  // since the search began
  Point point = 0;
  double cost = 0;
};

struct SearchResult {
  Point best = 0;  // the start, unless a point has a lower price
  double cost = 0;
  double start_cost = 0;
  int64_t trials = 0;
  double seconds = 0;
  SearchEnd end = SearchEnd::done;   // why it ended; done: it had nothing left to try
  std::vector<Improvement> history;  // the start first
};

class SearchRun;

// A way to look through a space. The same seed, prices and budget of trials or compiles give the
// same result.
class Search {
 public:
  virtual ~Search() = default;
  // Never worse than the start, which is priced first. Cancelled or out of budget: the best so far.
  // Errors: a budget that is not positive, what the pricer reports, a space that the search
  // cannot look through.
  Result<SearchResult> run(SearchSpace& space, Pricer& pricer,
                           const SearchOptions& options = {}) const;

 protected:
  // Prices points until it has no more, or the run is over. The start has its price.
  virtual Status look(SearchRun& run) const = 0;
};

// A search under way: what has been priced, and whether it may go on.
class SearchRun {
 public:
  // A search of more trials would fill the memory.
  static constexpr int64_t kMostTrials = int64_t{1} << 22;

  SearchRun(SearchSpace& space, Pricer& pricer, const SearchOptions& options);

  SearchSpace& space() { return space_; }
  Rng& rng() { return rng_; }
  size_t batch() const { return batch_; }

  // Prices those that have no price yet, in batches. False: the run is over, and some may be left.
  bool price(std::span<const Point> points, double limit = std::numeric_limits<double>::infinity());
  bool price(Point point, double limit = std::numeric_limits<double>::infinity()) {
    return price({&point, 1}, limit);
  }
  bool is_priced(Point point) const { return point < prices_.size() && prices_[point] >= 0; }
  // Infinity: refused, or not priced.
  double cost(Point point) const {
    return is_priced(point) ? prices_[point] : std::numeric_limits<double>::infinity();
  }
  Point best() const { return result_.best; }
  double least() const { return result_.cost; }

  int64_t trials() const { return result_.trials; }
  // Any point: a sample, or where there are none, some steps from the start.
  std::optional<Point> draw();
  // Asks `propose()` for points until it has this many without a price, each once. Fewer:
  // kMostTries proposals, one after another, were known or empty.
  static constexpr int kMostTries = 200;
  template <class Propose>
  std::vector<Point> fresh(size_t count, const Propose& propose);

  // True if there is budget, and nobody cancelled.
  bool may_go_on();
  // Counts a local price, as a trial. False: there is no budget for it.
  bool take_trial();

 private:
  friend class Search;
  bool price_batch(std::span<const Point> points, double limit);
  void note(Point point, double seconds);
  bool end(SearchEnd why);
  double elapsed() const;
  Result<SearchResult> finish();

  SearchSpace& space_;
  Pricer& pricer_;
  const SearchOptions options_;
  const size_t batch_;
  const int64_t compiled_before_;
  const double began_;
  Rng rng_;
  std::vector<double> prices_;  // by point; negative: none
  SearchResult result_;
  bool is_over_ = false;
  Status status_;
};

template <class Propose>
std::vector<Point> SearchRun::fresh(size_t count, const Propose& propose) {
  std::vector<Point> points;
  int tries = 0;
  while (points.size() < count && tries++ < kMostTries && may_go_on()) {
    const std::optional<Point> point = propose();
    if (!point || is_priced(*point) || std::ranges::find(points, *point) != points.end()) continue;
    points.push_back(*point);
    tries = 0;
  }
  return points;
}

// ---- The searches that hone has: rows of searches.def -------------------------------------------

struct SearchRow {
  std::string_view name;
  std::string_view doc;
  const Search& (*get)();
};
std::span<const SearchRow> searches();
// An unknown name is refused with the list of what there is.
Result<const Search*> find_search(std::string_view name);

}  // namespace hone

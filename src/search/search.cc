#include "search/search.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/text.h"

namespace hone {
namespace {

constexpr int64_t kLongestWalk = 16;  // steps, in place of a sample

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Status check(const SearchBudget& budget) {
  const auto refuse = [](std::string_view what) {
    return usage_error("a budget of {}", what)
        .with_hint("a search needs more than 0 seconds, trials and compiles; left out: no limit");
  };
  if (!(budget.seconds > 0)) return refuse(fmt::format("{} seconds", budget.seconds));
  if (budget.trials <= 0) return refuse(fmt::format("{} trials", budget.trials));
  if (budget.compiles <= 0) return refuse(fmt::format("{} compiles", budget.compiles));
  return {};
}

}  // namespace

// ---- Spaces -------------------------------------------------------------------------------------

std::optional<Point> SearchSpace::step(Point from, Rng& rng) {
  const size_t count = coordinates(from);
  if (count == 0) return std::nullopt;
  const std::vector<Point> along = neighbours(from, rng.below(count), 1, rng);
  return along.empty() ? std::nullopt : std::optional(along[0]);
}

Status SearchSpace::each(const PointVisit& /*visit*/) {
  return unsupported("the points of this space cannot be listed")
      .with_hint("a search that draws points or goes step by step can look through it");
}

// ---- A search under way -------------------------------------------------------------------------

std::string_view name(SearchEnd end) {
  switch (end) {
    case SearchEnd::done: return "done";
    case SearchEnd::seconds: return "seconds";
    case SearchEnd::trials: return "trials";
    case SearchEnd::compiles: return "compiles";
    case SearchEnd::cancelled: return "cancelled";
  }
  return "";
}

SearchRun::SearchRun(SearchSpace& space, Pricer& pricer, const SearchOptions& options)
    : space_(space),
      pricer_(pricer),
      options_(options),
      batch_(std::max<size_t>(pricer.batch(), 1)),
      compiled_before_(pricer.compiles()),
      began_(now()),
      rng_(options.seed) {}

double SearchRun::elapsed() const { return now() - began_; }

bool SearchRun::end(SearchEnd why) {
  result_.end = why;
  is_over_ = true;
  return false;
}

bool SearchRun::may_go_on() {
  if (is_over_) return false;
  const SearchBudget& budget = options_.budget;
  if (options_.cancel != nullptr && options_.cancel->cancelled()) return end(SearchEnd::cancelled);
  if (result_.trials >= std::min(budget.trials, kMostTrials)) return end(SearchEnd::trials);
  if (pricer_.compiles() - compiled_before_ >= budget.compiles) return end(SearchEnd::compiles);
  if (elapsed() >= budget.seconds) return end(SearchEnd::seconds);
  return true;
}

bool SearchRun::take_trial() {
  if (!may_go_on()) return false;
  ++result_.trials;
  if (options_.progress != nullptr) options_.progress->advance();
  return true;
}

std::optional<Point> SearchRun::draw() {
  if (const std::optional<Point> point = space_.sample(rng_)) return point;
  Point at = space_.start();
  for (int64_t left = rng_.between(1, kLongestWalk); left > 0; --left)
    if (const std::optional<Point> next = space_.step(at, rng_)) at = *next;
  return at;
}

bool SearchRun::price(std::span<const Point> points, double limit) {
  std::vector<Point> open;
  for (Point point : points)
    if (!is_priced(point) && std::ranges::find(open, point) == open.end()) open.push_back(point);
  std::span<const Point> left = open;
  while (!left.empty()) {
    if (!may_go_on()) return false;
    const int64_t compiles_left =
        options_.budget.compiles - (pricer_.compiles() - compiled_before_);
    const int64_t may_price = std::min(
        {options_.budget.trials - result_.trials, kMostTrials - result_.trials, compiles_left});
    const size_t count =
        std::min({left.size(), batch_, static_cast<size_t>(std::max<int64_t>(may_price, 1))});
    if (!price_batch(left.first(count), limit)) return false;
    left = left.subspan(count);
  }
  return may_go_on();
}

bool SearchRun::price_batch(std::span<const Point> points, double limit) {
  std::vector<double> seconds(points.size(), std::numeric_limits<double>::infinity());
  Status priced = pricer_.price(points, limit, seconds);
  if (!priced.ok()) {
    if (priced.error().code() == ErrorCode::interrupted) return end(SearchEnd::cancelled);
    status_ = std::move(priced);
    is_over_ = true;
    return false;
  }
  for (size_t i = 0; i < points.size(); ++i) note(points[i], seconds[i]);
  if (options_.progress != nullptr) options_.progress->advance(std::ssize(points));
  return true;
}

void SearchRun::note(Point point, double seconds) {
  // No price is as good as none: what is not a number is refused.
  if (!(seconds >= 0)) seconds = std::numeric_limits<double>::infinity();
  if (point >= prices_.size()) prices_.resize(std::max<size_t>(point + 1, 2 * prices_.size()), -1);
  prices_[point] = seconds;
  ++result_.trials;
  const bool is_first = result_.history.empty();
  if (is_first) result_.start_cost = seconds;
  if (!is_first && !(seconds < result_.cost)) return;
  result_.best = point;
  result_.cost = seconds;
  result_.history.push_back({result_.trials, elapsed(), point, seconds});
}

Result<SearchResult> SearchRun::finish() {
  HONE_TRY(std::move(status_));
  result_.seconds = elapsed();
  return std::move(result_);
}

Result<SearchResult> Search::run(SearchSpace& space, Pricer& pricer,
                                 const SearchOptions& options) const {
  HONE_TRY(check(options.budget));
  SearchRun run(space, pricer, options);
  const Point start = space.start();
  run.result_.best = start;
  run.result_.cost = run.result_.start_cost = std::numeric_limits<double>::infinity();
  if (run.price(start)) HONE_TRY(look(run));
  return run.finish();
}

// ---- The table ----------------------------------------------------------------------------------

#define HONE_SEARCH(name, doc) const Search& name##_search();
#include "search/searches.def"
#undef HONE_SEARCH

std::span<const SearchRow> searches() {
  static constexpr SearchRow kSearches[] = {
#define HONE_SEARCH(name, doc) {#name, doc, &name##_search},
#include "search/searches.def"
#undef HONE_SEARCH
  };
  return kSearches;
}

Result<const Search*> find_search(std::string_view name) {
  std::vector<std::string_view> known;
  for (const SearchRow& row : searches()) {
    if (row.name == name) return &row.get();
    known.push_back(row.name);
  }
  return usage_error("there is no search '{}'", excerpt(name))
      .with_hint(fmt::format("the searches are {}", join(known, ", ")));
}

}  // namespace hone

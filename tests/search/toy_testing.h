#pragma once

#include <cmath>
#include <map>

#include "base/hash.h"
#include "search/search.h"

namespace hone {

// All that need no local prices.
inline std::vector<SearchRow> for_any_space() {
  std::vector<SearchRow> rows(searches().begin(), searches().end());
  std::erase_if(rows, [](const SearchRow& row) { return row.name == "dynamic"; });
  return rows;
}

// Points of a grid with `size` places along each of `dims` coordinates, numbered as they are met.
class Grid : public SearchSpace {
 public:
  using Place = std::vector<uint32_t>;
  Grid(size_t dims, uint32_t size) : dims_(dims), size_(size) { start_ = point(Place(dims, 0)); }

  Point point(const Place& place) {
    const auto [at, is_new] = points_.try_emplace(place, static_cast<Point>(places_.size()));
    if (is_new) places_.push_back(place);
    return at->second;
  }
  const Place& place(Point point) const { return places_[point]; }

  Point start() override { return start_; }
  size_t coordinates(Point) override { return dims_; }
  std::vector<Point> neighbours(Point of, size_t along, size_t limit, Rng& rng) override {
    std::vector<Point> near;
    for (int64_t by : {-1, 1}) {
      Place next = places_[of];
      const int64_t at = next[along] + by;
      if (at < 0 || at >= size_) continue;
      next[along] = static_cast<uint32_t>(at);
      near.push_back(point(next));
    }
    rng.shuffle(near);
    near.resize(std::min(near.size(), limit));
    return near;
  }
  std::optional<Point> sample(Rng& rng) override {
    Place place(dims_);
    for (uint32_t& at : place) at = static_cast<uint32_t>(rng.below(size_));
    return point(place);
  }
  std::optional<Point> cross(Point a, Point b, Rng& rng) override {
    Place place = places_[a];
    for (size_t i = 0; i < dims_; ++i)
      if (rng.chance(0.5)) place[i] = places_[b][i];
    return point(place);
  }
  Status each(const PointVisit& visit) override {
    Place place(dims_, 0);
    for (;;) {
      if (!visit(point(place))) return {};
      size_t i = 0;
      while (i < dims_ && ++place[i] == size_) place[i++] = 0;
      if (i == dims_) return {};
    }
  }
  double size() override { return std::pow(size_, dims_); }
  std::string text(Point point) override { return fmt::format("{}", fmt::join(place(point), " ")); }

 private:
  const size_t dims_;
  const uint32_t size_;
  std::map<Place, Point> points_;
  std::vector<Place> places_;
  Point start_ = 0;
};

// Prices by a function of the point, and counts what it is asked.
template <class F>
class PriceBy : public Pricer {
 public:
  explicit PriceBy(F f, size_t batch = 1) : f_(std::move(f)), batch_(batch) {}
  Status price(std::span<const Point> points, double limit, std::span<double> seconds) override {
    HONE_CHECK(!points.empty() && points.size() <= batch_, "a batch of {}", points.size());
    for (size_t i = 0; i < points.size(); ++i) {
      HONE_CHECK(asked_[points[i]]++ == 0, "a point is priced twice");
      seconds[i] = f_(points[i]);
      if (!(seconds[i] < limit)) seconds[i] = std::max(limit, seconds[i] / 2);  // "any number"
    }
    return {};
  }
  size_t batch() const override { return batch_; }
  int64_t compiles() const override { return std::ssize(asked_); }
  const std::map<Point, int>& asked() const { return asked_; }

 private:
  F f_;
  const size_t batch_;
  std::map<Point, int> asked_;
};

}  // namespace hone

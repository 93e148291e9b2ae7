#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "search/factored_space.h"

namespace hone {

// Points are numbered from 0 as they are met; equal points have one number.
using Point = uint32_t;
// Gets one point after another, or none while the next one is looked for; false: enough.
using PointVisit = std::function<bool(std::optional<Point>)>;

// The space that a search looks through: schedules of a kernel (schedule_search.h), plans of a
// graph (plan_search.h), layouts (layout_search.h). It keeps what it has numbered. Deterministic by
// its calls and the numbers that it draws. For one thread at a time.
class SearchSpace {
 public:
  virtual ~SearchSpace() = default;

  // Where searches begin: what would be taken without a search. Its price may be infinite.
  virtual Point start() = 0;

  // Neighbours are ordered by coordinates: all that differ in one decision lie along one.
  virtual size_t coordinates(Point /*of*/) { return 1; }
  // Along one of them; where there are more than the limit, that many of them are drawn.
  virtual std::vector<Point> neighbours(Point of, size_t coordinate, size_t limit, Rng& rng) = 0;
  // For people, on one line.
  virtual std::string text(Point point) = 0;

  // A neighbour. None: there is none, or drawing has found none.
  virtual std::optional<Point> step(Point from, Rng& rng);
  // Any point. None: as above, or points are reached by steps alone.
  virtual std::optional<Point> sample(Rng& /*rng*/) { return std::nullopt; }
  // A point that has each decision from one of the two.
  virtual std::optional<Point> cross(Point /*a*/, Point /*b*/, Rng& /*rng*/) {
    return std::nullopt;
  }
  // Visits each point once, until the visitor has enough.
  virtual Status each(const PointVisit& visit);
  // How many points there are, at most; infinity: not known.
  virtual double size() { return std::numeric_limits<double>::infinity(); }
  // The parts that its prices are sums of. Null: that is not known.
  virtual FactoredSpace* factors() { return nullptr; }
};

}  // namespace hone

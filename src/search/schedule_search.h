#pragma once

#include <memory>
#include <unordered_map>

#include "cost/cost.h"
#include "kernel/schedule_space.h"
#include "search/search.h"

namespace hone {

// The schedules of a kernel; a coordinate is a decision of the algorithm.
//
//   ScheduleSearch space(facts, target, planned);
//   PricedSchedules prices(space, *cost.kernel(facts, threads));
//   const SearchResult found = HONE_TRY(search.run(space, prices, {.budget = {.trials = 1000}}));
//   space.schedule(found.best)
class ScheduleSearch : public SearchSpace {
 public:
  // The target outlives it. `start` is a schedule that check_schedule() accepts.
  ScheduleSearch(std::shared_ptr<const KernelFacts> facts, const Target& target, Schedule start);

  // References stay good.
  const Schedule& schedule(Point point) const { return *schedules_[point]; }
  Point point(const Schedule& schedule);
  const ScheduleSpace& space() const { return space_; }

  Point start() override { return 0; }
  size_t coordinates(Point of) override;
  std::vector<Point> neighbours(Point of, size_t coordinate, size_t limit, Rng& rng) override;
  std::optional<Point> step(Point from, Rng& rng) override;
  std::optional<Point> sample(Rng& rng) override { return point(space_.sample(rng)); }
  std::optional<Point> cross(Point a, Point b, Rng& rng) override;
  Status each(const PointVisit& visit) override;
  double size() override { return space_.size(); }
  std::string text(Point point) override;

 private:
  const std::shared_ptr<const KernelFacts> facts_;
  const ScheduleSpace space_;
  std::unordered_map<std::string, Point> points_;  // by text
  std::vector<std::unique_ptr<const Schedule>> schedules_;
};

// The price of schedules by a Cost. Both outlive it.
class PricedSchedules : public Pricer {
 public:
  PricedSchedules(const ScheduleSearch& space, PricedKernel& kernel)
      : space_(space), kernel_(kernel) {}
  Status price(std::span<const Point> points, double limit, std::span<double> seconds) override;

 private:
  const ScheduleSearch& space_;
  PricedKernel& kernel_;
};

}  // namespace hone

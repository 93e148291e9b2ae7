#include "search/schedule_search.h"

#include "kernel/schedule_text.h"

namespace hone {

ScheduleSearch::ScheduleSearch(std::shared_ptr<const KernelFacts> facts, const Target& target,
                               Schedule start)
    : facts_(std::move(facts)), space_(facts_->body, *facts_, target) {
  point(start);
}

Point ScheduleSearch::point(const Schedule& schedule) {
  const auto [at, is_new] =
      points_.try_emplace(print(schedule), static_cast<Point>(schedules_.size()));
  if (is_new) schedules_.push_back(std::make_unique<const Schedule>(schedule));
  return at->second;
}

size_t ScheduleSearch::coordinates(Point of) {
  return space_.decisions(schedule(of).algorithm()).size();
}

std::vector<Point> ScheduleSearch::neighbours(Point of, size_t coordinate, size_t limit, Rng& rng) {
  Schedules near = space_.neighbours(schedule(of), coordinate);
  if (near.size() > limit) {
    rng.shuffle(near);
    near.resize(limit);
  }
  std::vector<Point> points;
  for (const Schedule& next : near) points.push_back(point(next));
  return points;
}

std::optional<Point> ScheduleSearch::step(Point from, Rng& rng) {
  const std::optional<Schedule> next = space_.step(schedule(from), rng);
  return next ? std::optional(point(*next)) : std::nullopt;
}

std::optional<Point> ScheduleSearch::cross(Point a, Point b, Rng& rng) {
  return point(space_.cross(schedule(a), schedule(b), rng));
}

Status ScheduleSearch::each(const PointVisit& visit) {
  space_.each([&](const Schedule& schedule) { return visit(point(schedule)); },
              [&] { return visit(std::nullopt); });
  return {};
}

std::string ScheduleSearch::text(Point point) { return print(schedule(point)); }

Status PricedSchedules::price(std::span<const Point> points, double limit,
                              std::span<double> seconds) {
  std::vector<Schedule> schedules;
  for (Point point : points) schedules.push_back(space_.schedule(point));
  kernel_.price(schedules, limit, seconds);
  return {};
}

}  // namespace hone

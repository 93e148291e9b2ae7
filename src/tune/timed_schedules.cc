#include "tune/timed_schedules.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hone {
namespace {

constexpr double kNearly = 1.01;  // TimedSchedules::needed

}  // namespace

// ---- What is worth it ---------------------------------------------------------------------------

Promising::Promising(const std::shared_ptr<const KernelFacts>& facts, const Target& target,
                     const Cost& cost, int64_t threads, double share)
    : price_(cost.kernel(facts, threads)), refit_(facts, target, threads), share_(share) {}

Promising::Choice Promising::choose(std::span<const Schedule> batch) {
  Choice choice;
  choice.prices.resize(batch.size());
  price_->price(batch, std::numeric_limits<double>::infinity(), choice.prices);
  std::vector<double> corrected = choice.prices;
  refit_.correct(batch, corrected);
  choice.order.resize(batch.size());
  std::iota(choice.order.begin(), choice.order.end(), size_t{0});
  std::ranges::sort(choice.order, {}, [&](size_t i) { return std::pair(corrected[i], i); });
  choice.most = static_cast<size_t>(std::ceil(share_ * static_cast<double>(batch.size())));
  if (const std::optional<int64_t> worth = price_->worth_measuring())
    choice.most = static_cast<size_t>(*worth);
  return choice;
}

void Promising::learn(const Schedule& schedule, double price, double seconds) {
  if (std::isfinite(price) && std::isfinite(seconds)) refit_.keep(schedule, price, seconds);
}

// ---- Times --------------------------------------------------------------------------------------

Status TimedSchedules::price(std::span<const Point> points, double /*limit*/,
                             std::span<double> seconds) {
  std::vector<Schedule> schedules;
  for (Point point : points) schedules.push_back(space_.schedule(point));
  Promising::Choice choice;
  if (promising_ == nullptr) {
    choice = {.order = std::vector<size_t>(points.size()), .most = points.size()};
    std::iota(choice.order.begin(), choice.order.end(), size_t{0});
  } else {
    choice = promising_->choose(schedules);
  }
  std::vector<Schedule> wanted;
  for (size_t i : choice.order) wanted.push_back(schedules[i]);
  const auto answers = HONE_TRY(timer_.ask(wanted, choice.most));
  for (size_t k = 0; k < wanted.size(); ++k) {
    const size_t i = choice.order[k];
    seconds[i] = answers[k].seconds;
    if (!answers[k].is_new) continue;
    in_turn_.emplace_back(seconds[i], points[i]);
    if (promising_ != nullptr) promising_->learn(wanted[k], choice.prices[i], seconds[i]);
  }
  if (stepped_) stepped_(measured());
  return {};
}

std::vector<Point> TimedSchedules::fastest() const {
  std::vector<std::pair<double, Point>> sorted = in_turn_;
  std::ranges::sort(sorted);
  std::vector<Point> points;
  for (const auto& [seconds, point] : sorted)
    if (std::isfinite(seconds)) points.push_back(point);
  return points;
}

int64_t TimedSchedules::needed() const {
  if (in_turn_.empty()) return 0;
  const double enough = kNearly * std::ranges::min_element(in_turn_)->first;
  const auto first =
      std::ranges::find_if(in_turn_, [&](const auto& each) { return each.first <= enough; });
  return first - in_turn_.begin() + 1;
}

}  // namespace hone

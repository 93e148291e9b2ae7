#pragma once

#include <functional>
#include <map>

#include "search/schedule_search.h"
#include "tune/kernel_timer.h"
#include "tune/refit.h"

namespace hone {

// The schedules of a batch that are worth a measurement: the cheapest by a Cost, and by what it was
// wrong about before.
class Promising {
 public:
  // `share`: of a batch, unless the Cost says how many.
  Promising(const std::shared_ptr<const KernelFacts>& facts, const Target& target, const Cost& cost,
            int64_t threads, double share);

  struct Choice {
    std::vector<size_t> order;  // of the batch, the cheapest first
    size_t most = 0;            // that are worth it
    std::vector<double> prices = {};
  };
  Choice choose(std::span<const Schedule> batch);
  // A schedule of this price took so long.
  void learn(const Schedule& schedule, double price, double seconds);

 private:
  const std::unique_ptr<PricedKernel> price_;
  Refit refit_;
  const double share_;
};

// The one pricer that measures. A search asks it about many schedules at once, so that they are
// raced together. All are outlived by what they refer to.
class TimedSchedules : public Pricer {
 public:
  // Each schedule is measured.
  TimedSchedules(const ScheduleSearch& space, KernelTimer& timer) : space_(space), timer_(timer) {}
  // The promising ones are measured. The others have no time, as if they could not be carried out:
  // a price does not compare with a time. `stepped` hears measured() after each batch.
  TimedSchedules(const ScheduleSearch& space, KernelTimer& timer, Promising& promising,
                 std::function<void(int64_t)> stepped = {})
      : space_(space), timer_(timer), promising_(&promising), stepped_(std::move(stepped)) {}

  Status price(std::span<const Point> points, double limit, std::span<double> seconds) override;
  size_t batch() const override { return promising_ == nullptr ? 16 : 48; }
  int64_t compiles() const override { return timer_.compiles(); }

  // Candidates of different code that have a time, or have none to have.
  int64_t measured() const { return std::ssize(in_turn_); }
  // How many of these until one was as fast as the fastest, or within 1 %.
  int64_t needed() const;
  // The points that have a time, the fastest first.
  std::vector<Point> fastest() const;

 private:
  const ScheduleSearch& space_;
  KernelTimer& timer_;
  Promising* const promising_ = nullptr;
  const std::function<void(int64_t)> stepped_;
  std::vector<std::pair<double, Point>> in_turn_;  // those of different code
};

}  // namespace hone

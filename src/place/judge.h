#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "place/problem.h"
#include "timeline/held_memory.h"
#include "timeline/system_jobs.h"
#include "timeline/timeline.h"

// The value of a placement, by the timeline of the System. Nothing else decides what a plan costs,
// and whether it fits.

namespace hone {

// The number that is to be small.
enum class PlaceGoal : uint8_t {
  step,  // the end of one run: computing and messages go on side by side
  load,  // the time that the busiest device has its hands full, if runs follow each other
};
inline constexpr PlaceGoal kPlaceGoals[] = {PlaceGoal::step, PlaceGoal::load};
std::string_view name(PlaceGoal goal);

// The jobs of a placement: node by node, then message by message.
struct PlaceTimeline {
  SystemJobs jobs;
  Timeline timeline;
  std::vector<HeldBuffer> buffers;
  std::vector<HeldMemory> memory;  // of each device

  double seconds() const { return seconds_of(timeline.end()); }
  Ticks start(uint32_t node) const { return timeline.start(node); }
};

// Prices placements of one problem, which must outlive it. For one thread.
class PlaceJudge {
 public:
  // The problem has passed check().
  explicit PlaceJudge(const PlaceProblem& problem);

  const PlaceProblem& problem() const { return *problem_; }
  const std::vector<PlaceDevice>& devices() const { return devices_; }
  const std::vector<uint32_t>& order() const { return order_; }  // place_order()

  // The placement has passed check(). Over the limit: the times are more than a timeline takes.
  Result<PlaceTimeline> timeline(const DevicePlacement& placement) const;

  // The load of each device: the times of its nodes, and of the bytes that come and go, by its
  // port. A tensor counts once where it goes out, and once where it comes in.
  std::vector<double> loads(const DevicePlacement& placement) const;

  // True if the peak of no device is above its memory. The error names the first one that it is
  // not true of, by how much, and the nodes that hold most.
  Status check_memory(const DevicePlacement& placement, const PlaceTimeline& timeline) const;

  // The step or the greatest load; kCannotRun: memory is too small, or a timeline is too long.
  double value(const DevicePlacement& placement, PlaceGoal goal) const;

  // Seconds from the start of each node to the end of all, with messages to other devices, at the
  // mean of the devices: what to hurry with.
  std::vector<double> urgency() const;
  // Priorities by it: the most urgent node has the highest.
  std::vector<int32_t> urgent_first() const;

 private:
  std::vector<HeldBuffer> buffers(const DevicePlacement& placement) const;

  const PlaceProblem* problem_;
  std::vector<PlaceDevice> devices_;
  std::vector<uint32_t> order_;
  SystemJobs empty_;                                     // with the routes of the System
  std::vector<std::vector<uint32_t>> inputs_, outputs_;  // of each node: tensors
  bool has_memory_over_time_ = false;
};

// The devices other than the maker's that need a tensor, ascending.
std::vector<uint32_t> receivers(const PlaceTensor& tensor, const DevicePlacement& placement);

}  // namespace hone

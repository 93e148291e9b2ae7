#include "codegen/emit/lockstep.h"

namespace hone::code {

LoopSet Lockstep::lanes_loop() const {
  for (size_t depth = 0; depth < open_.size(); ++depth)
    if (open_[depth].is_lanes) return LoopSet{1} << depth;
  return 0;
}

const Lockstep::Open* Lockstep::lanes() const {
  for (const Open& loop : open_)
    if (loop.is_lanes) return &loop;
  return nullptr;
}

void Lockstep::each(LoopSet loops, const std::function<void(const Trips&)>& body) const {
  Trips trips = {};
  std::function<void(size_t)> from = [&](size_t depth) {
    if (depth == open_.size()) return body(trips);
    const bool counts = ((loops >> depth) & 1) != 0 && !open_[depth].is_lanes;
    for (int64_t trip = 0; trip < (counts ? open_[depth].extent : 1); ++trip) {
      trips[depth] = trip;
      from(depth + 1);
    }
    trips[depth] = 0;
  };
  from(0);
}

size_t Lockstep::points(LoopSet loops) const {
  int64_t points = 1;
  for (size_t depth = 0; depth < open_.size(); ++depth)
    if (((loops >> depth) & 1) != 0 && !open_[depth].is_lanes) points *= open_[depth].extent;
  return static_cast<size_t>(points);
}

size_t Lockstep::position(LoopSet loops, const Trips& trips) const {
  int64_t position = 0;
  for (size_t depth = 0; depth < open_.size(); ++depth)
    if (((loops >> depth) & 1) != 0 && !open_[depth].is_lanes)
      position = position * open_[depth].extent + trips[depth];
  return static_cast<size_t>(position);
}

Value Lockstep::at(const Grid& grid, const Trips& trips) const {
  return grid.values[position(grid.loops, trips)];
}

}  // namespace hone::code

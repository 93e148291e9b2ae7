#pragma once

#include <cstdint>
#include <vector>

#include "place/judge.h"

// Nodes that are placed as one, and the order in which contiguous splits cut them.

namespace hone {

// The nodes of a company, or a single one.
struct PlaceUnit {
  std::vector<uint32_t> nodes;
  std::vector<double> seconds;    // on each device, all of them; kCannotRun: not there
  std::vector<uint32_t> devices;  // that can have it: it runs there, is pinned nowhere else
  int64_t held = 0;               // bytes
  int64_t most = 0;               // bytes, if all that its nodes make were held at once, too

  // Its size if a share of what comes and goes is there at once.
  double bytes(double share) const {
    return static_cast<double>(held) + share * static_cast<double>(most - held);
  }
};

class PlaceUnits {
 public:
  // The judge outlives it.
  explicit PlaceUnits(const PlaceJudge& judge);

  const std::vector<PlaceUnit>& units() const { return units_; }
  uint32_t of(uint32_t node) const { return of_[node]; }

  // Units in blocks. A contiguous split gives a device blocks that follow each other. A tensor goes
  // from a block to itself or a later one. Backward nodes do the work of a step in the other
  // direction: what they make goes to an earlier block. Graphs of others draw their edges in either
  // direction, so that one is taken which leaves more blocks. Units of a circle are one block.
  const std::vector<std::vector<uint32_t>>& blocks() const { return blocks_; }
  // The blocks that must stand before each one, ascending.
  const std::vector<std::vector<uint32_t>>& before() const { return before_; }

  // The placement of units, with the priorities of the judge's urgency.
  DevicePlacement placement(const std::vector<uint32_t>& device_of_unit) const;
  std::vector<uint32_t> devices_of(const DevicePlacement& placement) const;

 private:
  void make_units(const PlaceJudge& judge);
  void make_blocks(const PlaceProblem& problem);

  std::vector<PlaceUnit> units_;
  std::vector<uint32_t> of_;
  std::vector<std::vector<uint32_t>> blocks_, before_;
  std::vector<int32_t> priority_;
};

}  // namespace hone

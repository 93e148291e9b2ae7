#pragma once

#include <vector>

#include "place/units.h"

// Why a node is where it is: its price on each device, and the value of the placement if it moved.

namespace hone {

// A node, with those of its company, on one of the devices.
struct PlaceChoice {
  double seconds = kCannotRun;  // of the node alone there; kCannotRun: it cannot be there
  // The value of the goal less that of the placement; kCannotRun: memory would not do.
  double change = kCannotRun;
};

// The choices by device. The placement fits; priorities stay as they are.
std::vector<PlaceChoice> choices_of(const PlaceJudge& judge, const PlaceUnits& units,
                                    const DevicePlacement& placement, PlaceGoal goal,
                                    uint32_t node);

}  // namespace hone

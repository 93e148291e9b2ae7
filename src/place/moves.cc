#include "place/moves.h"

#include <algorithm>

namespace hone {

std::vector<PlaceChoice> choices_of(const PlaceJudge& judge, const PlaceUnits& units,
                                    const DevicePlacement& placement, PlaceGoal goal,
                                    uint32_t node) {
  const double value = judge.value(placement, goal);
  const PlaceUnit& unit = units.units()[units.of(node)];
  std::vector<PlaceChoice> choices(judge.devices().size());
  for (uint32_t device = 0; device < choices.size(); ++device) {
    if (unit.seconds[device] == kCannotRun) continue;
    PlaceChoice& choice = choices[device];
    choice.seconds = judge.problem().nodes[node].seconds[judge.devices()[device].target];
    DevicePlacement moved = placement;
    for (const uint32_t one : unit.nodes) moved.device[one] = device;
    const double there = judge.value(moved, goal);
    if (there != kCannotRun) choice.change = there - value;
  }
  return choices;
}

}  // namespace hone

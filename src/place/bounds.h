#pragma once

#include "place/judge.h"

// Bounds of the step and of the load, in seconds: no placement is below them.

namespace hone {

struct PlaceBounds {
  double path = 0;     // the longest path, each node where it is fastest, without messages
  double work = 0;     // all the work, divided among the devices as well as can be
  double memory = 0;   // of the step: not all fits one device, so a tensor crosses; 0: it may fit
  double links = 0;    // of the step: a path between nodes that are pinned apart crosses somewhere
  double company = 0;  // of the load: the nodes of a company, on the device that suits them best

  double of(PlaceGoal goal) const;
  // "path", "work": which of them is the greatest.
  std::string_view name_of(PlaceGoal goal) const;
};

PlaceBounds place_bounds(const PlaceJudge& judge);

}  // namespace hone

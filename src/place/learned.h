#pragma once

#include <vector>

#include "place/placer.h"

namespace hone {

// Offers what the learned policy makes of the problem. Gives its probabilities of the devices of
// each unit, given the rest of its placement, for proposals of a search; empty: it has none.
std::vector<double> offer_learned(PlaceRun& run);

}  // namespace hone

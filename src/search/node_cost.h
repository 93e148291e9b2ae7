#pragma once

#include "rules/extract.h"
#include "target/target.h"

namespace hone {

// Seconds that a node adds, roughly, as far as it can be said without its neighbours. Products and
// windows take their arithmetic or their bytes and a launch, elementwise ops a part of their bytes,
// since most are fused, and what is a view nearly nothing. It ranks graphs for extraction; prices
// decide. `fused` is that part.
NodeCost node_cost(const Target& target, double fused = 0.25);

}  // namespace hone

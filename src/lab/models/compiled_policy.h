#pragma once

#include "compile/compilation.h"
#include "lab/models/placement_network.h"

// The policy of placement as a program that hone compiles: the network of training, frozen. It says
// what the plain code of place/policy.h says, up to rounding.

namespace hone {

// The least sizes of a problem.
PlacementSizes sizes_of(const PolicyView& view);

// A policy whose look() runs the program for problems of at most these sizes, and plain code for
// all others. `like`: any problem of at most these sizes.
Result<PlacePolicy> compiled_policy(const PlacePolicy& policy, const PolicyView& like,
                                    const PlacementSizes& sizes, const CompileOptions& compile);

}  // namespace hone

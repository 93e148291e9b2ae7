#pragma once

#include "plan/plan.h"
#include "tests/program/spmd_testing.h"

// Random products of what devices exchange, and their division into steps.

namespace hone::tested {

// A dot of what is gathered, or whose sums are scattered, on 2 devices or more. It has dims and
// batch dims in any order, any of them is gathered or scattered, and its shards may be uneven when
// they are cut into pieces.
SpmdCase draw_product(uint64_t seed, int32_t devices, bool is_exact);

// True if steps make the same numbers in the same order of additions as the undivided product: a
// gathered dim is not summed over.
bool keeps_bits(const SpmdCase& product);

// The rewrites that divide products of the graph into steps at random.
Plan random_overlaps(const Graph& graph, uint64_t seed);
// The graph by them.
Graph overlapped_by(const Graph& graph, const Plan& plan);

// Compares the graph with what random_overlaps() make of it, by the reference evaluator of several
// devices. An empty text: all is well.
std::string product_fault(uint64_t seed, int32_t devices, bool is_exact);

}  // namespace hone::tested

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/graph.h"

// Products that are divided into steps: devices compute on one shard while the next one moves. A
// product is a dot of what an all_gather makes, or a reduce_scatter of sums of what a dot makes.
//
// Each device has a shard, cut into pieces. In p rounds, p the members of a group, every piece goes
// once around the ring of the group. A round sends each piece to a neighbour, and computes the
// product that belongs to it.
//   all_gather: the pieces of the operand move. A product is a block of the result, or, if the
//     gathered dim is contracted, a term of it.
//   reduce_scatter: sums move. A product is added to the sum of the pieces that stand behind it.
// The steps are permutes, products and updates of a graph as any other, so lowering, prices and
// timelines need to know nothing of it. All rounds are written out: nothing is copied from one to
// the next.

namespace hone {

struct Overlap {
  static constexpr int64_t kMaxPieces = 64;

  bool is_both = false;  // every second piece goes around the other way
  int64_t pieces = 1;    // of each shard; at least 2 of sums, and of those that go both ways

  bool operator==(const Overlap&) const = default;
};

// "overlap_ring_2", "overlap_both_4": so a plan names it among the rules of its rewrites.
std::string name(const Overlap& overlap);
std::optional<Overlap> overlap_from_name(std::string_view name);

// The results of the products that can be divided: of a dot whose operand only it reads, or of a
// reduce_scatter that alone reads a dot.
std::vector<ValueId> overlap_candidates(const Graph& graph);
// The overlaps that a choice is made of, for a value.
std::vector<Overlap> overlaps_of(const Graph& graph, ValueId candidate);

// The graph in which the product that makes `result` is divided. Errors say why it cannot be.
// A block of an all_gather has the bits that it has in the undivided product, if kernels sum up in
// the same order. Sums are in the order of the ring, each step backwards where pieces go the other
// way.
Result<Graph> overlapped(const Graph& graph, ValueId result, const Overlap& overlap);

}  // namespace hone

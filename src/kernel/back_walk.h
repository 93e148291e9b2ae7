#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "kernel/kernel_body.h"

// A body is followed from its results back to what they are made of, as kernels compute it. A node
// is computed at each place where its results are needed, and needs its operands at places that its
// access relation tells. The walk decides what a place says: KernelFacts keeps the index over
// loops, GrowingWork the loops that the index depends on, stages the index as a block sees it.

namespace hone {

// Where values are needed. A Place has is_same(other), for those that are computed once, and
// absorb(other), which is called for them.
template <class Place>
class NeededPlaces {
 public:
  explicit NeededPlaces(size_t most = SIZE_MAX) : most_(most) {}  // of one value

  void add(ValueId value, Place place) {
    std::vector<Place>& places = places_[value.index];
    for (Place& known : places)
      if (known.is_same(place)) return known.absorb(place);
    if (places.size() < most_)
      places.push_back(std::move(place));
    else
      is_over_ = true;
  }
  std::vector<Place>& of(ValueId value) { return places_[value.index]; }
  std::vector<Place> take(ValueId value) { return std::exchange(places_[value.index], {}); }
  // True if some places were left out.
  bool is_over() const { return is_over_; }

 private:
  std::unordered_map<uint32_t, std::vector<Place>> places_;  // by value
  size_t most_;
  bool is_over_ = false;
};

// One access of a node to an operand.
struct BackRead {
  NodeId node;
  size_t operand;
  size_t piece;   // its position among the accesses to the operand
  size_t pieces;  // how many there are
  const Access& access;
};

// Computes the node wherever its results are needed. Nodes come from the last to the first.
//   walk.enter(node, relation, place) opens the loops of a reduction: an optional point of the
//   relation's dims; none ends the walk. walk.read(read, point, place) is where an operand is
//   needed for it.
template <class Place, class Walk>
void walk_back(const Graph& graph, NodeId node, const AccessRelation& relation,
               NeededPlaces<Place>& needed, Walk& walk) {
  for (ValueId result : graph.results(node)) {
    for (const Place& place : needed.take(result)) {
      const auto point = walk.enter(node, relation, place);
      if (!point) return;
      for (size_t i = 0; i < relation.operands.size(); ++i) {
        const ValueId operand = graph.operands(node)[i];
        const std::vector<Access>& accesses = relation.operands[i];
        for (size_t piece = 0; !operand.is_none() && piece < accesses.size(); ++piece) {
          const BackRead read = {node, i, piece, accesses.size(), accesses[piece]};
          needed.add(operand, walk.read(read, *point, place));
        }
      }
    }
  }
}

}  // namespace hone

#pragma once

#include <cmath>
#include <optional>

#include "alloc/blocks.h"
#include "alloc/folding.h"
#include "alloc/limits.h"

namespace hone {

// Places what is left of a folding, in several orders: below the goal if that is found, otherwise
// at the lowest.
Placement place_roots(const Folding& folding, int32_t sections, int64_t goal, Limits& limits);

// What is left of a folding, time and again: some large boxes, which are searched, and many small
// ones, which find place in what is left between these and above.
class LargeRoots {
 public:
  LargeRoots(const Packing& packing, int64_t goal, Limits& limits);

  // None if there are too many large ones, or nearly as many as last time, or all that is found is
  // as high as the best.
  std::optional<Placement> place(const Folding& folding, int64_t best);

 private:
  // Both by area.
  struct Sizes {
    std::vector<uint32_t> small, large;
  };
  std::optional<Placement> place(std::span<const Box> roots, const Sizes& sizes, int64_t most,
                                 int64_t below);
  std::optional<Sizes> split(std::span<const Box> roots, int64_t most) const;
  std::optional<Placement> search_large(const Packing& large, int64_t height);
  std::optional<Placement> fit_small(std::span<const Box> roots, const Sizes& sizes,
                                     const Placement& large, bool long_first, int64_t below) const;

  const int32_t sections_;
  const int64_t goal_;
  const int64_t bound_;  // the highest load
  Limits& limits_;
  std::vector<int64_t> moments_;  // where sections begin; as if the last were a moment long
  double searched_ = INFINITY;    // large ones of the last time; more, the longer that is ago
};

}  // namespace hone

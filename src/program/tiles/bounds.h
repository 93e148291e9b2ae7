#pragma once

#include <optional>
#include <span>
#include <vector>

#include "program/tiles/tiles.h"

// Bounds the accesses of a TileProgram, for every value of its symbols and of its data.

namespace hone {

struct DimRange {  // inclusive
  Dim low;
  Dim high;
};

class TileBounds {
 public:
  explicit TileBounds(const TileProgram& program);

  // Bounds of an expression at points where all guards hold.
  DimRange of(const IndexExpr& expr, std::span<const Guard> guards = {}) const;
  // The expression without the quotients and remainders that are superfluous where all guards hold:
  // i/8 is 0 for i < 8.
  IndexExpr simplified(const IndexExpr& expr, std::span<const Guard> guards = {}) const;
  // The guard, with others around: 0 <= 16*i + j < 64 is 0 <= i < 4 for j < 16.
  Guard simplified(const Guard& guard, std::span<const Guard> others) const;
  // True if the guard holds at every point where the others do; whether it never does.
  bool always(const Guard& guard, std::span<const Guard> others = {}) const;
  bool never(const Guard& guard, std::span<const Guard> others = {}) const;
  // The first axis along which the access is not proved to stay inside; none if it is along all.
  std::optional<int> outside(std::span<const IndexExpr> index, std::span<const Guard> guards,
                             Type type) const;

 private:
  std::vector<Guard> with_spans(std::span<const Guard> guards) const;

  const TileProgram& program_;
  std::vector<Guard> spans_;  // what holds of the index of a loop over a part of its trips
};

}  // namespace hone

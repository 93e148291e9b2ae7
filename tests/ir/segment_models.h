#pragma once

#include <string_view>

// Models of several segments that more than one test needs.

namespace hone {

// The positive elements of a vector, first in order, then how many there are; and twice them.
inline constexpr std::string_view kPositives = R"(
model @positives(%x: f32[6]) -> (%found: f32[K], %twice: f32[K]) where K in 0..6 {
  %found, %count = run %x crop %found[0] to %count
    graph @select(%x: f32[6]) -> (f32[6], i64[]) {
      %misses = compare %x, 0 {direction = le} : bool[6]
      %key = cast %misses {dtype = i64} : i64[6]
      %keys, %packed = sort %key, %x {axis = 0} : i64[6], f32[6]
      %total = reduce %key {kind = sum, axes = [0]} : i64[]
      %count = sub 6, %total : i64[]
      return %packed, %count
    }
  %twice = run %found
    graph @double(%v: f32[M]) -> f32[M] where M in 0..100 {
      %y = add %v, %v : f32[M]
      return %y
    }
}
)";

}  // namespace hone

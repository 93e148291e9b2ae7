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

// Doubles until 100 is reached or the trips are used up, and keeps a row of each: its number, and
// what it began with.
inline constexpr std::string_view kLoop = R"(
model @loop(%trips: i64[], %start: f32[]) -> (%end: f32[], %history: f32[H, 2])
    where H in 0..1000 {
  %empty, %yes = run graph @initial() {
    %0 = constant [] : f32[0, 2]
    %1 = constant true : bool[]
    return %0, %1
  }
  %end, %history = loop trip %trips while %yes counter %i with %state = %start grow %empty {
    %next, %row, %more = run %state, %i graph @step(%s: f32[], %i: i64[]) {
      %n = add %s, %s
      %r = cast %i {dtype = f32}
      %a = reshape %s {dims = [1, 1]}
      %b = reshape %r {dims = [1, 1]}
      %row = concat %b, %a {axis = 1}
      %more = compare %n, 100 {direction = lt}
      return %n, %row, %more
    }
    yield %next grow %row while %more
  }
}
)";

// A vector that each trip makes twice as long.
inline constexpr std::string_view kGrowingState = R"(
model @grow(%trips: i64[], %x: f32[N]) -> (%y: f32[L]) where N in 1..10, L in 1..1000 {
  %y = loop trip %trips with %s = %x {
    %t = run %s graph @twice(%s: f32[S]) -> f32[2*S] where S in 0..5000 {
      %t = concat %s, %s {axis = 0}
      return %t
    }
    yield %t
  }
}
)";

// One of two graphs, as data says.
inline constexpr std::string_view kIf = R"(
model @choose(%p: bool[], %x: f32[4]) -> (%y: f32[K]) where K in 1..4 {
  %y = if %p {
    %a = run %x graph @half(%x: f32[4]) {
      %a = slice %x {start = [0], limit = [2]}
      return %a
    }
    yield %a
  } else {
    yield %x
  }
}
)";

}  // namespace hone

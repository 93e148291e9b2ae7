#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "ir/reference/evaluate.h"
#include "tests/ir/op_testing.h"

namespace hone::testing {
namespace {

// ---- reduce
// --------------------------------------------------------------------------------------

TEST(Reduce, CombinesAlongAxes) {
  expect_eval("reduce {kind = sum, axes = [1]}", {"f32[2,3] 1 2 3 4 5 6"}, {"f32[2] 6 15"});
  expect_eval("reduce {kind = sum, axes = [0]}", {"f32[2,3] 1 2 3 4 5 6"}, {"f32[3] 5 7 9"});
  expect_eval("reduce {kind = sum, axes = [1, 0]}", {"f32[2,3] 1 2 3 4 5 6"}, {"f32[] 21"});
  expect_eval("reduce {kind = sum, axes = []}", {"f32[2] 1 2"}, {"f32[2] 1 2"});
  expect_eval("reduce {kind = sum, axes = []}", {"i32[] 7"}, {"i32[] 7"});
  expect_eval("reduce {kind = product, axes = [0, 2]}", {"f32[2,2,2] 1 2 3 4 5 6 7 8"},
              {"f32[2] 60 672"});
  expect_eval("reduce {kind = max, axes = [0]}", {"f64[3] -3 -1 -2"}, {"f64[] -1"});
  expect_eval("reduce {kind = min, axes = [0]}", {"f16[3] -3 -1 -2"}, {"f16[] -3"});
  expect_eval("reduce {kind = and, axes = [0]}", {"bool[2,3] true true false true false false"},
              {"bool[3] true false false"});
  expect_eval("reduce {kind = or, axes = [0]}", {"bool[2,3] true true false true false false"},
              {"bool[3] true true false"});
  expect_eval("reduce {kind = and, axes = [0]}", {"u8[3] 14 7 6"}, {"u8[] 6"});
  expect_eval("reduce {kind = or, axes = [0]}", {"i8[2] -128 1"}, {"i8[] -127"});
}

TEST(Reduce, OfNothingIsTheIdentity) {
  expect_eval("reduce {kind = sum, axes = [0]}", {"f32[0,2]"}, {"f32[2] 0 0"});
  expect_eval("reduce {kind = product, axes = [0]}", {"i32[0]"}, {"i32[] 1"});
  expect_eval("reduce {kind = max, axes = [0]}", {"f16[0]"}, {"f16[] -inf"});
  expect_eval("reduce {kind = min, axes = [0]}", {"f64[0]"}, {"f64[] inf"});
  expect_eval("reduce {kind = max, axes = [0]}", {"i8[0]"}, {"i8[] -128"});
  expect_eval("reduce {kind = min, axes = [0]}", {"i16[0]"}, {"i16[] 32767"});
  expect_eval("reduce {kind = max, axes = [0]}", {"u64[0]"}, {"u64[] 0"});
  expect_eval("reduce {kind = min, axes = [0]}", {"u64[0]"}, {"u64[] 18446744073709551615"});
  expect_eval("reduce {kind = and, axes = [0]}", {"bool[0]"}, {"bool[] true"});
  expect_eval("reduce {kind = and, axes = [0]}", {"u16[0]"}, {"u16[] 65535"});
  expect_eval("reduce {kind = and, axes = [0]}", {"i32[0]"}, {"i32[] -1"});
  expect_eval("reduce {kind = or, axes = [0]}", {"bool[0]"}, {"bool[] false"});
  expect_eval("reduce {kind = sum, axes = [1]}", {"f32[0,2]"}, {"f32[0]"});
}

}  // namespace
}  // namespace hone::testing

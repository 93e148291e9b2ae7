#pragma once

#include "base/rng.h"
#include "ir/builder.h"
#include "ir/functional.h"

// Bodies of convs for tests.

namespace hone {

// A conv of one or two dims with windows of 3, and something before and after it.
inline Graph random_winograd_conv(Rng& rng, int64_t groups = 1) {
  constexpr DType kTypes[] = {DType::f32, DType::f32, DType::f64, DType::bf16, DType::f16};
  Builder b;
  const DType dtype = rng.pick(kTypes);
  // The body of a group.
  const int64_t in = rng.between(groups > 1 ? 2 : 1, 6), out = rng.between(1, 9);
  const bool is_last = rng.chance(0.3);  // channels
  const int spatial = rng.chance(0.3) ? 1 : 2;
  Dims image = {rng.between(1, 3)}, window;
  Ints low, high;
  if (!is_last) image.push_back(groups * in), window = {groups * out, in};
  for (int i = 0; i < spatial; ++i) {
    image.push_back(rng.between(3, 14));
    window.push_back(3);
    low.push_back(rng.between(0, 2));
    high.push_back(rng.between(0, 2));
  }
  if (is_last) image.push_back(groups * in), window.insert(window.end(), {in, groups * out});
  Value x = b.parameter("x", dtype, image);
  if (rng.chance(0.3)) x = maximum(x, 0);
  const std::string digits = spatial == 1 ? "0" : "01";
  const std::string order = is_last ? fmt::format("b{0}f_{0}io->b{0}f", digits) : "";
  Value y = b.op(Opcode::conv, {x, b.parameter("w", dtype, window)},
                 {{"order", order},
                  {"pad_low", low},
                  {"pad_high", high},
                  {"groups", groups},
                  {"winograd", rng.chance(0.3) ? 2 : 4}});
  if (rng.chance(0.5)) {
    const int axis = is_last ? spatial + 1 : 1;
    y = y + broadcast(b.parameter("bias", dtype, {y.dim(axis)}), y.dims(), {axis});
  }
  if (rng.chance(0.3)) y = maximum(y, 0);
  if (spatial == 2 && rng.chance(0.3)) y = transpose(y, {0, 2, 3, 1});
  if (rng.chance(0.3)) y = b.parameter("r", dtype, y.dims()) - y;
  return b.finish({y}).value();
}

}  // namespace hone

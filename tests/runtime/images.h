#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/image.h"
#include "tests/runtime/compile.h"

// Images for tests, with kernels in C++.

namespace hone::tested {

inline constexpr std::string_view kKernels = R"(
using Int = long;
#define PHASE(name) \
  extern "C" void name(void* const* buffers, const Int* symbols, void* scratch, Int begin, Int end)
#define AT(type, i) ((type*)buffers[i])

PHASE(add) {
  for (Int i = begin; i < end; ++i) AT(float, 2)[i] = AT(float, 0)[i] + AT(float, 1)[i];
}
PHASE(scale) {  // y = x * symbol
  for (Int i = begin; i < end; ++i) AT(float, 1)[i] = AT(float, 0)[i] * symbols[0];
}
// Two phases: every x of the first is seen by the second, which runs backwards.
PHASE(square) {
  for (Int i = begin; i < end; ++i) AT(float, 1)[i] = AT(float, 0)[i] * AT(float, 0)[i];
}
PHASE(reverse) {
  for (Int i = begin; i < end; ++i) AT(float, 2)[i] = AT(float, 1)[symbols[0] - 1 - i];
}
PHASE(with_scratch) {  // y = x + 1, by way of scratch
  float* local = (float*)scratch;
  for (Int i = begin; i < end; ++i) local[i - begin] = AT(float, 0)[i];
  for (Int i = begin; i < end; ++i) AT(float, 1)[i] = local[i - begin] + 1;
}
PHASE(count_up) { AT(Int, 0)[0] += 1; }
PHASE(is_below) { AT(bool, 1)[0] = AT(Int, 0)[0] < symbols[0]; }
PHASE(nothing) {}
)";

// A launch of one phase of kKernels, whose kernel is added to the image.
inline image::Command launch(Image& image, std::string phase, int64_t trips,
                             std::vector<image::Place> buffers, std::vector<int64_t> symbols = {}) {
  image.kernels.push_back(
      {.name = phase, .object = compile(kKernels), .phases = {{phase, trips, true}}});
  const auto kernel = static_cast<uint32_t>(image.kernels.size() - 1);
  return {phase, image::Launch{kernel, std::move(buffers), std::move(symbols)}};
}

inline image::Place input(uint32_t index, int64_t bytes, int64_t offset = 0) {
  return {image::Place::Region::input, index, offset, bytes, {}};
}
inline image::Place output(uint32_t index, int64_t bytes, int64_t offset = 0) {
  return {image::Place::Region::output, index, offset, bytes, {}};
}
inline image::Place constant(uint32_t index, int64_t bytes, int64_t offset = 0) {
  return {image::Place::Region::constant, index, offset, bytes, {}};
}
inline image::Place arena(int64_t offset, int64_t bytes) {
  return {image::Place::Region::arena, 0, offset, bytes, {}};
}
inline image::Place moving(image::Place place, std::vector<image::Step> steps) {
  place.steps = std::move(steps);
  return place;
}

inline Type f32(std::initializer_list<Dim> dims) { return Type::get(DType::f32, dims); }

// (x + w) * 3, of n numbers, by way of the arena.
inline Image affine(int64_t n, const Tensor& w, int64_t threads = 2) {
  Image image = {.name = "affine", .threads = threads};
  image.inputs = {{"x", f32({n})}};
  image.outputs = {{"y", f32({n})}};
  image.constants = {w};
  image.arena_bytes = 4 * n;
  image.commands.push_back(
      launch(image, "add", n, {input(0, 4 * n), constant(0, 4 * n), arena(0, 4 * n)}));
  image.commands.push_back(launch(image, "scale", n, {arena(0, 4 * n), output(0, 4 * n)}, {3}));
  return image;
}

}  // namespace hone::tested

#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "ir/op.h"
#include "shard/mesh_parts.h"

// The cheapest way from one division of a value to another.

namespace hone {

struct ShardLayout {
  std::vector<MeshParts> dims = {};
  MeshParts partial = {};  // the devices along these hold what combines to the value
  bool operator==(const ShardLayout&) const = default;
};

enum class ReshardKind : uint8_t {
  slice,           // each device takes its part: nothing moves
  resize,          // a dim that is whole gets zeros at its end, or loses what stands there
  all_gather,      // of the innermost axis of a dim
  all_to_all,      // the innermost axis of a dim goes to another dim
  reduce_scatter,  // a partial value becomes whole, and is divided at once
  all_reduce,
  permute,  // each device gets the part of another one, or elements of a neighbour for a window
};
std::string_view name(ReshardKind kind);  // "all_gather"
constexpr bool is_exchange(ReshardKind kind) {
  return kind != ReshardKind::slice && kind != ReshardKind::resize;
}

// Data that the devices along some axes exchange at once.
struct MeshExchange {
  ReshardKind kind;
  MeshParts axes;
  int64_t bytes = 0;  // that each device receives in a run
  int64_t element_bytes = 1;
  int64_t hop = 0;  // permute: how many places further the receiver stands
  // Or who sends and who receives, of the devices along the axes; without axes, of all.
  Ints pairs = {};
  int64_t times = 1;  // in a run: as often as the loop around it runs
};

struct ReshardStep {
  ReshardKind kind;
  MeshPart part;
  size_t from = 0;    // the dim that loses the axis: all_gather, all_to_all
  size_t to = 0;      // the dim that gets it: slice, all_to_all, reduce_scatter; or that is resized
  int64_t size = 0;   // resize: of the dim
  int64_t bytes = 0;  // that each device receives
  std::vector<MeshParts> have = {}, want = {};  // permute: the axes of all dims, before and after
};

// The price of a step; null: the bytes that a device receives.
using ReshardPrice = std::function<double(const ReshardStep& step, int64_t element_bytes)>;
double price_of(const ReshardStep& step, int64_t element_bytes, const ReshardPrice& price);

// Where axes do not divide a size, parts have padding. If they begin elsewhere in the wanted
// layout, the dim is whole for a moment, and is resized. Steps are the cheapest by their prices,
// then the fewest; if there are too many ways to compare, the value becomes whole between.
std::vector<ReshardStep> reshard_steps(const ShardLayout& from, const ShardLayout& to,
                                       const std::vector<int64_t>& sizes, int64_t element_bytes,
                                       const ReshardPrice& price = nullptr);

// The bytes that a device has, padding included.
int64_t part_bytes(const ShardLayout& layout, const std::vector<int64_t>& sizes,
                   int64_t element_bytes);

}  // namespace hone

#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "runtime/image.h"

namespace hone {

// How devices divide the batch of a model: plain data, which a compiled file has, too.
struct BatchDivision {
  static constexpr int64_t kMaxShares = 256;
  // The rows of a device, and the code that computes them.
  struct Share {
    int64_t first = 0;
    int64_t count = 0;
    uint32_t code = 0;  // an index of images: devices may have the same
    bool operator==(const Share&) const = default;
  };

  int64_t rows = 0;
  // For each input and output: the dim along which each device has its own rows, or -1: each device
  // takes or gives all of it.
  std::vector<int> inputs = {};
  std::vector<int> outputs = {};
  std::vector<Share> shares = {};  // in the order of rows; all devices that have some

  // One more than the last code.
  size_t codes() const {
    uint32_t last = 0;
    for (const Share& share : shares) last = std::max(last, share.code);
    return size_t{last} + 1;
  }
  bool operator==(const BatchDivision&) const = default;
};

// The type of the part that a device with `count` of the rows has, where rows lie along the dim.
Type share_of(Type whole, int dim, int64_t rows, int64_t count);

// True if the shares are of all rows, in order, and the ports, those of all devices together, have
// rows where it says so.
Status check(const BatchDivision& division, std::span<const image::Port> inputs,
             std::span<const image::Port> outputs);

// True if devices that run these images are a group: they exchange something, and so wait for each
// other, or ask for their number.
bool exchange_data(std::span<const Image> images);

// True if devices that run these images begin to exchange the same things in the same order, in
// loops as in front of them. Else they would wait for each other.
Status check_meetings(std::span<const Image> images);

}  // namespace hone

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "place/placer.h"

// A problem of placement as the learned policy sees it: numbers that do not depend on units, so
// that graphs and Systems of all sizes look alike. Times count in the mean time of a node, bytes in
// memories of a device.

namespace hone {

struct PolicyView {
  static constexpr size_t kNode = 16, kDevice = 10;  // features of each

  // Rows stand in the judge's order, which is topological; so neighbours stand near each other.
  std::vector<uint32_t> node_of, row_of;
  // Devices by rank: the fastest first, then those with more memory, then by number. So another
  // numbering of unlike devices is the same view.
  std::vector<uint32_t> device_of, rank_of;
  std::vector<float> node;    // [rows, kNode]
  std::vector<float> device;  // [ranks, kDevice]
  std::vector<float> links;   // [ranks, ranks]: how near others are; a row adds up to 1
  std::vector<uint8_t> can;   // [rows, ranks]: 1 if the node may be on the device
  std::vector<uint32_t> sources, targets;  // edges, by rows: as many as tensors have users
  std::vector<double> urgency;             // by row, 1 for the most urgent one
  double unit = 1;                         // seconds
  // Offsets of the urgency count by it: so a long graph is ordered as finely as a short one.
  double order_scale = 1;

  explicit PolicyView(PlaceRun& run);

  size_t rows() const { return node_of.size(); }
  size_t ranks() const { return device_of.size(); }
};

}  // namespace hone

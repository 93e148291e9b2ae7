#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "target/system.h"

// The problem of placement: which device of a System computes each node, and in which order. Nodes
// make tensors for other nodes. A tensor crosses to a device once, whoever waits for it there.
// Prices are data: nothing here knows of graphs, kernels or costs.

namespace hone {

inline constexpr double kCannotRun = std::numeric_limits<double>::infinity();
inline constexpr int64_t kAnywhere = -1;

struct PlaceNode {
  int64_t id = 0;                // in texts and errors; those of a problem differ
  std::string name;              // for people
  std::vector<double> seconds;   // by target of the System; kCannotRun: not there
  int64_t held = 0;              // bytes that its device holds all the time: weights
  int64_t scratch = 0;           // bytes that it needs while it runs
  int64_t together = kAnywhere;  // nodes of the same number are on one device
  int64_t pinned = kAnywhere;    // its device
  bool backward = false;         // of the second half of a training step

  bool operator==(const PlaceNode&) const = default;
};

// Nodes that wait for another one wait for a tensor of it.
struct PlaceTensor {
  uint32_t maker = 0;           // by position in nodes
  std::vector<uint32_t> users;  // ascending, at least one
  double bytes = 0;             // that cross a link
  int64_t held = 0;  // bytes on its device from the start of the maker to the end of the last user
                     // there, or of the last message; on others from the message on

  bool operator==(const PlaceTensor&) const = default;
};

// A node that may be one kernel with the only node that uses what it makes. Then that is not
// stored, and nobody sends it.
struct PlaceFusion {
  uint32_t maker = 0, user = 0;
  // Seconds that it takes less than both alone, by target. At most what the maker takes.
  std::vector<double> saves;

  bool operator==(const PlaceFusion&) const = default;
};

struct PlaceProblem {
  std::string name;
  System system;
  std::vector<PlaceNode> nodes;
  std::vector<PlaceTensor> tensors;
  std::vector<PlaceFusion> fusions;  // that may be made, at most one of each maker (fuse.h)
  // Seconds that a device is kept busy by a byte that comes or goes, by target. Loads count them;
  // a step does not, where messages go on beside the computing. Empty: the links say it.
  std::vector<double> ports;

  uint32_t devices() const { return static_cast<uint32_t>(system.device_count()); }
  bool operator==(const PlaceProblem&) const = default;
};

// A device: its target, its memory and its port.
struct PlaceDevice {
  uint32_t target = 0;
  int64_t memory = 0;
  double port = 0;  // seconds for each byte

  bool operator==(const PlaceDevice&) const = default;
};
// Where the problem has no ports, that of a device is the least bandwidth on the way to the next
// device, and from the last one to the first.
std::vector<PlaceDevice> place_devices(const PlaceProblem& problem);

// True if the problem makes sense: the numbers are in range, and no node waits for itself. Nodes
// that must be together fit a device that can run them. The system has passed its own check. Errors
// name the nodes by their ids, and by how much they do not fit.
Status check(const PlaceProblem& problem);

// The problem on the devices of another system. Targets of the same name keep their times, the
// others have those of the first target before.
Result<PlaceProblem> on_system(PlaceProblem problem, System system);

// The nodes in an order in which each one stands behind those that it waits for; of several the
// first one. Nodes that wait for a circle of nodes, or are in it, are left out.
std::vector<uint32_t> place_order(const PlaceProblem& problem);

// "node 3 'conv1'"
std::string name_of(const PlaceNode& node);

// A device for each node, and what a free device takes of its ready nodes: that of the highest
// priority, then the first.
struct DevicePlacement {
  std::vector<uint32_t> device;
  std::vector<int32_t> priority;  // empty: all are 0

  bool operator==(const DevicePlacement&) const = default;
};

// True if each node has a device that can run it, where its pin and its company are. Memory is the
// judge's (judge.h).
Status check(const PlaceProblem& problem, const DevicePlacement& placement);

inline constexpr size_t kMaxPlaceNodes = size_t{1} << 20;
inline constexpr size_t kMaxPlaceUses = size_t{1} << 22;  // of all tensors
inline constexpr int64_t kMaxPlaceDevices = 256;
inline constexpr size_t kMaxPlacePairs = size_t{1} << 26;  // nodes, or tensors, times devices
inline constexpr double kMaxPlaceSeconds = 9000;           // of a node; a timeline takes no more
inline constexpr double kMaxPlaceBytes = 0x1p52;           // of a tensor on a link
inline constexpr int64_t kMaxPlaceHeld = int64_t{1} << 50;
// No device has more, so a sum that is cut here does not fit either.
inline int64_t sum_of_bytes(int64_t a, int64_t b) { return std::min(a + b, int64_t{1} << 60); }

}  // namespace hone

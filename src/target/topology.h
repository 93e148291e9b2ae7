#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "target/system.h"

// The links of a System one by one, and the routes between its devices.

namespace hone {

// Messages share it. A link with two ways is two of these, unless both ways share the bandwidth.
struct Link {
  double bytes_per_second = 0;
  double latency = 0;  // seconds
  bool shared = true;  // see Links
};

class Topology {
 public:
  // The devices and the names of the system have passed check().
  explicit Topology(const System& system);

  int64_t devices() const { return devices_; }
  std::span<const Link> links() const { return links_; }
  // "ring 3 > 4", "port 5 > host 0", "bus of host 1", "cable 0 - 7"
  std::string link_name(uint32_t link) const;

  // The links that a message crosses, in order. The route has the least latency, then the
  // fewest links. Among these the rows that are said first come first, and forward is before
  // backward. It is empty if both are the same device. check() refuses devices without a route.
  std::vector<uint32_t> route(int64_t from, int64_t to) const;
  double latency(std::span<const uint32_t> route) const;  // seconds

  // A device that device 0 does not reach, or that does not reach device 0; -1: none.
  int64_t unreached() const;

 private:
  friend class TopologyBuilder;
  // Points are the devices, and behind them both sides of each switch: where messages come in, and
  // where they go out.
  struct Arc {
    uint32_t to;    // a point
    uint32_t link;  // kFree: nothing is crossed
    uint32_t rank;  // of equal ways the one with the higher last arc is taken
  };
  static constexpr uint32_t kFree = UINT32_MAX;
  struct Ends {
    uint32_t row;
    uint32_t from, to;  // points; the sides of a switch if it is the link of a bus
    bool both_ways;
  };
  bool same_switch(uint32_t a, uint32_t b) const;
  // The device, or the switch with both of its sides.
  uint32_t node_of(uint32_t point) const;
  void find_branches();
  std::string point_name(uint32_t point) const;

  uint32_t devices_ = 0;
  std::vector<Link> links_;
  std::vector<Ends> ends_;              // of each link
  std::vector<std::string> rows_;       // names
  std::vector<std::string> switches_;   // names
  std::vector<std::vector<Arc>> arcs_;  // from each point
  // Nodes that hang from the rest by one other node, which is said here; kFree: it does not hang.
  std::vector<uint32_t> hangs_from_;
};

}  // namespace hone

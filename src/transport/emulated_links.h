#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "target/topology.h"

// Links that are slower than memory. Bytes move at once, but a message becomes visible only when
// its flow has drained through the links of its route, plus their latency. The emulation of a
// running transport and the virtual clock ask the same table, so they differ by overheads only.

namespace hone {

struct EmulatedRoute {
  std::vector<uint32_t> links;  // that a message crosses; none: no link slows it down
  double latency = 0;           // seconds, of all of them
};

struct EmulatedLinks {
  std::function<EmulatedRoute(int32_t from, int32_t to)> route;
  // How flows share links: the bytes per second of each flow, given the links that it crosses.
  // Each one gets some.
  std::function<void(std::span<const std::span<const uint32_t>> flows, std::span<double> rates)>
      share;
};

// The links of a system, of which messages share those that they share in a timeline, in the same
// way (target/shares.h). Devices are those of the system.
EmulatedLinks emulated_links(const Topology& topology);

// The messages that are on their way, in seconds of any clock.
class FlowTable {
 public:
  explicit FlowTable(EmulatedLinks links) : links_(std::move(links)) {}

  // A message begins its way now, which is not before any earlier call. The numbers of flows are
  // never 0. Others may come later from now on, or sooner.
  uint64_t start(double now, int32_t from, int32_t to, int64_t bytes);
  // When the message is visible, if nothing else starts.
  double visible_at(uint64_t flow) const { return flows_.at(flow).visible; }
  void forget(uint64_t flow);  // nobody asks for it any more

 private:
  struct Flow {
    EmulatedRoute route;
    double left = 0;     // bytes, at the time of the table
    double visible = 0;  // predicted
    bool forgotten = false;
  };
  using Open = std::vector<Flow*>;
  std::vector<double> rates_of(const Open& open) const;
  // Goes on until `end` without new flows; flows that drain get their time.
  void advance(Open& open, std::vector<double>& left, double from, double end) const;

  const EmulatedLinks links_;
  double now_ = 0;
  uint64_t last_ = 0;
  std::map<uint64_t, Flow> flows_;
};

}  // namespace hone

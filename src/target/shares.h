#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "target/topology.h"

// How messages at the same time share links. The timeline asks it. Emulated links and the virtual
// clock take such a function, so that they can differ by overheads only.

namespace hone {

// A flow is a message on its way. It crosses a link; `flows` is how many flows like this one cross
// it, for callers that let one flow stand for many that do the same.
struct Crossing {
  uint32_t link = 0;
  uint32_t flows = 1;
};

// Max-min fair: no flow can have more unless one that has no more than it gets less. Shares are
// filled progressively: the links with the least left for each of their open flows give them that,
// and these flows are closed.
class LinkShares {
 public:
  // The links, by their numbers, which must outlive this.
  explicit LinkShares(std::span<const Link> links);

  // The bytes per second of each flow, given the links that it crosses. A flow that crosses none
  // has infinitely many. Only links that flows cross take time, so callers pass the flows that
  // touch what has changed, with all that share a link with them. The rates of flows that share no
  // link, not even through others, do not depend on each other, to the last bit.
  void share(std::span<const std::span<const Crossing>> flows, std::span<double> rates);

 private:
  struct State {
    double left = 0;     // bytes per second
    double least = 0;    // what its open flows get at least: those before got this
    int64_t open = 0;    // flows
    uint32_t first = 0;  // its part of flows_of_
    uint32_t count = 0;

    // Rounding takes nothing from the last flow.
    double share() const { return std::max(least, left / static_cast<double>(open)); }
  };
  void open_links(std::span<const std::span<const Crossing>> flows);
  void close_full(std::span<const std::span<const Crossing>> flows, std::span<double> rates,
                  double rate);
  void close(uint32_t flow, std::span<const Crossing> crossings, double rate);

  std::span<const Link> links_;
  std::vector<State> states_;                        // by link; empty between calls
  std::vector<uint32_t> touched_;                    // links
  std::vector<uint32_t> flows_of_;                   // link by link
  std::vector<std::pair<double, uint32_t>> capped_;  // rates that flows cannot exceed
  std::vector<bool> closed_;                         // flows
};

}  // namespace hone

#include "target/shares.h"

#include <algorithm>
#include <limits>

#include "base/planted.h"
namespace hone {

LinkShares::LinkShares(std::span<const Link> links) : links_(links), states_(links.size()) {}

void LinkShares::share(std::span<const std::span<const Crossing>> flows, std::span<double> rates) {
  HONE_CHECK(flows.size() == rates.size(), "{} flows, {} rates", flows.size(), rates.size());
  open_links(flows);
  std::sort(capped_.begin(), capped_.end());
  for (size_t next_cap = 0;;) {
    double least = std::numeric_limits<double>::infinity();
    for (uint32_t link : touched_)
      if (states_[link].open > 0) least = std::min(least, states_[link].share());
    while (next_cap < capped_.size() && closed_[capped_[next_cap].second]) ++next_cap;
    if (next_cap < capped_.size() && capped_[next_cap].first <= least) {
      const auto [cap, flow] = capped_[next_cap++];
      rates[flow] = cap;
      close(flow, flows[flow], cap);
      continue;
    }
    if (least == std::numeric_limits<double>::infinity()) break;
    close_full(flows, rates, least);
  }
  for (uint32_t link : touched_) states_[link] = {};
}

// Notes the links that the flows cross, and the flows that cross each of them.
void LinkShares::open_links(std::span<const std::span<const Crossing>> flows) {
  touched_.clear();
  capped_.clear();
  closed_.assign(flows.size(), false);
  constexpr double infinite = std::numeric_limits<double>::infinity();
  for (size_t flow = 0; flow < flows.size(); ++flow) {
    double cap = infinite;
    for (const Crossing& crossing : flows[flow]) {
      const Link& link = links_[crossing.link];
      if (!link.shared) {
        cap = std::min(cap, link.bytes_per_second);
        continue;
      }
      State& state = states_[crossing.link];
      if (state.count++ == 0) {
        state.left = link.bytes_per_second;
        touched_.push_back(crossing.link);
      }
      state.open += crossing.flows;
    }
    if (cap < infinite || flows[flow].empty()) capped_.emplace_back(cap, flow);
  }
  std::sort(touched_.begin(), touched_.end());
  uint32_t first = 0;
  for (uint32_t link : touched_) {
    states_[link].first = first;
    first += std::exchange(states_[link].count, 0);
  }
  flows_of_.resize(first);
  for (size_t flow = 0; flow < flows.size(); ++flow)
    for (const Crossing& crossing : flows[flow])
      if (links_[crossing.link].shared) {
        State& state = states_[crossing.link];
        flows_of_[state.first + state.count++] = static_cast<uint32_t>(flow);
      }
}

// Closes the flows of the links that have no more than this left for each of them.
void LinkShares::close_full(std::span<const std::span<const Crossing>> flows,
                            std::span<double> rates, double rate) {
  for (uint32_t link : touched_) {
    const State& state = states_[link];
    if (state.open == 0 || state.share() > rate) continue;
    for (uint32_t i = 0; i < state.count; ++i) {
      const uint32_t flow = flows_of_[state.first + i];
      if (closed_[flow]) continue;
      rates[flow] = rate;
      close(flow, flows[flow], rate);
    }
  }
}

void LinkShares::close(uint32_t flow, std::span<const Crossing> crossings, double rate) {
  closed_[flow] = true;
  for (const Crossing& crossing : crossings) {
    if (!links_[crossing.link].shared) continue;
    State& state = states_[crossing.link];
    state.left = std::max(0.0, state.left - rate * HONE_PLANT(flows_as_one, crossing.flows, 1));
    state.open -= crossing.flows;
    state.least = std::max(state.least, rate);
  }
}

}  // namespace hone

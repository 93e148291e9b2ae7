#include "assign/core_state.h"

#include <algorithm>

namespace hone {

CoreState::CoreState(const Core& core, const CoreTables& tables)
    : core_(core), tables_(tables), penalties_(core.slack.size()) {}

void CoreState::set(std::vector<uint32_t> options) {
  options_ = std::move(options);
  free_.assign(core_.slack.begin(), core_.slack.end());
  cost_ = 0;
  for (size_t i = 0; i < options_.size(); ++i) {
    const CoreNode& node = core_.nodes[i];
    cost_ += static_cast<double>(node.costs[options_[i]]);
    for (size_t s = 0; s < node.spans.size(); ++s)
      for (uint32_t t = node.spans[s].from; t < node.spans[s].to; ++t)
        free_[t] -= static_cast<double>(node.usages_in(s)[options_[i]]);
  }
  for (uint32_t e = 0; e < core_.edges.size(); ++e) {
    const CoreEdge& edge = core_.edges[e];
    const size_t length = row_length(core_.nodes[edge.second].options());
    cost_ += tables_.rows(e, edge.first)[options_[edge.first] * length + options_[edge.second]];
  }
  full_times_ = std::ranges::count_if(free_, [](double free) { return free < 0; });
  set_penalties(std::move(penalties_));
}

void CoreState::set_penalties(std::vector<double> penalties) {
  penalties_ = std::move(penalties);
  penalty_ = 0;
  for (size_t t = 0; t < free_.size(); ++t) penalty_ += penalties_[t] * std::max(-free_[t], 0.0);
}

double CoreState::change_of_cost(uint32_t index, uint32_t option) const {
  const CoreNode& node = core_.nodes[index];
  const uint32_t old = options_[index];
  auto change = static_cast<double>(node.costs[option] - node.costs[old]);
  const size_t length = row_length(node.options());
  for (uint32_t e : node.edges) {
    const uint32_t other = core_.edges[e].other(index);
    const double* row = tables_.rows(e, other) + options_[other] * length;
    change += row[option] - row[old];
  }
  return change;
}

void CoreState::take(uint32_t index, uint32_t option) {
  const CoreNode& node = core_.nodes[index];
  const uint32_t old = options_[index];
  cost_ += change_of_cost(index, option);
  options_[index] = option;
  for (size_t s = 0; s < node.spans.size(); ++s) {
    const auto more = static_cast<double>(node.usages_in(s)[option] - node.usages_in(s)[old]);
    if (more == 0) continue;
    double change = 0;
    int64_t full = 0;
    const uint32_t to = node.spans[s].to;
    for (uint32_t t = node.spans[s].from; t < to; ++t) {
      const double was = free_[t], is = was - more;
      change += penalties_[t] * (std::min(was, 0.0) - std::min(is, 0.0));
      full += static_cast<int64_t>(is < 0) - static_cast<int64_t>(was < 0);
      free_[t] = is;
    }
    penalty_ += change;
    full_times_ += full;
  }
}

}  // namespace hone

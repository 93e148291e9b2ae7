#include "assign/complete.h"

#include <algorithm>
#include <numeric>

namespace hone {
namespace {

constexpr size_t kMaxNodes = 64;

// Node by node, the cheapest option first. A branch ends where the limits or a forbidden pair end
// it, or where it cannot become cheaper than the best.
class CompleteSearch {
 public:
  CompleteSearch(const Core& core, int64_t steps)
      : core_(core), steps_(steps), options_(core.nodes.size()), free_(core.slack) {
    order();
    // The nodes behind, and edges to them, cost at least.
    rest_.assign(order_.size() + 1, 0);
    for (size_t i = order_.size(); i-- > 0;) {
      rest_[i] = rest_[i + 1] + std::ranges::min(core.nodes[order_[i]].costs);
      for (uint32_t e : core.nodes[order_[i]].edges)
        if (place_[core.edges[e].other(order_[i])] < i)
          rest_[i] += std::ranges::min(core.edges[e].costs);
    }
  }

  CompleteAnswer run() {
    const bool is_complete = visit(0, 0);
    return {is_complete, best_};
  }

 private:
  struct Choice {
    int64_t cost;
    uint32_t option;
  };

  // Neighbours of those before come next.
  void order() {
    place_.assign(core_.nodes.size(), SIZE_MAX);
    for (uint32_t root = 0; root < core_.nodes.size(); ++root) {
      if (place_[root] != SIZE_MAX) continue;
      place_[root] = order_.size();
      order_.push_back(root);
      for (size_t i = place_[root]; i < order_.size(); ++i)
        for (uint32_t e : core_.nodes[order_[i]].edges)
          if (const uint32_t other = core_.edges[e].other(order_[i]); place_[other] == SIZE_MAX) {
            place_[other] = order_.size();
            order_.push_back(other);
          }
    }
  }

  std::vector<Choice> choices(size_t depth) const {
    const uint32_t index = order_[depth];
    const CoreNode& node = core_.nodes[index];
    std::vector<Choice> choices;
    for (uint32_t x = 0; x < node.options(); ++x) {
      int64_t cost = node.costs[x];
      bool is_allowed = true;
      for (uint32_t e : node.edges) {
        const CoreEdge& edge = core_.edges[e];
        const uint32_t other = edge.other(index);
        if (place_[other] > depth) continue;
        const size_t columns = core_.nodes[edge.second].options();
        const int64_t pair = edge.first == index ? edge.costs[x * columns + options_[other]]
                                                 : edge.costs[options_[other] * columns + x];
        is_allowed = is_allowed && pair < kNeverCost;
        cost += is_allowed ? pair : 0;
      }
      if (is_allowed) choices.push_back({cost, x});
    }
    std::ranges::sort(choices, {}, [](const Choice& c) { return std::pair(c.cost, c.option); });
    return choices;
  }

  // Takes the usage of an option, or gives it back. Says whether the limits hold.
  bool use(uint32_t index, uint32_t option, int64_t times) {
    const CoreNode& node = core_.nodes[index];
    bool fits = true;
    for (size_t s = 0; s < node.spans.size(); ++s)
      for (uint32_t t = node.spans[s].from; t < node.spans[s].to; ++t) {
        free_[t] -= times * node.usages_in(s)[option];
        fits = fits && free_[t] >= 0;
      }
    return fits;
  }

  // False, if the steps are used up.
  bool visit(size_t depth, int64_t cost) {
    if (best_ && cost + rest_[depth] >= best_cost_) return true;
    if (depth == order_.size()) {
      best_ = options_;
      best_cost_ = cost;
      return true;
    }
    if (--steps_ < 0) return false;
    const uint32_t index = order_[depth];
    for (const Choice& choice : choices(depth)) {
      options_[index] = choice.option;
      const bool fits = use(index, choice.option, 1);
      const bool goes_on = !fits || visit(depth + 1, cost + choice.cost);
      use(index, choice.option, -1);
      if (!goes_on) return false;
    }
    return true;
  }

  const Core& core_;
  int64_t steps_;
  std::vector<uint32_t> order_;
  std::vector<size_t> place_;  // by node: where it is in the order
  std::vector<int64_t> rest_;
  std::vector<uint32_t> options_;
  std::vector<int64_t> free_;
  std::optional<std::vector<uint32_t>> best_;
  int64_t best_cost_ = 0;
};

}  // namespace

CompleteAnswer complete_search(const Core& core, int64_t steps) {
  if (core.nodes.size() > kMaxNodes) return {};
  const bool fits = std::ranges::all_of(core.slack, [](int64_t slack) { return slack >= 0; });
  if (!fits) return {.is_complete = true, .options = std::nullopt};
  return CompleteSearch(core, steps).run();
}

}  // namespace hone

#include "transport/emulated_links.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "base/error.h"
#include "target/shares.h"

namespace hone {

// ---- Links of a system -------------------------------------------------------------------------

namespace {

// Each copy has room of its own to compute in, as copies may be asked at the same time.
class SystemShares {
 public:
  explicit SystemShares(std::shared_ptr<const Topology> topology)
      : topology_(std::move(topology)), shares_(topology_->links()) {}

  void operator()(std::span<const std::span<const uint32_t>> flows, std::span<double> rates) {
    crossings_.clear();
    for (const std::span<const uint32_t> flow : flows)
      for (const uint32_t link : flow) crossings_.push_back({link});
    routes_.clear();
    size_t begin = 0;
    for (const std::span<const uint32_t> flow : flows) {
      routes_.push_back(std::span(crossings_).subspan(begin, flow.size()));
      begin += flow.size();
    }
    shares_.share(routes_, rates);
  }

 private:
  std::shared_ptr<const Topology> topology_;
  LinkShares shares_;
  std::vector<Crossing> crossings_;
  std::vector<std::span<const Crossing>> routes_;
};

}  // namespace

EmulatedLinks emulated_links(const Topology& topology) {
  const auto kept = std::make_shared<const Topology>(topology);
  const auto route = [kept](int32_t from, int32_t to) -> EmulatedRoute {
    for (const int32_t device : {from, to})
      HONE_CHECK(device >= 0 && device < kept->devices(), "device {} of {}", device,
                 kept->devices());
    std::vector<uint32_t> links = kept->route(from, to);
    const double latency = kept->latency(links);
    return {std::move(links), latency};
  };
  return {.route = route, .share = SystemShares(kept)};
}

// ---- Messages on their way ---------------------------------------------------------------------

std::vector<double> FlowTable::rates_of(const Open& open) const {
  std::vector<std::span<const uint32_t>> routes;
  for (const Flow* flow : open) routes.emplace_back(flow->route.links);
  std::vector<double> rates(open.size());
  links_.share(routes, rates);
  for (const double rate : rates) HONE_CHECK(rate > 0, "a flow of {} bytes per second", rate);
  return rates;
}

// Rates change only when a flow drains.
void FlowTable::advance(Open& open, std::vector<double>& left, double from, double end) const {
  while (!open.empty()) {
    const std::vector<double> rates = rates_of(open);
    double next = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < open.size(); ++i) next = std::min(next, from + left[i] / rates[i]);
    const double until = std::min(next, end);
    Open still;
    std::vector<double> still_left;
    for (size_t i = 0; i < open.size(); ++i) {
      if (from + left[i] / rates[i] <= until) {
        open[i]->visible = until + open[i]->route.latency;
        open[i]->left = 0;
        continue;
      }
      still.push_back(open[i]);
      still_left.push_back(left[i] - rates[i] * (until - from));
    }
    open = std::move(still);
    left = std::move(still_left);
    from = until;
    if (until == end) return;
  }
}

uint64_t FlowTable::start(double now, int32_t from, int32_t to, int64_t bytes) {
  Open open;
  std::vector<double> left;
  for (auto& [number, flow] : flows_)
    if (flow.left > 0) open.push_back(&flow), left.push_back(flow.left);
  advance(open, left, now_, std::max(now, now_));
  for (size_t i = 0; i < open.size(); ++i) open[i]->left = left[i];
  std::erase_if(flows_,
                [](const auto& each) { return each.second.forgotten && each.second.left == 0; });
  now_ = std::max(now, now_);
  Flow& flow = flows_[++last_];
  flow.route = links_.route(from, to);
  flow.left = static_cast<double>(bytes);
  flow.visible = now_ + flow.route.latency;
  if (flow.route.links.empty()) flow.left = 0;
  if (flow.left == 0) return last_;
  // Predicts the ends. The flows keep the bytes that they have left now.
  open.push_back(&flow);
  left.push_back(flow.left);
  std::vector<double> kept = left;
  const Open all = open;
  advance(open, left, now_, std::numeric_limits<double>::infinity());
  for (size_t i = 0; i < all.size(); ++i) all[i]->left = kept[i];
  return last_;
}

void FlowTable::forget(uint64_t flow) {
  const auto found = flows_.find(flow);
  found->second.forgotten = true;
  if (found->second.left == 0) flows_.erase(found);
}

}  // namespace hone

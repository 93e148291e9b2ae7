#include "place/arena.h"

#include <algorithm>
#include <span>
#include <utility>

#include "alloc/plan_memory.h"
#include "base/text.h"
#include "place/sort_by.h"
#include "plan/planned.h"
#include "target/text_fields.h"

namespace hone {
namespace {

constexpr size_t kMostNamed = 3;

// Collects the buffers of one device. Moments are places in the order of its nodes.
class ArenaOfDevice {
 public:
  ArenaOfDevice(const PlaceJudge& judge, const PlaceTimeline& timeline, uint32_t device,
                std::vector<uint32_t> order)
      : problem_(judge.problem()),
        timeline_(timeline.timeline),
        memory_(judge.devices()[device].memory),
        order_(std::move(order)) {}

  void hold(int64_t bytes) { held_ = sum_of_bytes(held_, bytes); }

  // Nodes that a buffer is of may be moved if it does not fit.
  void add(int64_t bytes, int64_t begin, int64_t end, std::vector<uint32_t> nodes) {
    if (bytes == 0) return;
    buffers_.buffers.push_back(
        {.begin = begin, .end = end, .size = bytes, .alignment = kOffsetAlignment});
    nodes_.push_back(std::move(nodes));
  }

  // The first node that has not ended at this time: what comes then is there for it.
  int64_t first_after(Ticks at) const {
    const auto is_over = [&](uint32_t node) { return timeline_.end(node) <= at; };
    return std::ranges::partition_point(order_, is_over) - order_.begin();
  }
  // The first node that starts then or later: what goes then makes room for it.
  int64_t first_from(Ticks at) const {
    const auto is_before = [&](uint32_t node) { return timeline_.start(node) < at; };
    return std::ranges::partition_point(order_, is_before) - order_.begin();
  }

  Result<DeviceArena> placed() {
    if (held_ > memory_) return DeviceArena{false, held_, holders()};
    buffers_.capacity = {memory_ - held_};
    const MemoryPlan plan = HONE_TRY(plan_memory(buffers_, {.nodes = kMemoryNodes}));
    const MemoryBounds& found = plan.spaces.at(0);
    switch (plan.verdict) {
      case MemoryVerdict::placed: return DeviceArena{true, held_ + found.height};
      case MemoryVerdict::infeasible:
        return DeviceArena{false, held_ + found.bound, nodes_of(plan.witness)};
      case MemoryVerdict::limit: break;
    }
    return DeviceArena{false, held_ + found.height, nodes_of(fullest())};
  }

 private:
  std::vector<uint32_t> holders() const {
    std::vector<uint32_t> nodes;
    for (const uint32_t node : order_)
      if (problem_.nodes[node].held > 0) nodes.push_back(node);
    std::ranges::sort(nodes);
    return nodes;
  }

  std::vector<uint32_t> nodes_of(std::span<const uint32_t> buffers) const {
    std::vector<uint32_t> nodes;
    for (const uint32_t b : buffers) nodes.insert(nodes.end(), nodes_[b].begin(), nodes_[b].end());
    std::ranges::sort(nodes);
    const auto [first, last] = std::ranges::unique(nodes);
    nodes.erase(first, last);
    return nodes;
  }

  // The buffers of the moment that has most bytes.
  std::vector<uint32_t> fullest() const {
    std::vector<int64_t> more(order_.size() + 1);
    for (const MemoryBuffer& buffer : buffers_.buffers) {
      more[static_cast<size_t>(buffer.begin)] += buffer.size;
      more[static_cast<size_t>(buffer.end)] -= buffer.size;
    }
    int64_t bytes = 0, most = 0, at = 0;
    for (size_t moment = 0; moment < more.size(); ++moment) {
      bytes += more[moment];
      if (bytes > most) most = bytes, at = static_cast<int64_t>(moment);
    }
    std::vector<uint32_t> there;
    for (uint32_t b = 0; b < buffers_.buffers.size(); ++b)
      if (buffers_.buffers[b].begin <= at && at < buffers_.buffers[b].end) there.push_back(b);
    return there;
  }

  const PlaceProblem& problem_;
  const Timeline& timeline_;
  const int64_t memory_;
  const std::vector<uint32_t> order_;
  int64_t held_ = 0;
  MemoryProblem buffers_;
  std::vector<std::vector<uint32_t>> nodes_;  // of each buffer
};

// The nodes of each device as they run. Nodes that take no time may start together: these stand as
// the graph has them.
std::vector<std::vector<uint32_t>> orders_of(const PlaceJudge& judge,
                                             const DevicePlacement& placement,
                                             const Timeline& timeline) {
  std::vector<std::vector<uint32_t>> orders(judge.devices().size());
  for (const uint32_t node : judge.order()) orders[placement.device[node]].push_back(node);
  for (std::vector<uint32_t>& order : orders)
    sort_by(order,
            [&](uint32_t node) { return std::pair(timeline.start(node), timeline.end(node)); });
  return orders;
}

// Each tensor where it is made, and its copies. `turn`: of nodes, on their devices.
void add_tensors(const PlaceProblem& problem, const DevicePlacement& placement,
                 const Timeline& times, std::span<const int64_t> turn,
                 std::vector<ArenaOfDevice>& arenas) {
  const auto turn_of = [&](uint32_t node) { return turn[node]; };
  auto message = static_cast<uint32_t>(problem.nodes.size());  // as the timeline counts them
  for (const PlaceTensor& tensor : problem.tensors) {
    const uint32_t from = placement.device[tensor.maker];
    const auto users_on = [&](uint32_t device) {
      std::vector<uint32_t> users;
      for (const uint32_t user : tensor.users)
        if (placement.device[user] == device) users.push_back(user);
      return users;
    };
    std::vector<uint32_t> own = users_on(from);
    own.push_back(tensor.maker);
    int64_t end = turn[std::ranges::max(own, {}, turn_of)] + 1;
    for (const uint32_t to : receivers(tensor, placement)) {
      std::vector<uint32_t> there = users_on(to);
      const int64_t begin = std::min(arenas[to].first_after(times.start(message)),
                                     turn[std::ranges::min(there, {}, turn_of)]);
      const int64_t copy_end = turn[std::ranges::max(there, {}, turn_of)] + 1;
      arenas[to].add(tensor.held, begin, copy_end, std::move(there));
      end = std::max(end, arenas[from].first_from(times.end(message)));
      ++message;
    }
    arenas[from].add(tensor.held, turn[tensor.maker], end, std::move(own));
  }
}

}  // namespace

Result<std::vector<DeviceArena>> device_arenas(const PlaceJudge& judge,
                                               const DevicePlacement& placement,
                                               const PlaceTimeline& timeline) {
  const PlaceProblem& problem = judge.problem();
  std::vector<ArenaOfDevice> arenas;
  std::vector<int64_t> turn(problem.nodes.size());
  std::vector<std::vector<uint32_t>> orders = orders_of(judge, placement, timeline.timeline);
  for (uint32_t d = 0; d < orders.size(); ++d) {
    for (size_t k = 0; k < orders[d].size(); ++k) turn[orders[d][k]] = static_cast<int64_t>(k);
    arenas.emplace_back(judge, timeline, d, std::move(orders[d]));
  }
  for (uint32_t i = 0; i < problem.nodes.size(); ++i) {
    ArenaOfDevice& arena = arenas[placement.device[i]];
    arena.hold(problem.nodes[i].held);
    arena.add(problem.nodes[i].scratch, turn[i], turn[i] + 1, {i});
  }
  add_tensors(problem, placement, timeline.timeline, turn, arenas);
  std::vector<DeviceArena> found;
  for (ArenaOfDevice& arena : arenas) found.push_back(HONE_TRY(arena.placed()));
  return found;
}

Status check_arenas(const PlaceJudge& judge, const DevicePlacement& placement) {
  const PlaceTimeline timeline = HONE_TRY(judge.timeline(placement));
  const std::vector<DeviceArena> arenas = HONE_TRY(device_arenas(judge, placement, timeline));
  for (uint32_t d = 0; d < arenas.size(); ++d) {
    if (arenas[d].fits) continue;
    std::vector<std::string> names;
    for (const uint32_t node : arenas[d].nodes)
      if (names.size() < kMostNamed) names.push_back(name_of(judge.problem().nodes[node]));
    const int64_t memory = judge.devices()[d].memory;
    return over_limit("the arena of device {} takes {}, {} more than its {}", d,
                      bytes_text(arenas[d].bytes), bytes_text(arenas[d].bytes - memory),
                      bytes_text(memory))
        .with_hint(fmt::format("move some of what is of {}{}", join(names, ", "),
                               arenas[d].nodes.size() > names.size() ? " and others" : ""));
  }
  return {};
}

}  // namespace hone

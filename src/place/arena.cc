#include "place/arena.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/text.h"
#include "plan/planned.h"
#include "target/text_fields.h"

namespace hone {
namespace {

constexpr size_t kMostNamed = 3;

// All that lies on one device.
class ArenaOfDevice {
 public:
  ArenaOfDevice(const PlaceJudge& judge, const DevicePlacement& placement, uint32_t device)
      : problem_(judge.problem()),
        placement_(placement),
        device_(device),
        memory_(judge.devices()[device].memory) {}

  void add(const Timeline& timeline, const HeldBuffer& buffer) {
    if (buffer.maker == HeldBuffer::kNoJob) {
      held_ = sum_of_bytes(held_, buffer.bytes);
      return;
    }
    times_.push_back(held_time(timeline, buffer));
    of_.push_back(&buffer);
  }

  Result<DeviceArena> placed(const CancelToken* cancel) {
    constexpr auto kInfeasible = MemoryVerdict::infeasible;
    if (held_ > memory_) return DeviceArena{device_, kInfeasible, held_, holders()};
    if (of_.empty()) return DeviceArena{device_, MemoryVerdict::placed, held_};
    const int64_t begin = (held_ + kOffsetAlignment - 1) / kOffsetAlignment * kOffsetAlignment;
    place_in_time();
    buffers_.capacity = {std::max<int64_t>(memory_ - begin, 0)};
    const MemoryPlan plan =
        HONE_TRY(plan_memory(buffers_, {.nodes = kMemoryNodes, .cancel = cancel}));
    const MemoryBounds& found = plan.spaces.at(0);
    switch (plan.verdict) {
      case MemoryVerdict::placed: return DeviceArena{device_, plan.verdict, begin + found.height};
      case MemoryVerdict::infeasible:
        return DeviceArena{device_, plan.verdict, begin + found.bound, nodes_of(plan.witness)};
      case MemoryVerdict::limit: break;
    }
    return DeviceArena{device_, plan.verdict, begin + found.bound, nodes_of(fullest())};
  }

 private:
  // Each tick is two moments: what is there for the tick alone has the first one.
  void place_in_time() {
    std::vector<Ticks> ticks;
    for (const auto& [begin, end] : times_) ticks.insert(ticks.end(), {begin, end});
    std::ranges::sort(ticks);
    const auto moment = [&](Ticks at) {
      return 2 * (std::ranges::lower_bound(ticks, at) - ticks.begin());
    };
    for (size_t b = 0; b < of_.size(); ++b) {
      const auto& [begin, end] = times_[b];
      buffers_.buffers.push_back({.begin = moment(begin),
                                  .end = begin == end ? moment(begin) + 1 : moment(end),
                                  .size = of_[b]->bytes,
                                  .alignment = kOffsetAlignment});
    }
  }

  std::vector<uint32_t> holders() const {
    std::vector<uint32_t> nodes;
    for (uint32_t i = 0; i < problem_.nodes.size(); ++i)
      if (placement_.device[i] == device_ && problem_.nodes[i].held > 0) nodes.push_back(i);
    return nodes;
  }

  // The jobs of these buffers that are nodes of the device: they can be moved.
  std::vector<uint32_t> nodes_of(std::span<const uint32_t> buffers) const {
    std::vector<uint32_t> nodes;
    const auto add = [&](uint32_t job) {
      if (job < problem_.nodes.size()) nodes.push_back(job);
    };
    for (const uint32_t b : buffers) {
      add(of_[b]->maker);
      std::ranges::for_each(of_[b]->users, add);
    }
    std::ranges::sort(nodes);
    const auto [first, last] = std::ranges::unique(nodes);
    nodes.erase(first, last);
    return nodes;
  }

  // The buffers of the moment that has most bytes: one of those at which a buffer begins.
  std::vector<uint32_t> fullest() const {
    std::vector<std::pair<int64_t, int64_t>> changes;  // moments, bytes
    for (const MemoryBuffer& buffer : buffers_.buffers) {
      changes.emplace_back(buffer.begin, buffer.size);
      changes.emplace_back(buffer.end, -buffer.size);
    }
    std::ranges::sort(changes);
    int64_t bytes = 0, most = 0, at = 0;
    for (const auto& [moment, more] : changes) {
      bytes += more;
      if (bytes > most) most = bytes, at = moment;
    }
    std::vector<uint32_t> there;
    for (uint32_t b = 0; b < buffers_.buffers.size(); ++b)
      if (buffers_.buffers[b].begin <= at && at < buffers_.buffers[b].end) there.push_back(b);
    return there;
  }

  const PlaceProblem& problem_;
  const DevicePlacement& placement_;
  const uint32_t device_;
  const int64_t memory_;
  int64_t held_ = 0;
  MemoryProblem buffers_;
  std::vector<HeldTime> times_;        // by buffer
  std::vector<const HeldBuffer*> of_;  // by buffer
};

}  // namespace

Result<DeviceArena> device_arena(const PlaceJudge& judge, const DevicePlacement& placement,
                                 const PlaceTimeline& timeline, uint32_t device,
                                 const CancelToken* cancel) {
  ArenaOfDevice arena(judge, placement, device);
  for (const HeldBuffer& buffer : timeline.buffers)
    if (buffer.device == device) arena.add(timeline.timeline, buffer);
  return arena.placed(cancel);
}

Result<std::optional<DeviceArena>> first_full_arena(const PlaceJudge& judge,
                                                    const DevicePlacement& placement,
                                                    const CancelToken* cancel) {
  const PlaceTimeline timeline = HONE_TRY(judge.timeline(placement));
  for (uint32_t d = 0; d < judge.devices().size(); ++d) {
    DeviceArena arena = HONE_TRY(device_arena(judge, placement, timeline, d, cancel));
    if (!arena.fits()) return std::optional(std::move(arena));
  }
  return std::optional<DeviceArena>();
}

Status check_arenas(const PlaceJudge& judge, const DevicePlacement& placement) {
  const std::optional<DeviceArena> full = HONE_TRY(first_full_arena(judge, placement));
  if (!full) return {};
  std::vector<std::string> names;
  for (const uint32_t node : full->nodes)
    if (names.size() < kMostNamed) names.push_back(name_of(judge.problem().nodes[node]));
  const std::string hint = fmt::format("move one of {}{} to another device", join(names, ", "),
                                       full->nodes.size() > names.size() ? " and others" : "");
  const int64_t memory = judge.devices()[full->device].memory;
  if (full->verdict == MemoryVerdict::limit)
    return over_limit("no arena of device {} was found within its {} in {} steps; {} are needed",
                      full->device, bytes_text(memory), kMemoryNodes, bytes_text(full->bytes))
        .with_hint(hint);
  return over_limit("the arena of device {} takes {}, {} more than its {}", full->device,
                    bytes_text(full->bytes), bytes_text(full->bytes - memory), bytes_text(memory))
      .with_hint(hint);
}

}  // namespace hone

#include "place/draft.h"

#include <algorithm>

#include "place/sort_by.h"

namespace hone {

PlaceDraft::PlaceDraft(PlaceRun& run, double share, bool channels)
    : run_(run),
      problem_(run.problem()),
      share_(share),
      channels_(channels),
      devices_(problem_.devices()),
      inputs_(problem_.nodes.size()),
      outputs_(problem_.nodes.size()),
      unit_device_(run.units().units().size(), kNowhere),
      start_(problem_.nodes.size()),
      end_(problem_.nodes.size()),
      free_(devices_),
      sends_(devices_),
      receives_(devices_),
      there_(problem_.tensors.size() * devices_, -1),
      spans_(devices_),
      waits_(problem_.nodes.size()) {
  for (const PlaceDevice& device : run.judge().devices())
    room_.push_back(static_cast<double>(device.memory));
  for (uint32_t t = 0; t < problem_.tensors.size(); ++t) {
    outputs_[problem_.tensors[t].maker].push_back(t);
    for (const uint32_t user : problem_.tensors[t].users) {
      inputs_[user].push_back(t);
      ++waits_[user];
    }
  }
  for (const uint32_t i : run.judge().order())
    if (waits_[i] == 0) ready_.push_back(i);
  placement_.device.assign(problem_.nodes.size(), kNowhere);
}

std::optional<double> PlaceDraft::seconds(uint32_t node, uint32_t device) const {
  const PlaceUnit& unit = run_.units().units()[run_.units().of(node)];
  const uint32_t chosen = unit_device_[run_.units().of(node)];
  if (chosen != kNowhere && chosen != device) return std::nullopt;
  if (unit.seconds[device] == kCannotRun) return std::nullopt;
  if (chosen == kNowhere && unit.bytes(share_) > room_[device]) return std::nullopt;
  return problem_.nodes[node].seconds[run_.judge().devices()[device].target];
}

double PlaceDraft::arrival(uint32_t tensor, uint32_t device) const {
  const PlaceTensor& one = problem_.tensors[tensor];
  const uint32_t from = placement_.device[one.maker];
  const double end = end_[one.maker];
  if (from == device) return end;
  if (const double known = there_[size_t{tensor} * devices_ + device]; known >= 0) return known;
  const PlaceRun::Way& way = run_.way(from, device);
  const double begin = channels_ ? std::max({end, sends_[from], receives_[device]}) : end;
  return begin + one.bytes * way.per_byte + way.latency;
}

double PlaceDraft::inputs_at(uint32_t node, uint32_t device) const {
  double at = 0;
  for (const uint32_t t : inputs_[node]) at = std::max(at, arrival(t, device));
  return at;
}

double PlaceDraft::soonest(uint32_t node, uint32_t device, bool gaps) const {
  const double ready = inputs_at(node, device);
  if (!gaps) return std::max(ready, free_[device]);
  const double takes = problem_.nodes[node].seconds[run_.judge().devices()[device].target];
  double at = ready;
  const std::vector<Span>& spans = spans_[device];
  // Spans that end before it is ready leave no gap for it.
  auto next = std::ranges::partition_point(spans, [&](const Span& s) { return s.end <= ready; });
  for (; next != spans.end(); ++next) {
    if (at + takes <= next->start) return at;
    at = std::max(at, next->end);
  }
  return at;
}

void PlaceDraft::put(uint32_t node, uint32_t device, double start) {
  const uint32_t unit = run_.units().of(node);
  if (unit_device_[unit] == kNowhere) {
    unit_device_[unit] = device;
    room_[device] -= run_.units().units()[unit].bytes(share_);
  }
  for (const uint32_t t : inputs_[node]) {
    const uint32_t from = placement_.device[problem_.tensors[t].maker];
    double& there = there_[size_t{t} * devices_ + device];
    if (from == device || there >= 0) continue;
    there = arrival(t, device);
    const double moved = there - run_.way(from, device).latency;
    sends_[from] = std::max(sends_[from], moved);
    receives_[device] = std::max(receives_[device], moved);
  }
  if (channels_) start = std::max(start, inputs_at(node, device));
  const double end = start + problem_.nodes[node].seconds[run_.judge().devices()[device].target];
  placement_.device[node] = device;
  start_[node] = start;
  end_[node] = end;
  free_[device] = std::max(free_[device], end);
  std::vector<Span>& spans = spans_[device];
  spans.insert(std::ranges::partition_point(spans, [&](const Span& s) { return s.end <= start; }),
               {start, end});
  std::erase(ready_, node);
  for (const uint32_t t : outputs_[node])
    for (const uint32_t user : problem_.tensors[t].users)
      if (--waits_[user] == 0) ready_.push_back(user);
}

DevicePlacement PlaceDraft::finished() const {
  DevicePlacement made = placement_;
  std::vector<uint32_t> ranked = run_.judge().order();
  sort_by(ranked, [&](uint32_t i) { return start_[i]; });
  made.priority.resize(ranked.size());
  for (size_t k = 0; k < ranked.size(); ++k) made.priority[ranked[k]] = -static_cast<int32_t>(k);
  return made;
}

}  // namespace hone

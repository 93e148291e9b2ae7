#include "assign/core_times.h"

#include <algorithm>

namespace hone {
namespace {

// All usages together are at most this, so that reals hold their sums exactly.
constexpr int64_t kMaxUsage = int64_t{1} << 52;

// Usages of options that may be taken.
struct UsageRange {
  int64_t least = 0;
  int64_t most = 0;
};

UsageRange range_of(const AssignNode& node, int64_t limit) {
  UsageRange range = {std::ranges::min(node.usages), 0};
  for (int64_t usage : node.usages)
    if (usage <= limit) range.most = std::max(range.most, usage);
  range.most = std::max(range.most, range.least);
  return range;
}

struct Event {
  int64_t moment;
  bool is_begin;  // ends come first: lives are half open
  uint32_t node;

  auto key() const { return std::tuple(moment, is_begin, node); }
};

std::vector<Event> events_of(const AssignProblem& problem) {
  std::vector<Event> events;
  for (uint32_t i = 0; i < problem.nodes.size(); ++i) {
    const AssignNode& node = problem.nodes[i];
    if (!node.is_ever_alive()) continue;
    events.push_back({node.begin, true, i});
    events.push_back({node.end, false, i});
  }
  std::ranges::sort(events, {}, &Event::key);
  return events;
}

}  // namespace

Result<CoreTimes> core_times(const AssignProblem& problem) {
  CoreTimes times;
  times.spans.resize(problem.nodes.size());
  if (!problem.usage_limit) return times;
  const int64_t limit = *problem.usage_limit;
  const std::vector<Event> events = events_of(problem);
  Int128 least = 0, most = 0, all = limit;
  int64_t alive = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    const UsageRange range = range_of(problem.nodes[event.node], limit);
    const int sign = event.is_begin ? 1 : -1;
    least += sign * Int128{range.least};
    most += sign * Int128{range.most};
    alive += sign;
    if (event.is_begin) all += range.most;
    if (!event.is_begin) continue;
    // The last begin before an end: more nodes are alive than at the moments around.
    if (i + 1 < events.size() && events[i + 1].is_begin) continue;
    if (least > limit)
      return check_failed("at moment {} the {} nodes alive use at least {}, {} above the limit {}",
                          event.moment, alive, least, least - limit, limit);
    if (most > limit) times.moments.push_back(event.moment);
  }
  while ((all >> times.usage_shift) > kMaxUsage) ++times.usage_shift;
  times.slack.assign(times.moments.size(), limit >> times.usage_shift);
  const auto index = [&](int64_t moment) {
    return static_cast<uint32_t>(std::ranges::lower_bound(times.moments, moment) -
                                 times.moments.begin());
  };
  for (size_t i = 0; i < problem.nodes.size(); ++i)
    if (const AssignNode& node = problem.nodes[i]; node.is_ever_alive())
      times.spans[i] = {index(node.begin), index(node.end)};
  return times;
}

void drop_idle_times(Core& core) {
  const size_t count = core.slack.size();
  std::vector<int64_t> most(count + 1);
  std::vector<bool> is_cut(count + 1);
  for (const CoreNode& node : core.nodes)
    for (size_t s = 0; s < node.spans.size(); ++s) {
      const int64_t* usages = node.usages_in(s);
      const int64_t largest = *std::max_element(usages, usages + node.options());
      most[node.spans[s].from] += largest;
      most[node.spans[s].to] -= largest;
      is_cut[node.spans[s].from] = is_cut[node.spans[s].to] = true;
    }
  std::vector<uint32_t> index_of(count + 1);  // how many stay before
  std::vector<int64_t> slack, moments;
  bool is_new = true;
  for (size_t t = 0; t < count; ++t) {
    if (t > 0) most[t] += most[t - 1];
    is_new = is_new || is_cut[t];
    index_of[t] = static_cast<uint32_t>(slack.size()) - (is_new ? 0 : 1);
    if (most[t] <= core.slack[t]) continue;
    if (is_new) {
      slack.push_back(core.slack[t]);
      moments.push_back(core.moments[t]);
    } else if (core.slack[t] < slack.back()) {
      slack.back() = core.slack[t];
      moments.back() = core.moments[t];
    }
    is_new = false;
  }
  index_of[count] = static_cast<uint32_t>(slack.size());
  core.slack = std::move(slack);
  core.moments = std::move(moments);
  for (CoreNode& node : core.nodes) {
    size_t to = 0;
    const size_t options = node.options();
    for (size_t s = 0; s < node.spans.size(); ++s) {
      const CoreSpan span = {index_of[node.spans[s].from], index_of[node.spans[s].to]};
      if (span.from == span.to) continue;
      std::copy_n(node.usages.begin() + static_cast<ptrdiff_t>(s * options), options,
                  node.usages.begin() + static_cast<ptrdiff_t>(to * options));
      node.spans[to++] = span;
    }
    node.spans.resize(to);
    node.usages.resize(to * options);
  }
}

}  // namespace hone

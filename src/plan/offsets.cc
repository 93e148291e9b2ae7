#include "plan/planned.h"

#include <algorithm>
#include <map>

#include "base/checked_math.h"
#include "plan/collectives.h"

// Where values lie in the arena: lifetimes, and whether the places of a plan can be.

namespace hone {
namespace {

constexpr int64_t kMaxArenaBytes = int64_t{1} << 46;

Error overlap(const PlannedGraph& planned, const Lifetime& a, const Lifetime& b) {
  const GraphView graph = planned.view();
  return bad_input("it overlaps {}, and both are alive at {}", graph.label(b.value),
                   label(graph, planned.steps[planned.order[a.first]]))
      .within(fmt::format("offset {}", graph.label(a.value)));
}

}  // namespace

Status check_offset(const PlannedGraph& planned, ValueId v) {
  const GraphView graph = planned.view();
  if (!graph.is_static())
    return bad_input("sizes depend on symbols, so that values have no place yet");
  const int64_t offset = planned.offset[v.index];
  switch (planned.home[v.index]) {
    case Home::none: return bad_input("it has no memory: only its own kernel reads it");
    case Home::input: return bad_input("the caller decides where an input of the graph lies");
    case Home::output: return bad_input("the caller decides where an output of the graph lies");
    case Home::constant: return bad_input("a constant is not in the arena");
    case Home::view:
      return bad_input("it lies in the memory of {}", graph.label(planned.base[v.index]));
    case Home::temporary: break;
  }
  if (offset < 0 || offset % kOffsetAlignment != 0)
    return bad_input("{} is not a multiple of {}", offset, kOffsetAlignment);
  const std::optional<int64_t> end = checked_add(offset, graph.type(v).static_bytes());
  if (!end || *end > kMaxArenaBytes) return over_limit("it ends after {} bytes", kMaxArenaBytes);
  return {};
}

Status check_no_overlap(const PlannedGraph& planned) {
  // Without a whole order nobody knows which values live at the same time.
  if (planned.order.size() != planned.steps.size()) return {};
  const std::vector<int64_t>& offset = planned.offset;
  std::vector<Lifetime> items = lifetimes(planned, planned.order);
  std::erase_if(
      items, [&](const Lifetime& life) { return life.bytes == 0 || offset[life.value.index] < 0; });
  std::ranges::sort(items, {}, &Lifetime::first);
  std::vector<const Lifetime*> by_end;
  for (const Lifetime& life : items) by_end.push_back(&life);
  std::ranges::sort(by_end, {}, [](const Lifetime* life) { return life->last; });
  std::map<int64_t, const Lifetime*> alive;  // by offset; they do not overlap
  size_t ended = 0;
  for (const Lifetime& life : items) {
    for (; by_end[ended]->last < life.first; ++ended)
      alive.erase(offset[by_end[ended]->value.index]);
    const int64_t begin = offset[life.value.index];
    const auto behind = alive.lower_bound(begin);
    if (behind != alive.end() && behind->first < begin + life.bytes)
      return overlap(planned, life, *behind->second);
    if (behind != alive.begin()) {
      const auto& [start, before] = *std::prev(behind);
      if (start + before->bytes > begin) return overlap(planned, life, *before);
    }
    alive.emplace(begin, &life);
  }
  return {};
}

std::vector<Lifetime> lifetimes(const PlannedGraph& graph, std::span<const uint32_t> order) {
  std::vector<uint32_t> first(graph.home.size()), last(graph.home.size());
  std::vector<bool> is_written(graph.home.size());
  std::vector<std::pair<ValueId, ValueId>> sent;  // by collectives, and where it goes
  for (uint32_t position = 0; position < order.size(); ++position) {
    const Step& step = graph.steps[order[position]];
    for (ValueId v : step.writes) {
      const ValueId base = graph.base[v.index];
      if (!is_written[base.index]) first[base.index] = position;
      is_written[base.index] = true;
      last[base.index] = position;
    }
    for (ValueId v : step.reads) last[graph.base[v.index].index] = position;
    // A value that a collective sends stays until the first step that needs the one that it makes,
    // so that the steps between them need not wait.
    for (const std::vector<ValueId>* ports : {&step.reads, &step.writes})
      for (ValueId v : *ports)
        std::erase_if(sent, [&](const std::pair<ValueId, ValueId>& one) {
          if (one.second != graph.base[v.index]) return false;
          last[one.first.index] = position;
          return true;
        });
    if (!step.is_kernel && exchanges_data(graph.view().op(step.nodes[0])))
      for (ValueId v : step.reads)
        sent.emplace_back(graph.base[v.index], graph.base[step.writes[0].index]);
  }
  std::vector<Lifetime> result;
  for (uint32_t i = 0; i < graph.home.size(); ++i)
    if (graph.home[i] == Home::temporary)
      result.push_back(
          {ValueId{i}, first[i], last[i], graph.view().type(ValueId{i}).static_bytes()});
  return result;
}

}  // namespace hone

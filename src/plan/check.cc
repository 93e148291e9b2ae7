#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/text.h"
#include "kernel/kernel_body.h"
#include "plan/planned.h"

// Checks what planned() does not find out: whether groups, layouts, schedules, order and offsets
// can be.

namespace hone {
namespace {

// The first kernel of a hash.
struct KnownKernel {
  std::string name;
  KernelBody body;
};
struct Kernels {
  std::unordered_map<uint64_t, KnownKernel> by_hash;
  bool all_known = true;  // the plan leaves no group and no layout open
};

// Checks a graph or a region.
class FrameCheck {
 public:
  FrameCheck(const Plan& plan, PlannedGraph frame, bool is_complete, Kernels& kernels)
      : plan_(plan),
        frame_(std::move(frame)),
        graph_(*frame_.graph),
        users_(graph_),
        is_complete_(is_complete),
        kernels_(kernels) {}

  Status run() {
    if (is_complete_) HONE_TRY(no_node_is_left());
    HONE_TRY(groups());
    HONE_TRY(layouts());
    HONE_TRY(order());
    HONE_TRY(offsets());
    collect_kernels();
    return regions();
  }

 private:
  std::string label(const Step& step) const { return hone::label(graph_, step); }

  // ---- Groups -----------------------------------------------------------------------------------

  Status no_node_is_left() const {
    for (const Step& step : frame_.steps)
      if (step.name.empty())
        return bad_input("{} is in no group, and no view", label(step)).within("fuse");
    return {};
  }

  Status groups() const {
    for (const Step& step : frame_.steps) {
      if (!step.is_kernel || step.name.empty()) continue;
      Status good = check_group(graph_, users_, step.nodes);
      if (!good.ok()) return std::move(good).error().within("fuse @" + step.name);
    }
    return no_cycle();
  }

  // Steps that wait for nothing are done until there are none; what is left waits for itself.
  Status no_cycle() const {
    const size_t count = frame_.steps.size();
    std::vector<uint32_t> waits(count);
    std::vector<std::vector<uint32_t>> readers(count);
    for (uint32_t s = 0; s < count; ++s) {
      for (uint32_t needed : frame_.needs(s)) {
        readers[needed].push_back(s);
        ++waits[s];
      }
    }
    // A stated order adds that each step waits for the one before.
    for (size_t i = 1; i < frame_.order.size(); ++i) {
      readers[frame_.order[i - 1]].push_back(frame_.order[i]);
      ++waits[frame_.order[i]];
    }
    std::vector<uint32_t> ready;
    for (uint32_t s = 0; s < count; ++s)
      if (waits[s] == 0) ready.push_back(s);
    size_t done = 0;
    while (!ready.empty()) {
      const uint32_t step = ready.back();
      ready.pop_back();
      ++done;
      for (uint32_t reader : readers[step])
        if (--waits[reader] == 0) ready.push_back(reader);
    }
    if (done == count) return {};
    return cycle(waits);
  }

  bool needs_as_it_was(uint32_t reader, uint32_t update) const {
    const std::vector<uint32_t>& readers = frame_.steps[update].after;
    return std::ranges::find(readers, reader) != readers.end();
  }

  Error cycle(const std::vector<uint32_t>& waits) const {
    std::vector<size_t> place(frame_.steps.size(), frame_.order.size());  // in the order
    for (size_t i = 0; i < frame_.order.size(); ++i) place[frame_.order[i]] = i;
    for (uint32_t step : frame_.order)
      for (uint32_t needed : frame_.needs(step))
        if (place[needed] < frame_.order.size() && place[needed] > place[step])
          return bad_input(
                     "{} stands before {}, which {}", label(frame_.steps[step]),
                     label(frame_.steps[needed]),
                     needs_as_it_was(needed, step) ? "needs what it changes in place" : "it reads")
              .within("order");
    // Each step that waits has one that it waits for; going back must come round.
    uint32_t step = 0;
    while (waits[step] == 0) ++step;
    std::vector<uint32_t> path;
    std::vector<bool> seen(frame_.steps.size());
    while (!seen[step]) {
      seen[step] = true;
      path.push_back(step);
      for (uint32_t needed : frame_.needs(step))
        if (waits[needed] > 0) step = needed;
      if (step == path.back())
        return bad_input("{} comes too late: what stands before it waits for it",
                         label(frame_.steps[step]))
            .within("order");
    }
    path.erase(path.begin(), std::ranges::find(path, step));
    std::vector<std::string> names;
    for (uint32_t s : path) names.push_back(label(frame_.steps[s]));
    return bad_input("each of {} waits for the next, and the last for the first", join(names, ", "))
        .within("fuse");
  }

  // ---- Layouts ----------------------------------------------------------------------------------

  Status layouts() const {
    for (uint32_t i = 0; i < graph_.value_count(); ++i) {
      const ValueId v{i};
      const auto found = plan_.layout.find(std::string(graph_.name(v)));
      if (found == plan_.layout.end()) {
        if (is_complete_ && frame_.has_layout(v))
          return bad_input("there is none").within(fmt::format("layout {}", graph_.label(v)));
        continue;
      }
      Status good = layout(v, found->second);
      if (!good.ok()) return std::move(good).error().within("layout %" + found->first);
    }
    return {};
  }

  Status layout(ValueId v, const Layout& layout) const {
    if (!frame_.has_layout(v)) return bad_input("{}", why_no_layout(frame_, users_, v));
    return check(layout, graph_.type(v));
  }

  // ---- Order and offsets ------------------------------------------------------------------------

  Status order() const {
    if (!is_complete_ || frame_.order.size() == frame_.steps.size()) return {};
    std::vector<bool> stands(frame_.steps.size());
    for (uint32_t s : frame_.order) stands[s] = true;
    const auto missing = static_cast<size_t>(std::ranges::find(stands, false) - stands.begin());
    return bad_input("{} is missing", label(frame_.steps[missing])).within("order");
  }

  Status offsets() const {
    if (!graph_.is_static()) {
      if (plan_.offset.empty()) return {};
      return bad_input("sizes depend on symbols, so nothing has a place yet")
          .within("offset %" + plan_.offset.begin()->first);
    }
    size_t found = 0;
    for (uint32_t i = 0; i < graph_.value_count(); ++i) {
      const auto entry = plan_.offset.find(std::string(graph_.name(ValueId{i})));
      if (entry == plan_.offset.end()) {
        if (is_complete_ && frame_.home[i] == Home::temporary)
          return bad_input("there is none")
              .within(fmt::format("offset {}", graph_.label(ValueId{i})));
        continue;
      }
      ++found;
      Status good = check_offset(frame_, ValueId{i});
      if (!good.ok()) return std::move(good).error().within("offset %" + entry->first);
    }
    if (found < plan_.offset.size()) return unknown_offset();
    return check_no_overlap(frame_);
  }

  Status unknown_offset() const {
    for (const auto& [name, offset] : plan_.offset) {
      bool is_known = false;
      for (uint32_t i = 0; i < graph_.value_count(); ++i)
        is_known = is_known || graph_.name(ValueId{i}) == name;
      if (!is_known)
        return bad_input("the graph has no value '%{}'", excerpt(name)).within("offset %" + name);
    }
    return {};
  }

  // ---- Schedules and regions --------------------------------------------------------------------

  void collect_kernels() {
    for (const Step& step : frame_.steps) {
      if (step.name.empty()) kernels_.all_known = false;
      if (step.name.empty() || !step.is_kernel) continue;
      bool is_known = true;
      for (const std::vector<ValueId>* ports : {&step.reads, &step.writes})
        for (ValueId v : *ports)
          is_known = is_known &&
                     (!frame_.has_layout(v) || plan_.layout.contains(std::string(graph_.name(v))));
      kernels_.all_known = kernels_.all_known && is_known;
      if (!is_known) continue;
      KernelBody body = body_of(frame_, users_, step);
      const uint64_t hash = kernel_hash(body);
      kernels_.by_hash.try_emplace(hash, KnownKernel{step.name, std::move(body)});
    }
  }

  Status regions() {
    size_t found = 0;
    const std::vector<RegionRef> known = regions_of(graph_);
    for (const RegionRef& region : known) {
      const auto inner = plan_.region.find(region.key);
      if (inner == plan_.region.end()) {
        kernels_.all_known = false;
        if (is_complete_) return bad_input("it has no plan").within("region %" + region.key);
        continue;
      }
      ++found;
      Status good = check_region(inner->second, *region.graph);
      if (!good.ok()) return std::move(good).error().within("region %" + region.key);
    }
    if (found == plan_.region.size()) return {};
    for (const auto& [key, inner] : plan_.region)
      if (std::ranges::find(known, key, &RegionRef::key) == known.end())
        return bad_input("the graph has no such region").within("region %" + key);
    return {};
  }

  Status check_region(const Plan& plan, const Graph& graph) {
    if (plan.threads || !plan.schedule.empty())
      return bad_input("threads and schedules are decided for the whole plan, not in a region");
    return FrameCheck(plan, HONE_TRY(planned(plan, graph)), is_complete_, kernels_).run();
  }

  const Plan& plan_;
  const PlannedGraph frame_;
  const Graph& graph_;
  const Users users_;
  const bool is_complete_;
  Kernels& kernels_;
};

Status check_header(const Plan& plan, const Graph& graph, const Target& target, bool is_complete) {
  if (is_complete || plan.graph_hash != 0) HONE_TRY(check_graph(plan, graph));
  if (plan.target != target.name && (is_complete || !plan.target.empty()))
    return bad_input("the plan is for the target '{}', not for '{}'", plan.target, target.name);
  if (is_complete && !plan.threads) return bad_input("there is none").within("threads");
  if (plan.threads && (*plan.threads < 1 || *plan.threads > target.cores))
    return bad_input("{} is outside of 1..{}, the target's cores", *plan.threads, target.cores)
        .within("threads");
  return {};
}

Status check_schedules(const Plan& plan, const Kernels& kernels, const Target& target,
                       bool is_complete) {
  for (const auto& [hash, schedule] : plan.schedule) {
    const std::string place = fmt::format("schedule 0x{:016x}", hash);
    const auto kernel = kernels.by_hash.find(hash);
    if (kernel == kernels.by_hash.end()) {
      if (kernels.all_known) return bad_input("no kernel has this hash").within(place);
      continue;
    }
    Status good = check_schedule(kernel->second.body, schedule, target);
    if (!good.ok())
      return std::move(good).error().within(fmt::format("{}, @{}", place, kernel->second.name));
  }
  if (!is_complete) return {};
  for (const auto& [hash, kernel] : kernels.by_hash)
    if (!plan.schedule.contains(hash))
      return bad_input("@{} has none", kernel.name).within(fmt::format("schedule 0x{:016x}", hash));
  return {};
}

// Beside its header.
bool is_empty(const Plan& plan) {
  Plan header;
  header.graph = plan.graph;
  header.graph_hash = plan.graph_hash;
  header.target = plan.target;
  header.threads = plan.threads;
  return plan == header;
}

Status check(const Plan& plan, const Graph& graph, const Target& target, bool is_complete) {
  HONE_TRY(check_header(plan, graph, target, is_complete));
  if (!is_complete && is_empty(plan)) return {};
  Kernels kernels;
  HONE_TRY(FrameCheck(plan, HONE_TRY(planned(plan, graph)), is_complete, kernels).run());
  return check_schedules(plan, kernels, target, is_complete);
}

}  // namespace

Status check_graph(const Plan& plan, const Graph& graph) {
  const uint64_t hash = hash_without_weights(graph);
  if (plan.graph_hash == hash) return {};
  return bad_input("the plan is for another graph: its hash is 0x{:016x}, '@{}' has 0x{:016x}",
                   plan.graph_hash, graph.name(), hash);
}

Status check(const Plan& plan, const Graph& graph, const Target& target) {
  return check(plan, graph, target, false);
}

Status check_complete(const Plan& plan, const Graph& graph, const Target& target) {
  return check(plan, graph, target, true);
}

}  // namespace hone

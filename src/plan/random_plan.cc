#include "plan/random_plan.h"
#include "kernel/schedule_space.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "plan/copies.h"
#include "plan/in_place.h"
#include "plan/plan_space.h"
#include "plan/planned.h"
#include "plan/value_names.h"
#include "plan/view.h"

namespace hone {
namespace {

constexpr size_t kMaxGroup = 16;     // nodes
constexpr size_t kMaxSearch = 2000;  // steps that are looked at to find a cycle
constexpr size_t kMaxPacked = 4000;  // values that share an arena; more lie side by side

// Groups of nodes, grown so that no two wait for each other.
class RandomGroups {
 public:
  RandomGroups(const Graph& graph, const Users& users, const std::vector<bool>& is_free, Rng& rng)
      : graph_(graph), users_(users), is_free_(is_free), rng_(rng) {}

  std::vector<std::vector<NodeId>> run() {
    group_of_.assign(graph_.node_count(), kNoStep);
    std::vector<NodeId> order;
    for (NodeId n : graph_.nodes())
      if (is_free_[n.index]) order.push_back(n);
    rng_.shuffle(order);
    for (NodeId n : order)
      if (group_of_[n.index] == kNoStep) grow(n);
    return std::move(groups_);
  }

 private:
  void grow(NodeId first) {
    const auto id = static_cast<uint32_t>(groups_.size());
    groups_.push_back({first});
    group_of_[first.index] = id;
    if (!is_fusible(graph_.opcode(first)) || rng_.chance(0.3)) return;
    const size_t wanted = static_cast<size_t>(rng_.between(2, kMaxGroup));
    for (size_t tries = 0; tries < 2 * wanted && groups_[id].size() < wanted; ++tries) {
      const NodeId next = neighbor(rng_.pick(groups_[id]));
      if (next == NodeId{} || !is_free_[next.index] || group_of_[next.index] != kNoStep) continue;
      std::vector<NodeId> larger = groups_[id];
      larger.insert(std::ranges::upper_bound(larger, next), next);
      if (!check_group(graph_, users_, larger).ok()) continue;
      group_of_[next.index] = id;
      std::swap(groups_[id], larger);
      if (!comes_back(id)) continue;
      std::swap(groups_[id], larger);
      group_of_[next.index] = kNoStep;
    }
  }

  NodeId neighbor(NodeId n) {
    std::vector<NodeId> all;
    for (ValueId v : graph_.operands(n))
      if (!v.is_none()) all.push_back(graph_.producer(v));
    for (ValueId v : graph_.results(n))
      for (NodeId user : users_.of(v)) all.push_back(user);
    return all.empty() ? NodeId{} : rng_.pick(all);
  }

  // Whether a path leaves the group and enters it again; yes, if that is not found out soon.
  bool comes_back(uint32_t id) const {
    std::vector<NodeId> reached;  // first nodes of groups, and nodes without one
    std::unordered_set<uint32_t> seen;
    const auto reach = [&](NodeId n) {
      for (ValueId v : graph_.results(n)) {
        for (NodeId user : users_.of(v)) {
          const uint32_t group = group_of_[user.index];
          const NodeId one = group == kNoStep ? user : groups_[group][0];
          if (seen.insert(one.index).second) reached.push_back(one);
        }
      }
    };
    for (NodeId n : groups_[id]) reach(n);
    // Edges inside of the group do not count as coming back.
    const NodeId home = groups_[id][0];
    std::erase(reached, home);
    seen.erase(home.index);
    for (size_t i = 0; i < reached.size(); ++i) {
      if (reached[i] == home || i > kMaxSearch) return true;
      const uint32_t group = group_of_[reached[i].index];
      if (group == kNoStep) {
        reach(reached[i]);
      } else {
        for (NodeId n : groups_[group]) reach(n);
      }
    }
    return false;
  }

  const Graph& graph_;
  const Users& users_;
  const std::vector<bool>& is_free_;
  Rng& rng_;
  std::vector<std::vector<NodeId>> groups_;
  std::vector<uint32_t> group_of_;  // by node
};

// In three plans of ten some values have copies, in places two.
std::map<std::string, Copy> random_copies(const Graph& graph, Rng& rng) {
  std::map<std::string, Copy> copies;
  if (!rng.chance(0.3)) return copies;
  const Users users(graph);
  const ValueNames names(graph);
  for (uint32_t i = 0; i < graph.value_count(); ++i) {
    const ValueId v{i};
    if (is_number(graph, v) || !rng.chance(0.3)) continue;
    std::set<NodeId> readers;
    for (NodeId n : users.of(v))
      if (graph.results(n).size() > 0) readers.insert(n);
    for (std::string_view suffix : {"copy", "copy_2"}) {
      Copy copy{std::string(graph.name(v)), {}};
      for (NodeId n : std::vector(readers.begin(), readers.end())) {
        if (rng.chance(0.4)) continue;
        copy.readers.push_back(step_name(graph, n));
        readers.erase(n);
      }
      const std::string name = fmt::format("{}.{}", copy.of, suffix);
      if (copy.readers.empty() || name.size() > UINT16_MAX || names.has(name)) continue;
      copies.emplace(name, std::move(copy));
    }
  }
  return copies;
}

class RandomFrame {
 public:
  // `graph` has the plan's copies.
  RandomFrame(const Graph& source, const Graph& graph, Plan& plan, Plan& whole,
              const Target& target, Rng& rng)
      : source_(source),
        graph_(graph),
        users_(graph),
        plan_(plan),
        whole_(whole),
        target_(target),
        rng_(rng) {}

  static void decide(const Graph& source, Plan& plan, Plan& whole, const Target& target, Rng& rng) {
    plan.copy = random_copies(source, rng);
    const GraphRef graph = with_copies(source, plan.copy).value();
    RandomFrame(source, *graph, plan, whole, target, rng).run();
  }

 private:
  void run() {
    views();
    groups();
    frame_ = planned(plan_, source_).value();
    updates();
    frame_ = planned(plan_, source_).value();
    layouts();
    frame_ = planned(plan_, source_).value();
    schedules();
    order();
    if (graph_.is_static()) offsets();
    for (const RegionRef& region : regions_of(graph_))
      decide(*region.graph, plan_.region[region.key], whole_, target_, rng_);
  }

  std::string name(ValueId v) const { return std::string(graph_.name(v)); }

  void views() {
    for (NodeId n : graph_.nodes()) {
      if (!check_view(graph_, users_, n).ok() || rng_.chance(0.4)) continue;
      if (!lies_nowhere_else(n)) continue;
      const bool is_view = rng_.chance(0.8);
      plan_.view[name(graph_.result(n))] = is_view;
      if (is_view && graph_.opcode(n) == Opcode::concat)
        for (ValueId v : graph_.operands(n)) is_part_.insert(v.index);
    }
  }

  // Of what a concat would join, nothing is a view or joined by another one.
  bool lies_nowhere_else(NodeId n) const {
    if (graph_.opcode(n) != Opcode::concat) return true;
    return std::ranges::none_of(graph_.operands(n), [&](ValueId v) {
      const auto view = plan_.view.find(name(graph_.result(graph_.producer(v))));
      return is_part_.contains(v.index) || (view != plan_.view.end() && view->second);
    });
  }

  void groups() {
    std::vector<bool> is_free(graph_.node_count());
    for (NodeId n : graph_.nodes()) {
      const Opcode opcode = graph_.opcode(n);
      if (is_leaf(opcode) || is_command(graph_, n)) continue;
      const auto view = plan_.view.find(name(graph_.result(n)));
      is_free[n.index] = view == plan_.view.end() || !view->second;
    }
    std::set<std::string> taken;
    for (NodeId n : graph_.nodes())
      if (is_command(graph_, n)) taken.insert(step_name(graph_, n));
    size_t next = 0;
    for (const std::vector<NodeId>& nodes : RandomGroups(graph_, users_, is_free, rng_).run()) {
      while (taken.contains(fmt::format("k{}", next))) ++next;
      Group group{fmt::format("k{}", next++), {}};
      for (NodeId n : nodes) group.nodes.push_back(name(graph_.result(n)));
      plan_.fuse.push_back(std::move(group));
    }
  }

  void updates() {
    const auto wants = [&](NodeId n) {
      if (rng_.chance(0.6)) return true;
      if (rng_.chance(0.6)) plan_.in_place[name(graph_.result(n))] = false;
      return false;
    };
    for (NodeId n : more_in_place(frame_, users_, wants))
      plan_.in_place[name(graph_.result(n))] = true;
  }

  void layouts() {
    for (uint32_t i = 0; i < graph_.value_count(); ++i)
      if (frame_.has_layout(ValueId{i}))
        plan_.layout[name(ValueId{i})] = random_layout(graph_.type(ValueId{i}), rng_);
  }

  void schedules() {
    for (const Step& step : frame_.steps) {
      if (!step.is_kernel) continue;
      const KernelBody body = body_of(frame_, users_, step);
      const auto [at, is_new] = whole_.schedule.try_emplace(kernel_hash(body));
      if (is_new) at->second = random_schedule(body, target_, rng_);
    }
  }

  void order() {
    std::vector<uint32_t> waits(frame_.steps.size()), ready;
    std::vector<std::vector<uint32_t>> readers(frame_.steps.size());
    for (uint32_t s = 0; s < frame_.steps.size(); ++s) {
      for (uint32_t needed : frame_.needs(s)) {
        readers[needed].push_back(s);
        ++waits[s];
      }
      if (waits[s] == 0) ready.push_back(s);
    }
    while (!ready.empty()) {
      std::swap(rng_.pick(ready), ready.back());
      const uint32_t step = ready.back();
      ready.pop_back();
      frame_.order.push_back(step);
      plan_.order.push_back(frame_.steps[step].name);
      for (uint32_t reader : readers[step])
        if (--waits[reader] == 0) ready.push_back(reader);
    }
  }

  void offsets() {
    std::vector<Lifetime> lives = lifetimes(frame_, frame_.order);
    rng_.shuffle(lives);
    if (lives.size() > kMaxPacked) {
      int64_t end = 0;
      for (const Lifetime& life : lives)
        plan_.offset[name(life.value)] = std::exchange(end, end + padded(life.bytes));
      return;
    }
    struct Placed {
      int64_t begin;
      const Lifetime* life;
    };
    std::vector<Placed> placed;  // by place
    for (const Lifetime& life : lives) {
      std::vector<int64_t> gaps;  // where it fits
      int64_t end = 0;
      for (const Placed& other : placed) {
        if (other.life->last < life.first || life.last < other.life->first) continue;
        if (other.begin - end >= padded(life.bytes)) gaps.push_back(end);
        end = std::max(end, other.begin + padded(other.life->bytes));
      }
      gaps.push_back(end + kOffsetAlignment * (rng_.chance(0.2) ? rng_.between(1, 8) : 0));
      const int64_t begin = rng_.pick(gaps);
      plan_.offset[name(life.value)] = begin;
      placed.insert(std::ranges::upper_bound(placed, begin, {}, &Placed::begin), {begin, &life});
    }
  }

  static int64_t padded(int64_t bytes) {
    return (bytes + kOffsetAlignment - 1) / kOffsetAlignment * kOffsetAlignment;
  }

  const Graph& source_;
  const Graph& graph_;
  const Users users_;
  Plan& plan_;
  Plan& whole_;
  const Target& target_;
  Rng& rng_;
  PlannedGraph frame_;
  std::unordered_set<uint32_t> is_part_;  // values that a concat joins in memory
};

}  // namespace

Plan random_plan(const Graph& graph, const Target& target, uint64_t seed) {
  Rng rng(seed);
  Plan plan;
  if (!graph.name().empty()) plan.graph = graph.name();
  plan.graph_hash = hash_without_weights(graph);
  plan.target = target.name;
  plan.threads = rng.between(1, target.cores);
  RandomFrame::decide(graph, plan, plan, target, rng);
  return plan;
}

}  // namespace hone

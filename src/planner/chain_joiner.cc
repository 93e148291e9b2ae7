#include "planner/chain_joiner.h"

#include <algorithm>

#include "kernel/kernel_body.h"
#include "kernel/stages.h"
#include "planner/packed_sources.h"

namespace hone {

ChainJoiner::ChainJoiner(PlanningFrame& frame, PlanCost& price)
    : edited_(frame.edited()),
      planned_(edited_.planned()),
      graph_(edited_.view()),
      users_(edited_.users()),
      freedom_(frame.freedom()),
      price_(price) {}

Result<bool> ChainJoiner::run() {
  // Steps change their numbers; a kernel keeps its last node.
  std::vector<NodeId> last;
  for (const Step& step : planned_.steps)
    if (may_be_in_chain(step)) last.push_back(step.nodes.back());
  std::ranges::sort(last);
  bool is_joined = false;
  for (NodeId n : last)
    while (HONE_TRY(take_one_before(n))) is_joined = true;
  return is_joined;
}

// The kernel with this last node takes one that it reads, if that pays.
Result<bool> ChainJoiner::take_one_before(NodeId last) {
  // A join that is undone may leave steps elsewhere.
  const std::vector<NodeId> nodes = planned_.steps[planned_.step_of[last.index]].nodes;
  if (nodes.back() != last) return false;  // another one has taken it
  for (NodeId n : nodes) {
    for (ValueId v : graph_.operands(n)) {
      if (v.is_none()) continue;
      const uint32_t before = planned_.step_of[graph_.producer(v).index];
      if (before != kNoStep && before != planned_.step_of[last.index] &&
          HONE_TRY(joins(before, planned_.step_of[last.index])))
        return true;
    }
  }
  return false;
}

bool ChainJoiner::may_be_in_chain(const Step& step) const {
  return step.is_kernel && std::ranges::all_of(step.nodes, [&](NodeId n) {
           return freedom_.is_free[n.index] && is_fusible(graph_.opcode(n)) && may_take(n);
         });
}

bool ChainJoiner::has_sizes(const Step& step) const {
  return std::ranges::all_of(step.writes, [&](ValueId v) { return graph_.type(v).is_static(); });
}

bool ChainJoiner::may_be_one(const KernelBody& body) const { return simplest_chain(body).ok(); }

Result<double> ChainJoiner::seconds(uint32_t step) {
  double least = HONE_TRY(price_.seconds(edited_, step));
  for (const PlanCost::Layouts& layouts : layouts_of_sources(edited_, step, freedom_.block))
    least = std::min(least, HONE_TRY(price_.seconds_if(edited_, step, layouts)));
  return least;
}

Result<bool> ChainJoiner::joins(uint32_t before, uint32_t after) {
  const Step &a = planned_.steps[before], &b = planned_.steps[after];
  if (!may_be_in_chain(a) || !reads_alone(b, a) || !may_pay(a, b)) return false;
  std::vector<NodeId> both;
  std::ranges::merge(a.nodes, b.nodes, std::back_inserter(both));
  const auto [pays, is_new] =
      pays_.try_emplace(group_shape(graph_, both, ports_of(graph_, users_, both), planned_.layout));
  if (!is_new && !pays->second) return false;
  const double apart = HONE_TRY(seconds(before)) + HONE_TRY(seconds(after));
  if (is_new && stays_alone(HONE_TRY(price_.schedule(edited_, before)))) return false;
  const Undo as_before = edited_.whole().now();
  if (!HONE_TRY(join(before, after))) return false;
  if (!is_new) return true;
  const uint32_t joined = planned_.step_of[both[0].index];
  pays->second = may_be_one(edited_.body(joined)) &&
                 HONE_TRY(seconds(joined)) < paying_part() * apart;
  if (!pays->second) edited_.whole().undo(as_before);
  return pays->second;
}

// Tells whether they could be joined. The value that one passes to the other has no layout of its
// own then.
Result<bool> ChainJoiner::join(uint32_t before, uint32_t after) {
  const Undo as_before = edited_.whole().now();
  const std::vector<ValueId> passed = planned_.steps[before].writes;
  for (ValueId v : passed)
    if (planned_.said_layout[v.index]) HONE_TRY(edited_.set_layout(v, std::nullopt));
  const bool is_joined = edited_.join(before, after).ok();
  if (!is_joined) edited_.whole().undo(as_before);
  return is_joined;
}

// Tells whether nothing else needs what the kernel computes.
bool ChainJoiner::reads_alone(const Step& reader, const Step& step) const {
  for (NodeId n : step.nodes) {
    for (ValueId v : graph_.results(n)) {
      if (users_.is_output(v) || freedom_.has_memory[v.index]) return false;
      for (NodeId user : users_.of(v)) {
        const uint32_t of_user = planned_.step_of[user.index];
        if (of_user == kNoStep) return false;  // a view
        const Step& other = planned_.steps[of_user];
        if (&other != &reader && &other != &step) return false;
      }
    }
  }
  return true;
}

}  // namespace hone

#include "kernel/group_work.h"

#include <algorithm>
#include <ranges>

#include "base/hash.h"
#include "ir/access.h"
#include "ir/op_def.h"

namespace hone {

namespace {

constexpr size_t kMaxLoops = 64;

double largest_extent(Dim dim) {
  return static_cast<double>(std::max<int64_t>(dim.range().high, 0));
}

// The work of a point.
double cost_of(const Graph& graph, NodeId node) {
  return std::max(graph.op(node).def().flops_per_point, 1.0);
}

}  // namespace

void GrowingWork::add_output(ValueId output) {
  Visit visit = {.identity = 0, .dims = {}};
  for (int d = 0; d < graph_.type(output).rank(); ++d) {
    if (loops_.size() == static_cast<size_t>(d))
      open(largest_extent(graph_.type(output).dim(d)), 0);
    visit.dims.push_back(Loops{1} << d);
  }
  visits_.add(output, std::move(visit));
}

GroupWork GrowingWork::work() const {
  if (!is_too_much()) return work_;
  return {.statements = kMaxStatements + 1, .operations = 0, .inherent = work_.inherent};
}

bool GrowingWork::is_too_much() const {
  return work_.statements > kMaxStatements || loops_.size() > kMaxLoops;
}

void GrowingWork::return_to(const Mark& mark) {
  work_ = mark.work;
  loops_.resize(mark.loops);
}

// ---- Places -------------------------------------------------------------------------------------

GrowingWork::Loops GrowingWork::Visit::all() const {
  Loops loops = guards;
  for (Loops dim : dims) loops |= dim;
  return loops;
}

struct GrowingWork::Walk {
  GrowingWork& work;
  bool reads_in_place;

  // The loops behind each dim of the relation: the visit's, or new ones that reduce.
  std::optional<std::vector<Loops>> enter(NodeId node, const AccessRelation& relation,
                                          const Visit& visit) {
    if (work.is_too_much()) return std::nullopt;
    std::vector<Loops> iters = visit.dims;
    Loops here = work.around(visit.all());
    for (size_t d = iters.size(); d < relation.dims.size(); ++d) {
      work.open(mean_trips(relation.dims, d), here);
      if (work.loops_.size() > kMaxLoops) return std::nullopt;
      iters.push_back(Loops{1} << (work.loops_.size() - 1));
      here |= iters.back();
      ++work.work_.statements;
    }
    ++work.work_.statements;
    work.work_.operations += work.points(here) * cost_of(work.graph_, node);
    return iters;
  }

  Visit read(const BackRead& read, const std::vector<Loops>& iters, const Visit& visit) const {
    if (reads_in_place) return visit;
    const uint64_t place = hash_combine(read.operand, read.piece);
    Visit next = {.identity = hash_combine(visit.identity, hash_combine(read.node.index, place)),
                  .dims = {},
                  .guards = visit.guards};
    for (const Guard& guard : read.access.guards) next.guards |= loops_of(guard.value, iters);
    for (size_t d = 0; d < read.access.index.size(); ++d)
      next.dims.push_back(read.access.is_data_dependent(static_cast<int>(d))
                              ? visit.all()
                              : loops_of(read.access.index[d], iters));
    return next;
  }

  static Loops loops_of(const IndexExpr& expr, const std::vector<Loops>& iters) {
    Loops loops = 0;
    for (size_t d = 0; d < iters.size(); ++d)
      if (expr.mentions(static_cast<int>(d))) loops |= iters[d];
    return loops;
  }
};

void GrowingWork::add(NodeId node) {
  const AccessRelation relation = relation_of(graph_, node);
  double inherent = cost_of(graph_, node);
  for (size_t d = 0; d < relation.dims.size(); ++d) inherent *= mean_trips(relation.dims, d);
  work_.inherent += inherent;
  Walk walk = {*this, is_elementwise(graph_.opcode(node))};
  walk_back(graph_, node, relation, visits_, walk);
}

// ---- Loops --------------------------------------------------------------------------------------

void GrowingWork::open(double extent, Loops around) {
  if (loops_.size() < kMaxLoops) around |= Loops{1} << loops_.size();
  loops_.push_back({extent, around});
}

// All that are open where these are.
GrowingWork::Loops GrowingWork::around(Loops loops) const {
  Loops all = loops;
  for (size_t i = 0; i < loops_.size(); ++i)
    if (loops >> i & 1) all |= loops_[i].around;
  return all;
}

double GrowingWork::points(Loops loops) const {
  double count = 1;
  for (size_t i = 0; i < loops_.size(); ++i)
    if (loops >> i & 1) count *= loops_[i].extent;
  return count;
}

// ---- Groups -------------------------------------------------------------------------------------

Status check_work(const GroupWork& work) {
  if (work.statements > kMaxStatements)
    return over_limit("one point takes more than {} statements", kMaxStatements);
  if (work.operations > kMaxRepetition * work.inherent)
    return over_limit("{:.3g} operations, {:.3g} on their own", work.operations, work.inherent);
  return {};
}

GroupWork work_of(const Graph& graph, std::span<const NodeId> nodes,
                  std::span<const ValueId> outputs) {
  GrowingWork work(graph);
  for (ValueId output : outputs) work.add_output(output);
  for (NodeId node : std::views::reverse(nodes)) work.add(node);
  return work.work();
}

GroupWork work_of(const KernelBody& body) {
  return work_of(body.graph, computing_nodes(body.graph), body.graph.outputs());
}

}  // namespace hone

#include "kernel/group_work.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "ir/access.h"
#include "ir/op_def.h"

namespace hone {

namespace {

using Loops = uint64_t;  // a set: bits are positions in the list of loops

constexpr size_t kMaxLoops = 64;
constexpr int64_t kTooMany = kMaxStatements + 1;

double size(Dim dim) { return static_cast<double>(std::max<int64_t>(dim.range().high, 0)); }

// One place where a value is needed: equal ones are computed once.
struct Visit {
  uint64_t identity;
  std::vector<Loops> dims;  // per dim of the value: the loops that its index depends on
  Loops guards = 0;         // the loops that decide whether it is needed at all

  Loops all() const {
    Loops loops = guards;
    for (Loops dim : dims) loops |= dim;
    return loops;
  }
};

class Counter {
 public:
  explicit Counter(const Graph& graph) : graph_(graph) {}

  GroupWork run(std::span<const NodeId> nodes, std::span<const ValueId> outputs) {
    for (ValueId output : outputs) {
      Visit visit = {.identity = 0, .dims = {}};
      for (int d = 0; d < graph_.type(output).rank(); ++d) {
        if (loops_.size() == static_cast<size_t>(d)) open(size(graph_.type(output).dim(d)), 0);
        visit.dims.push_back(Loops{1} << d);
      }
      add(output, std::move(visit));
    }
    for (NodeId node : nodes) work_.inherent += inherent(node);
    for (size_t i = nodes.size(); i-- > 0;) {
      visit(nodes[i]);
      if (work_.statements >= kTooMany || loops_.size() > kMaxLoops)
        return {.statements = kTooMany, .operations = 0, .inherent = work_.inherent};
    }
    return work_;
  }

 private:
  void add(ValueId value, Visit visit) {
    std::vector<Visit>& visits = visits_[value.index];
    if (std::ranges::find(visits, visit.identity, &Visit::identity) == visits.end())
      visits.push_back(std::move(visit));
  }

  void open(double extent, Loops around) {
    if (loops_.size() < kMaxLoops) around |= Loops{1} << loops_.size();
    loops_.push_back({extent, around});
  }

  // All that are open where these are.
  Loops around(Loops loops) const {
    Loops all = loops;
    for (size_t i = 0; i < loops_.size(); ++i)
      if (loops >> i & 1) all |= loops_[i].around;
    return all;
  }
  double points(Loops loops) const {
    double count = 1;
    for (size_t i = 0; i < loops_.size(); ++i)
      if (loops >> i & 1) count *= loops_[i].extent;
    return count;
  }

  AccessRelation relation_of(NodeId node) const {
    const std::vector<Type> operands = graph_.operand_types(node);
    return access_of({graph_.op(node), operands}, graph_.result_types(node));
  }
  // Of a point.
  double cost_of(NodeId node) const { return std::max(graph_.op(node).def().flops_per_point, 1.0); }
  double inherent(NodeId node) const {
    double own = cost_of(node);
    for (const IterDim& dim : relation_of(node).dims) own *= size(dim.extent);
    return own;
  }

  void visit(NodeId node) {
    const AccessRelation relation = relation_of(node);
    for (ValueId result : graph_.results(node)) {
      const std::vector<Visit> visits = visits_[result.index];
      for (const Visit& visit : visits) {
        if (work_.statements >= kTooMany || loops_.size() > kMaxLoops) return;
        one_point(node, relation, visit, cost_of(node));
      }
    }
  }

  void one_point(NodeId node, const AccessRelation& relation, const Visit& visit, double cost) {
    // The loops behind each dim of the relation: the visit's, or new ones that reduce.
    std::vector<Loops> iters = visit.dims;
    Loops here = around(visit.all());
    for (size_t d = iters.size(); d < relation.dims.size(); ++d) {
      open(size(relation.dims[d].extent), here);
      if (loops_.size() > kMaxLoops) return;
      iters.push_back(Loops{1} << (loops_.size() - 1));
      here |= iters.back();
      ++work_.statements;
    }
    ++work_.statements;
    work_.operations += points(here) * cost;
    const bool reads_in_place = is_elementwise(graph_.opcode(node));
    for (size_t i = 0; i < relation.operands.size(); ++i) {
      const ValueId operand = graph_.operands(node)[i];
      if (operand.is_none()) continue;
      if (reads_in_place) {
        add(operand, visit);
        continue;
      }
      uint64_t piece = hash_combine(visit.identity, hash_combine(node.index, i));
      for (const Access& access : relation.operands[i])
        add(operand, read(access, iters, visit, piece = hash_mix(piece + 1)));
    }
  }

  static Loops loops_of(const IndexExpr& expr, const std::vector<Loops>& iters) {
    Loops loops = 0;
    for (size_t d = 0; d < iters.size(); ++d)
      if (expr.mentions(static_cast<int>(d))) loops |= iters[d];
    return loops;
  }

  static Visit read(const Access& access, const std::vector<Loops>& iters, const Visit& visit,
                    uint64_t identity) {
    Visit next = {.identity = identity, .dims = {}, .guards = visit.guards};
    for (const Guard& guard : access.guards) next.guards |= loops_of(guard.value, iters);
    for (size_t d = 0; d < access.index.size(); ++d)
      next.dims.push_back(access.is_data_dependent(static_cast<int>(d))
                              ? visit.all()
                              : loops_of(access.index[d], iters));
    return next;
  }

  const Graph& graph_;
  struct Loop {
    double extent;
    Loops around;  // itself and those that it stands in; results' loops stand in any order
  };
  std::vector<Loop> loops_;  // those of the results first
  std::unordered_map<uint32_t, std::vector<Visit>> visits_;
  GroupWork work_;
};

}  // namespace

Status check_work(const GroupWork& work) {
  if (work.statements > kMaxStatements)
    return over_limit("one point takes more than {} statements", kMaxStatements);
  if (work.operations > kMaxRepetition * work.inherent)
    return over_limit("{:.3g} operations, {:.3g} on their own", work.operations, work.inherent);
  return {};
}

GroupWork work_of(const Graph& graph, std::span<const NodeId> nodes,
                  std::span<const ValueId> outputs) {
  return Counter(graph).run(nodes, outputs);
}

GroupWork work_of(const KernelBody& body) {
  return work_of(body.graph, computing_nodes(body.graph), body.graph.outputs());
}

}  // namespace hone

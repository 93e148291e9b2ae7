#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "ir/access.h"
#include "ir/graph_view.h"
#include "kernel/layout.h"
#include "kernel/schedule.h"
#include "target/target.h"

// Describes what a kernel computes, without its place in a graph. Groups of equal bodies are one
// kernel.

namespace hone {

struct KernelBody {
  // Primitive ops; parameters are what the kernel reads. One that is donated to an output may have
  // it in its memory: both are row-major, and what is computed from it is elementwise.
  Graph graph;
  std::vector<Layout> inputs;   // per parameter: how it lies in memory
  std::vector<Layout> outputs;  // per output
  // The only op, an update (update.h), changes its first operand, which lies where the output
  // does. The kernel does not read that parameter, and its points are those of the updates.
  bool in_place = false;
  // The block of a stage (stages.h): per dim of the results, the number of points in a block.
  // Empty: all.
  std::vector<int64_t> window = {};
};

// Hashes ops, types and layouts; names do not count. Bodies that body_of() makes of equal hash have
// the same nodes in the same order.
uint64_t kernel_hash(const KernelBody& body);
// The same part by part: the hash of the graph once, then the layouts of inputs and outputs.
class KernelHasher {
 public:
  explicit KernelHasher(uint64_t graph_hash) : hasher_(graph_hash) {}
  void add(const Layout& layout);
  uint64_t finish(bool in_place, std::span<const int64_t> window);

 private:
  Hasher hasher_;
};
// Neither parameters nor constants.
std::vector<NodeId> computing_nodes(const Graph& graph);

// The dims that a Schedule speaks of. First come those of the results; in place they are those of
// the updates, and in a stage those of its window. Then come the reduction dims of the anchor. The
// anchor is the op of the body that reduces (contraction, reduction or window), if there is exactly
// one.
struct KernelSpace {
  std::vector<IterDim> dims;
  int parallel = 0;    // the number of those that are the results'
  NodeId anchor = {};  // none: index is UINT32_MAX
  bool has_anchor() const { return anchor != NodeId{}; }
};
KernelSpace space_of(const KernelBody& body);

// The relation of a node of a graph.
AccessRelation relation_of(GraphView graph, NodeId node);

// True if loops of any schedule can go over the op's points: fusible ops, and dynamic updates.
bool has_points(Opcode opcode);

// The values that a group reads: those from outside but constants of one element, in order of first
// use. And what it writes: all results of a single node, of several nodes those that are read
// outside or are outputs of the graph, in the order of nodes.
struct GroupPorts {
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
};
// Nodes stand in the graph's order, here and below.
GroupPorts ports_of(GraphView graph, UsersView users, std::span<const NodeId> nodes);

// Hashes ops, types, layouts and their connections; names do not count. Groups of equal shape have
// equal bodies, which take longer to make.
uint64_t group_shape(GraphView graph, std::span<const NodeId> nodes, const GroupPorts& ports,
                     const std::vector<Layout>& layouts);

// True if each element of the result is an element of the only operand: broadcast, reshape,
// transpose, slice, reverse.
bool only_moves(Opcode opcode);

// True if the op can be computed at one point of a nest that computes others, too: elementwise ops,
// data movement, gather, dynamic slice, contractions, reductions, windows, segments, iota.
bool is_fusible(Opcode opcode);

inline constexpr size_t kMaxGroupNodes = 2048;

// Tells whether these nodes may be one kernel, and why not. A single node with an access relation
// always may. Several nodes must all be fusible, and all that they write must have the same dims.
// Code and work for a point must stay bounded, if only in the stages of a chain. No path may leave
// the group and come back.
Status check_group(GraphView graph, UsersView users, std::span<const NodeId> nodes);
Status check_group(const Graph& graph, std::span<const NodeId> nodes);
// The same but for paths that leave the group: for who looks for them among the steps of a plan.
Status check_group_alone(GraphView graph, UsersView users, std::span<const NodeId> nodes);
// The part of it that is about one of several nodes, and the one about what they write.
Status check_member(GraphView graph, NodeId node);
Status check_outputs(GraphView graph, std::span<const ValueId> outputs);

// The group as a graph of its own, with the values' names: what the first result needs, then what
// the others need, equal nodes once. `layouts` has one per value of the graph; where it is shorter,
// and for those without parts, memory is row-major.
KernelBody body_of(GraphView graph, UsersView users, std::span<const NodeId> nodes,
                   const std::vector<Layout>& layouts);
KernelBody body_of(const Graph& graph, std::span<const NodeId> nodes,
                   const std::vector<Layout>& layouts);

// Says whether the schedule can be carried out on the body, and why not. A body of one op has
// Algorithm::generic, one of a group that check_group() accepts plain_nest() or simplest_chain().
Status check_schedule(const KernelBody& body, const Schedule& schedule, const Target& target);

}  // namespace hone

#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "kernel/kernel_body.h"
#include "plan/plan.h"

// A graph as a plan carries it out: its steps, and where each value lies. Edits (edit.h), planner
// and lowering share it. Nodes and values are those of PlannedGraph::view(). Regions are graphs
// with plans of their own.

namespace hone {

enum class Home : uint8_t {
  none,  // no memory: inside of a kernel
  input,
  output,
  constant,   // of one element: only those that a command reads or that are outputs
  temporary,  // in the arena
  view,       // in the memory of its node's operand, a part of it or changed in place; or of a
              // concat that joins it with others
};

// An output of the graph that may lie in the memory of an input that is donated to it.
struct Donor {
  ValueId input;
  ValueId output;
  bool operator==(const Donor&) const = default;
};

// The decision of a plan where it may say yes or no.
enum class Said : uint8_t { nothing, no, yes };

// Something that is done at once: a kernel, or a node that is a command of its own.
struct Step {
  std::string name;  // of the kernel or the node; empty: the node is in no group yet
  bool is_kernel = true;
  std::vector<NodeId> nodes = {};    // in the graph's order
  std::vector<ValueId> reads = {};   // what it needs from memory, each once, in order of first use
  std::vector<ValueId> writes = {};  // what it leaves in memory, in the graph's order
  bool in_place = false;             // it changes the first of what it reads where that lies
  std::vector<Donor> donors = {};    // of kernels but updates: outputs that lie in inputs
  std::vector<uint32_t> after = {};  // steps that need what it changes as it was; ascending
  bool operator==(const Step&) const = default;
};

inline constexpr uint32_t kNoStep = UINT32_MAX;
inline constexpr int64_t kNoOffset = -1;

struct PlannedGraph {
  GraphRef graph;  // the one that was given, which must live as long, or with copies (copies.h)
  Overlay copies;  // behind the ids of the graph; none, if it has them as nodes
  // As they are read: kernels as in Plan::fuse, then commands, then nodes without a group.
  std::vector<Step> steps;
  std::vector<uint32_t> step_of;  // by node; kNoStep for parameters, constants and views
  std::vector<Home> home;         // by value
  std::vector<ValueId> base;      // by value: whose memory it lies in
  // For each value: what has to be written for it to be read; itself, of a view its operand's. A
  // concat that is a view stands for its operands.
  std::vector<ValueId> version;
  // For each value: the concat that joins it with others and is a view; NodeId{}: there is none.
  std::vector<NodeId> concat;
  // For each value: row-major where the plan says nothing; a value in other memory lies as that
  // does.
  std::vector<Layout> layout;
  std::vector<uint32_t> order;                        // steps, as far as the plan says
  std::vector<Said> said_view, said_in_place;         // by node
  std::vector<bool> said_layout;                      // by value
  std::map<uint32_t, CollectiveSchedule> collective;  // by node, as far as the plan says
  std::vector<int64_t> offset;  // by value, in bytes; kNoOffset: the plan has none
  bool operator==(const PlannedGraph&) const = default;

  GraphView view() const { return {*graph, copies}; }
  UsersView users(const Users& users) const { return {*graph, users, copies}; }
  bool is_view(NodeId n) const { return said_view[n.index] == Said::yes; }

  // Steps that must come before: those whose results it reads, and Step::after. Each once.
  std::vector<uint32_t> needs(uint32_t step) const;
  // The steps that write the values, where they lie now. Some may stand twice.
  std::vector<uint32_t> writers_of(std::span<const ValueId> values) const;
  // Tells whether the memory of a value may have any layout in which its views can be. Kernels
  // write it or it is a constant, and only kernels read it. Nothing lies in it but slices and parts
  // of concats, of which the same is true. False of what lies in other memory.
  bool has_layout(ValueId v) const { return free_layout[v.index]; }
  std::vector<bool> free_layout;  // by value
};

// The step's kernel.
KernelBody body_of(const PlannedGraph& graph, UsersView users, const Step& step);
// Its hash from that of the body's graph, without making the body: kernel_hash(body_of(...)).
uint64_t kernel_hash(const PlannedGraph& graph, const Step& step, uint64_t graph_hash);

// Steps of equal shape have equal kernels (group_shape()).
uint64_t step_shape(const PlannedGraph& graph, const Step& step);

// True if a node is a step of its own by nature: it has regions, or talks to other devices.
bool is_command(GraphView graph, NodeId node);

// A region of a node, and the key of its plan: "loop.body".
struct RegionRef {
  std::string key;
  NodeId node;
  size_t index = 0;  // of the node's regions
  const Graph* graph = nullptr;
};
std::vector<RegionRef> regions_of(const Graph& graph);

// The name of the node's first result.
std::string step_name(GraphView graph, NodeId node);

// Reads a plan (edit.h), its copies as nodes of a graph. An error says which entry does not fit;
// whether groups, layouts, order and offsets can be is left to check().
Result<PlannedGraph> planned(const Plan& plan, const Graph& graph);
// "@k0", "%loop"; the first result of a node that has no group.
std::string label(GraphView graph, const Step& step);
// True if a slice or a concat can be a view in the layout that its operand or result has.
Status check_side_by_side(const PlannedGraph& graph, NodeId view);
// True if a value cannot be part of a concat, since it is a view of something else.
bool lies_elsewhere(const PlannedGraph& graph, ValueId v);
// Why the memory of a value has no layout but row-major, or not one of its own: has_layout() is
// false.
std::string why_no_layout(const PlannedGraph& graph, UsersView users, ValueId value);

inline constexpr int64_t kOffsetAlignment = 64;  // bytes

// When the memory of a temporary is in use, in positions of the order, both included.
struct Lifetime {
  ValueId value;
  uint32_t first = 0;
  uint32_t last = 0;
  int64_t bytes = 0;
};
// The lifetimes of all temporaries of a static graph, by value; `order` has all steps.
std::vector<Lifetime> lifetimes(const PlannedGraph& graph, std::span<const uint32_t> order);
// True if a value may lie at its offset, as far as it alone is concerned; and whether all that have
// one may, where the order is whole.
Status check_offset(const PlannedGraph& graph, ValueId v);
Status check_no_overlap(const PlannedGraph& graph);

}  // namespace hone

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "kernel/layout.h"
#include "kernel/schedule_text.h"
#include "rules/rewrites.h"
#include "target/target.h"
#include "transport/collective.h"

// How a graph is computed: every decision, as plain data that a person can read, edit and feed
// back.
//
// A Plan is for a graph of primitive ops in which every value has a name (prepare.h). If it says
// rewrites, these come first (rewritten.h): it is for the graph that they make. Decisions are keyed
// by names of values, schedules by the hash of the kernel, so that equal kernels share one.
// Each kind of decision is a row of decisions.def; docs/plan.md says what they mean together. A
// plan may be partial; the planner completes it.

namespace hone {

// A kernel computes these nodes, named by their first results, in the graph's order.
struct Group {
  std::string kernel;  // "k0"
  std::vector<std::string> nodes;
  bool operator==(const Group&) const = default;
};

// These nodes, named by their first results, read a value where the copy of it lies.
struct Copy {
  std::string of;
  std::vector<std::string> readers;
  bool operator==(const Copy&) const = default;
};

struct Plan {
  std::string graph = "main";  // its name
  uint64_t graph_hash = 0;     // hash_without_weights(), once it is rewritten; 0: not said
  std::string target;          // its name; "": not said

  std::vector<Rewrite> rewrite;           // of the source graph; all below is about what they make
  std::optional<int64_t> threads;         // that run a kernel
  std::map<std::string, Copy> copy;       // by name; a value like others for all decisions below
  std::vector<Group> fuse;                // nodes in no group and no view have none yet
  std::map<std::string, bool> view;       // a value that may share its operand's memory does so
  std::map<std::string, bool> in_place;   // a node changes an operand or an input where it lies
  std::map<std::string, Layout> layout;   // of the memory that holds a value
  std::map<uint64_t, Schedule> schedule;  // by kernel hash, those of regions too
  std::map<std::string, CollectiveSchedule> collective;  // by the collective's result
  std::vector<std::string> order;         // of kernels and of nodes that are commands
  std::map<std::string, int64_t> offset;  // bytes into the arena, of values that need memory
  // "loop.body": of a region of the node %loop. These have no header, threads and schedules.
  std::map<std::string, Plan> region;

  bool operator==(const Plan&) const = default;
};

// The lines of a text on which the entries of a plan stand: "layout %h" -> 12, and of a region
// "region %loop.body, layout %h" -> 31.
using PlanLines = std::map<std::string, int64_t, std::less<>>;

// A plan in a text, and where it begins: "mlp.plan:18".
struct PlacedPlan {
  Plan plan;
  std::string place;
  PlanLines lines = {};

  // The place of an entry, as errors name it, or where the plan begins.
  std::string place_of(std::string_view entry) const;
  // The error with that place.
  Error placed(Error error) const;
};

inline constexpr int64_t kMaxPlanText = int64_t{256} << 20;  // bytes
inline constexpr size_t kMaxPlans = 10'000;                  // in a text
inline constexpr int64_t kMaxRewrites = 10'000;              // of a graph

std::string print(const Plan& plan);
std::string print(const Rewrite& rewrite);  // "@rule(%first, %second)"
// Inverse of print. Errors have their place as "file:line:column".
Result<Plan> parse_plan(std::string_view text, std::string_view file = "<text>");
// One plan or several, one behind the other.
Result<std::vector<PlacedPlan>> parse_plans(std::string_view text,
                                            std::string_view file = "<text>");
// Two lines per entry that differs, one where only one plan has it, each with its line break:
// "- layout %h = [0, 1]", "+ layout %h = [1, 0]". Entries of a region begin with its name.
std::string diff(const Plan& before, const Plan& after);

// True if the plan's hash is that of the graph.
Status check_graph(const Plan& plan, const Graph& graph);
// True if the decisions that are there fit the graph, the target and each other; the first that
// does not is named, with the reason.
Status check(const Plan& plan, const Graph& graph, const Target& target);
// check, and nothing is left to decide.
Status check_complete(const Plan& plan, const Graph& graph, const Target& target);

// The rows of decisions.def.
std::span<const DecisionInfo> decisions();

}  // namespace hone

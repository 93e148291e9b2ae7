#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/sharding.h"

// Decisions about how values are divided, as a text that people read and edit:
//
//   mesh x=2,y=4
//   shard %x = [x, -]
//   shard %y = [-, y] partial sum [x]
//   output 0 = [x, -]
//
// A value is divided where it is made; a partial one is added up where it is needed. Values have
// the names of the graph of shard_subject().

namespace hone {

struct ShardPlan {
  std::string file = {};                 // for errors
  std::string_view teller = "the plan";  // who divides values, for errors
  MeshRef mesh = {};
  // A decision of a value or an output, and the line where it stands.
  struct Line {
    std::string name = {};  // of a value; empty: an output
    uint32_t output = 0;
    std::string dims = {};
    int64_t line = 0;  // 0: it stands in no file
  };
  std::vector<Line> lines = {};
};

inline constexpr int64_t kMaxShardPlan = int64_t{64} << 20;  // bytes

// "x=2,y=4"; names that are not plain stand in quotes
Result<MeshRef> parse_mesh(std::string_view text);
std::string mesh_text(const Mesh& mesh);  // "x=2,y=4"

// The decisions about values and outputs of a graph, all on this mesh.
ShardPlan shard_plan_of(const Graph& graph, MeshRef mesh);
std::string print(const ShardPlan& plan);
std::string print_shard_plan(const Graph& graph, const Mesh& mesh);
Result<ShardPlan> parse_shard_plan(std::string_view text, std::string_view file);
// Adds what a line of the text says to the plan. False: it begins with another word.
Result<bool> read_shard_line(ShardPlan& plan, std::string_view line, int64_t number);

// The graph, in which the values say what the plan says beside what the graph says itself. Errors:
// a value that the graph does not have or divides differently, dims that do not fit it, a decision
// that stands twice, another mesh than the graph's.
Result<Graph> with_shard_plan(Graph graph, const ShardPlan& plan);

// An error unless the plan is for this mesh; it names the mesh that fits.
Status check_mesh(const ShardPlan& plan, const Mesh& mesh);

// True if each value of the graph says how it is divided, and so nothing is left to choose.
bool is_all_stated(const Graph& graph);

}  // namespace hone

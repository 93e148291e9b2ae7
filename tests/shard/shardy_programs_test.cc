#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "front/hlo/hlo.h"
#include "front/hlo/write/write.h"
#include "ir/model.h"
#include "ir/text.h"
#include "oracle/conformance.h"
#include "shard/partition.h"
#include "tests/shard/mesh_testing.h"
#include "tests/shard/shardy_testing.h"

// The programs of Shardy that run on several devices and compare the result with that of one. Here
// hone divides what they state, runs the parts in the reference, and compares with the whole.

namespace hone::HONE_FILE {
namespace {

using tested::replaced;
using tested::ShardyCase;

// Shardy spells out the exchanges of a change of division: "sdy.all_gather [...] %0 out_sharding=".
// The value is divided so from there on; hone finds the exchanges.
std::string without_exchanges(std::string text) {
  text = replaced(std::move(text), "sdy.constant", "stablehlo.constant");
  text = replaced(std::move(text), "sdy.reshard", "sdy.sharding_constraint");
  for (size_t at = text.find("sdy.all_"); at != text.npos; at = text.find("sdy.all_")) {
    const size_t value = text.find('%', at);
    const size_t end = text.find_first_of(" \n", value), sharding = text.find('<', end);
    text.replace(at, sharding - at,
                 fmt::format("sdy.sharding_constraint {} ", text.substr(value, end - value)));
  }
  return text;
}

// sdy.all_reduce of an argument adds up values that differ among devices, although the program
// states them as whole. As the program of one device it is a sum of parts of a longer value.
std::string with_parts_to_sum(const std::string& program, std::string_view name) {
  if (program.find("sdy.all_reduce") == program.npos ||
      program.find("} %arg0 out_sharding") == program.npos)
    return program;
  const bool is_of_all = program.find("sdy.all_reduce {\"x\", \"y\"}") != program.npos;
  const std::string_view groups =
      is_of_all ? "[[0, 1, 2, 3]]> : tensor<1x4xi64>" : "[[0, 2], [1, 3]]> : tensor<2x2xi64>";
  return fmt::format(
      "sdy.mesh @m = <[\"x\"=2, \"y\"=2]>\n"
      "func.func @{0}(%x: tensor<16x4xi32> {{sdy.sharding = #sdy.sharding<@m, [{{\"x\", \"y\"}}, "
      "{{}}]>}}) -> (tensor<{1}x4xi32> {{sdy.sharding = #sdy.sharding<@m, [{2}, {{}}]>}}) {{\n"
      "  %0 = sdy.manual_computation(%x) in_shardings=[<@m, [{{\"x\", \"y\"}}, {{}}]>] "
      "out_shardings=[<@m, [{2}, {{}}]>] manual_axes={{\"x\", \"y\"}} (%p: tensor<4x4xi32>) {{\n"
      "    %1 = \"stablehlo.all_reduce\"(%p) ({{\n"
      "      ^bb0(%a: tensor<i32>, %b: tensor<i32>):\n"
      "        %2 = stablehlo.add %a, %b : tensor<i32>\n"
      "        stablehlo.return %2 : tensor<i32>\n"
      "    }}) {{replica_groups = dense<{3}, channel_handle = #stablehlo.channel_handle<handle = "
      "1, "
      "type = 0>, use_global_device_ids}} : (tensor<4x4xi32>) -> tensor<4x4xi32>\n"
      "    sdy.return %1 : tensor<4x4xi32>\n"
      "  }} : (tensor<16x4xi32>) -> tensor<{1}x4xi32>\n"
      "  return %0 : tensor<{1}x4xi32>\n}}\n",
      name, is_of_all ? 4 : 8, is_of_all ? "{}" : "{\"y\"}", groups);
}

bool divides_something(const Partition& made) {
  const auto is_divided = [](const ShardLayout& layout) {
    return std::ranges::any_of(layout.dims, [](const MeshParts& dim) { return !dim.empty(); });
  };
  return !made.messages.empty() || std::ranges::any_of(made.inputs, is_divided) ||
         std::ranges::any_of(made.outputs, is_divided);
}

// The functions of a module, without its braces.
std::string functions_of(std::string_view module) {
  const size_t begin = module.find("func.func");
  return std::string(module.substr(begin, module.rfind('}') - begin));
}

// The program of one device, as a function that the one that compares can call.
std::string as_function(const Graph& graph, std::string_view name) {
  const Result<std::string> text = print_stablehlo(model_of(Graph(graph)));
  EXPECT_TRUE(text.ok()) << text.error().to_string();
  return text.ok() ? replaced(functions_of(*text), "func.func public @main(",
                              fmt::format("func.func private @{}(", name))
                   : "";
}

// Runs the comparison of a file: "main" calls programs of one device, with parts that it makes.
void expect_pass(std::string main, const std::string& programs) {
  // Here devices are partitions of one replica.
  main = replaced(std::move(main), "], [@", ", @");
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const std::filesystem::path file = folder.path() / "program.mlir";
  ASSERT_TRUE(write_file_atomic(file, fmt::format("module {{\n{}{}}}\n", main, programs)).ok());
  const CaseOutcome outcome = run_checked_program(file, {.program = "main"});
  EXPECT_EQ(outcome.result, CaseClass::pass) << outcome.reason << outcome.where << main << programs;
  EXPECT_GT(outcome.data_sets, 0);
}

TEST(ShardyPrograms, ComputeWhatOneDeviceDoes) {
  const std::optional<std::vector<ShardyCase>> cases = tested::shardy_programs();
  if (!cases) GTEST_SKIP() << "../shared/data/shardy is not here";
  // Refused by name: an op that hone does not have.
  const std::map<std::string, std::string> refused = {
      {"stablehlo_fft.parallel_fft", "stablehlo.fft"}};
  int right = 0, with_parts = 0;
  std::set<std::string> found, refused_files;
  std::map<std::string, std::string> mains, programs, undivided;  // of each file
  for (const ShardyCase& one : *cases) {
    const std::string file = one.name.substr(0, one.name.find('.'));
    const std::string function = one.name.substr(file.size() + 1);
    if (one.program.find("sdy.sharding") == std::string::npos) {
      // The ones that compare, and the programs of one device that they call.
      if (function == "main")
        mains[file] = functions_of(one.program);
      else
        EXPECT_TRUE(function.starts_with("sequential_")) << one.name;
      continue;
    }
    Graph graph;
    const auto divided = [&]() -> Result<Partition> {
      graph = *single_graph(HONE_TRY(
          parse_hlo(without_exchanges(with_parts_to_sum(one.program, function)), one.name)));
      return partition_graph(graph);
    };
    const Result<Partition> made = divided();
    if (const auto known = refused.find(one.name); known != refused.end()) {
      ASSERT_FALSE(made.ok()) << one.name;
      EXPECT_THAT(made.error().what(), testing::HasSubstr(known->second));
      found.insert(one.name);
      refused_files.insert(file);
      continue;
    }
    ASSERT_TRUE(made.ok()) << one.name << ": " << made.error().to_string();
    for (uint64_t seed = 1; seed <= 3; ++seed)
      EXPECT_EQ(tested::judge_mesh(graph, *made, seed), "") << one.name << print(made->graph);
    programs[file] += as_function(made->graph, function);
    if (function.starts_with("parallel_")) {
      graph.set_shardings(nullptr);
      undivided[file] += as_function(graph, "sequential_" + function.substr(9));
    }
    ++right;
    with_parts += divides_something(*made) ? 1 : 0;
  }
  EXPECT_EQ(right, 36);
  EXPECT_EQ(found.size(), refused.size());
  EXPECT_GT(with_parts, right / 2);
  // The inputs and the answers of their authors.
  int compared = 0;
  for (const auto& [file, text] : programs) {
    if (refused_files.contains(file)) continue;
    SCOPED_TRACE(file);
    ASSERT_TRUE(mains.contains(file));
    // Some files have no program of one device of their own: it is the same one, undivided.
    const bool has_own = mains[file].find("private @sequential_") != std::string::npos ||
                         mains[file].find("call @sequential_") == std::string::npos;
    expect_pass(mains[file], has_own ? text : text + undivided[file]);
    ++compared;
  }
  EXPECT_EQ(compared, static_cast<int>(mains.size() - refused_files.size()));
}

}  // namespace
}  // namespace hone::HONE_FILE

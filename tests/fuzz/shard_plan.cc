#include <cstdint>
#include <string_view>

#include "ir/text.h"
#include "search/pipeline.h"
#include "shard/shard_plan.h"
#include "tests/fuzz/target.h"

namespace hone::HONE_FILE {

namespace {

// The graph of the seeds.
constexpr std::string_view kGraph = R"(
graph @g(%x: f32[4, 8], %w: f32[8, 8]) -> f32[4, 8] {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %y = exp %h
  return %y
})";

void try_shards(std::string_view text) {
  static const Graph graph = parse_graph(kGraph).value();
  const Result<ShardPlan> plan = parse_shard_plan(text, "fuzz");
  if (!plan.ok()) return;
  const Result<Graph> said = with_shard_plan(graph, *plan);
  if (!said.ok()) return;
  const std::string printed = print_shard_plan(*said, *plan->mesh);
  const Result<ShardPlan> again = parse_shard_plan(printed, "again");
  HONE_CHECK(again.ok(), "{}\n{}", again.error().to_string(), printed);
  const Result<Graph> same = with_shard_plan(graph, *again);
  HONE_CHECK(same.ok(), "{}\n{}", same.error().to_string(), printed);
  HONE_CHECK(print_shard_plan(*same, *again->mesh) == printed, "{}", printed);
}

void try_pipeline(std::string_view text) {
  const Result<PipelinePlan> plan = parse_pipeline_plan(text, "fuzz");
  if (!plan.ok()) return;
  const std::string printed = print(*plan);
  const Result<PipelinePlan> again = parse_pipeline_plan(printed, "again");
  HONE_CHECK(again.ok(), "{}\n{}", again.error().to_string(), printed);
  HONE_CHECK(print(*again) == printed, "{}", printed);
  HONE_CHECK(again->devices() == plan->devices(), "{}", printed);
}

}  // namespace

// A plan that is read prints as a text that means the same, and that fits the same graph.
HONE_FUZZ(shard_plan) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_shards(text);
  try_pipeline(text);
}

}  // namespace hone::HONE_FILE

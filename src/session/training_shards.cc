#include "session/training_shards.h"

#include <algorithm>

namespace hone {

Result<ShardRequest> TrainingShards::request_for(const Graph& graph) const {
  if (plan_.empty()) return request_;
  ShardRequest made = request_;
  made.stated.clear();
  made.search_word = "";  // a later graph may leave nothing to search
  made.plan = HONE_TRY(parse_shard_plan(plan_, "the plan of the first step"));
  const auto is_other = [&](const ShardPlan::Line& line) {
    return std::ranges::none_of(graph.inputs(), [&](ValueId input) {
      return graph.name(input) == line.name &&
             std::ranges::find(inputs_, std::pair(line.name, graph.type(input))) != inputs_.end();
    });
  };
  std::erase_if(made.plan->lines, is_other);
  return made;
}

void TrainingShards::take(const Graph& graph, const ShardedModel& made) {
  if (!plan_.empty()) return;
  plan_ = print_shard_plan(made.subject.graph, *made.partition.mesh);
  for (const ValueId input : graph.inputs())
    inputs_.emplace_back(graph.name(input), graph.type(input));
}

}  // namespace hone

#include "session/sharding.h"

#include "base/file.h"
#include "base/text.h"
#include "ir/op_def.h"

namespace hone {
namespace {

constexpr std::string_view kAuto = "auto";

// The words as a plan, so that they keep to its rules.
Result<ShardPlan> plan_of_words(const ShardRequest& request, const MeshRef& mesh) {
  ShardPlan plan = {.teller = request.labels.shard, .mesh = mesh};
  for (const std::string& one : request.stated) {
    const size_t equals = one.find('=');
    const std::string_view name = trim(std::string_view(one).substr(0, equals));
    if (name.empty()) return usage_error("'{}' names no value", excerpt(one));
    plan.lines.push_back({.name = std::string(name), .dims = one.substr(equals + 1)});
  }
  return plan;
}

}  // namespace

Result<ShardRequest> shard_request(std::span<const std::string> words,
                                   const std::optional<std::string>& mesh,
                                   const ShardLabels& labels) {
  ShardRequest made = {.labels = labels};
  if (mesh) {
    Result<MeshRef> parsed = parse_mesh(*mesh);
    if (!parsed.ok()) return std::move(parsed).error().as(ErrorCode::usage).about(labels.mesh);
    made.mesh = std::move(*parsed);
  }
  for (const std::string& word : words) {
    if (word == kAuto) {
      made.is_auto = true;
    } else if (word.find('=') != std::string::npos) {
      made.stated.push_back(word);
    } else {
      if (made.plan) return usage_error("two plans are given").about(labels.shard);
      Result<std::string> text = read_file(word, kMaxShardPlan);
      if (!text.ok())
        return std::move(text)
            .error()
            .about(labels.shard)
            .with_hint("write auto, a file with a plan, or NAME=[x, -]");
      made.plan = HONE_TRY(parse_shard_plan(*text, word));
    }
  }
  if (made.plan && made.mesh != nullptr) HONE_TRY(check_mesh(*made.plan, *made.mesh));
  return made;
}

bool is_priced(const ShardRequest& request, const Graph& graph) {
  const bool is_silent = request.stated.empty() && graph.shardings() == nullptr;
  return request.is_auto || request.plan.has_value() || is_silent;
}

Result<MeshRef> mesh_of_request(const ShardRequest& request, const Graph& graph) {
  const MeshRef own = HONE_TRY(mesh_of_graph(graph));
  const MeshRef said = request.plan ? request.plan->mesh : request.mesh;
  if (said == nullptr || own == nullptr) return said == nullptr ? own : said;
  if (own->axes == said->axes) return own;
  return usage_error("the graph has a mesh of its own, {}", axes_text(*own))
      .about(request.labels.mesh);
}

Result<Graph> stated_graph(Graph graph, const MeshRef& mesh, const ShardRequest& request) {
  if (request.plan) graph = HONE_TRY(with_shard_plan(std::move(graph), *request.plan));
  if (request.stated.empty()) return graph;
  const auto said = [&]() -> Result<Graph> {
    return with_shard_plan(std::move(graph), HONE_TRY(plan_of_words(request, mesh)));
  };
  Result<Graph> made = said();
  if (made.ok()) return made;
  return std::move(made).error().as(ErrorCode::usage).about(request.labels.shard);
}

std::string step_text(const AutoSharding& chosen, int64_t devices) {
  const std::string whole =
      chosen.whole ? fmt::format(", and {} undivided", format_seconds(*chosen.whole)) : "";
  return fmt::format("a step takes {} on {} devices{}; {} a device",
                     format_seconds(chosen.best.seconds), devices, whole,
                     format_bytes(chosen.best.memory));
}

namespace {

// A division that nobody chose has to keep within the memory that is given, too.
Status check_memory(const ShardedModel& made, const ShardRequest& request, const System& system,
                    std::span<const std::shared_ptr<const Cost>> costs,
                    const AutoShardOptions& options) {
  if (options.memory == 0) return {};
  const JudgedSharding judged =
      HONE_TRY(judge_partition(made.subject.graph, made.partition, system, costs, options.cancel));
  if (judged.memory <= options.memory) return {};
  return over_limit("divided as it is said, a device needs {}, and may use {}: {} too much",
                    format_bytes(judged.memory), format_bytes(options.memory),
                    format_bytes(judged.memory - options.memory))
      .with_hint(
          fmt::format("say less, and add {} auto: prices choose the rest", request.labels.shard));
}

}  // namespace

Result<ShardedModel> sharded_model(const Graph& graph, const MeshRef& mesh,
                                   const ShardRequest& request, const System& system,
                                   std::span<const std::shared_ptr<const Cost>> costs,
                                   const AutoShardOptions& options) {
  ShardedModel made = {.subject = HONE_TRY(shard_subject(graph))};
  Graph& said = made.subject.graph;
  said = HONE_TRY(stated_graph(std::move(said), mesh, request));
  const bool is_chosen = is_priced(request, graph), is_searched = is_chosen && !is_all_stated(said);
  if (!request.search_word.empty() && !is_searched)
    return usage_error("{} is for shardings that are chosen by price", request.search_word)
        .with_hint(is_chosen ? "all values say how they are divided"
                             : fmt::format("add {} auto", request.labels.shard));
  if (!is_searched) {
    ShardPrices prices(system, costs, mesh, options.cancel);
    made.partition = HONE_TRY(is_chosen ? partition_exactly(said, mesh, prices.steps())
                                        : partition_graph(said, prices.steps()));
    if (!is_chosen) said = HONE_TRY(propagate_shardings(said)).graph;
    HONE_TRY(check_memory(made, request, system, costs, options));
    return made;
  }
  made.chosen = HONE_TRY(auto_shard(said, mesh, system, costs, options));
  said = made.chosen->best.graph;
  made.partition = made.chosen->best.partition;
  return made;
}

}  // namespace hone

#include "base/text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/machines.h"
#include "cli/pipelines.h"
#include "cli/shard_tables.h"
#include "cli/sharding.h"
#include "cli/source.h"
#include "learn/training_step.h"
#include "session/sharding.h"
#include "shard/partition.h"
#include "shard/propagate.h"

namespace hone::cli {
namespace {

// Who holds what, what moves and what is computed whole.
void tell(const Graph& graph, const Partition& partition, const std::string& conflicts,
          const Arguments& arguments, Console& console) {
  const ShardingPicture picture =
      sharding_picture(graph, partition, arguments.given("all"), SIZE_MAX);
  console.write(sharding_values_text(picture));
  console.write(sharding_messages_text(picture));
  console.write(sharding_losses_text(partition));
  console.write(conflicts);
}

void tell_sum(const Partition& partition, Console& console) {
  int64_t received = 0, exchanges = 0;
  for (const ShardMessage& one : partition.messages) {
    received += one.bytes;
    if (is_exchange(one.kind)) exchanges += one.times;
  }
  console.note("{} devices, {}: {} exchange{}, {} that each device receives",
               partition.mesh->device_count(), axes_text(*partition.mesh), exchanges,
               exchanges == 1 ? "" : "s", format_bytes(received));
}

// From what is said about some values.
Status follow(const Graph& given, const MeshRef& mesh, const ShardRequest& request,
              const Arguments& arguments, Console& console) {
  const System system = HONE_TRY(system_for_mesh(*mesh, arguments));
  const std::string path = arguments.text("output");
  const bool writes_plan = !path.empty() && !check_model_path(path).ok();
  std::optional<ShardedModel> made;  // as all commands divide it: within the memory
  if (writes_plan || arguments.given("memory") || !request.search_word.empty())
    made = HONE_TRY(sharded_model(given, mesh, request, system, costs_of(system, console),
                                  HONE_TRY(auto_shard_options(arguments, console))));
  const Graph graph = HONE_TRY(spelled_out(HONE_TRY(stated_graph(given, mesh, request))));
  const Propagation propagation = HONE_TRY(propagate_shardings(graph));
  const std::vector<std::shared_ptr<const Cost>> costs = costs_of(system, console);
  ShardPrices prices(system, costs, mesh, &console.cancel());
  const Partition partition = HONE_TRY(partition_graph(graph, prices.steps()));
  if (path != "-")
    tell(propagation.graph, partition,
         HONE_TRY(sharding_conflicts_text(propagation, system)), arguments,
         console);
  tell_sum(partition, console);
  if (path.empty()) return {};
  if (!writes_plan) return write_model(model_of(partition.graph), path, console);
  return write_text(
      path, print_shard_plan(with_layouts(made->subject.graph, made->partition), *mesh), console);
}

// Prices choose all that nobody says.
Status choose(const Graph& graph, const MeshRef& mesh, const ShardRequest& request,
              const Arguments& arguments, Console& console) {
  const System system = HONE_TRY(system_for_mesh(*mesh, arguments));
  const std::vector<std::shared_ptr<const Cost>> costs = costs_of(system, console);
  const AutoShardOptions options = HONE_TRY(auto_shard_options(arguments, console));
  const ShardedModel made = HONE_TRY(sharded_model(graph, mesh, request, system, costs, options));
  const std::string path = arguments.text("output");
  // Where a plan says all, nothing of it is left open to conflicts.
  const std::string conflicts =
      made.chosen ? HONE_TRY(stated_conflicts_text(graph, mesh, request, system)) : "";
  if (path != "-") tell(made.subject.graph, made.partition, conflicts, arguments, console);
  tell_sum(made.partition, console);
  if (made.chosen) {
    console.note("{}", step_text(*made.chosen, mesh->device_count()));
    console.note("{}", search_text(*made.chosen));
  } else {
    const JudgedSharding judged = HONE_TRY(
        judge_partition(made.subject.graph, made.partition, system, costs, &console.cancel()));
    console.note("a step takes {} on {} devices; {} a device", format_seconds(judged.seconds),
                 mesh->device_count(), format_bytes(judged.memory));
  }
  if (path.empty()) return {};
  if (check_model_path(path).ok())
    return write_model(model_of(made.partition.graph), path, console);
  return write_text(path, print_shard_plan(made.subject.graph, *mesh), console);
}

// The model, or a training step of it.
Result<Graph> graph_to_divide(const Arguments& arguments, Console& console) {
  const bool trains = arguments.given("train");
  for (const std::string_view option : {"loss", "optimizer"})
    if (arguments.given(option) && !trains)
      return usage_error("--{} is of a training step", option).with_hint("add --train");
  Graph graph = HONE_TRY(given_graph(arguments.text("MODEL"), arguments, console));
  if (!trains) return graph;
  const StepOptions options = {.loss = arguments.text("loss"),
                               .optimizer = HONE_TRY(find_optimizer(arguments.text("optimizer")))};
  return HONE_TRY(training_step(graph, options)).graph;
}

}  // namespace

Status cmd_shard(const Arguments& arguments, Console& console) {
  if (arguments.given("pipeline"))
    return shard_pipeline(HONE_TRY(graph_to_divide(arguments, console)), arguments, console);
  for (const std::string_view option : {"micro-batches", "schedule", "batch"})
    if (arguments.given(option))
      return usage_error("--{} is of a pipeline", option).with_hint("add --pipeline auto");
  const ShardRequest request = HONE_TRY(given_shards(arguments));
  const Graph graph = HONE_TRY(graph_to_divide(arguments, console));
  const bool is_chosen = is_priced(request, graph);
  MeshRef mesh = HONE_TRY(mesh_of_request(request, graph));
  if (mesh == nullptr && is_chosen && arguments.given("system"))
    mesh = mesh_of_system(
        HONE_TRY(load_system(arguments.text("system"), arguments.text("target"))));
  if (mesh == nullptr)
    return usage_error("the graph has no mesh")
        .with_hint("--mesh x=2,y=4 says how many devices there are along which axes");
  return is_chosen ? choose(graph, mesh, request, arguments, console)
                   : follow(graph, mesh, request, arguments, console);
}

}  // namespace hone::cli

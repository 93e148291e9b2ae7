#include "cli/explain_sharding.h"

#include <algorithm>

#include "base/text.h"
#include "base/text_table.h"
#include "cli/console.h"
#include "cli/devices.h"
#include "cli/shard_tables.h"
#include "cli/sharding.h"
#include "shard/batch_inputs.h"

namespace hone::cli {
namespace {

constexpr double kSecondsOfOthers = 2;  // for each

// A way to divide the model, beside the one that is asked for.
struct Alternative {
  std::string name;
  ShardRequest request;
};

// All axes along dim 0 of the inputs that have the batch; none, if no input has one.
std::optional<ShardRequest> batch_request(const Graph& graph, const MeshRef& mesh) {
  std::vector<Type> types;
  for (const ValueId input : graph.inputs()) types.push_back(graph.type(input));
  const Result<BatchInputs> batch = batch_inputs(graph, types, {});
  if (!batch.ok()) return std::nullopt;
  std::vector<std::string> axes;
  for (const MeshAxis& axis : mesh->axes) axes.push_back(axis.name);
  ShardRequest request = {.mesh = mesh};
  for (size_t i = 0; i < types.size(); ++i) {
    if (batch->dims[i] < 0) continue;
    std::vector<std::string> dims(static_cast<size_t>(types[i].rank()), "-");
    dims[static_cast<size_t>(batch->dims[i])] = join(axes, " ");
    request.stated.push_back(
        fmt::format("{}=[{}]", graph.name(graph.inputs()[i]), join(dims, ", ")));
  }
  return request;
}

class Teller {
 public:
  Teller(const Graph& graph, MeshRef mesh, System system, AutoShardOptions options,
         Console& console)
      : graph_(graph),
        plain_(graph),
        mesh_(std::move(mesh)),
        system_(std::move(system)),
        costs_(costs_of(system_, console)),
        options_(std::move(options)),
        console_(console) {
    plain_.set_shardings(nullptr);
  }

  Result<ToldSharding> run(const ShardRequest& request) {
    const ShardedModel made = HONE_TRY(sharded(graph_, request, options_));
    const ShardingPicture picture =
        sharding_picture(made.subject.graph, made.partition, false, SIZE_MAX);
    console_.write(sharding_values_text(picture));
    console_.write(sharding_messages_text(picture));
    console_.write(sharding_losses_text(made.partition));
    if (!is_priced(request, graph_))
      console_.write(HONE_TRY(sharding_conflicts_text(
          HONE_TRY(propagate_shardings(HONE_TRY(stated_graph(graph_, mesh_, request)))), system_)));
    else if (made.chosen)
      console_.write(HONE_TRY(stated_conflicts_text(graph_, mesh_, request, system_)));
    console_.write("\n" + HONE_TRY(prices_text(request, made)) + "\n");
    return ToldSharding{system_, made.partition};
  }

  Result<DrawnSharding> draw(const ShardRequest& request) {
    const ShardedModel made = HONE_TRY(sharded(graph_, request, options_));
    JudgedSharding one = HONE_TRY(judged(made));
    DrawnSharding drawn = {.system = system_,
                           .picture = sharding_picture(made.subject.graph, made.partition, true),
                           .plans = std::move(one.plans)};
    drawn.picture.seconds = one.seconds;
    drawn.picture.memory = one.memory;
    return drawn;
  }

 private:
  Result<ShardedModel> sharded(const Graph& graph, const ShardRequest& request,
                               const AutoShardOptions& options) const {
    return sharded_model(graph, mesh_, request, system_, costs_, options);
  }

  Result<JudgedSharding> judged(const ShardedModel& made) const {
    if (made.chosen) return made.chosen->best;
    return judge_partition(made.subject.graph, made.partition, system_, costs_, &console_.cancel());
  }

  // The time of a step and the memory of a device, beside those of other shardings.
  Result<std::string> prices_text(const ShardRequest& request, const ShardedModel& made) const {
    TextTable table("lrr", {"sharding", "a step", "memory of a device"});
    const auto add = [&](const std::string& name, const JudgedSharding& one) {
      table.add_row({name, format_seconds(one.seconds), format_bytes(one.memory)});
    };
    add("this one", HONE_TRY(judged(made)));
    AutoShardOptions of_others = options_;
    of_others.seconds = std::min(options_.seconds, kSecondsOfOthers);
    std::vector<Alternative> others;
    if (!plain_.inputs().empty()) others.push_back({"nothing divided", undivided_request()});
    if (std::optional<ShardRequest> batch = batch_request(plain_, mesh_))
      others.push_back({"the batch alone", *std::move(batch)});
    if (request.plan || !is_priced(request, graph_))
      others.push_back({"by price (--shard auto)", {.mesh = mesh_, .is_auto = true}});
    for (const Alternative& other : others) {
      const auto priced = [&]() -> Result<JudgedSharding> {
        return judged(HONE_TRY(sharded(plain_, other.request, of_others)));
      };
      const Result<JudgedSharding> one = priced();
      if (!one.ok() && one.error().code() == ErrorCode::interrupted) return one.error();
      if (one.ok())
        add(other.name, *one);
      else
        table.add_row({other.name, "-", excerpt(one.error().what())});
    }
    return table.to_string();
  }

  // A request that states one input as undivided divides nothing.
  ShardRequest undivided_request() const {
    const ValueId x = plain_.inputs()[0];
    const std::vector<std::string> dims(static_cast<size_t>(plain_.type(x).rank()), "-");
    return {.mesh = mesh_, .stated = {fmt::format("{}=[{}]", plain_.name(x), join(dims, ", "))}};
  }

  const Graph& graph_;
  Graph plain_;  // without what it says itself
  const MeshRef mesh_;
  const System system_;
  const std::vector<std::shared_ptr<const Cost>> costs_;
  const AutoShardOptions options_;
  Console& console_;
};

}  // namespace

namespace {

// For the devices of the command line: `tell` gets a teller, and what is asked for.
template <class Tell>
auto on_given_mesh(const Graph& graph, const Arguments& arguments, Console& console,
                   const Tell& tell) -> decltype(tell(std::declval<Teller&>(), ShardRequest())) {
  const ShardRequest request = HONE_TRY(given_shards(arguments));
  MeshRef mesh = HONE_TRY(mesh_of_request(request, graph));
  const std::vector<std::string> devices = HONE_TRY(given_devices(arguments));
  if (mesh == nullptr && !devices.empty()) {
    const std::string axis = fmt::format("x={}", devices.size());
    mesh = HONE_TRY(parse_mesh(axis));
  }
  if (mesh == nullptr)
    return usage_error("--shard needs devices")
        .with_hint("--devices 2, or --mesh x=2,y=4 for a grid of them");
  if (!devices.empty() && std::ssize(devices) != mesh->device_count())
    return usage_error("{} devices are given, and the mesh {} has {}", devices.size(),
                       mesh_text(*mesh), mesh->device_count());
  System system = HONE_TRY(system_for_mesh(*mesh, arguments));
  Teller teller(graph, mesh, std::move(system),
                HONE_TRY(auto_shard_options(arguments, console)), console);
  return tell(teller, request);
}

}  // namespace

Result<ToldSharding> tell_sharding(const Graph& graph, const Arguments& arguments,
                                   Console& console) {
  return on_given_mesh(graph, arguments, console, [](Teller& teller, const ShardRequest& request) {
    return teller.run(request);
  });
}

Result<DrawnSharding> draw_sharding(const Graph& graph, const Arguments& arguments,
                                    Console& console) {
  return on_given_mesh(graph, arguments, console, [](Teller& teller, const ShardRequest& request) {
    return teller.draw(request);
  });
}

}  // namespace hone::cli

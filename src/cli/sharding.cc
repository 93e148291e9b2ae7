#include "cli/sharding.h"

#include "base/text.h"
#include "cli/budget.h"
#include "cli/console.h"
#include "cli/gpu.h"
#include "cli/machines.h"
#include "cli/prices.h"
#include "cost/gpu_cost.h"
#include "learn/memory_budget.h"

namespace hone::cli {

bool names_sharding(const Arguments& arguments) {
  return arguments.given("shard") || arguments.given("mesh");
}

Status check_mesh_search(const Arguments& arguments) {
  // Prices choose a pipeline, too, where the command says more about the choice.
  if (arguments.given("pipeline") && arguments.takes("micro-batches")) return {};
  for (const std::string_view option : {"memory", "budget"})
    if (arguments.given(option) && !names_sharding(arguments))
      return usage_error("--{} is for values that a mesh divides", option)
          .with_hint("add --mesh x=2");
  return {};
}

Result<ShardRequest> given_shards(const Arguments& arguments) {
  std::optional<std::string> mesh;
  if (arguments.given("mesh")) mesh = arguments.text("mesh");
  ShardRequest made = HONE_TRY(shard_request(arguments.list("shard"), mesh));
  for (const auto& [option, word] :
       {std::pair("budget", "--budget"), std::pair("search", "--search")})
    if (arguments.given(option)) made.search_word = word;
  return made;
}

Result<AutoShardOptions> auto_shard_options(const Arguments& arguments, Console& console) {
  AutoShardOptions options = {.cancel = &console.cancel(), .progress = console.face().progress};
  if (arguments.given("budget")) {
    const std::string budget = arguments.text("budget");
    options.seconds = HONE_TRY(parse_budget(budget));
  }
  if (arguments.given("search")) options.search = arguments.text("search");
  if (arguments.given("seed")) options.seed = static_cast<uint64_t>(arguments.integer("seed"));
  if (!arguments.given("memory")) return options;
  const Result<MemoryBudget> memory = parse_memory_budget(arguments.text("memory"));
  if (!memory.ok() || memory->kind != MemoryBudget::Kind::bytes || memory->bytes < 1)
    return usage_error("'{}' is not a number of bytes", excerpt(arguments.text("memory")))
        .about("--memory")
        .with_hint("write 16GiB, 500MB or a number of bytes");
  options.memory = memory->bytes;
  return options;
}

Result<System> system_for_mesh(const Mesh& mesh, const Arguments& arguments) {
  const std::string target = arguments.given("target") ? arguments.text("target") : "";
  if (!arguments.given("system"))
    return load_system(fmt::format("local:{}", mesh.device_count()), target);
  System system = HONE_TRY(load_system(arguments.text("system"), target));
  if (system.device_count() != mesh.device_count())
    return usage_error("the mesh {} has {} devices, and '{}' {}", axes_text(mesh),
                       mesh.device_count(), excerpt(system.name), system.device_count())
        .about("--mesh");
  return system;
}

std::vector<std::shared_ptr<const Cost>> costs_of(const System& system, Console& console) {
  const KnownPrices prices = user_prices();
  std::vector<std::shared_ptr<const Cost>> costs;
  for (const Target& target : system.targets) {
    std::shared_ptr<const Cost> known =
        target.gpu
            ? kept_cost_of_gpu(target, console)
            : prices.analytic(target, [&](std::string_view note) { console.note("{}", note); });
    costs.push_back(known != nullptr ? std::move(known) : analytic_cost(target));
  }
  return costs;
}

std::string search_text(const AutoSharding& chosen) {
  std::string bound;
  if (chosen.bound)
    bound =
        fmt::format(", bound {}, gap {:.2f} %", format_seconds(*chosen.bound),
                    chosen.price > 0 ? 100 * std::max(0.0, 1 - *chosen.bound / chosen.price) : 0);
  const std::string options = chosen.bound
                                  ? std::to_string(chosen.options)
                                  : fmt::format("{} of {}", chosen.options, chosen.all_options);
  const std::string late =
      chosen.late > 0
          ? fmt::format("; --budget was over at {} of them, which are computed whole", chosen.late)
          : "";
  return fmt::format("sum of the parts {}{}: {} options of {} nodes, {} sharding{} judged{}",
                     format_seconds(chosen.price), bound, options, chosen.nodes, chosen.judged,
                     chosen.judged == 1 ? "" : "s", late);
}

}  // namespace hone::cli

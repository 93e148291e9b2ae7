// Plans of whole modules: by price beside those of people, and the time that planning takes.
//
//   people/NAME     modules of HLO that carry a plan for 8 devices. The step by price and by people
//                   as the timeline predicts it; "ratio" is price / people, below 1 is better. The
//                   plan by price may use the memory that the plan of people uses.
//   people/geomean  the geometric mean of "ratio" over all of these
//   tree/NAME/N     64, 512 and 4,096 devices in a tree of hosts: the time of planning, and what
//                   it predicts. "efficiency" is the time of one device by N times that of a step
//   layers/N        a generated module of N instructions on 8 devices
//
//   --modules=WORD  only modules whose path has the word; --seconds=S for the search (10)

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "bench/flags.h"
#include "bench/onnx_runtime.h"
#include "cost/analytic.h"
#include "front/hlo/hlo.h"
#include "ir/text.h"
#include "search/auto_shard.h"
#include "shard/propagate.h"
#include "target/presets.h"

namespace hone::HONE_FILE {
namespace {

const bench::Flag modules("modules", ""), seconds("seconds", "10");

using Costs = std::vector<std::shared_ptr<const Cost>>;

struct Planned {
  AutoSharding made = {};
  double seconds = 0;  // that it took
};

Result<Planned> planned(const Graph& graph, const MeshRef& mesh, const System& system,
                        const Costs& costs, int64_t memory) {
  const auto begin = std::chrono::steady_clock::now();
  Planned one = {.made = HONE_TRY(auto_shard(graph, mesh, system, costs,
                                             {.memory = memory, .seconds = seconds.number()}))};
  one.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return one;
}

void show(benchmark::State& state, const Planned& one) {
  state.counters["planning_s"] = one.seconds;
  state.counters["price_s"] = one.made.best.seconds;
  state.counters["price_bytes"] = static_cast<double>(one.made.best.memory);
  state.counters["nodes"] = static_cast<double>(one.made.nodes);
  if (one.made.bound)  // else some options are left out
    state.counters["gap_percent"] =
        one.made.price > 0 ? 100 * std::max(0.0, 1 - *one.made.bound / one.made.price) : 0;
}

std::vector<double>& ratios_to_people() {
  static std::vector<double> ratios;
  return ratios;
}

Status beside_people(benchmark::State& state, const std::filesystem::path& path) {
  const Model model = HONE_TRY(load_hlo(path));
  const Graph* graph = single_graph(model);
  if (graph == nullptr) return unsupported("it is no single graph");
  const MeshRef mesh = HONE_TRY(mesh_of_graph(*graph));
  if (mesh == nullptr) return unsupported("it has no mesh");
  const System system = HONE_TRY(
      preset_system(fmt::format("ring:{}", mesh->device_count()), HONE_TRY(host_target())));
  const Costs costs = {std::make_shared<const AnalyticCost>(system.targets[0])};
  ShardSubject subject = HONE_TRY(shard_subject(*graph));
  const JudgedSharding people = HONE_TRY(
      judge_partition(subject.graph, HONE_TRY(partition_graph(subject.graph)), system, costs));
  subject.graph.set_shardings(nullptr);
  const Planned price = HONE_TRY(planned(subject.graph, mesh, system, costs, people.memory));
  show(state, price);
  state.counters["people_s"] = people.seconds;
  state.counters["people_bytes"] = static_cast<double>(people.memory);
  const double ratio = price.made.best.seconds / people.seconds;
  state.counters["ratio"] = ratio;
  ratios_to_people().push_back(ratio);
  return {};
}

// Behind all rows that have a plan of people.
Status geometric_mean(benchmark::State& state) {
  const std::vector<double>& ratios = ratios_to_people();
  if (ratios.empty()) return unsupported("no module beside people's plans was planned");
  double sum = 0;
  for (const double ratio : ratios) sum += std::log(ratio);
  state.counters["modules"] = static_cast<double>(ratios.size());
  state.counters["ratio"] = std::exp(sum / static_cast<double>(ratios.size()));
  return {};
}

Status on_system(benchmark::State& state, const Graph& graph, std::string_view preset) {
  const System system = HONE_TRY(preset_system(preset, HONE_TRY(host_target())));
  const Costs costs = {std::make_shared<const AnalyticCost>(system.targets[0])};
  const ShardSubject subject = HONE_TRY(shard_subject(graph));
  const Planned one = HONE_TRY(planned(subject.graph, mesh_of_system(system), system, costs, 0));
  show(state, one);
  if (one.made.whole)
    state.counters["efficiency"] =
        *one.made.whole / (static_cast<double>(system.device_count()) * one.made.best.seconds);
  return {};
}

Status on_tree(benchmark::State& state, const std::filesystem::path& path,
               std::string_view preset) {
  const Model model = HONE_TRY(load_hlo(path));
  const Graph* graph = single_graph(model);
  if (graph == nullptr) return unsupported("it is no single graph");
  Graph plain = *graph;
  plain.set_shardings(nullptr);
  return on_system(state, plain, preset);
}

// Layers of two products, as in a perceptron with shortcuts.
Status of_layers(benchmark::State& state, int64_t instructions) {
  constexpr int64_t kOfLayer = 4;
  std::string text =
      "graph @layers(%x0: f32[512, 1024], %v: f32[1024, 2048], %w: f32[2048, 1024]) -> "
      "f32[512, 1024] {\n";
  const int64_t layers = instructions / kOfLayer;
  for (int64_t i = 0; i < layers; ++i)
    text += fmt::format(
        "  %h{0} = dot %x{0}, %v {{lhs_contract = [1], rhs_contract = [0]}}\n"
        "  %a{0} = tanh %h{0}\n"
        "  %b{0} = dot %a{0}, %w {{lhs_contract = [1], rhs_contract = [0]}}\n"
        "  %x{1} = add %x{0}, %b{0}\n",
        i, i + 1);
  text += fmt::format("  return %x{}\n}}\n", layers);
  const Graph graph = HONE_TRY(parse_graph(text));
  return on_system(state, graph, "ring:8");
}

void add(const std::string& name, const std::function<Status(benchmark::State&)>& run) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) {
                                 for (auto _ : state)
                                   if (const Status done = run(state); !done.ok())
                                     state.SkipWithError(done.error().to_string().c_str());
                               })
      ->Iterations(1)
      ->Unit(benchmark::kSecond);
}

struct Tree {
  std::string_view preset;
  int devices;
};
constexpr Tree kTrees[] = {{"tree:8x8", 64}, {"tree:64x8", 512}, {"tree:8x64x8", 4096}};

const bench::Rows rows([] {
  const std::filesystem::path folder = bench::root() / "build/bench/hlo";
  std::vector<std::filesystem::path> found;
  std::error_code none;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, none))
    if (entry.path().extension() == ".txt" &&
        entry.path().native().find(modules.text()) != std::string::npos)
      found.push_back(entry.path());
  std::ranges::sort(found);
  for (const std::filesystem::path& path : found) {
    const std::string name = path.lexically_relative(folder).parent_path().native() + "/" +
                             path.stem().stem().extension().native().substr(1);
    const bool has_plan = path.native().find("8gpu") != std::string::npos ||
                          path.native().find("llama3_8b/training") != std::string::npos;
    if (has_plan)
      add("people/" + name, [=](benchmark::State& state) { return beside_people(state, path); });
    for (const Tree& tree : kTrees)
      add(fmt::format("tree/{}/{}", name, tree.devices),
          [=](benchmark::State& state) { return on_tree(state, path, tree.preset); });
  }
  add("people/geomean", geometric_mean);
  for (const int64_t instructions : {10'000, 40'000})
    add(fmt::format("layers/{}", instructions),
        [=](benchmark::State& state) { return of_layers(state, instructions); });
});

}  // namespace
}  // namespace hone::HONE_FILE

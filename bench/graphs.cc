// How graph models are trained on graphs that are too large for it (docs/learned-prices.md): whole,
// by segments, and compressed to what is near configurable nodes. A graph is made of zoo models,
// again and again, one behind the other, until it is large; what a configuration takes is the
// price of all their plans with its layouts. Each row is a process of its own.
//   --nodes=N     of the graph (100000)
//   --configs=N   different configurations, half of them to learn from (32)
//   --steps=N     of training (100)
//   --slate=N     configurations in a step (8)
//   --segment=N   nodes of a segment (1000)
//   seconds, mb   of training; the peak of the process, with the data
//   tau           of the configurations that were not trained on
// rescore is what one changed layout of a graph of 10,000 nodes takes by the local scores.

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "base/rng.h"
#include "bench/child.h"
#include "bench/flags.h"
#include "cost/analytic.h"
#include "learn/models/graph_segments.h"
#include "learn/models/local_scores.h"
#include "learn/ranking.h"
#include "rewrite/prepare.h"
#include "tune/vary_plan.h"
#include "zoo/zoo.h"

namespace hone::bench {
namespace {

const Flag kNodes("nodes", "100000"), kConfigs("configs", "32"), kSteps("steps", "100"),
    kSlate("slate", "8"), kSegment("segment", "1000");

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Zoo models with layouts at random, priced.
std::vector<ConfiguredGraph> parts(size_t configs) {
  const Target target = host_target().value();
  std::vector<ConfiguredGraph> all;
  for (const char* name : {"squeezenet", "resnet18", "mobilenet_v2"}) {
    const Graph graph = prepare(build_zoo_model(name).value()).value();
    VariedLayouts varied =
        VariedLayouts::draw(graph, target, std::make_shared<AnalyticCost>(target),
                            {.assignments = 2 * configs})
            .value();
    varied.compose(std::vector<KernelTime>(varied.kernels().size(),
                                           {std::numeric_limits<double>::infinity()}));
    all.push_back(configured(varied.file(true).layout, name).value());
  }
  return all;
}

// One behind the other, each with its configurations in an order of its own.
ConfiguredGraph joined(std::span<const ConfiguredGraph> parts, size_t nodes) {
  Rng rng(1);
  size_t configs = std::numeric_limits<size_t>::max();
  for (const ConfiguredGraph& part : parts) configs = std::min(configs, part.times.size());
  ConfiguredGraph graph = {.program = "joined",
                           .graph = {.nodes = {.names = parts[0].graph.nodes.names, .values = {}},
                                     .opcodes = {},
                                     .edges = {}},
                           .config_nodes = {},
                           .configs = {.names = parts[0].configs.names, .values = {}},
                           .times = std::vector<double>(configs)};
  std::vector<std::vector<float>> rows(configs);
  for (size_t p = 0; graph.graph.opcodes.size() < nodes; ++p) {
    const ConfiguredGraph& part = parts[p % parts.size()];
    const auto first = static_cast<int32_t>(graph.graph.opcodes.size());
    const tpu::OpGraph& from = part.graph;
    graph.graph.opcodes.insert(graph.graph.opcodes.end(), from.opcodes.begin(), from.opcodes.end());
    graph.graph.nodes.values.insert(graph.graph.nodes.values.end(), from.nodes.values.begin(),
                                    from.nodes.values.end());
    if (first > 0) graph.graph.edges.push_back({first, first - 1});
    for (const auto& [reader, read] : from.edges)
      graph.graph.edges.push_back({first + reader, first + read});
    for (int32_t node : part.config_nodes) graph.config_nodes.push_back(first + node);
    std::vector<size_t> order(part.times.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    rng.shuffle(order);
    for (size_t c = 0; c < configs; ++c) {
      const std::span<const float> config = part.config(order[c]);
      rows[c].insert(rows[c].end(), config.begin(), config.end());
      graph.times[c] += part.times[order[c]];
    }
  }
  for (std::vector<float>& each : rows) {
    graph.configs.values.insert(graph.configs.values.end(), each.begin(), each.end());
    each = {};
  }
  return graph;
}

GraphTraining training_of(const ConfiguredGraph& graph) {
  GraphTraining training = training_for(graph);
  training.hops = -1;
  training.slates = 1;
  training.draws = static_cast<int64_t>(kSteps.number());
  training.epochs = 1;
  training.slate = static_cast<int64_t>(kSlate.number());
  training.compile.plan.threads = 1;
  return training;
}

struct Row {
  double seconds = 0, tau = 0, mb = 0;
};

Result<Row> trained(const std::string& method, std::vector<ConfiguredGraph>& parts) {
  const auto segment = static_cast<int64_t>(kSegment.number());
  ConfiguredGraph graph = joined(parts, static_cast<size_t>(kNodes.number()));
  parts.clear();
  std::vector<size_t> first, second;
  for (size_t i = 0; i < graph.times.size(); ++i) (i % 2 == 0 ? first : second).push_back(i);
  const ConfiguredGraph unseen = with_configs(graph, second);
  graph = with_configs(graph, first);
  GraphTraining training = training_of(graph);
  if (method == "compressed") training.hops = 1;
  const double begin = now();
  if (method == "segments") training.segments = segment;
  const GraphModel model = HONE_TRY(train_graph_model({&graph, 1}, training));
  Row row = {.seconds = now() - begin};
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  row.mb = static_cast<double>(usage.ru_maxrss) / 1024;
  // Whole graphs do not fit: all models are asked segment by segment.
  row.tau = kendall_tau(HONE_TRY(scores_by_segments(model, unseen, segment)), unseen.times);
  return row;
}

void train(benchmark::State& state, const std::string& method) {
  std::vector<ConfiguredGraph> of_zoo = parts(static_cast<size_t>(kConfigs.number()));
  Row row;
  for (auto _ : state) {
    const Result<Row> found = in_child<Row>([&] { return trained(method, of_zoo); });
    if (!found.ok()) {
      state.SkipWithError(found.error().what().c_str());
      break;
    }
    row = *found;
    state.SetIterationTime(row.seconds);
  }
  state.counters["mb"] = row.mb;
  state.counters["tau"] = row.tau;
}

void rescore(benchmark::State& state) {
  const ConfiguredGraph graph = joined(parts(8), 10'000);
  GraphTraining training = training_for(graph);
  training.epochs = 1;
  training.draws = 2;
  training.slates = 1;
  training.slate = 2;
  training.hops = -1;
  training.segments = 1000;
  const GraphModel model = train_graph_model({&graph, 1}, training).value();
  LocalScores local = LocalScores::make(model, graph, 0).value();
  Rng rng(1);
  const size_t columns = graph.configs.names.size();
  for (auto _ : state) {
    const size_t node = rng.below(graph.config_nodes.size());
    const size_t config = rng.below(graph.times.size());
    benchmark::DoNotOptimize(
        local.change(node, graph.config(config).subspan(node * columns, columns)));
  }
  state.counters["nodes"] = static_cast<double>(local.nodes());
  state.counters["error"] = std::abs(local.score() - local.full_pass());
}

const Rows rows([] {
  for (const char* method : {"whole", "segments", "compressed"})
    benchmark::RegisterBenchmark(fmt::format("train/{}", method).c_str(),
                                 [method](benchmark::State& state) { train(state, method); })
        ->Iterations(1)
        ->UseManualTime()
        ->Unit(benchmark::kSecond);
  benchmark::RegisterBenchmark("rescore", &rescore)->Unit(benchmark::kMicrosecond);
});

}  // namespace
}  // namespace hone::bench

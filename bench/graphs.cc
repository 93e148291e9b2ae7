// How graph models are trained on graphs that are too large for it (docs/graph-models.md): whole,
// by segments, and compressed to what is near configurable nodes. A graph is made of zoo models,
// again and again, one behind the other, until it is large; what a configuration takes is the
// price of all their plans with its layouts. Each row is a process of its own.
//   --nodes=N     of the graph (100000)
//   --configs=N   different configurations, half of them to learn from (32)
//   --steps=N     of training (100)
//   --looks=N     how often tau is found on the way, each time after as many steps (10)
//   --slate=N     configurations in a step (8)
//   --segment=N   nodes of a segment (1000)
// train/METHOD/NODES: a training as a whole.
//   time          of training, with compiling
//   mb            the peak of the process in training, with the data; scores come later
//   tau           of the configurations that were not trained on. Each model scores as it was
//                 trained: whole graphs, compressed ones, or by segments
// reach/METHOD/NODES: the time until tau first was the least of what the methods have in the end.
//   tau           this mark
//   of_whole      the time for that of training on whole graphs
// rescore is what one changed layout of a graph of 10,000 nodes takes by the local scores.

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>

#include "base/rng.h"
#include "bench/child.h"
#include "bench/flags.h"
#include "cost/analytic.h"
#include "lab/data/vary_plan.h"
#include "lab/models/graph_segments.h"
#include "lab/models/local_scores.h"
#include "learn/ranking.h"
#include "rewrite/prepare.h"
#include "zoo/zoo.h"

namespace hone::bench::HONE_FILE {
namespace {

const Flag kNodes("nodes", "100000"), kConfigs("configs", "32"), kSteps("steps", "100"),
    kLooks("looks", "10"), kSlate("slate", "8"), kSegment("segment", "1000");

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

// How good a network was on the way.
struct Look {
  double seconds = 0, tau = 0;
};
constexpr size_t kMostLooks = 64;
struct Row {
  double seconds = 0, tau = 0, mb = 0;
  size_t count = 0;
  Look looks[kMostLooks] = {};  // so many of them
};

std::vector<NamedTensor> copied(std::span<const NamedTensor> weights) {
  std::vector<NamedTensor> copy;
  for (const NamedTensor& each : weights)
    copy.push_back({each.name, Tensor::copy_of(each.tensor.type(), each.tensor.bytes())});
  return copy;
}

Result<Row> trained(const std::string& method, size_t nodes, std::vector<ConfiguredGraph>& parts) {
  ConfiguredGraph graph = joined(parts, nodes);
  parts.clear();
  std::vector<size_t> first, second;
  for (size_t i = 0; i < graph.times.size(); ++i) (i % 2 == 0 ? first : second).push_back(i);
  const ConfiguredGraph unseen = with_configs(graph, second);
  graph = with_configs(graph, first);
  GraphTraining training = training_of(graph);
  if (method == "compressed") training.hops = 1;
  if (method == "segments") training.segments = static_cast<int64_t>(kSegment.number());
  Row row;
  std::vector<std::vector<NamedTensor>> weights;  // by look
  const auto looks = std::clamp<int64_t>(static_cast<int64_t>(kLooks.number()), 1, kMostLooks);
  const int64_t every = (training.draws + looks - 1) / looks;
  const double begin = now();
  training.on_step = [&](int64_t step, std::span<const NamedTensor> some) {
    if (step % every != 0) return;
    row.looks[row.count++].seconds = now() - begin;
    weights.push_back(copied(some));
  };
  GraphModel model = HONE_TRY(train_graph_model({&graph, 1}, training));
  row.seconds = now() - begin;
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  row.mb = static_cast<double>(usage.ru_maxrss) / 1024;
  const auto tau = [&]() -> Result<double> {
    return kendall_tau(HONE_TRY(scores_of(model, unseen, training.compile)), unseen.times);
  };
  row.tau = HONE_TRY(tau());
  for (size_t i = 0; i < row.count; ++i) {
    model.weights = std::move(weights[i]);
    row.looks[i].tau = HONE_TRY(tau());
  }
  return row;
}

std::string name_of(const std::string& method, size_t nodes) {
  return fmt::format("{}/{}", method, nodes);
}

std::map<std::string, Row> all;  // by name, as they come

void train(benchmark::State& state, const std::string& method, size_t nodes) {
  std::vector<ConfiguredGraph> of_zoo = parts(static_cast<size_t>(kConfigs.number()));
  Row row;
  for (auto _ : state) {
    const Result<Row> found = in_child<Row>([&] { return trained(method, nodes, of_zoo); });
    if (!found.ok()) {
      state.SkipWithError(found.error().what().c_str());
      break;
    }
    row = *found;
    state.SetIterationTime(row.seconds);
    all[name_of(method, nodes)] = row;
  }
  state.counters["mb"] = row.mb;
  state.counters["tau"] = row.tau;
}

// What was trained ends with a tau that is not below the mark.
double seconds_until(const Row& row, double mark) {
  for (size_t i = 0; i < row.count; ++i)
    if (row.looks[i].tau >= mark) return row.looks[i].seconds;
  return row.seconds;
}

constexpr const char* kMethods[] = {"whole", "segments", "compressed"};

void reach(benchmark::State& state, const std::string& method, size_t nodes) {
  double mark = 1;
  for (const char* each : kMethods) {
    const auto row = all.find(name_of(each, nodes));
    if (row == all.end()) {
      state.SkipWithError("it needs the rows train/ of all methods");
      return;
    }
    mark = std::min(mark, row->second.tau);
  }
  const double seconds = seconds_until(all.at(name_of(method, nodes)), mark);
  for (auto _ : state) state.SetIterationTime(seconds);
  state.counters["tau"] = mark;
  state.counters["of_whole"] = seconds / seconds_until(all.at(name_of("whole", nodes)), mark);
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

void add(const char* what, const std::string& method, size_t nodes,
         void (*run)(benchmark::State&, const std::string&, size_t)) {
  const std::string name = fmt::format("{}/{}", what, name_of(method, nodes));
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) { run(state, method, nodes); })
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kSecond);
}

const Rows rows([] {
  const auto nodes = static_cast<size_t>(kNodes.number());
  for (const char* method : kMethods) add("train", method, nodes, &train);
  for (const char* method : kMethods) add("reach", method, nodes, &reach);
  add("train", "segments", nodes / 4, &train);  // how memory grows with the graph
  benchmark::RegisterBenchmark("rescore", &rescore)->Unit(benchmark::kMicrosecond);
});

}  // namespace
}  // namespace hone::bench::HONE_FILE

#include "lab/models/graph_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/rng.h"
#include "lab/models/graph_segments.h"
#include "learn/kernel_data.h"
#include "learn/ranking.h"
#include "learn/trainer.h"

namespace hone {

GraphTraining training_for(const ConfiguredGraph& graph) {
  GraphTraining training;
  if (graph.config_nodes.empty()) return training;
  training.network.reduction = GraphReduction::additive;
  training.network.loss = GraphLoss::weighted;
  training.network.width = 32;
  training.network.embedding = 16;
  training.hops = 1;
  training.slates = 2;
  return training;
}

Result<std::vector<ConfiguredGraph>> graphs_to_learn_from(std::span<const ConfiguredGraph> graphs,
                                                          int64_t hops,
                                                          std::vector<double>* noise) {
  std::vector<ConfiguredGraph> all;
  for (const ConfiguredGraph& graph : graphs) {
    MergedConfigs once = merged(hops < 0 ? graph : compressed(graph, hops));
    if (once.graph.times.size() < 2) continue;
    all.push_back(std::move(once.graph));
    if (noise != nullptr) noise->push_back(once.noise);
  }
  if (all.empty()) return bad_input("no graph has two different configurations to learn from");
  return all;
}

Result<GraphModel> model_for(std::span<const ConfiguredGraph> given,
                             std::span<const ConfiguredGraph> learned,
                             const GraphTraining& options) {
  GraphModel model = {.network = options.network,
                      .hops = options.hops,
                      .by_node = !learned[0].config_nodes.empty(),
                      .segments = options.segments,
                      .target = learned[0].target,
                      .programs = {},
                      .node_columns = learned[0].graph.nodes.names,
                      .config_columns = learned[0].configs.names,
                      .scale = scale_of(learned),
                      .weights = {}};
  std::set<std::string> programs;
  for (const ConfiguredGraph& each : given) programs.insert(each.program);
  model.programs.assign(programs.begin(), programs.end());
  if (model.scale.configs.empty())
    return bad_input("all configurations have the same features: there is nothing to learn");
  return model;
}

namespace {

Status check_prices(std::span<const ConfiguredGraph> graphs) {
  for (const ConfiguredGraph& each : graphs)
    if (each.besides.priced.empty())
      return bad_input("'{}' has no prices, but a model with a skeleton adds to prices",
                       each.program);
  return {};
}

Result<GraphModel> train_network(std::span<const ConfiguredGraph> given,
                                 const GraphTraining& options) {
  std::vector<double> noise;
  const std::vector<ConfiguredGraph> graphs =
      HONE_TRY(graphs_to_learn_from(given, options.hops, &noise));
  GraphModel model = HONE_TRY(model_for(given, graphs, options));
  std::vector<ScaledGraph> all;
  for (size_t i = 0; i < graphs.size(); ++i)
    all.push_back(scaled(graphs[i], model.scale, noise[i]));
  const GraphSlates slates(all, model.scale, options.slate, options.draws, options.seed,
                           options.network.reads_sequences());
  TrainingOptions training;
  training.loader.batch_size = std::min(options.slates, slates.size());
  training.epochs = options.epochs;
  training.seed = options.seed;
  training.update.clip_norm = 1;
  training.update.optimizer = HONE_TRY(find_optimizer("adamw"));
  training.compile = options.compile;
  const int64_t steps = options.epochs * (slates.size() / training.loader.batch_size);
  training.rate = cosine_rate(options.rate, steps / 20 + 1, steps);
  const Trainer* running = nullptr;
  if (options.on_step)
    training.on_step = [&](const StepResult& step) {
      options.on_step(step.step, running->weights());
    };
  const Target here = HONE_TRY(host_target());  // graphs may be of another machine
  Trainer trainer = HONE_TRY(Trainer::make(
      [&](Network& net) { return graph_objective(net, options.network); }, slates, here, training));
  running = &trainer;
  const TrainingResult result = HONE_TRY(trainer.train());
  for (const NamedTensor& each : trainer.weights())
    model.weights.push_back({each.name, Tensor::copy_of(each.tensor.type(), each.tensor.bytes())});
  if (options.told && !result.epochs.empty())
    options.told(fmt::format("{} graphs, {} steps, loss {:.4f}", all.size(), trainer.steps(),
                             result.epochs.back().loss));
  return model;
}

// The part that a network adds to prices is mostly of the programs that it knows. So it counts as
// much as serves a quarter of the families of programs, which are left out of training: at worst
// nothing. With fewer than four families none is left out.
class Skeleton {
 public:
  explicit Skeleton(const GraphTraining& options) : options_(options) {}

  Result<GraphModel> train(std::span<const ConfiguredGraph> graphs) {
    divide(graphs);
    GraphModel model = HONE_TRY(train_network(known_, options_));
    for (const ConfiguredGraph& each : others_) model.programs.push_back(each.program);
    std::ranges::sort(model.programs);
    const auto [first, last] = std::ranges::unique(model.programs);
    model.programs.erase(first, last);
    const double part = HONE_TRY(best_part(model));
    NamedTensor& share = *std::ranges::find(model.weights, kShareWeight, &NamedTensor::name);
    const auto shrunk = static_cast<float>(part) * share.tensor.as<float>()[0];
    share.tensor = Tensor::of(share.tensor.type(), std::span<const float>(&shrunk, 1));
    return model;
  }

 private:
  static constexpr size_t kLeast = 4;  // families, for one of them to be left out
  static constexpr double kParts[] = {0, 0.125, 0.25, 0.5, 1};

  void divide(std::span<const ConfiguredGraph> graphs) {
    std::set<std::string_view> families;  // of programs that have something to order
    for (const ConfiguredGraph& each : graphs)
      if (!std::ranges::all_of(first_equals(each), [](size_t first) { return first == 0; }))
        families.insert(family_of(each.program));
    std::vector<std::string_view> order(families.begin(), families.end());
    Rng(options_.seed).shuffle(order);
    order.resize(order.size() < kLeast ? 0 : order.size() / 4);
    for (const ConfiguredGraph& each : graphs)
      (std::ranges::count(order, family_of(each.program)) > 0 ? others_ : known_).push_back(each);
  }

  // The share of what the network adds: by the mean tau of the others.
  Result<double> best_part(const GraphModel& model) const {
    if (others_.empty()) return 1;
    std::array<double, std::size(kParts)> taus = {};
    const auto scores = HONE_TRY(scores_of_all(model, others_, options_.compile));
    for (size_t g = 0; g < others_.size(); ++g)
      for (size_t p = 0; p < taus.size(); ++p) {
        std::vector<double> mixed;
        for (size_t i = 0; i < scores[g].size(); ++i) {
          const double price = std::log(static_cast<double>(others_[g].besides.priced[i]));
          mixed.push_back(price + kParts[p] * (scores[g][i] - price));
        }
        taus[p] += kendall_tau(mixed, others_[g].times) / static_cast<double>(others_.size());
      }
    const auto best = static_cast<size_t>(std::ranges::max_element(taus) - taus.begin());
    if (options_.told)
      options_.told(
          fmt::format("{} of what the network adds: tau {:.3f} of {} graphs left out, "
                      "{:.3f} by price",
                      kParts[best], taus[best], others_.size(), taus.front()));
    return kParts[best];
  }

  const GraphTraining& options_;
  std::vector<ConfiguredGraph> known_, others_;
};

}  // namespace

Result<GraphModel> train_graph_model(std::span<const ConfiguredGraph> given,
                                     const GraphTraining& options) {
  if (options.segments > 0) return train_by_segments(given, options);
  if (!options.network.skeleton) return train_network(given, options);
  HONE_TRY(check_prices(given));
  if (options.network.compares)
    return bad_input("scores that hold among a few configurations add nothing to prices");
  return Skeleton(options).train(given);
}

Status check_fits(const GraphModel& model, const ConfiguredGraph& graph) {
  if (model.by_node == graph.config_nodes.empty())
    return bad_input("the model is of {}, but the data is of {}",
                     model.by_node ? "layouts of programs" : "tiles of kernels",
                     model.by_node ? "tiles of kernels" : "layouts of programs");
  if (model.network.skeleton) HONE_TRY(check_prices({&graph, 1}));
  HONE_TRY(check_target(model.target, graph.target));
  HONE_TRY(check_columns({.names = model.node_columns, .values = {}}, graph.graph.nodes, "nodes"));
  return check_columns({.names = model.config_columns, .values = {}}, graph.configs,
                       "configurations");
}

namespace {

// Scores the configurations of graphs that a room holds, some at once.
class Scorer {
 public:
  Scorer(const GraphModel& model, GraphRoom room, int64_t chunk, const CompileOptions& compile)
      : model_(model), room_(room), chunk_(chunk), compile_(compile) {
    compile_.progress = nullptr;
  }

  Result<std::vector<double>> run(const ScaledGraph& graph) {
    const auto count = std::ssize(graph.graph->times);
    std::vector<double> scores;
    for (int64_t first = 0; first < count; first += chunk_) {
      Slate slate = {.graph = &graph, .configs = {}};
      for (int64_t i = first; i < first + chunk_; ++i)  // the first ones fill what is left
        slate.configs.push_back(static_cast<size_t>(i % count));
      const Batch batch =
          HONE_TRY(graph_batch({&slate, 1}, model_.scale, room_, model_.network.reads_sequences()));
      if (executable_ == nullptr) HONE_TRY(compile(types_of(batch)));
      std::vector<Tensor> inputs;
      for (const Network::Port& port : ports_) inputs.push_back(batch.find(port.name)->second);
      const std::vector<Tensor> results = HONE_TRY(executable_->run(inputs));
      for (int64_t i = 0; i < chunk_ && first + i < count; ++i) {
        scores.push_back(results[0].real_at(i));
        if (!std::isfinite(scores.back()))
          return bad_input("the score of configuration {} of '{}' is not a number", first + i,
                           graph.graph->program);
      }
    }
    return scores;
  }

 private:
  Status compile(const BatchTypes& types) {
    Builder b("scores");
    Network net(b, Network::Mode::evaluation, types, &model_.weights);
    const Value scores = graph_scores(net, model_.network, 1);
    const Graph graph = HONE_TRY(b.finish(std::vector{scores}));
    ports_ = net.ports();
    executable_ = HONE_TRY(Compilation(graph, HONE_TRY(host_target()), compile_).executable());
    return {};
  }

  const GraphModel& model_;
  const GraphRoom room_;
  const int64_t chunk_;
  CompileOptions compile_;
  std::vector<Network::Port> ports_;
  std::shared_ptr<const Executable> executable_;
};

}  // namespace

Result<std::vector<std::vector<double>>> scores_of_all(const GraphModel& model,
                                                       std::span<const ConfiguredGraph> given,
                                                       const CompileOptions& compile) {
  std::vector<std::vector<double>> scores;
  if (model.segments > 0) {
    for (const ConfiguredGraph& graph : given)
      scores.push_back(HONE_TRY(scores_by_segments(model, graph, model.segments, compile)));
    return scores;
  }
  std::vector<ConfiguredGraph> graphs;
  std::vector<ScaledGraph> all;
  GraphRoom room;
  size_t most = 1;
  for (const ConfiguredGraph& graph : given) {
    HONE_TRY(check_fits(model, graph));
    if (model.hops >= 0) graphs.push_back(compressed(graph, model.hops));
  }
  for (size_t i = 0; i < given.size(); ++i) {
    all.push_back(scaled(model.hops < 0 ? given[i] : graphs[i], model.scale));
    room.hold(all.back());
    most = std::max(most, given[i].times.size());
  }
  Scorer scorer(model, room, std::min(kScoredAtOnce, static_cast<int64_t>(most)), compile);
  for (const ScaledGraph& graph : all) scores.push_back(HONE_TRY(scorer.run(graph)));
  return scores;
}

Result<std::vector<double>> scores_of(const GraphModel& model, const ConfiguredGraph& graph,
                                      const CompileOptions& compile) {
  return HONE_TRY(scores_of_all(model, {&graph, 1}, compile))[0];
}

}  // namespace hone

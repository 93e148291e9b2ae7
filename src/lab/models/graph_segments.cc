#include "lab/models/graph_segments.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "lab/models/segment_slates.h"
#include "learn/graph_layers.h"
#include "learn/layers.h"
#include "learn/trainer.h"

namespace hone {
namespace {

constexpr double kHeadRate = 0.1;  // of the rate before, for the last layer alone

// The sums of all segments, less their mean over configurations, which orders nothing.
class HeadSlates : public Dataset {
 public:
  HeadSlates(std::span<const SegmentedGraph> graphs, const GraphTraining& options)
      : graphs_(graphs), options_(options) {
    const auto width = static_cast<size_t>(options.network.width);
    for (const SegmentedGraph& graph : graphs) {
      std::vector<double>& sums = sums_.emplace_back(graph.times.size() * width);
      for (const std::vector<float>& table : graph.tables)
        for (size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<double>(table[i]);
      const auto count = static_cast<double>(graph.times.size());
      for (size_t j = 0; j < width; ++j) {
        double mean = 0;
        for (size_t i = j; i < sums.size(); i += width) mean += sums[i] / count;
        for (size_t i = j; i < sums.size(); i += width) sums[i] -= mean;
      }
    }
  }

  int64_t size() const override { return std::ssize(graphs_) * options_.draws; }
  Result<Batch> batch(std::span<const int64_t> samples, int64_t /*bucket*/) const override {
    const auto width = static_cast<size_t>(options_.network.width);
    std::vector<float> states, times, noise;
    for (int64_t sample : samples) {
      const auto g = static_cast<size_t>(sample / options_.draws);
      Rng rng(hash_combine(options_.seed, static_cast<uint64_t>(sample)));
      for (size_t config : draw_configs(graphs_[g].times, options_.slate, rng)) {
        for (size_t j = 0; j < width; ++j)
          states.push_back(static_cast<float>(sums_[g][config * width + j]));
        times.push_back(static_cast<float>(std::log(graphs_[g].times[config])));
        noise.push_back(graphs_[g].scaled[0].noise[config]);
      }
    }
    const Dim count = std::ssize(samples), slate = options_.slate;
    return Batch{{"states", Tensor::of(reals({count, slate, options_.network.width}),
                                       std::span<const float>(states))},
                 {"times", Tensor::of(reals({count, slate}), std::span<const float>(times))},
                 {"noise", Tensor::of(reals({count, slate}), std::span<const float>(noise))}};
  }

 private:
  const std::span<const SegmentedGraph> graphs_;
  const GraphTraining& options_;
  std::vector<std::vector<double>> sums_;  // by graph: [configurations, width]
};

TrainingOptions training_of(const GraphTraining& options, int64_t batch, int64_t steps,
                            double rate) {
  TrainingOptions training;
  training.loader.batch_size = batch;
  training.seed = options.seed;
  training.update.clip_norm = 1;
  training.compile = options.compile;
  training.rate = cosine_rate(rate, steps / 20 + 1, steps);
  return training;
}

Objective segment_objective(Network& net, const GraphNetworkOptions& network) {
  const Value others = net.input("others"), weight = net.input("weight");
  const Value sums = segment_sum(node_states(net, network), segments_in(net, "graphs"));
  if (!net.b.ok()) return {others};
  const Value states = reshape(sums, others.dims()) * weight + others;
  return loss_of(net, squeeze(linear(net, "node", states, 1), 2), network);
}

std::vector<NamedTensor> copied(std::span<const NamedTensor> weights, std::string_view prefix) {
  std::vector<NamedTensor> some;
  for (const NamedTensor& each : weights)
    if (each.name.starts_with(prefix))
      some.push_back({each.name, Tensor::copy_of(each.tensor.type(), each.tensor.bytes())});
  return some;
}

// The last layer alone, on all segments as they are now.
Status tune_head(std::span<const SegmentedGraph> graphs, const GraphTraining& options,
                 int64_t epochs, std::vector<NamedTensor>& weights) {
  const HeadSlates slates(graphs, options);
  const int64_t batch = std::min<int64_t>(8, slates.size());
  const int64_t steps = epochs * (slates.size() / batch);
  TrainingOptions training = training_of(options, batch, steps, options.rate * kHeadRate);
  training.epochs = epochs;
  const auto head = [&](Network& net) {
    const Value y = linear(net, "node", net.input("states"), 1);
    return net.b.ok() ? loss_of(net, squeeze(y, 2), options.network) : Objective{y};
  };
  Trainer trainer = HONE_TRY(Trainer::make(head, slates, HONE_TRY(host_target()), training));
  HONE_TRY(trainer.begin_with(copied(weights, "node/")));
  HONE_TRY(trainer.train());
  for (const NamedTensor& tuned : copied(trainer.weights(), "node/"))
    std::ranges::find(weights, tuned.name, &NamedTensor::name)->tensor = tuned.tensor;
  return {};
}

Status check_options(const GraphTraining& options, const SegmentOptions& segments) {
  if (options.network.reduction != GraphReduction::additive)
    return bad_input("segments add up where scores of nodes do; the reduction is '{}'",
                     name(options.network.reduction));
  if (options.network.skeleton)
    return bad_input("what segments add to prices of whole graphs is not learned");
  // A segment's share of an absolute time is not known.
  if (options.network.loss == GraphLoss::log_squared || options.network.loss == GraphLoss::mixed)
    return bad_input("segments are trained by the order of times, and not by '{}'",
                     name(options.network.loss));
  if (options.segments < 1 || !(segments.keeps >= 0 && segments.keeps <= 1))
    return usage_error("segments have a node at least, and count with a probability from 0 to 1");
  return {};
}

}  // namespace

std::vector<ConfiguredGraph> segments_of(const ConfiguredGraph& graph, int64_t nodes) {
  const auto size = static_cast<size_t>(nodes);
  const size_t total = graph.graph.opcodes.size(), columns = graph.configs.names.size();
  std::vector<ConfiguredGraph> all((total + size - 1) / size);
  std::vector<std::vector<size_t>> which(all.size());  // of configurable nodes
  for (size_t k = 0; k < graph.config_nodes.size(); ++k) {
    const auto node = static_cast<size_t>(graph.config_nodes[k]);
    all[node / size].config_nodes.push_back(static_cast<int32_t>(node % size));
    which[node / size].push_back(k);
  }
  for (const auto& [reader, read] : graph.graph.edges) {
    const auto from = static_cast<size_t>(reader), to = static_cast<size_t>(read);
    if (from / size == to / size)
      all[from / size].graph.edges.push_back(
          {static_cast<int32_t>(from % size), static_cast<int32_t>(to % size)});
  }
  std::vector<ConfiguredGraph> kept;
  for (size_t s = 0; s < all.size(); ++s) {
    if (which[s].empty()) continue;
    ConfiguredGraph& segment = kept.emplace_back(std::move(all[s]));
    segment.program = graph.program;
    segment.sort = graph.sort;
    segment.times = graph.times;
    segment.besides = graph.besides;
    segment.planned = graph.planned;
    segment.target = graph.target;
    segment.configs.names = graph.configs.names;
    segment.graph.nodes.names = graph.graph.nodes.names;
    for (size_t i = s * size; i < std::min((s + 1) * size, total); ++i) {
      const std::span<const float> row = graph.graph.nodes.row(i);
      segment.graph.opcodes.push_back(graph.graph.opcodes[i]);
      segment.graph.nodes.values.insert(segment.graph.nodes.values.end(), row.begin(), row.end());
    }
    for (size_t c = 0; c < graph.times.size(); ++c)
      for (size_t k : which[s]) {
        const std::span<const float> row = graph.config(c).subspan(k * columns, columns);
        segment.configs.values.insert(segment.configs.values.end(), row.begin(), row.end());
      }
  }
  return kept;
}

double segment_weight(const SegmentOptions& options, size_t count) {
  return options.keeps + (1 - options.keeps) * static_cast<double>(count);
}

Result<GraphModel> train_by_segments(std::span<const ConfiguredGraph> given,
                                     const GraphTraining& options, const SegmentOptions& segments) {
  HONE_TRY(check_options(options, segments));
  std::vector<double> noise;
  std::vector<ConfiguredGraph> graphs = HONE_TRY(graphs_to_learn_from(given, options.hops, &noise));
  GraphModel model = HONE_TRY(model_for(given, graphs, options));
  const auto width = static_cast<size_t>(options.network.width);
  std::vector<SegmentedGraph> all;
  for (ConfiguredGraph& graph : graphs) {
    if (graph.config_nodes.empty())
      return bad_input("'{}' has tiles of a kernel, and no layouts", graph.program);
    SegmentedGraph& one = all.emplace_back();
    one.times = graph.times;
    one.segments = segments_of(graph, options.segments);
    graph = {};
  }
  for (size_t g = 0; g < all.size(); ++g)
    for (ConfiguredGraph& segment : all[g].segments) {
      all[g].scaled.push_back(scaled(segment, model.scale, noise[g]));
      segment.graph.nodes.values = {};  // it has them scaled
      all[g].tables.emplace_back(all[g].times.size() * width);
    }
  SegmentSlates slates(all, model.scale, options, segments);
  const int64_t steps =
      std::max<int64_t>(options.epochs * options.draws * std::ssize(all) / slates.size(), 1);
  Trainer trainer = HONE_TRY(Trainer::make(
      [&](Network& net) { return segment_objective(net, options.network); }, slates,
      HONE_TRY(host_target()), training_of(options, slates.size(), steps, options.rate)));
  SegmentSums summer(options.network, options.compile);
  HONE_TRY(slates.refresh_all(summer, trainer.weights()));
  double loss = 0;
  for (int64_t step = 0; step < steps; ++step) {
    if (options.compile.cancel != nullptr) HONE_TRY(options.compile.cancel->check());
    loss = HONE_TRY(trainer.step()).loss;
    HONE_TRY(slates.refresh(summer, HONE_TRY(slates.batch({}, 0)), trainer.weights()));
    slates.draw();
    if (options.on_step) options.on_step(step + 1, trainer.weights());
  }
  model.weights = copied(trainer.weights(), "");
  HONE_TRY(slates.refresh_all(summer, model.weights));
  if (segments.head_epochs > 0)
    HONE_TRY(tune_head(all, options, segments.head_epochs, model.weights));
  if (options.told) options.told(fmt::format("{} steps by segments, loss {:.4f}", steps, loss));
  return model;
}

Result<std::vector<double>> scores_by_segments(const GraphModel& model,
                                               const ConfiguredGraph& given, int64_t nodes,
                                               const CompileOptions& compile) {
  HONE_TRY(check_fits(model, given));
  const ConfiguredGraph graph = model.hops < 0 ? given : compressed(given, model.hops);
  GraphModel as_it_is = model;
  as_it_is.hops = -1;
  as_it_is.segments = 0;
  std::vector<double> sums(graph.times.size());
  for (const std::vector<double>& scores :
       HONE_TRY(scores_of_all(as_it_is, segments_of(graph, nodes), compile)))
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += scores[i];
  return sums;
}

}  // namespace hone

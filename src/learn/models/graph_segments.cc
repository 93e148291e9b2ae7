#include "learn/models/graph_segments.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "learn/graph_layers.h"
#include "learn/layers.h"
#include "learn/trainer.h"

namespace hone {
namespace {

constexpr double kHeadRate = 0.1;  // of the rate before, for the last layer alone

Type reals(std::initializer_list<Dim> dims) { return Type::get(DType::f32, dims); }

// What segments come to: the sum of the states of their nodes, for some configurations.
class Summer {
 public:
  Summer(const GraphNetworkOptions& network, const CompileOptions& compile)
      : network_(network), compile_(compile) {
    compile_.progress = nullptr;
  }

  // [graphs of the batch, width]
  Result<Tensor> run(const Batch& batch, std::span<const NamedTensor> weights) {
    if (executable_ == nullptr) HONE_TRY(compile(batch));
    std::vector<Tensor> inputs;
    for (const Network::Port& port : ports_) {
      if (port.role == Network::Role::input) {
        inputs.push_back(batch.find(port.name)->second);
        continue;
      }
      const auto at = std::ranges::find(weights, port.name, &NamedTensor::name);
      HONE_CHECK(at != weights.end(), "the network has no weight '{}'", port.name);
      inputs.push_back(at->tensor);
    }
    return HONE_TRY(executable_->run(inputs))[0];
  }

 private:
  Status compile(const Batch& batch) {
    const BatchTypes types = types_of(batch);
    Builder b("segments");
    Network net(b, Network::Mode::evaluation, types);
    const Value sums = segment_sum(node_states(net, network_), segments_in(net, "graphs"));
    const Graph graph = HONE_TRY(b.finish(std::vector{sums}));
    ports_ = net.ports();
    executable_ = HONE_TRY(Compilation(graph, HONE_TRY(host_target()), compile_).executable());
    return {};
  }

  const GraphNetworkOptions network_;
  CompileOptions compile_;
  std::vector<Network::Port> ports_;
  std::shared_ptr<const Executable> executable_;
};

// A graph in segments, with what each came to when it was last computed.
struct Segmented {
  std::vector<double> times;
  std::vector<ConfiguredGraph> segments;
  std::vector<ScaledGraph> scaled;         // of these
  std::vector<std::vector<float>> tables;  // by segment: [configurations, width]
};

// One step's slates: a segment of each drawn graph.
class SegmentSlates : public Dataset {
 public:
  SegmentSlates(std::vector<Segmented>& graphs, const GraphScale& scale,
                const GraphTraining& options, const SegmentOptions& segments)
      : graphs_(graphs), scale_(scale), options_(options), segments_(segments), rng_(options.seed) {
    for (const Segmented& graph : graphs)
      for (const ScaledGraph& segment : graph.scaled) room_.hold(segment);
    draw();
  }

  int64_t size() const override { return std::max<int64_t>(options_.slates, 1); }
  Result<Batch> batch(std::span<const int64_t> /*samples*/, int64_t /*bucket*/) const override {
    std::vector<Slate> slates;
    std::vector<float> others, weights;
    for (const Drawn& each : drawn_) {
      slates.push_back(each.slate);
      const Segmented& graph = graphs_[each.graph];
      weights.push_back(segments_.corrects
                            ? static_cast<float>(segment_weight(segments_, graph.segments.size()))
                            : 1.0F);
      for (size_t config : each.slate.configs) add_others(graph, each, config, others);
    }
    Batch batch = HONE_TRY(graph_batch(slates, scale_, room_, false));
    const Dim width = options_.network.width;
    batch.insert_or_assign("others", Tensor::of(reals({size(), options_.slate, width}),
                                                std::span<const float>(others)));
    batch.insert_or_assign("weight",
                           Tensor::of(reals({size(), 1, 1}), std::span<const float>(weights)));
    return batch;
  }

  // The next step's.
  void draw() {
    drawn_.clear();
    for (int64_t i = 0; i < size(); ++i) {
      Drawn& one = drawn_.emplace_back();
      one.graph = rng_.below(graphs_.size());
      const Segmented& graph = graphs_[one.graph];
      one.segment = rng_.below(graph.segments.size());
      one.slate = {&graph.scaled[one.segment], draw_configs(graph.times, options_.slate, rng_)};
      for (size_t s = 0; s < graph.segments.size(); ++s)
        one.counts.push_back(s != one.segment && rng_.chance(segments_.keeps));
    }
  }
  // Writes what the trained segments come to now into the table.
  Status refresh(Summer& summer, const Batch& batch, std::span<const NamedTensor> weights) {
    const Tensor sums = HONE_TRY(summer.run(batch, weights));
    size_t row = 0;
    for (const Drawn& each : drawn_)
      for (size_t config : each.slate.configs)
        write(graphs_[each.graph].tables[each.segment], config, sums, row++);
    return {};
  }
  // All of the table.
  Status refresh_all(Summer& summer, std::span<const NamedTensor> weights) {
    for (Segmented& graph : graphs_)
      for (size_t s = 0; s < graph.segments.size(); ++s)
        for (size_t first = 0; first < graph.times.size();) {
          // As many as a step has, so that one compiled network takes them.
          std::vector<Slate> slates;
          std::vector<size_t> configs;
          for (int64_t i = 0; i < size(); ++i) {
            Slate slate = {&graph.scaled[s], {}};
            for (int64_t c = 0; c < options_.slate; ++c)
              slate.configs.push_back(std::min(first++, graph.times.size() - 1));
            configs.insert(configs.end(), slate.configs.begin(), slate.configs.end());
            slates.push_back(std::move(slate));
          }
          const Batch batch = HONE_TRY(graph_batch(slates, scale_, room_, false));
          const Tensor sums = HONE_TRY(summer.run(batch, weights));
          for (size_t row = 0; row < configs.size(); ++row)
            write(graph.tables[s], configs[row], sums, row);
        }
    return {};
  }

 private:
  struct Drawn {
    size_t graph = 0, segment = 0;
    Slate slate;
    std::vector<bool> counts;  // by segment: whether what the table says of it does
  };

  void add_others(const Segmented& graph, const Drawn& drawn, size_t config,
                  std::vector<float>& others) const {
    const auto width = static_cast<size_t>(options_.network.width);
    std::vector<float> sum(width);
    for (size_t s = 0; s < graph.segments.size(); ++s)
      for (size_t j = 0; drawn.counts[s] && j < width; ++j)
        sum[j] += graph.tables[s][config * width + j];
    others.insert(others.end(), sum.begin(), sum.end());
  }
  void write(std::vector<float>& table, size_t config, const Tensor& sums, size_t row) const {
    const auto width = static_cast<size_t>(options_.network.width);
    const std::span<const float> from = sums.as<float>().subspan(row * width, width);
    std::ranges::copy(from, table.begin() + static_cast<std::ptrdiff_t>(config * width));
  }

  std::vector<Segmented>& graphs_;
  const GraphScale& scale_;
  const GraphTraining& options_;
  const SegmentOptions& segments_;
  Rng rng_;
  GraphRoom room_;
  std::vector<Drawn> drawn_;
};

// The sums of all segments, less their mean over configurations, which orders nothing.
class HeadSlates : public Dataset {
 public:
  HeadSlates(std::span<const Segmented> graphs, const GraphTraining& options)
      : graphs_(graphs), options_(options) {
    const auto width = static_cast<size_t>(options.network.width);
    for (const Segmented& graph : graphs) {
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
  const std::span<const Segmented> graphs_;
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
Status tune_head(std::span<const Segmented> graphs, const GraphTraining& options, int64_t epochs,
                 std::vector<NamedTensor>& weights) {
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
  if (options.network.loss == GraphLoss::log_squared)
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
  std::vector<Segmented> all;
  for (ConfiguredGraph& graph : graphs) {
    if (graph.config_nodes.empty())
      return bad_input("'{}' has tiles of a kernel, and no layouts", graph.program);
    Segmented& one = all.emplace_back();
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
  Summer summer(options.network, options.compile);
  HONE_TRY(slates.refresh_all(summer, trainer.weights()));
  double loss = 0;
  for (int64_t step = 0; step < steps; ++step) {
    if (options.compile.cancel != nullptr) HONE_TRY(options.compile.cancel->check());
    loss = HONE_TRY(trainer.step()).loss;
    HONE_TRY(slates.refresh(summer, HONE_TRY(slates.batch({}, 0)), trainer.weights()));
    slates.draw();
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

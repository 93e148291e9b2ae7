// Trains a graph network to tell how much of a graph's edges join nodes of different colors.
// Graphs have 4 to 32 nodes; a batch is one graph of 16 parts, each with room for its bucket.

#include <fmt/format.h>

#include "base/rng.h"
#include "learn/graph_data.h"
#include "learn/graph_layers.h"
#include "learn/layers.h"
#include "learn/losses.h"
#include "learn/trainer.h"

using namespace hone;
constexpr int64_t kDegree = 3;  // edges that end at each node

struct Graphs : Dataset {
  Graphs(int64_t size, uint64_t seed) : count(size), first_seed(seed) {}
  Rng rng(int64_t sample) const { return Rng(first_seed + static_cast<uint64_t>(sample)); }
  int64_t size() const override { return count; }
  int64_t length(int64_t sample) const override { return rng(sample).between(4, 32); }
  Result<Batch> batch(std::span<const int64_t> samples, int64_t room) const override {
    const int64_t graphs = std::ssize(samples), nodes = graphs * room;
    std::vector<double> color, mixed;
    std::vector<int64_t> graph_of, sources, targets;
    for (int64_t g = 0; g < graphs; ++g) {
      Rng random = rng(samples[static_cast<size_t>(g)]);
      const int64_t used = random.between(4, 32), first = std::ssize(color);
      const double red = random.uniform(0, 1);
      for (int64_t i = 0; i < used; ++i) color.push_back(random.uniform(0, 1) < red ? 1 : 0);
      graph_of.resize(color.size(), g);
      double& differ = mixed.emplace_back(0);
      for (int64_t i = 0; i < kDegree * used; ++i) {
        sources.push_back(first + random.between(0, used - 1));
        targets.push_back(first + i / kDegree);
        if (color[static_cast<size_t>(sources.back())] !=
            color[static_cast<size_t>(targets.back())])
          differ += 1 / static_cast<double>(used * kDegree);
      }
    }
    // What is left of the room belongs to no graph, and its edges end at no node.
    color.resize(static_cast<size_t>(nodes), 0);
    graph_of.resize(color.size(), graphs);
    sources.resize(color.size() * kDegree, 0);
    targets.resize(sources.size(), nodes);
    Batch batch = {{"color", Tensor::from_reals(Type::get(DType::f32, {nodes, 1}), color)},
                   {"mixed", Tensor::from_reals(Type::get(DType::f32, {graphs, 1}), mixed)}};
    HONE_TRY(add_segments(batch, "graph", graph_of, graphs));
    HONE_TRY(add_edges(batch, "edges", sources, targets, nodes));
    return batch;
  }
  int64_t count;
  uint64_t first_seed;
};
Objective mixed_edges(Network& net) {
  const Edges edges = edges_in(net, "edges");
  Value x = relu(graph_sage(net, "sage1", net.input("color"), edges, 32));
  x = relu(graph_sage(net, "sage2", x, edges, 32));
  x = segment_mean(x, segments_in(net, "graph"));
  return {mean_squared_error(mlp(net, "head", x, {32, 1}), net.input("mixed"))};
}

Status run() {
  const Graphs data(4000, 1), validation(500, 1'000'000);
  TrainingOptions options = {.rate = constant_rate(0.003), .epochs = 6};
  options.loader = {.batch_size = 16, .buckets = {8, 16, 32}};
  options.on_epoch = [](const EpochResult& epoch) {
    fmt::print("epoch {}: validation {:.5f}\n", epoch.epoch, epoch.validation->loss);
  };
  Trainer trainer = HONE_TRY(Trainer::make(mixed_edges, data, HONE_TRY(host_target()), options));
  HONE_TRY(trainer.train(&validation));
  return {};
}

int main() {
  const Status status = run();
  if (!status.ok()) fmt::print(stderr, "error: {}\n", status.error().to_string());
  return status.ok() ? 0 : 1;
}

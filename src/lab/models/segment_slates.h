#pragma once

#include <memory>
#include <vector>

#include "lab/models/graph_segments.h"
#include "learn/network.h"

// Steps of Graph Segment Training, with the table of what segments came to (graph_segments.h).

namespace hone {

// The results of segments: the sum of the states of their nodes, for some configurations.
class SegmentSums {
 public:
  SegmentSums(const GraphNetworkOptions& network, const CompileOptions& compile);

  // [graphs of the batch, width]
  Result<Tensor> run(const Batch& batch, std::span<const NamedTensor> weights);

 private:
  Status compile(const Batch& batch);

  const GraphNetworkOptions network_;
  CompileOptions compile_;
  std::vector<Network::Port> ports_;
  std::shared_ptr<const Executable> executable_;
};

// A graph in segments, with what each came to when it was last computed.
struct SegmentedGraph {
  std::vector<double> times;
  std::vector<ConfiguredGraph> segments;
  std::vector<ScaledGraph> scaled;         // of these
  std::vector<std::vector<float>> tables;  // by segment: [configurations, width]
};

// One step's slates: a segment of each drawn graph. Beside what graph_batch() gives: "others"
// [slates, configurations, width], the sum of what the table says of the other segments that count,
// and "weight" [slates, 1, 1] of the trained one.
class SegmentSlates : public Dataset {
 public:
  // All of it outlives the data set, which writes into the tables of the graphs.
  SegmentSlates(std::vector<SegmentedGraph>& graphs, const GraphScale& scale,
                const GraphTraining& options, const SegmentOptions& segments);

  int64_t size() const override { return std::max<int64_t>(options_.slates, 1); }
  Result<Batch> batch(std::span<const int64_t> samples, int64_t bucket) const override;

  struct Drawn {
    size_t graph = 0, segment = 0;
    Slate slate;
    std::vector<bool> counts;  // by segment: whether what the table says of it does
  };
  std::span<const Drawn> drawn() const { return drawn_; }
  // The next step's.
  void draw();
  // Writes what the trained segments come to now into the table.
  Status refresh(SegmentSums& summer, const Batch& batch, std::span<const NamedTensor> weights);
  // All of the table.
  Status refresh_all(SegmentSums& summer, std::span<const NamedTensor> weights);

 private:
  void add_others(const SegmentedGraph& graph, const Drawn& drawn, size_t config,
                  std::vector<float>& others) const;
  void write(std::vector<float>& table, size_t config, const Tensor& sums, size_t row) const;

  std::vector<SegmentedGraph>& graphs_;
  const GraphScale& scale_;
  const GraphTraining& options_;
  const SegmentOptions& segments_;
  Rng rng_;
  GraphRoom room_;
  std::vector<Drawn> drawn_;
};

}  // namespace hone

#pragma once

#include <span>
#include <vector>

#include "lab/models/graph_model.h"

namespace hone {

// The score of one graph by an additive model, kept up to date while layouts change one by one: in
// plain C++, and only where a change is heard. Layers of GraphSAGE hear their neighbours, so a
// change goes as many edges far as there are layers.
//
//   LocalScores scores = HONE_TRY(LocalScores::make(model, graph, 0));
//   const double after = scores.change(node, layout);  // of the whole graph
//
// For a model with a skeleton it is what the network adds to the logarithm of the price.
//
// The messages to a node are kept as a sum in double precision, to which differences are added.
class LocalScores {
 public:
  // Begins with configuration `config` of the graph. Errors: check_fits(), and a model that is not
  // additive or not of GraphSAGE, or whose weights are not those of its network.
  static Result<LocalScores> make(const GraphModel& model, const ConfiguredGraph& graph,
                                  size_t config);

  double score() const { return score_; }
  // Gives the number `node` of the configurable nodes another row of features.
  double change(size_t node, std::span<const float> row);
  // The same number from the beginning, for tests: all nodes, no differences.
  double full_pass() const;
  size_t nodes() const { return neighbours_.size(); }

 private:
  struct Layer {
    std::vector<float> self, bias, heard;  // [width, width], [width], [width, width]
  };
  // The state of each node behind a layer, and the sum of its neighbours' states there.
  struct Level {
    std::vector<float> x;
    std::vector<double> heard;
  };

  LocalScores() = default;
  Status take_weights(const GraphModel& model);
  // The input layer: what nodes and opcodes say, and what a configuration adds.
  void begin(const ScaledGraph& graph);
  void add_config(std::span<const float> row, std::vector<float>& to) const;
  void compute(std::vector<Level>& levels) const;  // from the first level's x on
  void pass(const Layer& layer, const Level& level, size_t node, float* to) const;
  double score_of(const float* x) const;
  std::span<float> row_of(std::vector<float>& x, size_t node) const;

  size_t width_ = 0;
  GraphScale scale_;
  std::vector<std::vector<int32_t>> neighbours_;  // by node: as often as there are edges
  std::vector<int32_t> config_nodes_;
  std::vector<float> opcode_, input_, input_bias_, node_;  // weights
  float node_bias_ = 0;
  size_t embedding_ = 0;
  std::vector<Layer> layers_;
  std::vector<float> fixed_;    // by node: the input layer before the configuration and relu
  std::vector<float> configs_;  // by configurable node: what it adds
  std::vector<Level> levels_;
  std::vector<double> scores_;  // by node
  double score_ = 0;
  // For change(): which nodes are in the list already, by its number.
  std::vector<uint32_t> listed_;
  uint32_t number_ = 0;
};

}  // namespace hone

#include "learn/models/graph_segments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "learn/ranking.h"
#include "tests/learn/graph_testing.h"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ConfiguredGraph layouts(uint64_t seed) { return random_layouts(40, 24, seed); }

GraphTraining small() {
  GraphTraining training = training_for(layouts(1));
  training.network.width = 16;
  training.network.embedding = 8;
  training.hops = -1;
  training.epochs = 30;
  training.rate = 0.01;
  training.slate = 12;
  training.slates = 4;
  training.draws = 4;
  return training;
}

TEST(GraphSegments, CutGraphsWhereTheyAreLong) {
  const ConfiguredGraph graph = random_layouts(8, 3, 1);  // 1, 4 and 7 are configurable
  const std::vector<ConfiguredGraph> segments = segments_of(graph, 3);
  ASSERT_EQ(segments.size(), 3U);
  EXPECT_THAT(segments[1].config_nodes, ElementsAre(1));
  EXPECT_EQ(segments[2].graph.opcodes.size(), 2U);
  using Edge = std::array<int32_t, 2>;
  EXPECT_THAT(segments[1].graph.edges, ElementsAre(Edge{1, 0}, Edge{2, 1}, Edge{2, 0}));
  for (size_t c = 0; c < 3; ++c)
    EXPECT_TRUE(std::ranges::equal(segments[1].config(c), graph.config(c).subspan(2, 2)));
  ConfiguredGraph few = graph;
  few.config_nodes = {1};
  few.configs.values.resize(3 * 2);
  EXPECT_EQ(segments_of(few, 3).size(), 1U);  // the others add the same to all
  EXPECT_EQ(segments_of(graph, 100)[0], graph);
}

// A segment stands for itself, and for those that are left out: the sum of weights is their number.
TEST(GraphSegments, WeighWhatStaysAsMuchAsAll) {
  const SegmentOptions options = {.keeps = 0.25};
  EXPECT_EQ(segment_weight(options, 9) + 0.25 * 8, 9);
  EXPECT_EQ(segment_weight({.keeps = 1}, 9), 1);
}

TEST(GraphSegments, LearnAlmostAsMuchAsWholeGraphs) {
  const std::vector<ConfiguredGraph> graphs = many(layouts, 8, 1);
  GraphTraining training = small();
  training.epochs = 90;  // a step sees a quarter of a graph
  training.segments = 10;
  const GraphModel model = train_graph_model(graphs, training).value();
  double tau = 0;
  for (uint64_t seed : {100, 101, 102, 103}) {
    const ConfiguredGraph unseen = layouts(seed);
    const std::vector<double> scores = scores_of(model, unseen).value();
    EXPECT_EQ(scores, scores_by_segments(model, unseen, 10).value());
    tau += kendall_tau(scores, unseen.times) / 4;
  }
  EXPECT_GT(tau, 0.6);
}

// One segment is the whole graph.
TEST(GraphSegments, ScoreAsTheNetworkDoes) {
  const std::vector<ConfiguredGraph> graphs = many(layouts, 2, 1);
  GraphTraining training = small();
  training.epochs = 1;
  training.segments = 40;
  GraphModel model = train_by_segments(graphs, training).value();
  EXPECT_EQ(model.segments, 40);
  model.segments = 0;
  const std::vector<double> whole = scores_of(model, graphs[0]).value();
  EXPECT_EQ(scores_by_segments(model, graphs[0], 40).value(), whole);
  const GraphModel again = train_by_segments(graphs, training).value();
  EXPECT_EQ(scores_of(again, graphs[0]).value(), whole);
}

TEST(GraphSegments, RefuseWhatDoesNotAddUp) {
  const std::vector<ConfiguredGraph> graphs = many(layouts, 1, 1);
  GraphTraining training = small();
  training.segments = 10;
  training.network.reduction = GraphReduction::columns;
  EXPECT_THAT(train_by_segments(graphs, training, {}).error().to_string(),
              HasSubstr("the reduction is 'columns'"));
  training.network.reduction = GraphReduction::additive;
  training.network.loss = GraphLoss::log_squared;
  EXPECT_THAT(train_by_segments(graphs, training, {}).error().to_string(),
              HasSubstr("not by 'log_squared'"));
  EXPECT_THAT(train_by_segments(graphs, small()).error().to_string(), HasSubstr("a node at least"));
  const ConfiguredGraph kernel = random_tiles(8, 1);
  training.network.loss = GraphLoss::weighted;
  EXPECT_THAT(train_by_segments({&kernel, 1}, training).error().to_string(),
              HasSubstr("and no layouts"));
}

}  // namespace
}  // namespace hone

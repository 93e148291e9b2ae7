#include "lab/models/graph_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/hash.h"
#include "formats/safetensors.h"
#include "lab/models/judge_graphs.h"
#include "lab/models/local_scores.h"
#include "learn/ranking.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/lab/graph_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;

ConfiguredGraph layouts(uint64_t seed) { return random_layouts(24, 24, seed); }
ConfiguredGraph tiles(uint64_t seed) { return random_tiles(16, seed); }

GraphTraining small(const ConfiguredGraph& graph) {
  GraphTraining training = training_for(graph);
  training.network.width = 16;
  training.network.embedding = 8;
  training.hops = -1;
  training.epochs = 10;
  training.rate = 0.01;
  training.slate = 12;
  training.slates = 4;
  training.draws = 4;
  return training;
}

const std::vector<ConfiguredGraph>& known() {
  static const std::vector<ConfiguredGraph> graphs = many(layouts, 8, 1);
  return graphs;
}

const GraphModel& trained() {
  static const GraphModel model = train_graph_model(known(), small(known()[0])).value();
  return model;
}

double tau_of(const GraphModel& model, const ConfiguredGraph& graph) {
  const Result<GraphVerdict> verdict = judged(model, graph, {});
  EXPECT_TRUE(verdict.ok()) << verdict.error().to_string();
  return verdict->tau;
}

TEST(GraphModel, OrdersLayoutsOfUnseenGraphs) {
  EXPECT_GT(tau_of(trained(), layouts(100)), 0.7);
  EXPECT_GT(tau_of(trained(), random_layouts(40, 30, 101)), 0.7);  // larger ones, too
}

TEST(GraphModel, IsTheSameAgain) {
  const GraphModel again = train_graph_model(known(), small(known()[0])).value();
  EXPECT_EQ(scores_of(again, layouts(100)).value(), scores_of(trained(), layouts(100)).value());
}

// After the last step they are those of the model; segments tune the last layer later.
TEST(GraphModel, TellsWeightsOfEachStep) {
  for (int64_t segments : {0, 24}) {
    GraphTraining training = small(known()[0]);
    training.epochs = 1;
    training.segments = segments;
    int64_t steps = 0;
    std::vector<NamedTensor> last;
    training.on_step = [&](int64_t step, std::span<const NamedTensor> weights) {
      EXPECT_EQ(step, ++steps);
      last.clear();
      for (const NamedTensor& each : weights)
        last.push_back({each.name, Tensor::copy_of(each.tensor.type(), each.tensor.bytes())});
    };
    const GraphModel model = train_graph_model(known(), training).value();
    EXPECT_EQ(steps, 8 * training.draws / training.slates);
    ASSERT_EQ(last.size(), model.weights.size());
    for (size_t i = 0; i < last.size(); ++i) {
      EXPECT_EQ(last[i].name, model.weights[i].name);
      if (segments > 0 && last[i].name.starts_with("node/")) continue;
      EXPECT_TRUE(std::ranges::equal(last[i].tensor.bytes(), model.weights[i].tensor.bytes()));
    }
  }
}

TEST(GraphModel, OrdersTilesByOtherLayersAndLosses) {
  HONE_ONE_RUN_OF(5);
  const std::vector<ConfiguredGraph> kernels = many(tiles, 12, 1);
  const std::pair<MessagePassing, GraphLoss> kinds[] = {
      {MessagePassing::gat, GraphLoss::list_mle},
      {MessagePassing::gin, GraphLoss::hinge},
      {MessagePassing::sage, GraphLoss::log_squared}};
  for (const auto& [passing, loss] : kinds) {
    GraphTraining training = small(kernels[0]);
    training.network.passing = passing;
    training.network.loss = loss;
    training.epochs = 30;
    const Result<GraphModel> model = train_graph_model(kernels, training);
    ASSERT_TRUE(model.ok()) << model.error().to_string();
    double tau = 0;
    for (uint64_t seed : {100, 101, 102, 103}) tau += tau_of(*model, tiles(seed)) / 4;
    EXPECT_GT(tau, 0.5) << name(passing) << " " << name(loss);
  }
}

TEST(GraphModel, OrdersByOtherReductions) {
  HONE_ONE_RUN_OF(5);
  struct Kind {
    GraphReduction reduction;
    bool compares, of_layouts;
  };
  const std::vector<ConfiguredGraph> kernels = many(tiles, 12, 1);
  uint64_t number = 0;
  for (const Kind& kind :
       {Kind{GraphReduction::lstm, false, false}, Kind{GraphReduction::transformer, true, false},
        Kind{GraphReduction::transformer, false, true}}) {
    if (!tested::in_share(number++, 3)) continue;
    const std::vector<ConfiguredGraph>& graphs = kind.of_layouts ? known() : kernels;
    GraphTraining training = small(graphs[0]);
    training.network.reduction = kind.reduction;
    training.network.compares = kind.compares;
    training.network.loss = GraphLoss::mixed;
    training.epochs = 12;
    const Result<GraphModel> model = train_graph_model(graphs, training);
    ASSERT_TRUE(model.ok()) << model.error().to_string();
    double tau = 0;
    for (uint64_t seed : {100, 101, 102, 103})
      tau += tau_of(*model, kind.of_layouts ? layouts(seed) : tiles(seed)) / 4;
    EXPECT_GT(tau, 0.4) << name(kind.reduction);
  }
}

// A network that compares has the last word among the best that it compares.
TEST(GraphModel, ComparesTheBestOnceMore) {
  HONE_ONE_RUN_OF(5);
  const std::vector<ConfiguredGraph> kernels = many(tiles, 12, 1);
  GraphTraining training = small(kernels[0]);
  training.network.compares = true;
  training.epochs = 3;
  const GraphModel model = train_graph_model(kernels, training).value();
  const ConfiguredGraph unseen = random_tiles(80, 100);
  const std::vector<double> scores = scores_of(model, unseen).value();
  const RankedScores found = ranked(model, unseen, {}).value();
  std::vector<size_t> first, best;
  for (size_t i = 0; i < 80; ++i) {
    if (found.scores[i] < 32) best.push_back(i);
    const auto cheaper = std::ranges::count_if(scores, [&](double s) { return s < scores[i]; });
    if (cheaper < 32) first.push_back(i);
  }
  EXPECT_EQ(best, first);
  std::vector<double> places;
  for (size_t i : best) places.push_back(found.scores[i]);
  EXPECT_EQ(kendall_tau(places, scores_of(model, with_configs(unseen, best)).value()), 1);
  EXPECT_EQ(judged(model, unseen, {})->tau, found.tau);
  // All at once: as they were scored.
  const ConfiguredGraph few = random_tiles(20, 100);
  EXPECT_EQ(ranked(model, few, {})->tau, kendall_tau(scores_of(model, few).value(), few.times));
}

// The price knows of nodes of opcode 3 alone.
ConfiguredGraph priced_layouts(uint64_t seed) {
  ConfiguredGraph graph = layouts(seed);
  graph.program = fmt::format("random:{}", seed);
  for (size_t c = 0; c < graph.times.size(); ++c) {
    float price = 1000;
    for (size_t k = 0; k < graph.config_nodes.size(); ++k) {
      const auto node = static_cast<size_t>(graph.config_nodes[k]);
      if (graph.graph.opcodes[node] == 3 && graph.config(c)[2 * k] == 2)
        price += 10 * std::log1p(graph.graph.nodes.row(node)[0]);
    }
    graph.besides.priced.push_back(price);
  }
  return graph;
}

TEST(GraphModel, AddsToPrices) {
  HONE_ONE_RUN_OF(5);
  const std::vector<ConfiguredGraph> some = many(priced_layouts, 8, 1);
  GraphTraining training = small(some[0]);
  training.network.skeleton = true;
  training.epochs = 0;
  const ConfiguredGraph graph = priced_layouts(100);
  const GraphModel at_first = train_graph_model(some, training).value();
  const GraphVerdict before = judged(at_first, graph, {}).value();
  EXPECT_DOUBLE_EQ(before.tau, before.priced->tau);
  training.epochs = 10;
  const GraphModel model = train_graph_model(some, training).value();
  EXPECT_GT(tau_of(model, graph), before.tau + 0.2);

  // Prices of programs that are left out say how much it may add.
  std::vector<ConfiguredGraph> exact = some;
  for (ConfiguredGraph& each : exact)
    each.besides.priced.assign(each.times.begin(), each.times.end());
  ConfiguredGraph other = graph;
  other.besides.priced.assign(other.times.begin(), other.times.end());
  EXPECT_GT(tau_of(train_graph_model(exact, training).value(), other), 0.97);

  // Only the part that the network adds is local.
  const LocalScores local = LocalScores::make(model, graph, 3).value();
  const double price = std::log(static_cast<double>(graph.besides.priced[3]));
  EXPECT_NEAR(local.score() + price, scores_of(model, graph).value()[3], 1e-4);

  EXPECT_THAT(scores_of(model, layouts(100)).error().to_string(),
              says("'p100' ... prices ... skeleton"));
  training.network.compares = true;
  EXPECT_THAT(train_graph_model(some, training).error().to_string(), HasSubstr("a few"));
  training.network.compares = false;
  training.segments = 5;
  EXPECT_THAT(train_graph_model(some, training).error().to_string(), HasSubstr("segments"));
}

// A program is not unseen if training knows its sister.
TEST(GraphModel, LeavesFamiliesOutTogether) {
  HONE_ONE_RUN_OF(5);
  std::vector<ConfiguredGraph> some = many(priced_layouts, 8, 1);
  const auto said = [&](std::initializer_list<const char*> names) {
    size_t at = 0;
    for (const char* name : names) some[at++].program = name;
    GraphTraining training = small(some[0]);
    training.network.skeleton = true;
    training.epochs = 0;
    std::string lines;
    training.told = [&](std::string_view line) { lines += line; };
    EXPECT_TRUE(train_graph_model(some, training).ok());
    return lines;
  };
  // One of four families: of five programs or of one, and not two programs.
  EXPECT_THAT(said({"zoo:a1", "zoo:a2", "zoo:a3", "zoo:a4", "zoo:a5", "zoo:b", "zoo:c", "zoo:d"}),
              testing::AnyOf(HasSubstr("of 5 graphs left out"), HasSubstr("of 1 graphs left out")));
  EXPECT_THAT(said({"zoo:a1", "zoo:a2", "zoo:a3", "zoo:b1", "zoo:b2", "zoo:c", "zoo:c1", "zoo:c2"}),
              testing::Not(HasSubstr("left out")));
}

// Networks of sums and columns need no places of nodes.
TEST(GraphModel, PutsNodesInSequenceForThoseThatReadThem) {
  const ConfiguredGraph graph = tiles(1);
  const GraphScale scale = scale_of({&graph, 1});
  const ScaledGraph its = scaled(graph, scale);
  GraphRoom room;
  room.hold(its);
  const Slate slate = {&its, {0, 1}};
  EXPECT_TRUE(graph_batch({&slate, 1}, scale, room, true)->contains("sequences.nodes"));
  EXPECT_FALSE(graph_batch({&slate, 1}, scale, room, false)->contains("sequences.nodes"));
}

// The data's knowledge of each time's noise, and what equal configurations tell of that of all.
TEST(GraphModel, HearsOfTheNoiseOfEachTime) {
  ConfiguredGraph graph = layouts(1);
  graph.besides.noise.assign(graph.times.size(), 0);
  graph.besides.noise[1] = 0.3F;
  const GraphScale scale = scale_of({&graph, 1});
  const ScaledGraph its = scaled(graph, scale, 0.4);
  GraphRoom room;
  room.hold(its);
  const Slate slate = {&its, {0, 1}};
  const Batch batch = graph_batch({&slate, 1}, scale, room, false).value();
  const std::span<const float> noise = batch.find("noise")->second.as<float>();
  EXPECT_FLOAT_EQ(noise[0], 0.4F);
  EXPECT_FLOAT_EQ(noise[1], 0.5F);
}

TEST(GraphModel, ReadsSequencesOfGraphsOfAnyLength) {
  HONE_ONE_RUN_OF(5);
  uint64_t number = 0;
  for (GraphReduction reduction : {GraphReduction::lstm, GraphReduction::transformer}) {
    if (!tested::in_share(number++, 2)) continue;
    GraphTraining training = small(known()[0]);
    training.network.reduction = reduction;
    training.epochs = 1;
    const GraphModel model = train_graph_model(known(), training).value();
    const std::vector<ConfiguredGraph> graphs = {layouts(100), random_layouts(40, 30, 101)};
    const auto together = scores_of_all(model, graphs).value();
    for (size_t g = 0; g < graphs.size(); ++g) {
      const std::vector<double> alone = scores_of(model, graphs[g]).value();
      for (size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(together[g][i], alone[i], 1e-4);
    }
  }
}

TEST(GraphModel, ReadsNodesBehindWhatTheyRead) {
  ConfiguredGraph graph = tiles(1);
  graph.graph.opcodes.resize(5, 1);
  graph.graph.nodes.values.resize(5 * graph.graph.nodes.names.size(), 0);
  graph.graph.edges = {{0, 3}, {3, 1}, {2, 4}, {4, 2}};  // the last two read one another
  EXPECT_THAT(scaled(graph, {}).order, testing::ElementsAre(1, 3, 0, 2, 4));
}

TEST(GraphModel, LeavesPaddingOut) {
  const std::vector<ConfiguredGraph> graphs = {layouts(100), random_layouts(40, 30, 101)};
  const auto together = scores_of_all(trained(), graphs).value();
  for (size_t g = 0; g < graphs.size(); ++g) {
    const std::vector<double> alone = scores_of(trained(), graphs[g]).value();
    for (size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(together[g][i], alone[i], 1e-4);
  }
}

TEST(GraphModel, IsKeptInAFile) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const auto path = folder.path() / "model";
  ASSERT_TRUE(write_graph_model(path, trained()).ok());
  const GraphModel read = read_graph_model(path).value();
  EXPECT_EQ(read.programs, trained().programs);
  EXPECT_EQ(read.scale, trained().scale);
  GraphModel other_model = trained();
  other_model.target = 0xabc;
  other_model.segments = 7;
  ASSERT_TRUE(write_graph_model(folder.path() / "of", other_model).ok());
  EXPECT_EQ(read_graph_model(folder.path() / "of")->target, 0xabcU);
  EXPECT_EQ(read_graph_model(folder.path() / "of")->segments, 7);
  other_model.network.skeleton = true;
  ASSERT_TRUE(write_graph_model(folder.path() / "of", other_model).ok());
  EXPECT_THAT(read_graph_model(folder.path() / "of").error().to_string(),
              says("skeleton ... segments"));
  other_model.segments = 0;
  ASSERT_TRUE(write_graph_model(folder.path() / "of", other_model).ok());
  EXPECT_TRUE(read_graph_model(folder.path() / "of")->network.skeleton);
  EXPECT_EQ(scores_of(read, layouts(100)).value(), scores_of(trained(), layouts(100)).value());

  const auto said = [&](const std::function<void(Safetensors&)>& change) {
    Safetensors content = read_safetensors(path).value();
    change(content);
    const auto other = folder.path() / "other";
    EXPECT_TRUE(write_safetensors(other, content).ok());
    return read_graph_model(other).error().to_string();
  };
  EXPECT_THAT(said([](Safetensors& c) { c.metadata["format"] = "hone kernel model 1"; }),
              HasSubstr("the format is 'hone kernel model 1', not 'hone graph model 4'"));
  EXPECT_THAT(said([](Safetensors& c) { c.metadata["width"] = "17"; }), HasSubstr("damaged"));
  EXPECT_THAT(said([](Safetensors& c) { c.tensors.pop_back(); }), HasSubstr("damaged"));
  EXPECT_THAT(said([](Safetensors& c) { c.metadata.erase("format"); }),
              HasSubstr("'format' is missing"));
}

// The checksum fits: such a file is whole, but not for this hone.
TEST(GraphModel, RefusesFeaturesOfAnotherVersion) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const auto path = folder.path() / "model";
  ASSERT_TRUE(write_graph_model(path, trained()).ok());
  const auto said = [&](const std::string& key, const std::string& value) {
    Safetensors content = read_safetensors(path).value();
    content.metadata[key] = value;
    Hasher hasher;
    for (const auto& [name, text] : content.metadata)
      if (name != "checksum") hasher.add(std::string_view(name)).add(std::string_view(text));
    for (const NamedTensor& each : content.tensors)
      hasher.add(std::string_view(each.name)).add(each.tensor.bytes());
    content.metadata["checksum"] = fmt::format("{:016x}", hasher.value());
    EXPECT_TRUE(write_safetensors(folder.path() / "other", content).ok());
    return read_graph_model(folder.path() / "other").error().to_string();
  };
  EXPECT_THAT(said("features", "2"), says("features of version 2 ... 1"));
  EXPECT_THAT(said("target", "here"), says("'target' ... fingerprint"));
  EXPECT_THAT(said("segments", "-1"), says("'segments' ... number"));
}

TEST(GraphModel, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(scores_of(trained(), tiles(1)).error().to_string(),
              says("layouts of programs ... tiles of kernels"));
  ConfiguredGraph other = layouts(1);
  other.configs.names[1] = "new";
  EXPECT_THAT(scores_of(trained(), other).error().to_string(),
              HasSubstr("column 1 of the configurations is 'new', not 'same'"));
  ConfiguredGraph elsewhere = layouts(1);
  elsewhere.target = 0x12;
  EXPECT_THAT(scores_of(trained(), elsewhere).error().to_string(),
              says("target 0x0000000000000012 ... one that nobody names"));
  ConfiguredGraph equal = layouts(1);
  std::ranges::fill(equal.configs.values, 1.0F);
  EXPECT_THAT(train_graph_model({&equal, 1}, small(equal)).error().to_string(),
              HasSubstr("two different configurations"));
  GraphTraining additive = small(tiles(1));
  additive.network.reduction = GraphReduction::additive;
  const ConfiguredGraph kernel = tiles(1);
  EXPECT_THAT(train_graph_model({&kernel, 1}, additive).error().to_string(),
              says("nodes ... scores"));
  GraphTraining comparing = small(known()[0]);
  comparing.network.compares = true;
  EXPECT_THAT(train_graph_model(known(), comparing).error().to_string(),
              says("scores ... node ... configurations"));
}

TEST(LocalScores, AreThoseOfTheNetworkAndOfAFullPass) {
  const ConfiguredGraph graph = random_layouts(60, 5, 200);
  const std::vector<double> scores = scores_of(trained(), graph).value();
  LocalScores local = LocalScores::make(trained(), graph, 0).value();
  EXPECT_NEAR(local.score(), scores[0], 1e-4);
  const size_t columns = graph.configs.names.size();
  for (size_t c = 1; c < scores.size(); ++c) {  // node by node to the next configuration
    for (size_t k = 0; k < graph.config_nodes.size(); ++k) {
      local.change(k, graph.config(c).subspan(k * columns, columns));
      ASSERT_NEAR(local.score(), local.full_pass(), 1e-5);
    }
    EXPECT_NEAR(local.score(), scores[c], 1e-4);
  }
  GraphModel columns_model = trained();
  columns_model.network.reduction = GraphReduction::columns;
  EXPECT_THAT(LocalScores::make(columns_model, graph, 0).error().to_string(),
              says("sums ... sage"));
  GraphModel without = trained();
  without.weights.clear();
  EXPECT_THAT(LocalScores::make(without, graph, 0).error().to_string(),
              HasSubstr("no weight 'opcode/weight'"));
  EXPECT_THAT(LocalScores::make(trained(), graph, 5).error().to_string(),
              says("5 configurations ... 5"));
}

TEST(JudgeGraphs, TellsHowFarEachOrderIsFromTheBest) {
  ConfiguredGraph graph = random_layouts(6, 12, 1);
  std::vector<double> scores;
  for (size_t i = 0; i < 12; ++i) {
    graph.times[i] = 100 + static_cast<double>(i);
    scores.push_back(static_cast<double>(i < 5 ? 100 + i : i));  // the first five come last
    graph.besides.priced.push_back(static_cast<float>(i));
    graph.besides.whole.push_back(i < 11 ? static_cast<float>(100 + i) : 0);
    graph.besides.whole_noise.push_back(0.01F);
  }
  graph.planned = 102;
  graph.sort = "random";
  const GraphVerdict verdict = judged(scores, graph);
  EXPECT_NEAR(verdict.top1, 0.05, 1e-9);
  EXPECT_NEAR(verdict.top5, 0.05, 1e-9);
  EXPECT_NEAR(verdict.top10, 0, 1e-9);
  EXPECT_NEAR(verdict.random, 0.055, 1e-9);
  EXPECT_NEAR(*verdict.planned, 0.02, 1e-9);
  EXPECT_EQ(verdict.priced->tau, 1);
  EXPECT_EQ(verdict.priced->top1, 0);
  EXPECT_EQ(verdict.whole_runs, 11U);
  EXPECT_EQ(*verdict.priced->whole, 1);
  EXPECT_NEAR(*verdict.whole, 1 - 2.0 * 5 * 6 / 55, 1e-9);
  EXPECT_GT(*verdict.ceiling, 0.6);
  EXPECT_LT(*verdict.ceiling, 0.95);
  // Few whole runs say nothing.
  ConfiguredGraph few = graph;
  few.besides.whole[0] = few.besides.whole[1] = 0;
  EXPECT_FALSE(judged(scores, few).ceiling);
  EXPECT_FALSE(judged(scores, random_layouts(6, 12, 1)).priced);

  GraphVerdict other = verdict;
  other.sort = "default";
  other.priced = {};
  other.ceiling = {};
  const std::vector<GraphVerdict> both = {verdict, other};
  EXPECT_EQ(those_of_sort(both, "default").size(), 1U);
  const MeanGraphVerdict mean = mean_of(both);
  EXPECT_EQ(mean.priced->tau, 1);
  EXPECT_NEAR(*mean.share, *verdict.whole / *verdict.ceiling, 1e-9);
  EXPECT_NEAR(*mean.priced_share, 1 / *verdict.ceiling, 1e-9);
  EXPECT_FALSE(mean_of(those_of_sort(both, "default")).share);
}

TEST(JudgeGraphs, KnowsWhatNoiseLeavesOfAnOrder) {
  const double times[] = {100, 101, 110}, steady[] = {0, 0, 0}, noisy[] = {10, 10, 10};
  EXPECT_EQ(tau_of_replicates(times, steady), 1);
  EXPECT_LT(tau_of_replicates(times, noisy), 0.01);
  const double two[] = {1, std::exp(0.02)}, noise[] = {0.01, 0};
  EXPECT_NEAR(tau_of_replicates(two, noise), std::erf(1), 1e-9);
  const double equal[] = {1, 1};
  EXPECT_EQ(tau_of_replicates(equal, noise), 0);
}

TEST(JudgeGraphs, LeavesGraphsAndConfigurationsOut) {
  HONE_ONE_RUN_OF(5);
  GraphTraining training = small(known()[0]);
  training.epochs = 2;
  const auto two = std::span(known()).first(2);
  const std::vector<GraphVerdict> left = leave_one_out(two, training).value();
  ASSERT_EQ(left.size(), 2U);
  EXPECT_EQ(left[1].program, "p2");
  EXPECT_GE(left[0].random, left[0].top5);
  EXPECT_THAT(leave_one_out(two.first(1), training).error().to_string(), says("learn"));
  EXPECT_EQ(mean_of(those_with_many_runs(left)).graphs, 2U);

  // A third of the different ones, and all that are equal to these.
  ConfiguredGraph doubled = known()[0];
  std::vector<size_t> which;
  for (size_t i = 0; i < 48; ++i) which.push_back(i % 24);
  doubled = with_configs(doubled, which);
  for (size_t i = 0; i < 48; ++i)
    if (i % 24 < 8) doubled.times[i] *= 2;
  const std::vector<GraphVerdict> parts = judged_by_configs(doubled, 1, training).value();
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].runs, 2U * (16 / 3 + 8 / 3));
  EXPECT_TRUE(parts[0].summed.has_value());
  // One that is far slower than all others is not a cluster to divide.
  ConfiguredGraph outlier = known()[0];
  outlier.times[0] *= 100;
  const DividedConfigs divided = divided_configs(outlier, 1).value();
  EXPECT_EQ(divided.unseen.times.size(), outlier.times.size() / 3);
  EXPECT_EQ(divided.known.times.size() + divided.unseen.times.size(), outlier.times.size());
  const std::vector<size_t> pair = {0, 1};
  EXPECT_THAT(divided_configs(with_configs(outlier, pair), 1).error().to_string(),
              says("2 different configurations"));

  ProgramSplit split;
  split.of(Part::train) = {"p1", "p9"};
  EXPECT_THAT(part(two, split, Part::train).error().to_string(), says("program 'p9'"));
}

}  // namespace
}  // namespace hone::HONE_FILE

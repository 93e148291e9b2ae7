#include "compile/kept_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "compile/compilation.h"
#include "ir/text.h"
#include "zoo/inputs.h"
#include "zoo/random/random_graph.h"

namespace hone::HONE_FILE {
namespace {

namespace fs = std::filesystem;
using testing::StartsWith;

constexpr int64_t kMostBytes = int64_t{1} << 30;
constexpr int64_t kMiB = int64_t{1} << 20;

// A layer whose 2 MiB of weights are `scale` times those of another one.
Graph layer(double scale) {
  std::vector<double> weights(512 * 1024);
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i] = scale * static_cast<double>(i % 1013) / 1013;
  WeightTable table;
  table.add("w", Tensor::from_reals(Type::get(DType::f32, {512, 1024}), weights));
  return parse_graph(R"(graph @layer(%x: f32[8, 512]) -> f32[8, 1024] {
    %w = constant @w : f32[512, 1024]
    %d = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
    %y = tanh %d
    return %y
  })",
                     {.weights = &table})
      .value();
}

bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::ranges::equal(a, b, [](const Tensor& x, const Tensor& y) { return x.same_bytes(y); });
}

class KeptImages : public testing::Test {
 protected:
  struct Ran {
    std::vector<Tensor> outputs;
    std::vector<CompileStage> stages;
  };
  Ran run(const Graph& graph, CompileOptions options = {}) const {
    Ran ran;
    options.cache = cache_.get();
    options.observer = [&](CompileStage stage, double) { ran.stages.push_back(stage); };
    Compilation compilation(graph, target_, options);
    ran.outputs = compilation.executable().value()->run(random_inputs(graph, 1).value()).value();
    return ran;
  }
  std::vector<CompileCache::Entry> entries() const {
    std::vector<CompileCache::Entry> found;
    for (const CompileCache::Entry& entry : cache_->list())
      if (entry.title.starts_with("code ")) found.push_back(entry);
    return found;
  }

  const TempDir parent_ = TempDir::create(fs::temp_directory_path()).value();
  const std::unique_ptr<CompileCache> cache_ = CompileCache::open(parent_.path() / "cache").value();
  const Target target_ = host_target().value();
};

constexpr auto kWithoutLowering = {CompileStage::graph, CompileStage::plan, CompileStage::image,
                                   CompileStage::executable};

TEST_F(KeptImages, ASecondStartLowersNothingWhateverTheWeightsSize) {
  const Ran first = run(layer(1));
  EXPECT_THAT(first.stages, testing::Contains(CompileStage::program));
  const Ran second = run(layer(1));
  EXPECT_THAT(second.stages, testing::ElementsAreArray(kWithoutLowering));
  EXPECT_TRUE(same_bits(first.outputs, second.outputs));
  ASSERT_EQ(entries().size(), 1);
  EXPECT_THAT(entries()[0].title, StartsWith("code @layer "));
  EXPECT_LT(entries()[0].bytes, kMiB) << "the weights are in the entry";
}

TEST_F(KeptImages, OtherWeightsAreAnotherGraph) {
  const Ran first = run(layer(1)), second = run(layer(2));
  EXPECT_THAT(second.stages, testing::Contains(CompileStage::program));
  EXPECT_FALSE(same_bits(first.outputs, second.outputs));
  EXPECT_TRUE(same_bits(run(layer(1)).outputs, first.outputs));
  EXPECT_TRUE(same_bits(run(layer(2)).outputs, second.outputs));
}

TEST_F(KeptImages, WhatLayoutsPackIsNamedToo) {
  CompileOptions options;
  options.plan.layout["w"] = parse_plan("plan @layer { layout %w = [1, 0] }").value().layout["w"];
  const Ran first = run(layer(1), options), second = run(layer(1), options);
  EXPECT_THAT(second.stages, testing::ElementsAreArray(kWithoutLowering));
  EXPECT_TRUE(same_bits(first.outputs, second.outputs));
  EXPECT_LT(entries().at(0).bytes, kMiB);
}

TEST_F(KeptImages, RandomGraphsRunAlikeFromIt) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = random_graph({.seed = seed});
    const Ran first = run(graph), second = run(graph);
    EXPECT_THAT(second.stages, testing::Not(testing::Contains(CompileStage::program)));
    EXPECT_TRUE(same_bits(first.outputs, second.outputs));
  }
}

TEST_F(KeptImages, WhoAsksForTheProgramGetsIt) {
  run(layer(1));
  CompileOptions options;
  options.cache = cache_.get();
  Compilation compilation(layer(1), target_, options);
  ASSERT_TRUE(compilation.executable().ok());
  EXPECT_FALSE((*compilation.program())->kernels.empty());
  EXPECT_FALSE(compilation.kernels()->empty());
}

TEST_F(KeptImages, DamagedEntriesAreMadeAnew) {
  const Ran first = run(layer(1));
  for (const fs::directory_entry& entry : fs::directory_iterator(parent_.path() / "cache")) {
    std::string bytes = read_file(entry.path(), kMostBytes).value();
    if (bytes.size() < 200) continue;
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] + 1);
    ASSERT_TRUE(write_file_atomic(entry.path(), bytes).ok());
  }
  const Ran second = run(layer(1));
  EXPECT_THAT(second.stages, testing::Contains(CompileStage::program));
  EXPECT_TRUE(same_bits(first.outputs, second.outputs));
}

// Whoever may write to the folder decides what code runs, but no entry makes hone read past it.
TEST_F(KeptImages, EntriesOfOtherFormsCountAsAbsent) {
  const Graph graph = prepare(layer(1)).value();
  Compilation compilation(layer(1), target_, {});
  const Plan& plan = **compilation.plan();
  const KeptImage kept(graph, plan, target_, false, *cache_);
  EXPECT_FALSE(kept.find());
  kept.put(**compilation.image());
  ASSERT_TRUE(kept.find());
  for (const std::string_view text : {std::string_view(), std::string_view("\1\0\0\0\0\0\0\0", 8),
                                      std::string_view("\0\0\0\0\0\0\0\0nothing", 15),
                                      std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff", 8)}) {
    ASSERT_TRUE(cache_->put(kept.key(), text).ok());
    EXPECT_FALSE(kept.find());
  }
}

TEST_F(KeptImages, DrawnPlansAreNotKept) {
  run(layer(1), {.plan_seed = 1});
  EXPECT_THAT(entries(), testing::IsEmpty());
}

}  // namespace
}  // namespace hone::HONE_FILE

#include "compile/cached_executable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "ir/text.h"
#include "zoo/inputs.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

namespace fs = std::filesystem;
using testing::StartsWith;

constexpr int64_t kMostBytes = int64_t{1} << 30;

bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::ranges::equal(a, b, [](const Tensor& x, const Tensor& y) { return x.same_bytes(y); });
}

class CachedExecutable : public testing::Test {
 protected:
  std::vector<Tensor> run(const Graph& graph, const CompileOptions& options) const {
    const auto executable = cached_executable(graph, target_, options).value();
    return executable->run(random_inputs(graph, 1).value()).value();
  }
  // The keys' first lines.
  std::vector<std::string> images() const {
    std::vector<std::string> titles;
    for (const CompileCache::Entry& entry : cache_->list())
      if (entry.title.starts_with("image ")) titles.push_back(entry.title);
    return titles;
  }

  const TempDir parent_ = TempDir::create(fs::temp_directory_path()).value();
  const std::unique_ptr<CompileCache> cache_ = CompileCache::open(parent_.path() / "cache").value();
  const Target target_ = host_target().value();
  const Graph graph_ = parse_graph(R"(graph @g(%x: f32[8, 16], %w: f32[16, 32]) -> f32[8, 32] {
    %d = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
    %y = exp %d
    return %y
  })")
                           .value();
};

TEST_F(CachedExecutable, IsMadeOnceAndThenLoaded) {
  const std::vector<Tensor> expected = run(graph_, {});
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(same_bits(run(graph_, {.cache = cache_.get()}), expected));
    EXPECT_THAT(images(), testing::ElementsAre(StartsWith("image @g ")));
  }
  // Nothing is done for one that is there.
  std::vector<CompileStage> stages;
  CompileOptions options = {.cache = cache_.get()};
  options.observer = [&](CompileStage stage, double) { stages.push_back(stage); };
  run(graph_, options);
  EXPECT_THAT(stages, testing::IsEmpty());
}

TEST_F(CachedExecutable, DependsOnAllThatDecides) {
  CompileOptions options = {.cache = cache_.get()};
  run(graph_, options);
  options.prepare.without = {"cse"};
  run(graph_, options);
  options.heuristics.unroll = false;
  run(graph_, options);
  options.plan.threads = 1;
  run(graph_, options);
  EXPECT_EQ(images().size(), 4);
}

TEST_F(CachedExecutable, KeepsWhetherDenormalsAreZero) {
  const Graph graph = parse_graph(R"(graph @small(%x: f32[4]) -> f32[4] {
    %y = mul %x, 1e-40
    return %y
  })")
                          .value();
  const std::vector<Tensor> ones = {
      Tensor::from_reals(Type::get(DType::f32, {4}), std::vector<double>(4, 1))};
  for (int i = 0; i < 2; ++i)  // made, then loaded
    for (bool flushes : {true, false}) {
      CompileOptions options = {.cache = cache_.get()};
      options.prepare.flushes_denormals = flushes;
      const auto executable = cached_executable(graph, target_, options).value();
      EXPECT_EQ(executable->run(ones).value()[0].real_at(0) == 0, flushes);
    }
}

TEST_F(CachedExecutable, IsMadeAnewWhereTheEntryIsDamaged) {
  const std::vector<Tensor> expected = run(graph_, {.cache = cache_.get()});
  for (const fs::directory_entry& entry : fs::directory_iterator(parent_.path() / "cache")) {
    std::string bytes = read_file(entry.path(), kMostBytes).value();
    if (bytes.size() < 200) continue;
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] + 1);
    ASSERT_TRUE(write_file_atomic(entry.path(), bytes).ok());
  }
  EXPECT_TRUE(same_bits(run(graph_, {.cache = cache_.get()}), expected));
}

// Large weights stay where they are; somebody may know a better plan; drawn plans are for tests.
TEST_F(CachedExecutable, IsNotKeptWhereThatDoesNotPay) {
  CompileOptions drawn = {.plan_seed = 1};
  drawn.cache = cache_.get();
  run(graph_, drawn);
  CompileOptions known = {.cache = cache_.get()};
  known.best_plan = [](const Graph&, const Target&, int64_t) { return std::optional<Plan>(); };
  run(graph_, known);
  WeightTable weights;
  weights.add("w", Tensor::zeros(Type::get(DType::f32, {512, 1024})));
  run(parse_graph("graph @g(%x: f32[1024]) -> f32[512, 1024] { %w = constant @w : f32[512, 1024] "
                  "%b = broadcast %x {dims = [512, 1024], map = [1]} %y = add %b, %w return %y }",
                  {.weights = &weights})
          .value(),
      {.cache = cache_.get()});
  EXPECT_THAT(images(), testing::IsEmpty());
}

}  // namespace
}  // namespace hone::HONE_FILE

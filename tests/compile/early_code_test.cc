#include "compile/early_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "base/file.h"
#include "compile/compilation.h"
#include "compile/native_model.h"
#include "ir/model_text.h"
#include "ir/text.h"
#include "tests/base/share_testing.h"
#include "zoo/inputs.h"
#include "zoo/random/random_graph.h"

// A graph that begins on quick code, and whose real code is made beside its runs.

namespace hone::HONE_FILE {
namespace {

namespace fs = std::filesystem;
using testing::Each;
using testing::Pair;

Graph some_layers() {
  return parse_graph(R"(graph @layers(%x: f32[24, 40], %w: f32[40, 40]) {
    %a = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
    %b = tanh %a
    %c = sort %b {axis = 1}
    %d = dot %c, %w {lhs_contract = [1], rhs_contract = [0]}
    %e = reduce %d {kind = sum, axes = [0]}
    return %d, %e
  })")
      .value();
}

bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::ranges::equal(a, b, [](const Tensor& x, const Tensor& y) { return x.same_bytes(y); });
}

class EarlyCodes : public testing::Test {
 protected:
  // Counts how often each kernel is compiled or found.
  CompileOptions options(QuickStart when, bool is_kept = false) {
    CompileOptions options = {.cache = is_kept ? cache_.get() : nullptr, .quick_start = when};
    options.kernel_observer = [this](const std::string& kernel, const Span&) {
      const std::scoped_lock lock(mutex_);
      ++compiled_[kernel];
    };
    return options;
  }
  std::shared_ptr<const EarlyCode> early(bool is_kept = false) {
    Compilation compilation(some_layers(), target_, options(QuickStart::always, is_kept));
    auto code = std::dynamic_pointer_cast<const EarlyCode>(compilation.runnable().value());
    EXPECT_NE(code, nullptr);
    return code;
  }
  std::vector<Tensor> expected() {
    return Compilation(some_layers(), target_).executable().value()->run(inputs_).value();
  }
  size_t entries(std::string_view kind) const {
    return static_cast<size_t>(std::ranges::count_if(
        cache_->list(), [&](const auto& entry) { return entry.title.starts_with(kind); }));
  }

  const TempDir parent_ = TempDir::create(fs::temp_directory_path()).value();
  const std::unique_ptr<CompileCache> cache_ = CompileCache::open(parent_.path() / "cache").value();
  const Target target_ = host_target().value();
  const std::vector<Tensor> inputs_ = random_inputs(some_layers(), 1).value();
  std::mutex mutex_;
  std::map<std::string, int> compiled_;
};

TEST_F(EarlyCodes, RunsGoOverToTheRealCodeAndKeepTheirBits) {
  const auto code = early();
  EXPECT_FALSE(code->is_real());
  const Executable* const quick = code->single();
  EXPECT_TRUE(same_bits(code->run(inputs_).value(), expected()));
  EXPECT_EQ(code->single(), quick) << "nobody has asked for the real code";
  ASSERT_TRUE(code->finish().ok());
  EXPECT_TRUE(code->is_real());
  EXPECT_NE(code->single(), quick);
  EXPECT_TRUE(same_bits(code->run(inputs_).value(), expected()));
  EXPECT_TRUE(same_bits(quick->run(inputs_).value(), expected())) << "for a run that had begun";
  EXPECT_THAT(compiled_, Each(Pair(testing::_, 2))) << "once quickly, and once as it should be";
}

TEST_F(EarlyCodes, AThreadMakesTheRealCodeBesideRuns) {
  const std::vector<Tensor> wanted = expected();
  const auto code = early();
  code->begin();
  code->begin();
  while (!code->is_real()) ASSERT_TRUE(same_bits(code->run(inputs_).value(), wanted));
  EXPECT_TRUE(same_bits(code->run(inputs_).value(), wanted));
  ASSERT_TRUE(code->finish().ok());
  EXPECT_THAT(compiled_, Each(Pair(testing::_, 2)));
}

TEST_F(EarlyCodes, NoThreadOutlivesIt) {
  for (int i = 0; i < 3; ++i) {
    const auto code = early();
    code->begin();
    if (i == 1) code->stop();
    EXPECT_TRUE(code->run(inputs_).ok());
  }
  const std::map<std::string, int> at_the_end = compiled_;
  const auto code = early();
  code->stop();
  code->begin();
  EXPECT_EQ(code->finish().error().code(), ErrorCode::interrupted);
  EXPECT_FALSE(code->is_real());
  for (const auto& [kernel, times] : compiled_) EXPECT_EQ(times, at_the_end.at(kernel) + 1);
}

TEST_F(EarlyCodes, WhoeverGivesUpMayComeBack) {
  const auto code = early();
  CancelToken token;
  token.cancel();
  EXPECT_EQ(code->finish(nullptr, &token).error().code(), ErrorCode::interrupted);
  EXPECT_FALSE(code->is_real());
  EXPECT_TRUE(code->finish().ok());
  EXPECT_TRUE(code->is_real());
}

TEST_F(EarlyCodes, TheCacheGetsTheRealCodeOnly) {
  const auto code = early(true);
  EXPECT_TRUE(code->run(inputs_).ok());
  EXPECT_EQ(entries("kernel "), 0);
  EXPECT_EQ(entries("code "), 0);
  ASSERT_TRUE(code->finish().ok());
  EXPECT_GT(entries("kernel "), 0);
  EXPECT_EQ(entries("code "), 1);
  // A second start has nothing to be quick about.
  compiled_.clear();
  Compilation again(some_layers(), target_, options(QuickStart::always, true));
  const std::shared_ptr<const Runnable> found = again.runnable().value();
  EXPECT_EQ(dynamic_cast<const EarlyCode*>(found.get()), nullptr);
  EXPECT_TRUE(same_bits(found->run(inputs_).value(), expected()));
  EXPECT_TRUE(compiled_.empty());
}

TEST_F(EarlyCodes, KernelsOfTheCacheAreUsedAtOnce) {
  ASSERT_TRUE(early(true)->finish().ok());
  for (const auto& entry : fs::directory_iterator(cache_->folder()))
    if (read_file(entry.path(), 1 << 26).value().find("code @layers") != std::string::npos)
      fs::remove(entry.path());
  Compilation again(some_layers(), target_, options(QuickStart::where_sooner, true));
  EXPECT_EQ(compile_time((*again.program())->kernels, target_, cache_.get()).kernels, 0);
  EXPECT_GT(compile_time((*again.program())->kernels, target_, nullptr).kernels, 0);
  EXPECT_EQ(dynamic_cast<const EarlyCode*>(again.runnable().value().get()), nullptr);
}

TEST_F(EarlyCodes, WhoAsksForKernelsGetsTheRealOnesAndNothingIsMadeTwice) {
  Compilation compilation(some_layers(), target_, options(QuickStart::always));
  const auto code = std::dynamic_pointer_cast<const EarlyCode>(compilation.runnable().value());
  Compilation plain(some_layers(), target_);
  const std::span<const KernelCode> wanted = plain.kernels().value();
  const std::span<const KernelCode> kernels = compilation.kernels().value();
  ASSERT_EQ(kernels.size(), wanted.size());
  for (size_t k = 0; k < kernels.size(); ++k) EXPECT_EQ(*kernels[k].object, *wanted[k].object);
  EXPECT_TRUE(code->is_real());
  EXPECT_EQ(compilation.runnable().value(), code);
  EXPECT_TRUE(compilation.executable().ok());
  EXPECT_EQ(code->image().value().kernels.size(), kernels.size());
  EXPECT_THAT(compiled_, Each(Pair(testing::_, 2)));
}

TEST_F(EarlyCodes, RandomGraphsHaveTheSameBitsAtEachLevel) {
  for (uint64_t seed = 0; seed < tested::share_of(16, 4); ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = random_graph({.seed = seed});
    const std::vector<Tensor> inputs = random_inputs(graph, seed).value();
    const Isa level = std::min(target_.isa, seed % 2 == 0 ? Isa::v2 : target_.isa);
    const Target target = restricted(target_, level);
    const CompileOptions drawn = {.plan_seed = seed, .quick_start = QuickStart::always};
    Compilation quick(graph, target, drawn), real(graph, target, {.plan_seed = seed});
    const std::shared_ptr<const Runnable> code = quick.runnable().value();
    ASSERT_NE(dynamic_cast<const EarlyCode*>(code.get()), nullptr);
    EXPECT_TRUE(
        same_bits(code->run(inputs).value(), real.executable().value()->run(inputs).value()));
  }
}

TEST_F(EarlyCodes, AreForModelsOfOneGraph) {
  const Model two = parse_model(R"(
model @two(%x: f32[3, 2]) -> (%z: f32[3, 2]) {
  %y = run %x graph @first(%a: f32[3, 2]) { %b = tanh %a return %b }
  %z = run %y graph @second(%a: f32[3, 2]) { %b = neg %a return %b }
})")
                        .value();
  const auto several = NativeModel::make(two, target_, options(QuickStart::always)).value();
  ASSERT_TRUE(several->run({{Tensor::zeros(Type::get(DType::f32, {3, 2}))}}).ok());
  EXPECT_EQ(several->code().early_kernels(), 0);
  const Model one = model_of(some_layers());
  const auto single = NativeModel::make(one, target_, options(QuickStart::always)).value();
  ASSERT_TRUE(single->run(inputs_).ok());
  EXPECT_GT(single->code().early_kernels(), 0);
  EXPECT_TRUE(single->code().finish().ok());
  EXPECT_TRUE(same_bits(single->run(inputs_).value(), expected()));
}

TEST_F(EarlyCodes, PartsThatDoNotBelongTogetherAreRefused) {
  Compilation compilation(some_layers(), target_);
  EarlyParts parts = {.image = **compilation.image(), .kernels = {}, .target = target_, .load = {}};
  EXPECT_EQ(EarlyCode::load(std::move(parts)).error().code(), ErrorCode::internal);
}

// ---- Where it ends sooner -----------------------------------------------------------------------

TEST(QuickStarts, AreForMuchCodeThatRunsForAShortTime) {
  const CompileTime much = {.real = 6, .quick = 3, .kernels = 100};
  EXPECT_TRUE(ends_sooner(much, 2, 0.05));
  EXPECT_FALSE(ends_sooner(much, 2, 2)) << "a run that takes several times as long";
  EXPECT_FALSE(ends_sooner({.real = 0.2, .quick = 0.1, .kernels = 10}, 2, 0)) << "nobody notices";
  EXPECT_FALSE(ends_sooner(much, 64, 0.01)) << "each of many threads has little to compile";
  EXPECT_TRUE(ends_sooner({.real = 6, .quick = 3, .kernels = 1}, 64, 0.05))
      << "one kernel is compiled by one thread";
  EXPECT_FALSE(ends_sooner({}, 2, 0));
}

}  // namespace
}  // namespace hone::HONE_FILE

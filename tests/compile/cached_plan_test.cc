#include "compile/cached_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <numeric>

#include "base/file.h"
#include "compile/compilation.h"
#include "cost/analytic.h"
#include "cost/table_cost.h"
#include "ir/text.h"
#include "plan/random_plan.h"
#include "planner/planner.h"
#include "rewrite/prepare.h"
#include "tests/target/target_testing.h"

namespace hone::HONE_FILE {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr std::string_view kText =
    "graph @g(%x: f32[8, 16]) -> f32[8, 32] { %w = constant @w : f32[16, 32] "
    "%d = dot %x, %w {lhs_contract = [1], rhs_contract = [0]} %y = exp %d return %y }";

// With weights that count from a number.
Graph graph_of(std::string_view text, double first = 0) {
  std::vector<double> numbers(16 * 32);
  std::iota(numbers.begin(), numbers.end(), first);
  WeightTable weights;
  weights.add("w", Tensor::from_reals(Type::get(DType::f32, {16, 32}), numbers));
  return prepare(parse_graph(text, {.weights = &weights}).value()).value();
}

class CachedPlan : public ::testing::Test {
 protected:
  Plan planned() const { return complete(graph_, {}, target_).value(); }
  // A plan that complete() would not make.
  Plan another() const {
    for (uint64_t seed = 0;; ++seed)
      if (Plan plan = random_plan(graph_, target_, seed); plan != planned()) return plan;
  }
  Plan taken() const { return cached_plan(graph_, {}, target_, cost_, cache_.get()).value(); }
  std::string key() const { return plan_key(graph_, {}, target_, cost_); }

  const TempDir parent_ = TempDir::create(fs::temp_directory_path()).value();
  const fs::path folder_ = parent_.path() / "cache";
  const std::unique_ptr<CompileCache> cache_ = CompileCache::open(folder_).value();
  const Graph graph_ = graph_of(kText);
  const Target target_ = parse_target(kSampleTarget, "t").value();
  const AnalyticCost cost_{target_};
};

TEST_F(CachedPlan, IsMadeOnceAndThenTaken) {
  EXPECT_EQ(taken(), planned());
  ASSERT_THAT(cache_->list(), SizeIs(1));
  EXPECT_THAT(cache_->list()[0].title, StartsWith("plan @g "));
  EXPECT_EQ(cache_->find(key()), print(planned()));
  EXPECT_EQ(taken(), planned());
  // The cached plan is taken, so the planner is not asked.
  ASSERT_TRUE(cache_->put(key(), print(another())).ok());
  EXPECT_EQ(taken(), another());
  EXPECT_THAT(cache_->list(), SizeIs(1));
}

TEST_F(CachedPlan, IsPlannedAnewWhereTheEntryDoesNotFit) {
  Plan open = planned(), illegal = planned(), foreign = planned();
  open.order.clear();
  illegal.schedule.begin()->second.order.push_back(7);
  foreign.graph_hash += 1;
  for (const std::string& text : {std::string(), std::string("no plan"), print(open),
                                  print(illegal), print(foreign), print(planned()) + "}"}) {
    ASSERT_TRUE(cache_->put(key(), text).ok());
    EXPECT_EQ(taken(), planned()) << text;
    EXPECT_EQ(cache_->find(key()), print(planned())) << text;
  }
}

TEST_F(CachedPlan, IsPlannedAnewWhereTheFileIsDamaged) {
  ASSERT_TRUE(cache_->put(key(), print(another())).ok());
  const fs::path file = fs::directory_iterator(folder_)->path();
  const std::string text = read_file(file, 1 << 20).value();
  for (size_t i = 0; i < text.size(); i += 37) {
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    std::ofstream(file, std::ios::binary | std::ios::trunc) << damaged;
    EXPECT_EQ(taken(), planned()) << "byte " << i;
  }
}

TEST_F(CachedPlan, IsForOneGraphPartialPlanAndTarget) {
  std::vector<std::string> keys = {key()};
  const auto with = [&](std::string_view word, std::string_view other) {
    std::string text(kText);
    text.replace(text.find(word), word.size(), other);
    return plan_key(graph_of(text), {}, target_, cost_);
  };
  keys.push_back(with("%y = exp", "%y = tanh"));
  keys.push_back(with("@g", "@h"));
  keys.push_back(with("%y = exp %d return %y", "%z = exp %d return %z"));
  keys.push_back(with("f32[8, 16]) -> f32[8, 32]", "f32[9, 16]) -> f32[9, 32]"));
  keys.push_back(plan_key(graph_of(kText, 1), {}, target_, cost_));
  keys.push_back(plan_key(graph_, parse_plan("plan @g { threads = 1 }").value(), target_, cost_));
  keys.push_back(plan_key(graph_, {}, restricted(target_, Isa::v2), cost_));
  keys.push_back(plan_key(graph_, {}, target_, cost_, heuristics_without("chains").value()));
  Target faster = target_;
  faster.memory_one_core *= 2;
  keys.push_back(plan_key(graph_, {}, faster, cost_));
  keys.push_back(plan_key(graph_, {}, target_, AnalyticCost(target_, {.trip = 3})));
  std::ranges::sort(keys);
  EXPECT_TRUE(std::ranges::adjacent_find(keys) == keys.end());
}

TEST_F(CachedPlan, IsNotKeptWhereTheCostHasNoVersion) {
  const TableCost table(std::make_shared<AnalyticCost>(target_));
  EXPECT_EQ(cached_plan(graph_, {}, target_, table, cache_.get()).value(), planned());
  EXPECT_THAT(cache_->list(), IsEmpty());
}

TEST_F(CachedPlan, IsNotKeptAfterAnError) {
  const Plan bad = parse_plan("plan @g { layout %nothing = [0] }").value();
  EXPECT_FALSE(cached_plan(graph_, bad, target_, cost_, cache_.get()).ok());
  EXPECT_THAT(cache_->list(), IsEmpty());
}

TEST_F(CachedPlan, IsNotKeptIfItWasCancelled) {
  CancelToken cancel;
  cancel.cancel();
  const Result<Plan> plan =
      cached_plan(graph_, {}, target_, cost_, cache_.get(), {.cancel = &cancel});
  EXPECT_EQ(plan.error().code(), ErrorCode::interrupted);
  EXPECT_THAT(cache_->list(), IsEmpty());
  EXPECT_EQ(taken(), planned());
}

TEST_F(CachedPlan, CompilationsKeepPlansThatAreNotDrawn) {
  EXPECT_TRUE(Compilation(graph_, target_, {.plan_seed = 1, .cache = cache_.get()}).plan().ok());
  EXPECT_THAT(cache_->list(), IsEmpty());
  for (int run = 0; run < 2; ++run) {
    Compilation compilation(graph_, target_, {.cache = cache_.get()});
    EXPECT_EQ(*compilation.plan().value(), planned());
    EXPECT_THAT(cache_->list(), SizeIs(1));
  }
}

TEST_F(CachedPlan, ProcessesShareIt) {
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(::fork());
    ASSERT_GE(children.back(), 0);
    if (children.back() != 0) continue;
    bool good = true;
    for (int64_t threads = 1; threads <= target_.cores; ++threads) {
      Plan partial;
      partial.threads = threads;
      const auto cache = CompileCache::open(folder_).value();
      const Result<Plan> plan = cached_plan(graph_, partial, target_, cost_, cache.get());
      good = good && plan.ok() && *plan == complete(graph_, partial, target_).value();
    }
    ::_exit(good ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = 1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_THAT(cache_->list(), SizeIs(static_cast<size_t>(target_.cores)));
  EXPECT_THAT(cache_->verify().removed, IsEmpty());
}

}  // namespace
}  // namespace hone::HONE_FILE

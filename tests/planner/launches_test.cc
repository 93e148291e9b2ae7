// Choices between ways to plan a part of a program.

#include "planner/launches.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hone::HONE_FILE {
namespace {

// Two voices about each kernel; a schedule tells by its `threads` which one it is.
class Voices : public Cost {
 public:
  explicit Voices(std::vector<Votes> votes, std::optional<double> sureness = kUsualSureness)
      : votes_(std::move(votes)), sureness_(sureness) {}

  std::string version() const override { return "voices"; }
  std::unique_ptr<PricedKernel> kernel(std::shared_ptr<const KernelFacts> /*facts*/,
                                       int64_t /*threads*/) const override {
    return std::make_unique<Kernel>(*this);
  }
  double copy(double /*bytes*/) const override { return 0; }
  double command() const override { return 0; }
  std::optional<double> sureness() const override { return sureness_; }
  mutable int asked = 0;

 private:
  class Kernel : public PricedKernel {
   public:
    explicit Kernel(const Voices& cost) : cost_(cost) {}
    void price(std::span<const Schedule> /*schedules*/, double,
               std::span<double> /*seconds*/) override {}
    Votes votes(const Schedule& schedule) override {
      ++cost_.asked;
      return cost_.votes_.at(static_cast<size_t>(schedule.threads));
    }

   private:
    const Voices& cost_;
  };

  const std::vector<Votes> votes_;
  const std::optional<double> sureness_;
};

// One launch of each kernel. Kernels of one number are the same.
Launches launches(std::initializer_list<int> kernels) {
  Launches all;
  for (const int kernel : kernels)
    all.add(static_cast<uint64_t>(kernel), nullptr, {.threads = kernel});
  return all;
}

// The usual way is the first one.
size_t best_of(const Cost& cost, const std::vector<Launches>& ways, double lead = 0) {
  SureChoice choice;
  for (size_t way = 0; way < ways.size(); ++way)
    choice.add(1 + static_cast<double>(way), ways[way], way > 0 ? lead : 0);
  AskedCost asked(cost, 1);
  return choice.best(&asked);
}

TEST(SureChoice, TakesTheLargestGain) {
  const Voices cost({{{1, 1}}, {{0.8, 0.8}}, {{0.5, 0.5}}, {{0.7, 0.7}}, {{2, 2}}});
  EXPECT_EQ(best_of(cost, {launches({0}), launches({1}), launches({2}), launches({3})}), 2U);
  EXPECT_EQ(best_of(cost, {launches({0}), launches({4})}), 0U);
}

TEST(SureChoice, StaysWhereVoicesDisagree) {
  const Voices cost({{{1, 1}}, {{0.1, 1.5}}, {{0.8, 0.8}, 0.25}});
  EXPECT_EQ(best_of(cost, {launches({0}), launches({1})}), 0U);
  EXPECT_EQ(best_of(cost, {launches({0}), launches({2})}), 0U);
  EXPECT_EQ(best_of(Voices({{{1, 1}}, {{0.5, 0.5}}}, std::nullopt), {launches({0}), launches({1})}),
            0U);
}

// A kernel that is left out takes no time, so that no sum is unsure.
TEST(SureChoice, GainsSurelyByFewerKernels) {
  const Voices cost({{{1, 1}}, {{0.1, 4}}});
  EXPECT_EQ(best_of(cost, {launches({0, 1}), launches({0})}), 1U);
  EXPECT_EQ(best_of(cost, {launches({0}), launches({0, 1})}), 0U);
}

// As a second copy of weights that hardly makes its reader faster.
TEST(SureChoice, AsksForTheLead) {
  const Voices cost({{{1, 1}}, {{0.97, 0.97}}, {{0.9, 0.9}}});
  EXPECT_EQ(best_of(cost, {launches({0}), launches({1})}), 1U);
  EXPECT_EQ(best_of(cost, {launches({0}), launches({1})}, 0.05), 0U);
  EXPECT_EQ(best_of(cost, {launches({0}), launches({2})}, 0.05), 1U);
  SureChoice usual;
  usual.add(1, launches({0}));
  usual.add(0.97, launches({1}), 0.05);
  EXPECT_EQ(usual.best(nullptr), 0U);
  usual.add(0.9, launches({2}), 0.05);
  EXPECT_EQ(usual.best(nullptr), 2U);
}

TEST(AskedCost, AsksAboutAKernelWithAScheduleOnce) {
  const Voices cost({{{1, 1}}, {{0.5, 0.5}}});
  AskedCost asked(cost, 1);
  const Votes& first = asked.votes(7, nullptr, {.threads = 0});
  EXPECT_EQ(asked.votes(7, nullptr, {.threads = 1}).seconds[0], 0.5);
  EXPECT_EQ(&asked.votes(7, nullptr, {.threads = 0}), &first);
  EXPECT_EQ(cost.asked, 2);
}

}  // namespace
}  // namespace hone::HONE_FILE

#include "learn/models/adapt_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cost/analytic.h"
#include "cost/analytic_kernel.h"
#include "cost/fast_model.h"
#include "kernel/kernel_kind.h"
#include "kernel/schedule_space.h"
#include "learn/ranking.h"
#include "tests/cost/kernel_model_testing.h"
#include "tune/calibration_set.h"

namespace hone::HONE_FILE {
namespace {

const Target& target() {
  static const Target target = host_target().value();
  return target;
}

// Networks that say something of the schedules of the calibration's kernels.
KernelModel model() {
  KernelModel model = random_model(target(), 3);
  model.prices = {};
  model.levels.clear();
  model.low.fill(-100);
  model.high.fill(100);
  for (ModelMember& member : model.members)
    for (float& each : member.input) each *= 0.1F;
  return model;
}

double log_price(const KernelModel& model, const TimedKernel& kernel, size_t i) {
  AnalyticKernel analytic(kernel.facts, target(), model.prices, model.threads);
  std::vector<Features> features(1);
  const double price = analytic.describe(kernel.schedules[i], features[0]);
  std::vector<FastModel::Said> said(1);
  FastModel(model).run(features, said);
  return std::log(price) + static_cast<double>(said[0].mean) +
         model.level(kernel_kind(*kernel.facts, Algorithm::generic));
}

// Some kernels on a machine whose times are those of this model.
std::vector<TimedKernel> timed_by(const KernelModel& truth) {
  std::vector<TimedKernel> kernels;
  Rng rng(5);
  const AnalyticCost cost(target());
  const auto calibration = calibration_kernels(target(), cost, 1).value();
  for (size_t k = 0; k < calibration.size(); k += 2) {
    TimedKernel timed{
        .facts = calibration[k].facts, .schedules = {calibration[k].planned}, .seconds = {}};
    const ScheduleSpace space(timed.facts->body, *timed.facts, target());
    for (int i = 0; i < 7; ++i) timed.schedules.push_back(space.sample(rng));
    for (size_t i = 0; i < timed.schedules.size(); ++i)
      timed.seconds.push_back(std::exp(log_price(truth, timed, i)));
    kernels.push_back(std::move(timed));
  }
  return kernels;
}

double error_of(const KernelModel& model, std::span<const TimedKernel> kernels) {
  double sum = 0, count = 0;
  for (const TimedKernel& kernel : kernels)
    for (size_t i = 0; i < kernel.seconds.size(); ++i, ++count)
      sum += std::abs(log_price(model, kernel, i) - std::log(kernel.seconds[i]));
  return sum / count;
}

TEST(AdaptModel, MovesLastLayersToWhatWasMeasured) {
  const KernelModel known = model();
  KernelModel truth = known;  // another machine: the same hidden numbers, other last layers
  Rng rng(7);
  for (ModelMember& member : truth.members) {
    for (float& each : member.output) each += static_cast<float>(0.5 * rng.normal());
    member.bias3 += 0.4F;
  }
  const std::vector<TimedKernel> all = timed_by(truth);
  ASSERT_GE(all.size(), 2 * kLeastToAdapt);
  std::vector<TimedKernel> seen, unseen;
  for (size_t k = 0; k < all.size(); ++k) (k % 3 == 2 ? unseen : seen).push_back(all[k]);
  const AdaptedModel adapted = adapt_model(known, seen, target());
  EXPECT_TRUE(adapted.is_changed);
  EXPECT_LT(adapted.loss_after, 0.5 * adapted.loss_before);
  EXPECT_LT(error_of(adapted.model, unseen), 0.5 * error_of(known, unseen));
  EXPECT_EQ(adapted.model.members[0].input, known.members[0].input);
  EXPECT_EQ(adapted.model.members[0].middle, known.members[0].middle);
  EXPECT_TRUE(adapt_model(known, seen, target()).model == adapted.model);
}

TEST(AdaptModel, LeavesAModelAloneThatIsRight) {
  const KernelModel known = model();
  const AdaptedModel adapted = adapt_model(known, timed_by(known), target());
  EXPECT_FALSE(adapted.is_changed);
  EXPECT_TRUE(adapted.model == known);
}

// Errors without a pattern teach nothing, and a few kernels do not, either.
TEST(AdaptModel, LearnsNothingFromNoiseOrFewKernels) {
  const KernelModel known = model();
  std::vector<TimedKernel> kernels = timed_by(known);
  Rng rng(9);
  for (TimedKernel& kernel : kernels)
    for (double& seconds : kernel.seconds) seconds *= std::exp(0.3 * rng.normal());
  EXPECT_FALSE(adapt_model(known, kernels, target()).is_changed);
  KernelModel truth = known;
  for (ModelMember& member : truth.members) member.bias3 += 2;
  kernels = timed_by(truth);
  kernels.resize(kLeastToAdapt - 1);
  EXPECT_FALSE(adapt_model(known, kernels, target()).is_changed);
}

}  // namespace
}  // namespace hone::HONE_FILE

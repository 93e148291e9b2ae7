#pragma once

#include <optional>

#include "base/rng.h"
#include "cost/kernel_model.h"
#include "learn/data.h"
#include "learn/kernel_data.h"

// The network of the kernel model, and what it learns from.

namespace hone {

// A kernel's schedules as the model sees them.
struct DescribedKernel {
  std::vector<Features> features;  // by schedule
  std::vector<float> analytic;     // log seconds, by schedule: the price that is corrected
  std::vector<float> times;        // log seconds
  std::vector<float> noise;        // of these, a deviation
  // If networks are to know several processors: the one that it was measured on, all numbers, and
  // the same schedules by the default coefficients.
  std::optional<TargetFeatures> target = {};
  std::vector<Features> plain_features = {};
  std::vector<float> plain_analytic = {};
};
DescribedKernel describe(const KernelSample& kernel, const Target& target, int64_t threads,
                         const Prices& prices);

// Features less their mean, for one of their deviation; 0: it is always the same, or one of the
// kernel that networks do not see.
struct FeatureScale {
  std::array<float, kFeatures> mean = {}, factor = {};
  std::array<float, kTargetFeatures> target_mean = {}, target_factor = {};
};
FeatureScale scale_of(std::span<const DescribedKernel> kernels);
// The same for features of targets, each of which counts once.
void scale_targets(std::span<const TargetFeatures> targets, FeatureScale& scale);

// Samples are slates: some schedules of a kernel. A kernel has eight times as many slates as its
// schedules fill, each drawn anew with every third place for one of its fastest quarter. The same
// seed gives the same slates. Each scaled feature of a schedule is off by some of `jitter`
// deviations, so that no network goes by its last digits. Tensors: "features" [samples, slate,
// kFeatures], "analytic", "times", "noise" [samples, slate], and of several processors "target"
// [samples, kTargetFeatures]. In half of these slates the rates of the target are unknown, which is
// 0, and in half of them the price has the default coefficients.
class KernelSlates : public Dataset {
 public:
  // All of it outlives the data set. A kernel fills `most` times eight slates at most.
  KernelSlates(std::span<const DescribedKernel> kernels, const FeatureScale& scale, int64_t slate,
               uint64_t seed, double jitter = 0, int64_t most = INT64_MAX);

  int64_t size() const override { return static_cast<int64_t>(kernel_of_.size()); }
  Result<Batch> batch(std::span<const int64_t> samples, int64_t bucket) const override;

 private:
  std::vector<size_t> drawn(int64_t sample) const;
  void add_target(const TargetFeatures& target, Rng& rng, std::vector<float>& to) const;

  const std::span<const DescribedKernel> kernels_;
  const FeatureScale& scale_;
  const int64_t slate_;
  const uint64_t seed_;
  const double jitter_;
  std::vector<size_t> kernel_of_;  // by sample
};

enum class ModelLoss : uint8_t { rank, log_squared, mixed };

struct NetworkOptions {
  int64_t width1 = 32, width2 = 16;
  ModelLoss loss = ModelLoss::mixed;
  // Ranks: two times whose logarithms differ by this are one unit of the logistic apart.
  double unit = 0.1;
  double squared_weight = 1;  // of the squared error in the mixed loss
  double absolute = 1;        // what errors that a kernel's schedules share count in it
  double dropout = 0.15;
  bool knows_targets = false;  // it reads "target"
};
// The objective that training minimizes.
Objective kernel_objective(Network& net, const NetworkOptions& options);
// log(time / analytic price) of "features" [samples, slate, kFeatures], and of "target" [samples,
// kTargetFeatures] if there is one.
Value kernel_residual(Network& net, Value features, const NetworkOptions& options,
                      Value target = {});
// The weights of a trained network, for features as they are.
ModelMember member_of(std::span<const NamedTensor> weights, const FeatureScale& scale);
// The reverse: a network that says the same of features in this scale, to go on training. Features
// that the scale leaves out count as their means.
std::vector<NamedTensor> weights_of(const ModelMember& member, const FeatureScale& scale);

}  // namespace hone

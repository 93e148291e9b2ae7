#include "learn/models/kernel_network.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/hash.h"
#include "base/rng.h"
#include "cost/analytic_kernel.h"
#include "learn/layers.h"
#include "learn/losses.h"

namespace hone {
namespace {

constexpr double kLeastNoise = 0.003;  // of a time: what no protocol tells apart
constexpr int64_t kDraws = 8;          // of a schedule, on average, in an epoch

Type numbers(std::initializer_list<Dim> dims) { return Type::get(DType::f32, dims); }

Dim dim(size_t n) { return static_cast<int64_t>(n); }

}  // namespace

DescribedKernel describe(const KernelSample& kernel, const Target& target, int64_t threads,
                         const Prices& prices) {
  AnalyticKernel analytic(kernel.timed.facts, target, prices, threads);
  DescribedKernel described;
  const size_t count = kernel.timed.schedules.size();
  described.features.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const double price = analytic.describe(kernel.timed.schedules[i], described.features[i]);
    described.analytic.push_back(static_cast<float>(std::log(price)));
    described.times.push_back(static_cast<float>(std::log(kernel.timed.seconds[i])));
    described.noise.push_back(static_cast<float>(std::max(kernel.noise[i], kLeastNoise)));
  }
  return described;
}

FeatureScale scale_of(std::span<const DescribedKernel> kernels) {
  std::array<double, kFeatures> sum = {}, squares = {};
  double count = 0;
  for (const DescribedKernel& kernel : kernels)
    for (const Features& each : kernel.features) {
      ++count;
      for (size_t f = 0; f < kFeatures; ++f) {
        const auto x = static_cast<double>(each.all()[f]);
        sum[f] += x;
        squares[f] += x * x;
      }
    }
  FeatureScale scale;
  for (size_t f = 0; f < kFeatures && count > 0; ++f) {
    const double mean = sum[f] / count;
    const double deviation = std::sqrt(std::max(squares[f] / count - mean * mean, 0.0));
    scale.mean[f] = static_cast<float>(mean);
    const bool is_seen = f < kSortFeatures || f >= kKernelFeatures;
    scale.factor[f] = !is_seen || deviation < 1e-4 ? 0.0F : static_cast<float>(1 / deviation);
  }
  return scale;
}

void scale_targets(std::span<const TargetFeatures> targets, FeatureScale& scale) {
  const auto count = static_cast<double>(targets.size());
  for (size_t f = 0; f < kTargetFeatures && !targets.empty(); ++f) {
    double sum = 0, squares = 0;
    for (const TargetFeatures& each : targets) sum += static_cast<double>(each.all()[f]) / count;
    for (const TargetFeatures& each : targets) {
      const double off = static_cast<double>(each.all()[f]) - sum;
      squares += off * off / count;
    }
    scale.target_mean[f] = static_cast<float>(sum);
    scale.target_factor[f] = squares < 1e-6 ? 0.0F : static_cast<float>(1 / std::sqrt(squares));
  }
}

// ---- Slates -------------------------------------------------------------------------------------

KernelSlates::KernelSlates(std::span<const DescribedKernel> kernels, const FeatureScale& scale,
                           int64_t slate, uint64_t seed, double jitter, int64_t most)
    : kernels_(kernels), scale_(scale), slate_(slate), seed_(seed), jitter_(jitter) {
  for (size_t k = 0; k < kernels.size(); ++k) {
    const auto count = static_cast<int64_t>(kernels[k].times.size());
    const int64_t slates = kDraws * std::min((count + slate - 1) / slate, most);
    for (int64_t s = 0; s < slates; ++s) kernel_of_.push_back(k);
  }
}

std::vector<size_t> KernelSlates::drawn(int64_t sample) const {
  const DescribedKernel& kernel = kernels_[kernel_of_[static_cast<size_t>(sample)]];
  Rng rng(hash_combine(seed_, static_cast<uint64_t>(sample)));
  std::vector<size_t> order(kernel.times.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<size_t> fast = order;
  std::ranges::sort(fast, {}, [&](size_t i) { return std::pair(kernel.times[i], i); });
  fast.resize((fast.size() + 3) / 4);
  rng.shuffle(order);
  rng.shuffle(fast);
  std::vector<size_t> drawn;
  for (size_t i = 0, next = 0; std::ssize(drawn) < slate_; ++i)
    drawn.push_back(i % 3 == 2 ? fast[i / 3 % fast.size()] : order[next++ % order.size()]);
  return drawn;
}

void KernelSlates::add_target(const TargetFeatures& target, Rng& rng,
                              std::vector<float>& to) const {
  const bool are_known = rng.uniform() < 0.5;
  for (size_t f = 0; f < kTargetFeatures; ++f) {
    const double off = scale_.target_factor[f] == 0 ? 0 : jitter_ * rng.normal();
    const float x = (target.all()[f] - scale_.target_mean[f]) * scale_.target_factor[f];
    to.push_back(f < kTargetSizes || are_known ? x + static_cast<float>(off) : 0.0F);
  }
}

Result<Batch> KernelSlates::batch(std::span<const int64_t> samples, int64_t /*bucket*/) const {
  std::vector<float> features, analytic, times, noise, targets;
  for (int64_t sample : samples) {
    const DescribedKernel& kernel = kernels_[kernel_of_[static_cast<size_t>(sample)]];
    Rng rng(hash_combine(seed_, ~static_cast<uint64_t>(sample)));
    const bool is_plain = !kernel.plain_features.empty() && rng.uniform() < 0.5;
    const std::vector<Features>& described = is_plain ? kernel.plain_features : kernel.features;
    for (size_t i : drawn(sample)) {
      for (size_t f = 0; f < kFeatures; ++f) {
        const bool is_of_schedule = f >= kKernelFeatures && scale_.factor[f] != 0;
        const double off = jitter_ > 0 && is_of_schedule ? jitter_ * rng.normal() : 0;
        features.push_back((described[i].all()[f] - scale_.mean[f]) * scale_.factor[f] +
                           static_cast<float>(off));
      }
      analytic.push_back((is_plain ? kernel.plain_analytic : kernel.analytic)[i]);
      times.push_back(kernel.times[i]);
      noise.push_back(kernel.noise[i]);
    }
    if (kernel.target) add_target(*kernel.target, rng, targets);
  }
  const Dim count = dim(samples.size());
  const auto of = [&](std::span<const float> values) {
    return Tensor::of(numbers({count, slate_}), values);
  };
  Batch batch = {{"features", Tensor::of(numbers({count, slate_, dim(kFeatures)}),
                                         std::span<const float>(features))},
                 {"analytic", of(analytic)},
                 {"times", of(times)},
                 {"noise", of(noise)}};
  if (!targets.empty())
    batch.emplace("target", Tensor::of(numbers({count, dim(kTargetFeatures)}),
                                       std::span<const float>(targets)));
  return batch;
}

// ---- The network --------------------------------------------------------------------------------

Value kernel_residual(Network& net, Value features, const NetworkOptions& options, Value target) {
  Value x = linear(net, "input", features, options.width1);
  if (target) x = x + unsqueeze(linear(net, "target", target, options.width1, false), 1);
  x = relu(x);
  if (options.dropout > 0) x = dropout(net, x, options.dropout);
  x = relu(linear(net, "middle", x, options.width2));
  return squeeze(linear(net, "output", x, 1), features.rank() - 1);
}

Objective kernel_objective(Network& net, const NetworkOptions& options) {
  const Value target = options.knows_targets ? net.input("target") : Value();
  const Value residual = kernel_residual(net, net.input("features"), options, target);
  const Value times = net.input("times"), analytic = net.input("analytic");
  const Value error = residual + analytic - times;
  // Times within twice their deviations of each other say nothing about which is less.
  const Value noise = net.input("noise");
  const Value rank =
      noisy_pairwise_logistic(-(residual + analytic) / options.unit, -times, 2.0 * noise);
  // How far prices are from times, and how far each is from the others of its kernel.
  const Value among = error - reduce_mean(error, {1}, true);
  const Value squared =
      reduce_mean(among * among, {0, 1}) + options.absolute * reduce_mean(error * error, {0, 1});
  const Value loss = options.loss == ModelLoss::rank ? rank + 0.002 * squared
                     : options.loss == ModelLoss::log_squared
                         ? squared
                         : rank + options.squared_weight * squared;
  return {loss, {{"rank", rank}, {"squared", squared}}};
}

ModelMember member_of(std::span<const NamedTensor> weights, const FeatureScale& scale) {
  const auto find = [&](std::string_view name) {
    const auto at = std::ranges::find(weights, name, &NamedTensor::name);
    HONE_CHECK(at != weights.end(), "the network has no weight '{}'", name);
    const std::span<const float> numbers = at->tensor.as<float>();
    return std::vector<float>(numbers.begin(), numbers.end());
  };
  ModelMember member{.input = find("input/weight"),
                     .bias1 = find("input/bias"),
                     .middle = find("middle/weight"),
                     .bias2 = find("middle/bias"),
                     .output = find("output/weight"),
                     .bias3 = find("output/bias")[0],
                     .target = {}};
  const size_t width = member.bias1.size();
  if (std::ranges::find(weights, "target/weight", &NamedTensor::name) != weights.end()) {
    member.target = find("target/weight");
    for (size_t f = 0; f < kTargetFeatures; ++f)
      for (size_t j = 0; j < width; ++j) member.target[f * width + j] *= scale.target_factor[f];
  }
  for (size_t j = 0; j < width; ++j) {
    double bias = static_cast<double>(member.bias1[j]);
    for (size_t f = 0; f < kFeatures; ++f) {
      float& weight = member.input[f * width + j];
      weight *= scale.factor[f];
      bias -= static_cast<double>(weight) * static_cast<double>(scale.mean[f]);
    }
    member.bias1[j] = static_cast<float>(bias);
  }
  return member;
}

std::vector<NamedTensor> weights_of(const ModelMember& member, const FeatureScale& scale) {
  const size_t width1 = member.bias1.size(), width2 = member.bias2.size();
  std::vector<float> input = member.input, bias = member.bias1;
  for (size_t j = 0; j < width1; ++j) {
    double sum = static_cast<double>(bias[j]);
    for (size_t f = 0; f < kFeatures; ++f) {
      float& weight = input[f * width1 + j];
      sum += static_cast<double>(weight) * static_cast<double>(scale.mean[f]);
      weight = scale.factor[f] == 0 ? 0 : weight / scale.factor[f];
    }
    bias[j] = static_cast<float>(sum);
  }
  const auto tensor = [](std::initializer_list<Dim> dims, std::span<const float> values) {
    return Tensor::of(numbers(dims), values);
  };
  return {{"input/weight", tensor({dim(kFeatures), dim(width1)}, input)},
          {"input/bias", tensor({dim(width1)}, bias)},
          {"middle/weight", tensor({dim(width1), dim(width2)}, member.middle)},
          {"middle/bias", tensor({dim(width2)}, member.bias2)},
          {"output/weight", tensor({dim(width2), 1}, member.output)},
          {"output/bias", tensor({1}, std::span(&member.bias3, 1))}};
}

}  // namespace hone

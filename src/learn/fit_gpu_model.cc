#include "learn/fit_gpu_model.h"

#include <algorithm>
#include <cmath>

#include "cost/gpu_cost.h"
#include "learn/least_squares.h"

namespace hone {

namespace {

constexpr int kScaleRounds = 20;
constexpr int kRoundsOfBoth = 20;      // of scales, then of factors
constexpr double kPullOfScale = 1e-3;  // towards 1, for terms that no time tells apart
constexpr double kPullOfFactor = 0.1;  // towards 0
constexpr int64_t kLeastTimes = 8;     // of an algorithm, to learn its factors

// A time with what the analytic price says.
struct GpuSample {
  GpuTimes times;
  GpuFeatures features;
  Algorithm algorithm;
  double seconds;
};

constexpr double GpuTimes::* kTerms[] = {&GpuTimes::launch, &GpuTimes::arithmetic,
                                         &GpuTimes::latency, &GpuTimes::memory, &GpuTimes::access};
constexpr size_t kTermCount = std::size(kTerms);

double loss_of(std::span<const GpuSample> samples, const GpuModel& model) {
  double sum = 0;
  for (const GpuSample& sample : samples) {
    const double off =
        std::log(model.seconds(sample.times, sample.features, sample.algorithm) / sample.seconds);
    sum += off * off;
  }
  return sum / static_cast<double>(samples.size());
}

// How much a term counts in the price, if the largest stays the largest: a tenth, or all.
std::array<double, kTermCount> shares(const GpuTimes& times, const GpuTimes& scales) {
  const auto scaled = [&](size_t i) { return times.*kTerms[i] * scales.*kTerms[i]; };
  size_t largest = 1;
  for (size_t i = 2; i < kTermCount; ++i)
    if (scaled(i) > scaled(largest)) largest = i;
  std::array<double, kTermCount> all;
  for (size_t i = 0; i < kTermCount; ++i) all[i] = i == 0 || i == largest ? 1 : GpuTimes::kSeen;
  return all;
}

GpuTimes next_scales(std::span<const GpuSample> samples, const GpuModel& model) {
  LeastSquares problem(kTermCount);
  const double pull = kPullOfScale * std::sqrt(static_cast<double>(samples.size()));
  for (size_t i = 0; i < kTermCount; ++i) {
    std::array<double, kTermCount> row = {};
    row[i] = pull;
    problem.add(row, pull);
  }
  for (const GpuSample& sample : samples) {
    std::array<double, kTermCount> row = shares(sample.times, model.scales);
    const double factor = model.factor(sample.features, sample.algorithm);
    for (size_t i = 0; i < kTermCount; ++i)
      row[i] *= factor * sample.times.*kTerms[i] / sample.seconds;
    problem.add(row, 1 - factor * sample.times.transforms / sample.seconds);
  }
  const std::vector<double> solved = problem.solve_non_negative();
  GpuTimes next;
  for (size_t i = 0; i < kTermCount; ++i)
    next.*kTerms[i] = std::clamp(solved[i], 0.0, kMaxGpuScale);
  return next;
}

void fit_scales(std::span<const GpuSample> samples, GpuModel& model) {
  double least = loss_of(samples, model);
  GpuModel tried = model;
  for (int round = 0; round < kScaleRounds; ++round) {
    tried.scales = next_scales(samples, tried);
    const double loss = loss_of(samples, tried);
    if (!(loss < least)) continue;
    least = loss;
    model = tried;
  }
}

void fit_factors(std::span<const GpuSample> samples, Algorithm algorithm, GpuModel& model) {
  GpuModel without = model;
  without.factors.erase(std::string(name(algorithm)));
  LeastSquares problem(std::size(kGpuFeatures));
  for (size_t i = 0; i < std::size(kGpuFeatures); ++i) {
    GpuFeatures row = {};
    row[i] = kPullOfFactor;
    problem.add(row, 0);
  }
  int64_t count = 0;
  for (const GpuSample& sample : samples) {
    if (sample.algorithm != algorithm) continue;
    problem.add(sample.features,
                std::log(sample.seconds / model.seconds(sample.times, sample.features, algorithm)));
    ++count;
  }
  if (count < kLeastTimes) return;
  GpuModel tried = model;
  GpuFeatures& factors = tried.factors[std::string(name(algorithm))];
  std::ranges::copy(problem.solve(), factors.begin());
  if (loss_of(samples, tried) < loss_of(samples, model)) model = std::move(tried);
}

// The one that is learned first explains all that both could: the end shows who was right.
GpuModel fit_both(std::span<const GpuSample> samples, GpuModel model, bool scales_first) {
  for (int round = 0; round < kRoundsOfBoth; ++round) {
    if (scales_first || round > 0) fit_scales(samples, model);
    for (Algorithm algorithm : kAlgorithms) fit_factors(samples, algorithm, model);
  }
  return model;
}

}  // namespace

Result<FittedGpuModel> fit_gpu_model(std::span<const TimedKernel> kernels, const Target& target) {
  if (!target.gpu) return bad_input("the target '{}' is a CPU", target.name);
  const GpuCost analytic(target);
  std::vector<GpuSample> samples;
  for (const TimedKernel& kernel : kernels)
    for (size_t i = 0; i < kernel.schedules.size(); ++i) {
      const GpuTimes times = analytic.times(kernel.facts, kernel.schedules[i]);
      if (!std::isfinite(times.total()) || !(kernel.seconds[i] > 0)) continue;
      samples.push_back({times, gpu_features(*kernel.facts, kernel.schedules[i]),
                         kernel.schedules[i].algorithm(), kernel.seconds[i]});
    }
  if (samples.empty()) return bad_input("there are no times of kernels of '{}'", target.name);
  FittedGpuModel fitted;
  fitted.model.target = target.name;
  fitted.model.kernels = std::ssize(kernels);
  fitted.loss_before = loss_of(samples, fitted.model);
  const GpuModel start = fitted.model;
  for (bool scales_first : {true, false}) {
    const GpuModel tried = fit_both(samples, start, scales_first);
    if (loss_of(samples, tried) < loss_of(samples, fitted.model)) fitted.model = tried;
  }
  fitted.loss_after = loss_of(samples, fitted.model);
  return fitted;
}

}  // namespace hone

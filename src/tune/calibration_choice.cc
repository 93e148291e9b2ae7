#include "tune/calibration_choice.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "compile/compilation.h"
#include "cost/votes.h"
#include "kernel/kernel_kind.h"
#include "kernel/schedule_space.h"
#include "tune/kernel_uses.h"

namespace hone {
namespace {

constexpr double kUnknownError = 0.5;  // of a kind that was not measured, a logarithm
constexpr double kLeastShare = 0.05;
constexpr int64_t kPool = 4;        // schedules that are drawn for one that is measured
constexpr int64_t kAskedAbout = 6;  // schedules, to see by how much voices differ

// Half anywhere, half a few steps from the planned one.
std::vector<Schedule> drawn_around(const CalibrationKernel& kernel, const Target& target,
                                   int64_t count, Rng& rng) {
  const ScheduleSpace space(kernel.facts->body, *kernel.facts, target);
  std::vector<Schedule> all;
  Schedule near = kernel.planned;
  for (int64_t i = 1; i <= count; ++i) {
    if (i % 2 == 0) {
      all.push_back(space.sample(rng));
      continue;
    }
    if (i % 8 == 1) near = kernel.planned;
    if (const std::optional<Schedule> next = space.step(near, rng)) near = *next;
    all.push_back(near);
  }
  return all;
}

}  // namespace

std::map<std::string, double, std::less<>> shares_of_kinds(std::span<const HeldBackModel> models,
                                                           const Target& target,
                                                           const std::shared_ptr<const Cost>& cost,
                                                           int64_t threads, double seconds) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point began = Clock::now();
  std::map<std::string, double, std::less<>> shares;
  for (const HeldBackModel& model : models) {
    if (!shares.empty() && std::chrono::duration<double>(Clock::now() - began).count() > seconds)
      break;
    const Result<Graph> graph = model.load();
    if (!graph.ok()) continue;
    CompileOptions options;
    options.plan.threads = threads;
    options.cost = cost;
    Compilation compilation(*graph, target, options);
    const Result<const Program*> program = compilation.program();
    if (!program.ok()) continue;
    const std::vector<KernelUse> uses = kernel_uses(**program, *cost);
    double all = 0;
    for (const KernelUse& use : uses) all += use.weight;
    for (const KernelUse& use : uses)  // each model counts alike
      shares[std::string(kernel_kind(*use.facts, Algorithm::generic))] += use.weight / all;
  }
  double all = 0;
  for (const auto& [kind, share] : shares) all += share;
  for (auto& [kind, share] : shares) share /= all;
  return shares;
}

CalibrationChoice::CalibrationChoice(std::vector<CalibrationKernel> kernels, const Target& target,
                                     std::shared_ptr<const Cost> price, int64_t threads,
                                     std::map<std::string, double, std::less<>> shares)
    : kernels_(std::move(kernels)),
      target_(target),
      price_(std::move(price)),
      threads_(threads),
      shares_(std::move(shares)) {
  for (const CalibrationKernel& kernel : kernels_) {
    Rng rng(0);
    const std::unique_ptr<PricedKernel> priced = price_->kernel(kernel.facts, threads_);
    const Votes planned = priced->votes(kernel.planned);
    double squares = 0;
    for (const Schedule& each : drawn_around(kernel, target_, kAskedAbout, rng)) {
      const double deviation = gain_of(priced->votes(each), planned).deviation;
      squares += deviation * deviation / static_cast<double>(kAskedAbout);
    }
    voices_.push_back(std::sqrt(squares));
  }
}

double CalibrationChoice::unsureness(const CalibrationKernel& kernel) const {
  const auto at = std::ranges::find(kernels_, kernel.facts, &CalibrationKernel::facts);
  const double voices =
      at == kernels_.end() ? 0 : voices_[static_cast<size_t>(at - kernels_.begin())];
  const auto known = kinds_.find(kernel.kind);
  const Kind kind = known == kinds_.end() ? Kind() : known->second;
  // As if one more kernel had the error of what is unknown. Each that was measured makes the fit
  // surer of the next.
  const double mean = (kind.squares + kUnknownError * kUnknownError) / (kind.kernels + 1);
  return std::sqrt((mean + voices * voices) / (kind.kernels + 1));
}

std::optional<CalibrationKernel> CalibrationChoice::next() {
  if (kernels_.empty()) return std::nullopt;
  const auto counts = [&](bool is_held_out) {
    return std::ranges::count(kernels_, is_held_out, &CalibrationKernel::is_held_out);
  };
  const bool is_third = taken_ % 3 == 2;
  const bool held_out = counts(is_third) > 0 ? is_third : !is_third;
  size_t best = kernels_.size();
  double most = -1;
  for (size_t k = 0; k < kernels_.size(); ++k) {
    if (kernels_[k].is_held_out != held_out) continue;
    const auto share = shares_.find(kernels_[k].kind);
    const double matters = std::max(share == shares_.end() ? 0 : share->second, kLeastShare);
    const double score = matters * unsureness(kernels_[k]);
    if (score > most) most = score, best = k;
  }
  ++taken_;
  CalibrationKernel kernel = std::move(kernels_[best]);
  kernels_.erase(kernels_.begin() + static_cast<ptrdiff_t>(best));
  voices_.erase(voices_.begin() + static_cast<ptrdiff_t>(best));
  return kernel;
}

void CalibrationChoice::keep(std::string_view kind, const TimedKernel& timed) {
  const std::unique_ptr<PricedKernel> priced = price_->kernel(timed.facts, threads_);
  std::vector<double> off;
  double mean = 0, squares = 0;
  const auto count = static_cast<double>(timed.seconds.size());
  for (size_t i = 0; i < timed.seconds.size(); ++i) {
    off.push_back(std::log(timed.seconds[i] / priced->seconds(timed.schedules[i])));
    mean += off.back() / count;
  }
  for (double each : off) squares += (each - mean) * (each - mean) / count;
  Kind& its = kinds_[std::string(kind)];
  its.squares += squares;
  ++its.kernels;
}

std::vector<Schedule> CalibrationChoice::schedules_of(const CalibrationKernel& kernel,
                                                      int64_t count, Rng rng) const {
  const std::unique_ptr<PricedKernel> priced = price_->kernel(kernel.facts, threads_);
  const Votes planned = priced->votes(kernel.planned);
  std::vector<Schedule> pool = drawn_around(kernel, target_, kPool * (count - 1), rng);
  std::vector<std::pair<double, size_t>> hopes;  // negative, so that the most comes first
  for (size_t i = 0; i < pool.size(); ++i) {
    const Gain gain = gain_of(priced->votes(pool[i]), planned);
    hopes.emplace_back(-(gain.mean + gain.deviation), i);
  }
  std::ranges::sort(hopes);
  std::vector<Schedule> all = {kernel.planned};
  std::vector<bool> is_taken(pool.size());
  const auto take = [&](size_t i) {
    if (is_taken[i]) return;
    is_taken[i] = true;
    if (std::ranges::find(all, pool[i]) == all.end()) all.push_back(pool[i]);
  };
  size_t hopeful = 0, even = 0;
  while (std::ssize(all) < count && (hopeful < pool.size() || even < pool.size())) {
    if (hopeful < pool.size()) take(hopes[hopeful++].second);
    if (even < pool.size() && std::ssize(all) < count) take(even++);
  }
  return all;
}

}  // namespace hone

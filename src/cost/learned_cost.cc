#include "cost/learned_cost.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/hash.h"
#include "cost/analytic_kernel.h"
#include "kernel/kernel_kind.h"

namespace hone {

class LearnedCost::Kernel : public PricedKernel {
 public:
  // `seen` is the kernel on as many threads as the model has seen; null: so is the other.
  Kernel(std::unique_ptr<AnalyticKernel> analytic, std::unique_ptr<AnalyticKernel> seen,
         std::shared_ptr<const KernelModel> model, std::shared_ptr<const FastModel> fast,
         std::string_view kind)
      : analytic_(std::move(analytic)),
        seen_(std::move(seen)),
        model_(std::move(model)),
        fast_(std::move(fast)),
        level_(model_->level(kind)),
        is_measured_(model_->distance((seen_ ? *seen_ : *analytic_).of_kernel()) < kSame) {
    for (size_t a = 0; a < std::size(kAlgorithms); ++a)
      has_seen_[a] = model_->has_seen(kind, kAlgorithms[a]);
    if (const RegretBound* bound = model_->bound_of(kind)) {
      const auto is_enough = [](double slower) { return slower <= kTolerated; };
      const auto enough = std::ranges::find_if(bound->slower, is_enough) - bound->slower.begin();
      worth_measuring_ = kMeasuredCounts[std::min(enough, std::ssize(kMeasuredCounts) - 1)];
    }
  }

  void price(std::span<const Schedule> schedules, double /*limit*/,
             std::span<double> seconds) override {
    for (size_t at = 0; at < schedules.size(); at += kAtOnce) {
      const size_t count = std::min(kAtOnce, schedules.size() - at);
      for (size_t i = 0; i < count; ++i) {
        AnalyticKernel& seen = seen_ == nullptr ? *analytic_ : *seen_;
        seconds[at + i] = seen.describe(schedules[at + i], features_[i]);
        if (seen_ != nullptr) seconds[at + i] = analytic_->seconds(schedules[at + i]);
      }
      fast_->run(std::span(features_).first(count), said_);
      for (size_t i = 0; i < count; ++i) {
        const double said_now = level_ + static_cast<double>(said_[i].mean) +
                                model_->caution * static_cast<double>(said_[i].deviation);
        // Weights that are finite may say what is not.
        const double residual = std::isfinite(said_now) ? std::clamp(said_now, -kMost, kMost) : 0;
        const double learned = seconds[at + i] * std::exp(residual);
        const bool is_known =
            has_seen_[schedules[at + i].own.index()] && fast_->is_inside(features_[i]);
        seconds[at + i] = is_known ? learned : std::max(learned, seconds[at + i]);
      }
    }
  }
  std::vector<PriceTerm> terms(const Schedule& schedule) override {
    return analytic_->terms(schedule);
  }
  std::string_view source(const Schedule& /*schedule*/) override { return "learned"; }
  std::optional<int64_t> worth_measuring() const override { return worth_measuring_; }
  std::optional<double> lead() const override {
    const bool is_shorter = is_measured_ && model_->lead < kNoLead;
    return is_shorter ? std::min(kLeadOfMeasured, model_->lead) : model_->lead;
  }

 private:
  static constexpr size_t kAtOnce = 16;
  static constexpr double kMost = 4;  // what is further from the analytic price is a mistake
  static constexpr double kTolerated = 0.02;  // of a regret: what measuring hardly tells
  // The model has learned from this very kernel, if it has none that is farther away.
  static constexpr double kSame = 1e-3, kLeadOfMeasured = 0.03;

  const std::unique_ptr<AnalyticKernel> analytic_, seen_;
  const std::shared_ptr<const KernelModel> model_;
  const std::shared_ptr<const FastModel> fast_;
  const double level_;
  const bool is_measured_;
  std::array<bool, std::size(kAlgorithms)> has_seen_ = {};
  std::optional<int64_t> worth_measuring_;
  std::array<Features, kAtOnce> features_;
  std::array<FastModel::Said, kAtOnce> said_;
};

LearnedCost::LearnedCost(const Target& target, std::shared_ptr<const KernelModel> model,
                         std::shared_ptr<const Cost> baseline, std::string place)
    : target_(target),
      model_(std::move(model)),
      fast_(std::make_shared<const FastModel>(*model_)),
      baseline_(std::move(baseline)),
      analytic_(target, model_->prices),
      version_(fmt::format("learned {:016x} beside {} on {}", hash_of(*model_),
                           baseline_ == nullptr ? "nothing" : baseline_->version(),
                           analytic_.version())),
      place_(std::move(place)) {}

std::unique_ptr<PricedKernel> LearnedCost::kernel(std::shared_ptr<const KernelFacts> facts,
                                                  int64_t threads) const {
  auto analytic = std::make_unique<AnalyticKernel>(facts, target_, model_->prices, threads);
  if (!check_knows(*facts, analytic->of_kernel(), threads).ok()) return analytic;
  std::unique_ptr<AnalyticKernel> seen;
  if (threads != model_->threads)
    seen = std::make_unique<AnalyticKernel>(facts, target_, model_->prices, model_->threads);
  return std::make_unique<Kernel>(std::move(analytic), std::move(seen), model_, fast_,
                                  kernel_kind(*facts, Algorithm::generic));
}

Status LearnedCost::check_knows(const KernelFacts& facts, const Features& of_kernel,
                                int64_t threads) const {
  if (threads != model_->threads && model_->threads != 1)
    return unsupported("the model has seen kernels on {} threads, not on {}", model_->threads,
                       threads);
  const std::string_view kind = kernel_kind(facts, Algorithm::generic);
  if (std::ranges::none_of(kAlgorithms,
                           [&](Algorithm each) { return model_->has_seen(kind, each); }))
    return unsupported("the model has not seen kernels of the kind '{}'", kind);
  const double distance = model_->distance(of_kernel);
  if (distance > model_->reach)
    return unsupported(
        "the kernel is {:.2g} from the nearest that the model has seen, beyond {:.2g}", distance,
        model_->reach);
  return {};
}

Status LearnedCost::check_knows(const KernelFacts& facts, int64_t threads) const {
  return check_knows(facts, KernelPrice(facts, target_, model_->prices, threads).of_kernel(),
                     threads);
}

LearnedCost::Trust LearnedCost::trust(const std::shared_ptr<const KernelFacts>& facts,
                                      const Schedule& schedule, int64_t threads) const {
  AnalyticKernel seen(facts, target_, model_->prices, model_->threads);
  Features features;
  Trust trust = {.analytic = seen.describe(schedule, features)};
  if (threads != model_->threads)
    trust.analytic = AnalyticKernel(facts, target_, model_->prices, threads).seconds(schedule);
  const std::string_view kind = kernel_kind(*facts, Algorithm::generic);
  trust.knows = check_knows(*facts, threads);
  FastModel::Said said;
  fast_->run({&features, 1}, {&said, 1});
  trust.residual = model_->level(kind) + static_cast<double>(said.mean);
  trust.deviation = static_cast<double>(said.deviation);
  trust.is_inside = model_->has_seen(kind, schedule.algorithm()) && fast_->is_inside(features);
  if (const RegretBound* bound = model_->bound_of(kind)) trust.bound = bound->slower[0];
  return trust;
}

}  // namespace hone

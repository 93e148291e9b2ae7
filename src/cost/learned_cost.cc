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
         std::string_view kind, double sureness)
      : analytic_(std::move(analytic)),
        seen_(std::move(seen)),
        model_(std::move(model)),
        fast_(std::move(fast)),
        level_(model_->level(kind)),
        is_measured_(model_->has_learned_from((seen_ ? *seen_ : *analytic_).of_kernel())),
        deviations_(deviations_for(sureness)) {
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
        const double learned = seconds[at + i] * std::exp(bounded(said_now));
        const bool is_known = is_inside(schedules[at + i], features_[i]);
        seconds[at + i] = is_known ? learned : std::max(learned, seconds[at + i]);
      }
    }
  }
  std::vector<PriceTerm> terms(const Schedule& schedule) override {
    return analytic_->terms(schedule);
  }
  std::string_view source(const Schedule& /*schedule*/) override { return "learned"; }
  std::optional<int64_t> worth_measuring() const override { return worth_measuring_; }
  Knows knows() const override { return model_->lead < kNoLead ? Knows::choices : Knows::price; }
  bool is_surely_cheaper(const Schedule& other, const Schedule& usual) override {
    const double lead = is_measured_ && model_->lead < kNoLead
                            ? std::min(kLeadOfMeasured, model_->lead)
                            : model_->lead;
    if (lead >= kNoLead) return false;
    const Told a = told(other), b = told(usual);
    const Gain gain = gain_of({.seconds = a.seconds}, {.seconds = b.seconds});
    // Networks that have seen a kernel are off independently, so that their mean is surer.
    const double voices = is_measured_ ? static_cast<double>(model_->members.size()) : 1;
    const double doubt = is_measured_                ? Doubt::learned
                         : model_->knows_processor() ? Doubt::like
                                                     : Doubt::abroad;
    double variance = square(gain.deviation) / voices + square(doubt);
    if (other.algorithm() != usual.algorithm()) variance += square(Doubt::algorithms);
    if (seen_ != nullptr) variance += square(Doubt::threads);
    for (const Told* each : {&a, &b})
      if (!each->is_inside) variance += square(Doubt::outside);
    return gain.mean > std::max(-std::log1p(-lead), deviations_ * std::sqrt(variance));
  }
  Votes votes(const Schedule& schedule) override {
    const Told told = this->told(schedule);
    const double price = *std::ranges::max_element(told.seconds);
    return {told.seconds, square((told.is_inside ? Doubt::known : Doubt::unknown) * price)};
  }

 private:
  // The price by each network; outside of what was seen, the analytic price alone.
  struct Told {
    std::vector<double> seconds;
    bool is_inside = false;
  };
  Told told(const Schedule& schedule) {
    Features features;
    double analytic = (seen_ == nullptr ? *analytic_ : *seen_).describe(schedule, features);
    if (seen_ != nullptr) analytic = analytic_->seconds(schedule);
    if (!is_inside(schedule, features)) return {{analytic}, false};
    std::vector<double> seconds = fast_->each(features);
    for (double& each : seconds) each = analytic * std::exp(bounded(level_ + each));
    return {std::move(seconds), true};
  }
  bool is_inside(const Schedule& schedule, const Features& features) const {
    return has_seen_[schedule.own.index()] && fast_->is_inside(features);
  }
  // Weights that are finite may say what is not.
  static double bounded(double residual) {
    return std::isfinite(residual) ? std::clamp(residual, -kMost, kMost) : 0;
  }
  static double square(double x) { return x * x; }

  static constexpr size_t kAtOnce = 16;
  static constexpr double kMost = 4;  // what is further from the analytic price is a mistake
  static constexpr double kTolerated = 0.02;  // of a regret: what measuring hardly tells
  static constexpr double kLeadOfMeasured = 0.03;

  const std::unique_ptr<AnalyticKernel> analytic_, seen_;
  const std::shared_ptr<const KernelModel> model_;
  const std::shared_ptr<const FastModel> fast_;
  const double level_;
  const bool is_measured_;
  const double deviations_;
  std::array<bool, std::size(kAlgorithms)> has_seen_ = {};
  std::optional<int64_t> worth_measuring_;
  std::array<Features, kAtOnce> features_;
  std::array<FastModel::Said, kAtOnce> said_;
};

// The analytic price, which nobody has checked for such kernels.
class LearnedCost::Unknown : public PricedKernel {
 public:
  Unknown(std::unique_ptr<AnalyticKernel> analytic, bool is_as_baseline)
      : analytic_(std::move(analytic)), is_as_baseline_(is_as_baseline) {}
  Knows knows() const override { return is_as_baseline_ ? Knows::nothing : Knows::price; }
  void price(std::span<const Schedule> schedules, double limit,
             std::span<double> seconds) override {
    analytic_->price(schedules, limit, seconds);
  }
  std::vector<PriceTerm> terms(const Schedule& schedule) override {
    return analytic_->terms(schedule);
  }
  Votes votes(const Schedule& schedule) override {
    const double price = seconds(schedule), doubt = Doubt::unknown * price;
    return {{price}, doubt * doubt};
  }

 private:
  const std::unique_ptr<AnalyticKernel> analytic_;
  const bool is_as_baseline_;
};

LearnedCost::LearnedCost(const Target& target, std::shared_ptr<const KernelModel> model,
                         std::shared_ptr<const Cost> baseline, std::string place, double sureness)
    : target_(target),
      model_(std::move(model)),
      fast_(std::make_shared<const FastModel>(*model_)),
      baseline_(std::move(baseline)),
      analytic_(target, model_->prices),
      sureness_(sureness),
      prices_(fmt::format("learned {:016x} sure {} beside {} on {}", hash_of(*model_), sureness,
                          baseline_ == nullptr ? "nothing" : baseline_->version(),
                          analytic_.version())),
      version_(prices_),
      place_(std::move(place)) {}

LearnedCost::LearnedCost(const LearnedCost& prices, std::shared_ptr<const PlanModel> plans)
    : target_(prices.target_),
      model_(prices.model_),
      fast_(prices.fast_),
      baseline_(prices.baseline_),
      analytic_(prices.analytic_),
      sureness_(prices.sureness_),
      prices_(prices.prices_),
      version_(fmt::format("{} plans {:016x}", prices_, hash_of(*plans))),
      place_(prices.place_),
      plans_(std::move(plans)) {}

std::unique_ptr<PricedKernel> LearnedCost::kernel(std::shared_ptr<const KernelFacts> facts,
                                                  int64_t threads) const {
  auto analytic = std::make_unique<AnalyticKernel>(facts, target_, model_->prices, threads);
  if (!check_knows(*facts, analytic->of_kernel(), threads).ok())
    return std::make_unique<Unknown>(
        std::move(analytic), baseline_ != nullptr && baseline_->version() == analytic_.version());
  std::unique_ptr<AnalyticKernel> seen;
  if (threads != model_->threads)
    seen = std::make_unique<AnalyticKernel>(facts, target_, model_->prices, model_->threads);
  return std::make_unique<Kernel>(std::move(analytic), std::move(seen), model_, fast_,
                                  kernel_kind(*facts, Algorithm::generic), sureness_);
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
    return unsupported("the kernel is {:.2g} from the nearest that {}, beyond {:.2g}", distance,
                       model_->abroad.empty() ? "the model has seen" : "two processors have",
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

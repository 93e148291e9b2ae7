#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cost/analytic.h"
#include "cost/fast_model.h"
#include "cost/kernel_model.h"
#include "cost/plan_model.h"

namespace hone {

// The analytic price of a model's coefficients times what its networks say. A model of one thread
// says for several what it says for one: by how much the code of each of them is slower. Copies and
// commands have the analytic price, and so has each kernel that the model does not know. Such a
// kernel has another number of threads or a kind that the model has not seen, or is too far from
// all that it has. A schedule of a known kernel that lies outside of what was seen, or by an
// algorithm that was not, counts as the dearer of the two say.
//
// Choices of the baseline stay unless others are cheaper with the probability `sureness`. Each
// network says its own of both; Doubt is how far networks are off together.
class LearnedCost : public Cost {
 public:
  // The model is of this target (check_is_for()). The baseline's choices stay where others are not
  // sure; null: this Cost decides alone. `place` says to people where the model is from.
  LearnedCost(const Target& target, std::shared_ptr<const KernelModel> model,
              std::shared_ptr<const Cost> baseline = nullptr, std::string place = "",
              double sureness = kUsualSureness);
  // The same with a model of whole plans, which ranks the best few plans of the planner. It has
  // learned by these prices (check_is_for()).
  LearnedCost(const LearnedCost& prices, std::shared_ptr<const PlanModel> plans);

  std::string version() const override { return version_; }
  std::unique_ptr<PricedKernel> kernel(std::shared_ptr<const KernelFacts> facts,
                                       int64_t threads) const override;
  double copy(double bytes) const override { return analytic_.copy(bytes); }
  double command() const override { return analytic_.command(); }
  const Cost* baseline() const override { return baseline_.get(); }
  std::optional<double> sureness() const override { return sureness_; }
  const LearnedCost* learned() const override { return this; }

  const KernelModel& model() const { return *model_; }
  const std::string& place() const { return place_; }
  const PlanModel* plans() const { return plans_.get(); }         // null: there is none
  std::string_view version_of_prices() const { return prices_; }  // version() without such a model
  // Says whether the networks decide about the price of a kernel, or why not.
  Status check_knows(const KernelFacts& facts, int64_t threads) const;

  // The basis of the price of a schedule.
  struct Trust {
    Status knows = {};     // check_knows(); what follows is what networks would say
    double analytic = 0;   // seconds, by the model's coefficients
    double residual = 0;   // the logarithm of what networks and level say it is to be multiplied by
    double deviation = 0;  // of the networks from each other, in that
    bool is_inside =
        false;  // of what was seen, by an algorithm that was: else the dearer one counts
    std::optional<double> bound = {};  // RegretBound of the first by price
  };
  Trust trust(const std::shared_ptr<const KernelFacts>& facts, const Schedule& schedule,
              int64_t threads) const;

  // How far all networks are off together, as deviations of logarithms of prices
  // (docs/learned-prices.md#how-sure-a-choice-is). Between two schedules of a kernel:
  struct Doubt {
    static constexpr double learned = 0.02;    // of a kernel that the model has learned from
    static constexpr double like = 0.1;        // of another one within its reach
    static constexpr double abroad = 0.2;      // the same on a processor that it has not seen
    static constexpr double algorithms = 0.5;  // more, if the schedules are by different ones
    static constexpr double threads = 0.1;     // more, by more threads than the model has seen
    static constexpr double outside = 0.5;     // more, for each that lies outside of what was seen
    // The price of a kernel, beside those of others:
    static constexpr double known = 0.2, unknown = 0.4;
  };

 private:
  class Kernel;
  class Unknown;
  Status check_knows(const KernelFacts& facts, const Features& of_kernel, int64_t threads) const;

  const Target target_;
  const std::shared_ptr<const KernelModel> model_;
  const std::shared_ptr<const FastModel> fast_;
  const std::shared_ptr<const Cost> baseline_;
  const AnalyticCost analytic_;
  const double sureness_;
  const std::string prices_, version_, place_;
  const std::shared_ptr<const PlanModel> plans_;
};

}  // namespace hone

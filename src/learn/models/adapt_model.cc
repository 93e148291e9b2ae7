#include "learn/models/adapt_model.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "cost/analytic_kernel.h"
#include "kernel/kernel_kind.h"
#include "learn/least_squares.h"

namespace hone {
namespace {

constexpr size_t kFolds = 5;
constexpr double kLevelCounts = 0.25;    // of a kernel's mean error, beside the order
constexpr double kWorthAdapting = 0.98;  // of the loss without a change
constexpr double kLeastGain = 1e-6;      // what rounding makes of it is none
constexpr double kHeldTo = 2;            // kernels that have no error, for a level of a kind
// How strong the ridge is: times the mean square of a hidden number.
constexpr double kRidges[] = {100, 30, 10, 3, 1, 0.3};

// A kernel as last layers see it.
struct HiddenKernel {
  std::string_view kind;
  std::vector<std::vector<double>> hidden;  // by member: schedules, side by side
  std::vector<std::vector<double>> said;    // by member, by schedule: what the network says
  std::vector<double> wanted;               // by schedule: log(time / price), less the level
};

// A step of the last layer of a member: a row per hidden number, and the bias.
using Step = std::vector<double>;

std::vector<double> layer(std::span<const double> from, std::span<const float> weights,
                          std::span<const float> bias) {
  std::vector<double> to(bias.begin(), bias.end());
  for (size_t i = 0; i < from.size(); ++i)
    for (size_t j = 0; j < to.size(); ++j)
      to[j] += from[i] * static_cast<double>(weights[i * to.size() + j]);
  for (double& each : to) each = std::max(each, 0.0);
  return to;
}

class Adapting {
 public:
  Adapting(const KernelModel& model, std::span<const TimedKernel> kernels, const Target& target)
      : model_(model) {
    for (const TimedKernel& kernel : kernels) kernels_.push_back(seen(kernel, target));
  }

  AdaptedModel run() {
    const std::vector<Step> none(model_.members.size(), Step(model_.width2 + 1));
    AdaptedModel result{.model = model_};
    if (kernels_.size() < kLeastToAdapt) return result;
    for (const HiddenKernel& kernel : kernels_)
      result.loss_before += loss(kernel, none) / static_cast<double>(kernels_.size());
    result.loss_after = result.loss_before;
    double best = 0;
    for (double ridge : kRidges) {
      const double left_out = loss_left_out(ridge);
      const double most = std::min(kWorthAdapting * result.loss_before, result.loss_after);
      if (left_out >= most - kLeastGain) continue;
      result.loss_after = left_out;
      best = ridge;
    }
    if (best == 0) return result;
    result.is_changed = true;
    const std::vector<Step> steps = fitted(best, kFolds);
    for (size_t m = 0; m < steps.size(); ++m) {
      ModelMember& member = result.model.members[m];
      for (size_t j = 0; j < model_.width2; ++j)
        member.output[j] += static_cast<float>(steps[m][j]);
      member.bias3 += static_cast<float>(steps[m].back());
    }
    move_levels(steps, result.model);
    return result;
  }

 private:
  HiddenKernel seen(const TimedKernel& kernel, const Target& target) const {
    AnalyticKernel analytic(kernel.facts, target, model_.prices, model_.threads);
    HiddenKernel seen{.kind = kernel_kind(*kernel.facts, Algorithm::generic),
                      .hidden = std::vector<std::vector<double>>(model_.members.size()),
                      .said = std::vector<std::vector<double>>(model_.members.size()),
                      .wanted = {}};
    for (size_t i = 0; i < kernel.schedules.size(); ++i) {
      Features features;
      const double price = analytic.describe(kernel.schedules[i], features);
      seen.wanted.push_back(std::log(kernel.seconds[i] / price) - model_.level(seen.kind));
      std::vector<double> input;
      for (size_t f = 0; f < kFeatures; ++f)
        input.push_back(
            static_cast<double>(std::clamp(features.all()[f], model_.low[f], model_.high[f])));
      for (size_t m = 0; m < model_.members.size(); ++m) {
        const ModelMember& member = model_.members[m];
        const std::vector<double> hidden =
            layer(layer(input, member.input, member.bias1), member.middle, member.bias2);
        double said = static_cast<double>(member.bias3);
        for (size_t j = 0; j < hidden.size(); ++j)
          said += hidden[j] * static_cast<double>(member.output[j]);
        seen.said[m].push_back(said);
        seen.hidden[m].insert(seen.hidden[m].end(), hidden.begin(), hidden.end());
      }
    }
    return seen;
  }

  std::span<const double> hidden(const HiddenKernel& kernel, size_t m, size_t i) const {
    return std::span(kernel.hidden[m]).subspan(i * model_.width2, model_.width2);
  }

  // The errors of all networks together after a step of each, by schedule.
  std::vector<double> errors(const HiddenKernel& kernel, std::span<const Step> steps) const {
    std::vector<double> errors = kernel.wanted;
    const auto share = 1 / static_cast<double>(steps.size());
    for (size_t i = 0; i < errors.size(); ++i)
      for (size_t m = 0; m < steps.size(); ++m) {
        double said = kernel.said[m][i] + steps[m].back();
        for (size_t j = 0; j < model_.width2; ++j) said += hidden(kernel, m, i)[j] * steps[m][j];
        errors[i] -= share * said;
      }
    return errors;
  }

  static double mean_of_errors(std::span<const double> errors) {
    double sum = 0;
    for (double each : errors) sum += each / static_cast<double>(errors.size());
    return sum;
  }

  double loss(const HiddenKernel& kernel, std::span<const Step> steps) const {
    const std::vector<double> errors = this->errors(kernel, steps);
    const double mean = mean_of_errors(errors);
    double sum = kLevelCounts * mean * mean;
    for (double each : errors)
      sum += (each - mean) * (each - mean) / static_cast<double>(errors.size());
    return sum;
  }

  double loss_left_out(double ridge) const {
    double sum = 0;
    for (size_t fold = 0; fold < kFolds; ++fold) {
      const std::vector<Step> steps = fitted(ridge, fold);
      for (size_t k = fold; k < kernels_.size(); k += kFolds)
        sum += loss(kernels_[k], steps) / static_cast<double>(kernels_.size());
    }
    return sum;
  }

  // All kernels but those of the fold say it.
  std::vector<Step> fitted(double ridge, size_t without) const {
    std::vector<Step> steps;
    for (size_t m = 0; m < model_.members.size(); ++m) {
      LeastSquares problem(model_.width2 + 1);
      Step squares(model_.width2 + 1);
      double count = 0;
      for (size_t k = 0; k < kernels_.size(); ++k) {
        if (k % kFolds == without) continue;
        add(kernels_[k], m, problem, squares);
        ++count;
      }
      for (size_t j = 0; j < squares.size(); ++j) {
        std::vector<double> row(squares.size());
        const bool is_dead = squares[j] == 0;  // a hidden number that is 0 for all of them
        row[j] = is_dead ? 1 : std::sqrt(ridge * squares[j] / count);
        problem.add(row, 0);
      }
      steps.push_back(problem.solve());
    }
    return steps;
  }

  // The equations of a kernel: of its schedules beside each other, and of their mean.
  void add(const HiddenKernel& kernel, size_t m, LeastSquares& problem, Step& squares) const {
    const size_t count = kernel.wanted.size(), width = model_.width2;
    const auto share = 1 / static_cast<double>(count);
    std::vector<double> mean(width + 1, 0.0);
    double off = 0;
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = 0; j < width; ++j) mean[j] += share * hidden(kernel, m, i)[j];
      off += share * (kernel.wanted[i] - kernel.said[m][i]);
    }
    for (size_t i = 0; i < count; ++i) {
      std::vector<double> row(width + 1, 0.0);
      for (size_t j = 0; j < width; ++j) {
        row[j] = std::sqrt(share) * (hidden(kernel, m, i)[j] - mean[j]);
        squares[j] += share * hidden(kernel, m, i)[j] * hidden(kernel, m, i)[j];
      }
      problem.add(row, std::sqrt(share) * (kernel.wanted[i] - kernel.said[m][i] - off));
    }
    mean[width] = 1;
    squares[width] += 1;
    for (double& each : mean) each *= std::sqrt(kLevelCounts);
    problem.add(mean, std::sqrt(kLevelCounts) * off);
  }

  // Levels take what kernels of a kind are still off by together.
  void move_levels(std::span<const Step> steps, KernelModel& model) const {
    std::map<std::string_view, std::vector<double>> off;
    for (const HiddenKernel& kernel : kernels_)
      off[kernel.kind].push_back(mean_of_errors(errors(kernel, steps)));
    for (auto& [kind, its] : off) {
      std::ranges::nth_element(its, its.begin() + std::ssize(its) / 2);
      const auto count = static_cast<double>(its.size());
      model.levels[std::string(kind)] += its[its.size() / 2] * count / (count + kHeldTo);
    }
  }

  const KernelModel& model_;
  std::vector<HiddenKernel> kernels_;
};

}  // namespace

AdaptedModel adapt_model(const KernelModel& model, std::span<const TimedKernel> kernels,
                         const Target& target) {
  return Adapting(model, kernels, target).run();
}

}  // namespace hone

#include "learn/models/judge_prices.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/rng.h"
#include "cost/learned_cost.h"
#include "kernel/kernel_kind.h"
#include "learn/ranking.h"

namespace hone {
namespace {

constexpr int kReplicates = 4;

constexpr std::array kFigures = {&KernelVerdict::tau, &KernelVerdict::top1, &KernelVerdict::top5,
                                 &KernelVerdict::error, &KernelVerdict::planned};

std::vector<double> prices_of(const KernelSample& kernel, PricedKernel& priced) {
  std::vector<double> prices(kernel.timed.seconds.size());
  priced.price(kernel.timed.schedules, std::numeric_limits<double>::infinity(), prices);
  return prices;
}

size_t first_of(std::span<const double> prices) {
  return static_cast<size_t>(std::ranges::min_element(prices) - prices.begin());
}

// PriceTrial::chosen.
KernelVerdict verdict_of_choice(const KernelSample& kernel, const Cost& plain, const Cost& learned,
                                int64_t threads) {
  const auto usual = plain.kernel(kernel.timed.facts, threads);
  const auto other = learned.kernel(kernel.timed.facts, threads);
  std::vector<double> order = prices_of(kernel, *usual);
  const std::vector<double> prices = prices_of(kernel, *other);
  const size_t first = first_of(prices), planned = first_of(order);
  const std::vector<Schedule>& schedules = kernel.timed.schedules;
  if (other->is_surely_cheaper(schedules[first], schedules[planned])) order[first] = 0;
  return verdict_of(kernel, order);
}

}  // namespace

KernelVerdict verdict_of(const KernelSample& kernel, std::span<const double> prices) {
  const std::vector<double>& seconds = kernel.timed.seconds;
  return {.kind = kernel.kind,
          .program = kernel.programs.empty() ? "" : kernel.programs[0],
          .tau = kendall_tau(prices, seconds),
          .top1 = regret(prices, seconds, 1) - 1,
          .top5 = regret(prices, seconds, 5) - 1,
          .error = mean_error(prices, seconds),
          .planned = std::abs(prices[0] / seconds[0] - 1)};
}

std::vector<KernelVerdict> judge_prices(std::span<const KernelSample> kernels, const Cost& cost,
                                        int64_t threads) {
  std::vector<KernelVerdict> verdicts;
  for (const KernelSample& kernel : kernels) {
    const auto priced = cost.kernel(kernel.timed.facts, threads);
    verdicts.push_back(verdict_of(kernel, prices_of(kernel, *priced)));
  }
  return verdicts;
}

std::vector<KernelVerdict> judge_replicates(std::span<const KernelSample> kernels) {
  std::vector<KernelVerdict> verdicts;
  for (const KernelSample& kernel : kernels) {
    Rng rng(kernel.timed.facts->hash);
    KernelVerdict mean = {.kind = kernel.kind,
                          .program = kernel.programs.empty() ? "" : kernel.programs[0]};
    for (int r = 0; r < kReplicates; ++r) {
      // Either of two measurements is off.
      std::vector<double> again = kernel.timed.seconds;
      for (size_t i = 0; i < again.size(); ++i)
        again[i] *= std::exp(std::sqrt(2.0) * kernel.noise[i] * rng.normal());
      const KernelVerdict one = verdict_of(kernel, again);
      for (double KernelVerdict::* figure : kFigures) mean.*figure += one.*figure / kReplicates;
    }
    verdicts.push_back(std::move(mean));
  }
  return verdicts;
}

MeanVerdict mean_of(std::span<const KernelVerdict> verdicts, std::string_view kind) {
  MeanVerdict mean;
  for (const KernelVerdict& each : verdicts) {
    if (!kind.empty() && each.kind != kind) continue;
    ++mean.kernels;
    mean.tau += each.tau;
    mean.top1 += each.top1;
    mean.top5 += each.top5;
    mean.error += each.error;
    mean.planned += each.planned;
  }
  const double count = std::max<double>(static_cast<double>(mean.kernels), 1);
  for (double* each : {&mean.tau, &mean.top1, &mean.top5, &mean.error, &mean.planned})
    *each /= count;
  return mean;
}

PriceTrial judged(KernelModel model, std::span<const KernelSample> kernels, const Target& target) {
  PriceTrial trial;
  trial.model = std::move(model);
  const int64_t threads = trial.model.threads;
  const LearnedCost learned(target, std::make_shared<const KernelModel>(trial.model));
  const AnalyticCost plain(target);
  trial.plain = judge_prices(kernels, plain, threads);
  trial.fitted = judge_prices(kernels, AnalyticCost(target, trial.model.prices), threads);
  trial.learned = judge_prices(kernels, learned, threads);
  trial.again = judge_replicates(kernels);
  double known = 0;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const KernelFacts& facts = *kernels[k].timed.facts;
    trial.chosen.push_back(verdict_of_choice(kernels[k], plain, learned, threads));
    if (!learned.check_knows(facts, threads).ok()) continue;
    ++known;
    const RegretBound* bound = trial.model.bound_of(kernel_kind(facts, Algorithm::generic));
    if (bound == nullptr) continue;
    ++trial.bounded;
    trial.bound += bound->slower[0];
    if (trial.learned[k].top1 <= bound->slower[0]) ++trial.bound_holds;
  }
  const double bounded = std::max<double>(static_cast<double>(trial.bounded), 1);
  trial.bound /= bounded;
  trial.bound_holds /= bounded;
  trial.known = kernels.empty() ? 0 : known / static_cast<double>(kernels.size());
  return trial;
}

Result<PriceTrial> price_trial(const KernelData& data, const ProgramSplit& split,
                               const ModelTraining& options) {
  std::vector<KernelSample> train = part(data, split, Part::train);
  for (KernelSample& kernel : part(data, split, Part::validation))
    train.push_back(std::move(kernel));
  const auto began = std::chrono::steady_clock::now();
  KernelModel model = HONE_TRY(train_kernel_model(train, data.target, data.threads, options));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  PriceTrial trial = judged(std::move(model), part(data, split, Part::test), data.target);
  trial.seconds = took.count();
  return trial;
}

namespace {

class LeavingOut {
 public:
  LeavingOut(std::span<const MeasuredSet> sets, std::span<const MeasuredSet> others, size_t parts,
             const ModelTraining& options)
      : sets_(sets), others_(others), parts_(parts), options_(options) {
    std::vector<const KernelSample*> all;
    for (const auto& some : {sets, others})
      for (const MeasuredSet& set : some)
        for (const KernelSample& kernel : set.kernels) all.push_back(&kernel);
    const std::vector<std::vector<size_t>> folds = program_folds(all, parts, options.seed);
    for (size_t k = 0; k < all.size(); ++k) parts_of_[all[k]] = folds[k];
    for (const MeasuredSet& set : sets) processors_.insert(processor_of(set.target));
  }

  Result<LeftOutTrials> run() {
    for (const MeasuredSet& set : others_)
      if (processors_.contains(processor_of(set.target)))
        return bad_input(
            "'{}' is one of the processors that models learn from, so no judge of them",
            processor_of(set.target));
    LeftOutTrials trials;
    for (size_t part = 0; part < parts_; ++part) {
      const KernelModel model = HONE_TRY(trained("", part));
      HONE_TRY(judge(model, sets_, "", part, trials.family));
      HONE_TRY(judge(model, others_, "", part, trials.both));
    }
    if (!others_.empty()) {
      HONE_TRY(judge(HONE_TRY(trained("", {})), others_, "", {}, trials.processor));
      return trials;
    }
    size_t part = 0;
    for (const std::string& processor : processors_) {
      if (processors_.size() < kLeastProcessors) break;
      HONE_TRY(judge(HONE_TRY(trained(processor, {})), sets_, processor, {}, trials.processor));
      HONE_TRY(judge(HONE_TRY(trained(processor, part)), sets_, processor, part, trials.both));
      part = (part + 1) % parts_;
    }
    return trials;
  }

 private:
  static constexpr size_t kLeastProcessors = 3;  // one to leave out, and two to learn from

  // True if a program of the kernel is in the part; false without one.
  bool is_in(const KernelSample& kernel, std::optional<size_t> part) const {
    return part && std::ranges::binary_search(parts_of_.at(&kernel), *part);
  }

  // A model of all but the processor and the part.
  Result<KernelModel> trained(const std::string& processor, std::optional<size_t> part) const {
    std::vector<MeasuredSet> rest;
    for (const MeasuredSet& set : sets_) {
      if (processor_of(set.target) == processor) continue;
      MeasuredSet& to = rest.emplace_back(MeasuredSet{set.target, set.processor, set.threads, {}});
      for (const KernelSample& kernel : set.kernels)
        if (!is_in(kernel, part)) to.kernels.push_back(kernel);
    }
    if (options_.told)
      options_.told(fmt::format("without {}{}", processor.empty() ? "a processor" : processor,
                                part ? fmt::format(", part {} of {}", *part + 1, parts_) : ""));
    return train_kernel_model(rest, options_);
  }

  // Judges by the kernels of the processor, if one is named, and of the part, if there is one.
  Status judge(const KernelModel& model, std::span<const MeasuredSet> by,
               const std::string& processor, std::optional<size_t> part,
               std::vector<PriceTrial>& trials) const {
    for (const MeasuredSet& set : by) {
      if (!processor.empty() && processor_of(set.target) != processor) continue;
      std::vector<KernelSample> kernels;
      for (const KernelSample& kernel : set.kernels)
        if (!part || is_in(kernel, part)) kernels.push_back(kernel);
      if (kernels.empty()) continue;
      trials.push_back(judged(HONE_TRY(model_on(model, set.target)), kernels, set.target));
    }
    return {};
  }

  const std::span<const MeasuredSet> sets_, others_;
  const size_t parts_;
  const ModelTraining& options_;
  std::map<const KernelSample*, std::vector<size_t>> parts_of_;
  std::set<std::string> processors_;
};

}  // namespace

Result<LeftOutTrials> left_out_trials(std::span<const MeasuredSet> sets,
                                      std::span<const MeasuredSet> others, size_t parts,
                                      const ModelTraining& options) {
  return LeavingOut(sets, others, parts, options).run();
}

Result<std::vector<TimeVerdict>> time_trial(const KernelData& tiles, const KernelData& fusion,
                                            const ProgramSplit& split,
                                            const ModelTraining& options) {
  const std::vector<KernelSample> test = part(fusion, split, Part::test);
  std::vector<KernelSample> train;
  std::set<uint64_t> taken;  // a program of the test may have a kernel by other groups alone
  for (const KernelSample& kernel : test) taken.insert(kernel.timed.facts->hash);
  for (Part of : {Part::train, Part::validation})
    for (const KernelData* data : {&tiles, &fusion})
      for (KernelSample& kernel : part(*data, split, of))
        if (taken.insert(kernel.timed.facts->hash).second) train.push_back(std::move(kernel));
  const auto model = std::make_shared<const KernelModel>(
      HONE_TRY(train_kernel_model(train, fusion.target, fusion.threads, options)));
  const AnalyticCost analytic(fusion.target), fitted(fusion.target, model->prices);
  const LearnedCost learned(fusion.target, model);
  std::vector<TimeVerdict> verdicts;
  for (const KernelSample& kernel : test) {
    if (kernel.timed.seconds[0] < kLeastJudgedTime) continue;
    const auto price = [&](const Cost& cost) {
      return cost.kernel(kernel.timed.facts, fusion.threads)->seconds(kernel.timed.schedules[0]);
    };
    verdicts.push_back({.kind = kernel.kind,
                        .origin = kernel.origin,
                        .time = kernel.timed.seconds[0],
                        .analytic = price(analytic),
                        .fitted = price(fitted),
                        .learned = price(learned)});
  }
  return verdicts;
}

TimeErrors errors_of(std::span<const TimeVerdict> verdicts, double TimeVerdict::* price,
                     std::string_view kind, std::optional<KernelOrigin> origin) {
  std::vector<double> errors;
  TimeErrors found;
  for (const TimeVerdict& each : verdicts) {
    if ((!kind.empty() && each.kind != kind) || (origin && each.origin != *origin)) continue;
    errors.push_back(std::abs(each.*price / each.time - 1));
    found.mean += errors.back();
  }
  found.kernels = errors.size();
  found.mean /= static_cast<double>(errors.size());
  std::ranges::sort(errors);
  const size_t half = errors.size() / 2;
  found.median = errors.empty()           ? std::numeric_limits<double>::quiet_NaN()
                 : errors.size() % 2 == 1 ? errors[half]
                                          : (errors[half - 1] + errors[half]) / 2;
  return found;
}

ProgramSplit dissimilar_split(const KernelData& data, bool tests_convs) {
  std::map<std::string, std::pair<int64_t, int64_t>> counts;  // of kernels: convs and the like, all
  for (const KernelSample& kernel : data.kernels)
    for (const std::string& program : kernel.programs) {
      auto& [convs, all] = counts[program];
      ++all;
      const std::string_view kind = kernel.kind;
      if (kind.starts_with("conv") || kind == "depthwise" || kind == "grouped" || kind == "pool")
        ++convs;
    }
  ProgramSplit split;
  for (const auto& [program, count] : counts) {
    const bool is_conv = 2 * count.first > count.second;
    split.of(is_conv == tests_convs ? Part::test : Part::train).push_back(program);
  }
  return split;
}

double worst_program(std::span<const KernelVerdict> verdicts, std::span<const KernelVerdict> than) {
  std::map<std::string, std::pair<double, double>> sums;
  for (size_t k = 0; k < verdicts.size(); ++k) {
    auto& [mine, other] = sums[verdicts[k].program];
    mine += 1 + verdicts[k].top1;
    other += 1 + than[k].top1;
  }
  double worst = 0;
  for (const auto& [program, sum] : sums) worst = std::max(worst, sum.first / sum.second);
  return worst;
}

MeanInterval interval_of(std::span<const double> values) {
  // Student's t for 97.5 %, by degrees of freedom.
  constexpr double kStudent[] = {12.71, 4.303, 3.182, 2.776, 2.571,
                                 2.447, 2.365, 2.306, 2.262, 2.228};
  MeanInterval interval;
  const auto count = static_cast<double>(values.size());
  for (double each : values) interval.mean += each / count;
  double squares = 0;
  for (double each : values) squares += (each - interval.mean) * (each - interval.mean);
  interval.half = std::numeric_limits<double>::infinity();
  if (values.size() < 2) return interval;
  const double student = kStudent[std::min(values.size() - 2, std::size(kStudent) - 1)];
  interval.half = student * std::sqrt(squares / (count - 1) / count);
  return interval;
}

}  // namespace hone

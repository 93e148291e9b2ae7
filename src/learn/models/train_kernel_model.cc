#include "learn/models/train_kernel_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "base/hash.h"
#include "base/rng.h"
#include "cost/fast_model.h"
#include "cost/learned_cost.h"
#include "kernel/kernel_kind.h"
#include "learn/models/member_training.h"
#include "learn/ranking.h"
#include "learn/trainer.h"
#include "target/fingerprint.h"

namespace hone {
namespace {

constexpr int64_t kMostSlates = 2;     // of several sets: all processors count
constexpr int64_t kLeastBounded = 20;  // kernels of a kind, for a bound of its own
constexpr size_t kLeastPrograms = 2;   // that have a kind
constexpr double kHolds = 0.9;         // of bounds
constexpr double kLossesCount = 2;     // of choices, for one gain
constexpr double kMostGain = 0.7;      // that one choice counts for: twice as fast
constexpr size_t kLeastJudged = 9;     // kernels that a bound of nine in ten stands on
constexpr double kPulled = 2;          // kernels of the mean that a kind's level is held to
constexpr float kSlack = 0.05F;        // of a feature's range, on both sides

std::string_view kind_of(const KernelSample& kernel) {
  return kernel_kind(*kernel.timed.facts, Algorithm::generic);
}

// A set as training sees it.
struct LearnedSet {
  const Target* target = nullptr;
  int64_t threads = 1;
  TargetFeatures processor = {};  // of a model of several
  Prices prices = {};
  size_t number = 0;  // of the processor
};

class Training {
 public:
  explicit Training(const ModelTraining& options) : options_(options), network_(options.network) {
    model_.caution = options.caution;
    if (options.start != nullptr) {
      network_.width1 = static_cast<int64_t>(options.start->width1);
      network_.width2 = static_cast<int64_t>(options.start->width2);
    }
    model_.width1 = static_cast<size_t>(network_.width1);
    model_.width2 = static_cast<size_t>(network_.width2);
  }

  Result<KernelModel> run(std::span<const KernelSample> kernels, const Target& target,
                          int64_t threads) {
    add(kernels, {.target = &target, .threads = threads});
    threads_ = model_.threads = threads;
    model_.target = target.name;
    model_.fingerprint = fingerprint(target);
    model_.core = core_fingerprint(target);
    HONE_TRY(check_data());
    if (options_.fits_prices) {
      fit(sets_[0], kernels);
      model_.prices = sets_[0].prices;
    }
    return run();
  }

  Result<KernelModel> run(std::span<const MeasuredSet> sets) {
    std::vector<std::string> processors;
    for (const MeasuredSet& set : sets) {
      if (set.threads != sets[0].threads)
        return bad_input("one set is of {} threads, another of {}", sets[0].threads, set.threads);
      const std::string name = processor_of(set.target);
      auto at = std::ranges::find(processors, name);
      if (at == processors.end()) at = processors.insert(at, name);
      const TargetFeatures features = target_features(set.processor);
      if (std::ranges::any_of(features.all(), [](float each) { return std::isnan(each); }))
        return bad_input("nobody has measured the rates of '{}'", name)
            .with_hint("measured_set() takes them from the set's own kernels");
      add(set.kernels, {.target = &set.target,
                        .threads = set.threads,
                        .processor = features,
                        .number = static_cast<size_t>(at - processors.begin())});
      if (options_.fits_prices) fit(sets_.back(), set.kernels);
      model_.processors.targets.push_back(
          {.name = fmt::format("{}, {}", name, hone::name(set.target.isa)),
           .fingerprint = fingerprint(set.target),
           .core = core_fingerprint(set.target),
           .features = features,
           .prices = sets_.back().prices,
           .trust = {},
           .kernels = std::ssize(set.kernels)});
    }
    processors_ = processors.size();
    if (processors_ < 2)
      return bad_input("the sets are of one processor, which a model of one set is for")
          .with_hint("name one set");
    if (options_.start != nullptr)
      return usage_error("a model of several processors begins with random numbers");
    network_.knows_targets = options_.knows_targets;
    threads_ = model_.threads = sets[0].threads;
    model_.target = "any processor";
    HONE_TRY(check_data());
    return run();
  }

 private:
  void add(std::span<const KernelSample> kernels, const LearnedSet& set) {
    for (const KernelSample& kernel : kernels) {
      kernels_.push_back(&kernel);
      set_of_.push_back(sets_.size());
    }
    sets_.push_back(set);
  }

  const LearnedSet& set_of(size_t kernel) const { return sets_[set_of_[kernel]]; }
  bool is_of_several() const { return model_.is_of_several(); }

  Status check_data() {
    if (options_.members < 2)
      return usage_error("a model has two networks at least, not {}", options_.members);
    std::set<std::string> programs;
    for (const KernelSample* kernel : kernels_)
      programs.insert(kernel->programs.begin(), kernel->programs.end());
    if (programs.size() < 2 || kernels_.size() < 4)
      return bad_input("{} kernels of {} programs are too few to learn from", kernels_.size(),
                       programs.size())
          .with_hint("'hone dataset build' measures more");
    if (const KernelModel* start = options_.start)  // its networks have seen them
      programs.insert(start->programs.begin(), start->programs.end());
    model_.programs.assign(programs.begin(), programs.end());
    return {};
  }

  Result<KernelModel> run() {
    for (size_t k = 0; k < kernels_.size(); ++k) {
      described_.push_back(describe(*kernels_[k], *set_of(k).target, threads_, set_of(k).prices));
      if (!is_of_several()) continue;
      DescribedKernel plain = describe(*kernels_[k], *set_of(k).target, threads_, Prices());
      described_.back().plain_features = std::move(plain.features);
      described_.back().plain_analytic = std::move(plain.analytic);
      if (network_.knows_targets) described_.back().target = set_of(k).processor;
    }
    scale_ = scale_of(described_);
    if (is_of_several()) see_targets();
    see();
    folds_ = program_folds(kernels_, members(), options_.seed);
    if (is_of_several()) other_folds_ = program_folds(kernels_, processors_, options_.seed + 1);
    if (!options_.folder.empty()) drop_other_trainings();
    for (size_t m = 0; m < members() + processors_; ++m) HONE_TRY(train(m));
    judge();
    HONE_TRY(price());
    return std::move(model_);
  }

  size_t members() const { return static_cast<size_t>(options_.members); }

  void tell(std::string_view line) const {
    if (options_.told) options_.told(line);
  }

  void fit(LearnedSet& set, std::span<const KernelSample> kernels) const {
    const FittedPrices fitted = fitted_prices(kernels, *set.target, set.threads);
    set.prices = fitted.prices;
    tell(fmt::format("analytic price: loss {:.4f}, fitted {:.4f}", fitted.loss_before,
                     fitted.loss_after));
  }

  void see_targets() {
    ModelProcessors& seen = model_.processors;
    std::vector<TargetFeatures> all;
    for (const ModelTarget& each : seen.targets) all.push_back(each.features);
    scale_targets(all, scale_);
    std::ranges::copy(scale_.target_mean, seen.mean.all().begin());
    seen.low = seen.high = all[0];
    for (const TargetFeatures& each : all)
      for (size_t f = 0; f < kTargetFeatures; ++f) {
        seen.low.all()[f] = std::min(seen.low.all()[f], each.all()[f]);
        seen.high.all()[f] = std::max(seen.high.all()[f], each.all()[f]);
      }
  }

  // The kernels that the model will have seen.
  void see() {
    model_.low.fill(std::numeric_limits<float>::infinity());
    model_.high.fill(-std::numeric_limits<float>::infinity());
    for (const DescribedKernel& kernel : described_)
      for (const auto* features : {&kernel.features, &kernel.plain_features})
        for (const Features& each : *features)
          for (size_t f = 0; f < kFeatures; ++f) {
            model_.low[f] = std::min(model_.low[f], each.all()[f]);
            model_.high[f] = std::max(model_.high[f], each.all()[f]);
          }
    for (size_t f = 0; f < kFeatures; ++f) {
      const float slack = kSlack * (model_.high[f] - model_.low[f]);
      model_.low[f] -= slack;
      model_.high[f] += slack;
    }
    see_kinds();
    see_kernels();
  }

  // A kernel of one program alone does not show how good a network is for others.
  void see_kinds() {
    std::map<std::string, std::set<std::string_view>> programs;
    for (const KernelSample* kernel : kernels_) {
      std::set<Algorithm> algorithms;
      for (const Schedule& each : kernel->timed.schedules) algorithms.insert(each.algorithm());
      for (Algorithm each : algorithms) {
        const std::string what = fmt::format("{} {}", kind_of(*kernel), name(each));
        ++model_.seen[what];
        programs[what].insert(kernel->programs.begin(), kernel->programs.end());
      }
    }
    for (const auto& [what, its] : programs)
      if (its.size() < kLeastPrograms) model_.seen.erase(what);
  }

  void see_kernels() {
    const auto count = static_cast<float>(kernels_.size());
    for (size_t f = 0; f < kKernelFeatures; ++f) {
      float sum = 0, squares = 0;
      for (const DescribedKernel& kernel : described_) sum += kernel.features[0].all()[f] / count;
      for (const DescribedKernel& kernel : described_) {
        const float from = kernel.features[0].all()[f] - sum;
        squares += from * from / count;
      }
      model_.mean[f] = sum;
      model_.deviation[f] = std::max(std::sqrt(squares), 0.05F);
    }
    for (const DescribedKernel& kernel : described_) {
      std::array<float, kKernelFeatures>& at = model_.kernels.emplace_back();
      for (size_t f = 0; f < kKernelFeatures; ++f)
        at[f] = (kernel.features[0].all()[f] - model_.mean[f]) / model_.deviation[f];
    }
  }

  // True if the network does not see the kernel. Networks behind the first ones leave out a
  // processor.
  bool is_held_out(size_t kernel, size_t member) const {
    if (member < members()) return std::ranges::binary_search(folds_[kernel], member);
    const size_t processor = member - members();
    return set_of(kernel).number == processor ||
           std::ranges::binary_search(other_folds_[kernel], processor);
  }
  // True if the kernel says how good the network is for others: its programs are of the network's
  // part alone. So is its processor, where the network leaves one out.
  bool is_judged_by(size_t kernel, size_t member) const {
    if (member < members()) return folds_[kernel] == std::vector{member};
    const size_t processor = member - members();
    return set_of(kernel).number == processor && other_folds_[kernel] == std::vector{processor};
  }

  // Hashes all that networks learn from and begin with.
  std::string data_hash() const {
    Hasher hasher;
    const auto add = [&](std::span<const float> numbers) { hasher.add(std::as_bytes(numbers)); };
    for (const DescribedKernel& kernel : described_) {
      for (const Features& each : kernel.features) add(each.all());
      for (const auto* numbers : {&kernel.analytic, &kernel.times, &kernel.noise}) add(*numbers);
    }
    for (const DescribedKernel& kernel : described_) {
      if (kernel.target) add(kernel.target->all());
      for (const Features& each : kernel.plain_features) add(each.all());
      add(kernel.plain_analytic);
    }
    for (const auto* folds : {&folds_, &other_folds_})
      for (const std::vector<size_t>& its : *folds) hasher.add_range(its);
    for (size_t k = 0; k < kernels_.size() && is_of_several(); ++k) hasher.add(set_of(k).number);
    if (options_.start != nullptr)
      for (const ModelMember& member : options_.start->members)
        for (const NamedTensor& each : weights_of(member, scale_))
          hasher.add(each.name).add(each.tensor.bytes());
    return fmt::format("{:016x}", hasher.value());
  }

  // Checkpoints are of the data that their names say; those of other data are of no use any more.
  void drop_other_trainings() {
    namespace fs = std::filesystem;
    hash_ = data_hash();
    std::error_code failed;
    std::vector<fs::path> others;
    for (const auto& each : fs::directory_iterator(options_.folder, failed)) {
      const std::string name = each.path().filename().native();
      if (name.starts_with("member") && !name.ends_with(hash_)) others.push_back(each.path());
    }
    for (const fs::path& each : others) fs::remove_all(each, failed);
    if (!others.empty()) tell("the training that was broken off was of other data: it starts anew");
  }

  Status train(size_t member) {
    std::vector<DescribedKernel> seen;
    for (size_t k = 0; k < kernels_.size(); ++k)
      if (!is_held_out(k, member)) seen.push_back(described_[k]);
    if (seen.empty())
      return bad_input(
                 "network {} has nothing to learn from: each kernel is of a program that it "
                 "is judged by",
                 member + 1)
          .with_hint("'hone dataset build' measures more programs");
    const uint64_t seed = hash_combine(options_.seed, member);
    const KernelSlates slates(seen, scale_, options_.slate, seed, options_.jitter,
                              is_of_several() ? kMostSlates : INT64_MAX);
    const TrainingOptions training =
        HONE_TRY(member_training(options_, member, slates.size(), options_.slates, hash_));
    const Target here = HONE_TRY(host_target());  // prices may be for another machine
    Trainer trainer = HONE_TRY(Trainer::make(
        [this](Network& net) { return kernel_objective(net, network_); }, slates, here, training));
    if (const KernelModel* start = options_.start)
      HONE_TRY(
          trainer.begin_with(weights_of(start->members[member % start->members.size()], scale_)));
    if (!options_.folder.empty()) HONE_TRY(trainer.resume());
    const TrainingResult result = HONE_TRY(trainer.train());
    model_.members.push_back(member_of(trainer.weights(), scale_));
    if (is_of_several())  // one that does not know targets says the same of all
      model_.members.back().target.resize(kTargetFeatures * model_.width1);
    if (!result.epochs.empty())
      tell(fmt::format("network {} of {}: {} kernels, loss {:.4f}", member + 1,
                       members() + processors_, seen.size(), result.epochs.back().loss));
    return {};
  }

  // The answer of a network about a kernel that it has not seen.
  struct Judged {
    std::string_view kind;
    size_t schedules = 0;
    double distance = 0;         // from the nearest kernel that it has seen
    double learned = 0;          // the logarithm of its regret,
    double analytic = 0;         // and that of the analytic price
    std::vector<double> slower;  // by kMeasuredCounts: regrets
    double lead = 0, gain = 0;  // of its choice over the planner's: by price; in truth, a logarithm
    double short_by = 0;        // the logarithm of the planner's time for one of its price
  };

  // The prices of the kernels that a network is asked about.
  enum class By : uint8_t { fitted, plain };

  // The answers of networks about kernels that they have not seen: all, or those of one set.
  std::vector<Judged> judged_by(size_t first, size_t last, By by,
                                std::optional<size_t> of_set = {}) const {
    std::vector<Judged> all;
    for (size_t m = first; m < last; ++m) {
      KernelModel alone = model_;
      alone.members = {model_.members[m]};
      alone.kernels.clear();
      for (size_t k = 0; k < kernels_.size(); ++k)
        if (!is_held_out(k, m)) alone.kernels.push_back(model_.kernels[k]);
      std::vector<FastModel> fast;  // by set
      for (const LearnedSet& set : sets_) fast.emplace_back(on(alone, set, by));
      for (size_t k = 0; k < kernels_.size(); ++k)
        if (is_judged_by(k, m) && (!of_set || set_of_[k] == *of_set))
          all.push_back(judged(k, by, alone, fast[set_of_[k]]));
    }
    return all;
  }

  // The model on the target of a set. Without its prices its rates are unknown, too.
  KernelModel on(KernelModel model, const LearnedSet& set, By by) const {
    if (!model.is_of_several()) return model;
    if (by == By::plain)
      std::erase_if(model.processors.targets, [&](const ModelTarget& each) {
        return each.core == core_fingerprint(*set.target);
      });
    Result<KernelModel> made = model_on(std::move(model), *set.target);
    HONE_CHECK(made.ok(), "a model of several processors is for any");
    return *std::move(made);
  }

  void judge() {
    if (!is_of_several()) {
      const ModelTrust trust = trust_by(judged_by(0, members(), By::fitted));
      set_trust(trust);
      return;
    }
    std::vector<ModelTarget>& targets = model_.processors.targets;
    for (size_t s = 0; s < targets.size(); ++s)
      targets[s].trust = trust_by(judged_by(0, members(), By::fitted, s));
    model_.processors.fitted = abroad(By::fitted, "its coefficients");
    set_trust(abroad(By::plain, "default coefficients"));
  }

  ModelTrust abroad(By by, std::string_view coefficients) const {
    std::vector<Judged> judged = judged_by(members(), members() + processors_, by);
    ModelTrust trust = trust_by(judged);
    double gained = 0;
    for (const Judged& each : judged)
      if (each.lead > trust.lead) gained += each.gain;
    tell(
        fmt::format("on processors left out, by {}: {} kernels, a lead of {} gains {:.4f} of a "
                    "kernel's time",
                    coefficients, judged.size(), trust.lead,
                    gained / std::max<double>(static_cast<double>(judged.size()), 1)));
    return trust;
  }

  void set_trust(const ModelTrust& trust) {
    model_.reach = trust.reach;
    model_.bounds = trust.bounds;
    model_.lead = trust.lead;
    model_.levels = trust.levels;
  }

  // How far the kernels that were judged say that a model is to be trusted.
  static ModelTrust trust_by(std::vector<Judged> judged) {
    ModelTrust trust;
    find_levels(judged, trust);
    // Kernels with too few schedules have only an absolute time.
    std::erase_if(judged, [](const Judged& each) { return each.schedules < kLeastSchedules; });
    std::ranges::sort(judged, {}, &Judged::distance);
    trust.reach = reach_of(judged);
    std::erase_if(judged, [&](const Judged& each) { return each.distance > trust.reach; });
    if (judged.size() >= kLeastJudged) trust.bounds.push_back(bound_of(judged, ""));
    for (std::string_view kind : kKernelKinds)
      if (std::ranges::count(judged, kind, &Judged::kind) >= kLeastBounded)
        trust.bounds.push_back(bound_of(judged, kind));
    trust.lead = lead_of(judged);
    return trust;
  }

  Judged judged(size_t k, By by, const KernelModel& alone, const FastModel& fast) const {
    const DescribedKernel& kernel = described_[k];
    const bool is_plain = by == By::plain;
    const std::vector<Features>& features = is_plain ? kernel.plain_features : kernel.features;
    const std::vector<float>& prices = is_plain ? kernel.plain_analytic : kernel.analytic;
    const std::vector<double>& seconds = kernels_[k]->timed.seconds;
    std::vector<FastModel::Said> said(seconds.size());
    fast.run(features, said);
    std::vector<double> learned, analytic;
    for (size_t i = 0; i < seconds.size(); ++i) {
      analytic.push_back(std::exp(static_cast<double>(prices[i])));
      learned.push_back(analytic[i] * std::exp(static_cast<double>(said[i].mean)));
    }
    Judged judged{.kind = kind_of(*kernels_[k]), .schedules = seconds.size(), .slower = {}};
    judged.distance = alone.distance(features[0]);
    judged.learned = std::log(regret(learned, seconds, 1));
    judged.analytic = std::log(regret(analytic, seconds, 1));
    for (int64_t count : kMeasuredCounts)
      judged.slower.push_back(regret(learned, seconds, static_cast<size_t>(count)) - 1);
    const auto best = static_cast<size_t>(std::ranges::min_element(learned) - learned.begin());
    judged.lead = 1 - learned[best] / learned[0];
    judged.gain = std::clamp(std::log(seconds[0] / seconds[best]), -kMostGain, kMostGain);
    judged.short_by = std::log(seconds[0] / learned[0]);
    return judged;
  }

  // For each kind, the median of how far prices of the planner's schedules are too low. It is drawn
  // to the mean of all kernels, as if two more kernels of the kind had that mean.
  static void find_levels(std::span<const Judged> judged, ModelTrust& trust) {
    double all = 0;
    std::map<std::string_view, std::vector<double>> by_kind;
    for (const Judged& each : judged) {
      all += each.short_by / static_cast<double>(judged.size());
      by_kind[each.kind].push_back(each.short_by);
    }
    for (auto& [kind, short_by] : by_kind) {
      std::ranges::nth_element(short_by, short_by.begin() + std::ssize(short_by) / 2);
      const auto count = static_cast<double>(short_by.size());
      const double middle = short_by[short_by.size() / 2];
      trust.levels[std::string(kind)] = (count * middle + kPulled * all) / (count + kPulled);
    }
  }

  // As far as the networks gain most over the analytic price.
  static double reach_of(std::span<const Judged> judged) {
    double gained = 0, most = 0, reach = 0;
    for (const Judged& each : judged) {
      gained += each.analytic - each.learned;
      if (gained >= most) most = gained, reach = each.distance;
    }
    return reach;
  }

  // The quantile of split conformal prediction, of a kind or of all.
  static RegretBound bound_of(std::span<const Judged> judged, std::string_view kind) {
    RegretBound bound{.kind = std::string(kind), .slower = {}};
    for (size_t c = 0; c < std::size(kMeasuredCounts); ++c) {
      std::vector<double> slower;
      for (const Judged& each : judged)
        if (kind.empty() || each.kind == kind) slower.push_back(each.slower[c]);
      std::ranges::sort(slower);
      const auto at =
          static_cast<size_t>(std::ceil(kHolds * static_cast<double>(slower.size() + 1)));
      bound.slower.push_back(slower[at - 1]);
    }
    return bound;
  }

  // The lead with which choices gain most over the planner's. Losses count more: whoever plans
  // without measuring does not see them.
  static double lead_of(std::span<const Judged> judged) {
    double most = 0, best = kNoLead;
    for (double lead : {0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2}) {
      double gained = 0;
      for (const Judged& each : judged)
        if (each.lead > lead) gained += each.gain < 0 ? kLossesCount * each.gain : each.gain;
      if (gained > most) most = gained, best = lead;
    }
    return best;
  }

  // KernelModel::priced.
  Status price() {
    model_.priced.resize(kernels_.size());
    std::vector<LearnedCost> costs;  // by set
    for (const LearnedSet& set : sets_)
      costs.emplace_back(*set.target,
                         std::make_shared<const KernelModel>(
                             HONE_TRY(model_on(model_, *set.target))));
    for (size_t k = 0; k < kernels_.size(); ++k)
      model_.priced[k] = mean_log_price(kernels_[k]->timed, costs[set_of_[k]], threads_);
    return {};
  }

  const ModelTraining& options_;
  NetworkOptions network_;
  std::vector<LearnedSet> sets_;
  size_t processors_ = 0;  // of several
  int64_t threads_ = 1;
  // A row for each kernel of any set:
  std::vector<const KernelSample*> kernels_;
  std::vector<size_t> set_of_;
  std::vector<DescribedKernel> described_;
  std::vector<std::vector<size_t>> folds_;        // the first networks that do not see it
  std::vector<std::vector<size_t>> other_folds_;  // the same of networks without a processor
  FeatureScale scale_;
  std::string hash_;  // data_hash(), if there are checkpoints
  KernelModel model_;
};

}  // namespace

float mean_log_price(const TimedKernel& kernel, const Cost& cost, int64_t threads) {
  std::vector<double> prices(kernel.schedules.size());
  cost.kernel(kernel.facts, threads)
      ->price(kernel.schedules, std::numeric_limits<double>::infinity(), prices);
  double sum = 0;
  for (double each : prices) sum += std::log(each);
  return static_cast<float>(sum / static_cast<double>(prices.size()));
}

std::vector<std::vector<size_t>> program_folds(std::span<const KernelSample> kernels, size_t count,
                                               uint64_t seed) {
  std::vector<const KernelSample*> all;
  for (const KernelSample& kernel : kernels) all.push_back(&kernel);
  return program_folds(all, count, seed);
}

std::vector<std::vector<size_t>> program_folds(std::span<const KernelSample* const> kernels,
                                               size_t count, uint64_t seed) {
  std::set<std::string_view> names;
  for (const KernelSample* kernel : kernels)
    for (const std::string& program : kernel->programs) names.insert(family_of(program));
  const auto group_of = [has_families = names.size() >= count](std::string_view program) {
    return has_families ? family_of(program) : program;
  };
  std::map<std::string_view, size_t> kernels_of;  // by group, of which a kernel's first program is
  for (const KernelSample* kernel : kernels) {
    for (const std::string& program : kernel->programs) kernels_of[group_of(program)];
    if (!kernel->programs.empty()) ++kernels_of[group_of(kernel->programs[0])];
  }
  std::vector<std::pair<std::string_view, size_t>> groups(kernels_of.begin(), kernels_of.end());
  Rng(seed).shuffle(groups);
  std::vector<size_t> order(groups.size());  // the largest first
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, std::greater<>(),
                    [&](size_t i) { return std::pair(groups[i].second, i); });
  std::vector<size_t> sizes(count);
  std::map<std::string_view, size_t> fold_of;
  for (size_t i : order) {
    const auto& [group, size] = groups[i];
    const auto least = static_cast<size_t>(std::ranges::min_element(sizes) - sizes.begin());
    sizes[least] += size;
    fold_of[group] = least;
  }
  std::vector<std::vector<size_t>> folds;
  for (const KernelSample* kernel : kernels) {
    std::set<size_t> its;
    for (const std::string& program : kernel->programs) its.insert(fold_of[group_of(program)]);
    folds.emplace_back(its.begin(), its.end());
  }
  return folds;
}

Result<KernelModel> train_kernel_model(std::span<const KernelSample> kernels, const Target& target,
                                       int64_t threads, const ModelTraining& options) {
  return Training(options).run(kernels, target, threads);
}

Result<KernelModel> train_kernel_model(std::span<const MeasuredSet> sets,
                                       const ModelTraining& options) {
  return Training(options).run(sets);
}

}  // namespace hone

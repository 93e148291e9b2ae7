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
#include "learn/models/model_trust.h"
#include "learn/ranking.h"
#include "learn/trainer.h"
#include "target/fingerprint.h"

namespace hone {
namespace {

constexpr int64_t kMostSlates = 2;    // of several sets: all processors count
constexpr size_t kLeastPrograms = 2;  // that have a kind
constexpr double kMostGain = 0.7;     // that one choice counts for: twice as fast
constexpr float kSlack = 0.05F;       // of a feature's range, on both sides

std::string_view kind_of(const KernelSample& kernel) {
  return kernel_kind(*kernel.timed.facts, Algorithm::generic);
}

// A set as training sees it.
struct LearnedSet {
  const Target* target = nullptr;
  int64_t threads = 1;
  const Target* processor = nullptr;  // of a model of several: MeasuredSet::processor
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
                        .processor = &set.processor,
                        .number = static_cast<size_t>(at - processors.begin())});
      if (options_.fits_prices) fit(sets_.back(), set.kernels);
      model_.processors.targets.push_back(
          {.name = fmt::format("{}, {}", name, hone::name(set.target.isa)),
           .fingerprint = fingerprint(set.target),
           .core = core_fingerprint(set.target),
           .features = features,
           .prices = sets_.back().prices,
           .trust = {},
           .members = {},
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
  // The prices of the kernels that a network is asked about.
  enum class By : uint8_t { fitted, plain };

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
      if (network_.knows_targets) described_.back().target = target_features(*set_of(k).processor);
    }
    scale_ = scale_of(described_);
    if (is_of_several()) see_targets();
    see();
    folds_ = program_folds(kernels_, members(), options_.seed);
    if (is_of_several()) other_folds_ = program_folds(kernels_, processors_, options_.seed + 1);
    if (!options_.folder.empty()) drop_other_trainings();
    for (size_t m = 0; m < members() + processors_; ++m) HONE_TRY(train(m));
    for (size_t s = 0; s < sets_.size() && is_of_several(); ++s) HONE_TRY(go_on(s));
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
    std::vector<NamedTensor> start;
    if (const KernelModel* from = options_.start)
      start = weights_of(from->members[member % from->members.size()], scale_);
    model_.members.push_back(HONE_TRY(trained(seen, member, network_, options_, start)));
    if (is_of_several())  // one that does not know targets says the same of all
      model_.members.back().target.resize(kTargetFeatures * model_.width1);
    return {};
  }

  // Networks of one processor begin with the common ones and see its kernels alone, by all of
  // their schedules. Each leaves out the programs that the common one does.
  Status go_on(size_t set) {
    const KernelModel common = abroad(model_, sets_[set], By::fitted);
    NetworkOptions network = network_;
    network.knows_targets = false;  // they are in the biases
    ModelTraining options = options_;
    options.epochs = options_.own_epochs;
    options.rate = options_.own_rate;
    for (size_t m = 0; m < members(); ++m) {
      std::vector<DescribedKernel> seen;
      for (size_t k = 0; k < kernels_.size(); ++k)
        if (set_of_[k] == set && !is_held_out(k, m)) seen.push_back(of_one(described_[k]));
      const size_t number = (set + 1) * members() + processors_ + m;
      model_.processors.targets[set].members.push_back(
          seen.empty()
              ? common.members[m]
              : HONE_TRY(trained(seen, number, network, options,
                                 weights_of(common.members[m], scale_))));
    }
    return {};
  }

  static DescribedKernel of_one(DescribedKernel kernel) {
    kernel.target.reset();
    kernel.plain_features.clear();
    kernel.plain_analytic.clear();
    return kernel;
  }

  // A network that begins with these weights, or with random numbers. Its number is its own.
  Result<ModelMember> trained(std::span<const DescribedKernel> seen, size_t number,
                              const NetworkOptions& network, const ModelTraining& options,
                              std::span<const NamedTensor> start) {
    const KernelSlates slates(seen, scale_, options.slate, hash_combine(options.seed, number),
                              options.jitter,
                              seen[0].plain_features.empty() ? INT64_MAX : kMostSlates);
    const TrainingOptions training =
        HONE_TRY(member_training(options, number, slates.size(), options.slates, hash_));
    const Target here = HONE_TRY(host_target());  // prices may be for another machine
    Trainer trainer =
        HONE_TRY(Trainer::make([&network](Network& net) { return kernel_objective(net, network); },
                               slates, here, training));
    if (!start.empty()) HONE_TRY(trainer.begin_with(start));
    if (!options.folder.empty()) HONE_TRY(trainer.resume());
    const TrainingResult result = HONE_TRY(trainer.train());
    if (!result.epochs.empty())
      tell(fmt::format("network {} of {}: {} kernels, loss {:.4f}", number + 1,
                       members() * (1 + model_.processors.targets.size()) + processors_,
                       seen.size(), result.epochs.back().loss));
    return member_of(trainer.weights(), scale_);
  }

  // The answers of networks about kernels that they have not seen: all, or those of one set.
  std::vector<JudgedKernel> judged_by(size_t first, size_t last, By by,
                                      std::optional<size_t> of_set = {}) const {
    std::vector<JudgedKernel> all;
    for (size_t m = first; m < last; ++m) {
      KernelModel alone = model_;
      alone.members = {model_.members[m]};
      alone.kernels.clear();
      for (size_t k = 0; k < kernels_.size(); ++k)
        if (!is_held_out(k, m)) alone.kernels.push_back(model_.kernels[k]);
      std::vector<FastModel> fast;  // by set
      for (size_t s = 0; s < sets_.size(); ++s) fast.emplace_back(asked(alone, s, m, by));
      for (size_t k = 0; k < kernels_.size(); ++k)
        if (is_judged_by(k, m) && (!of_set || set_of_[k] == *of_set))
          all.push_back(judged(k, by, alone, fast[set_of_[k]]));
    }
    return all;
  }

  // The network that answers for the model of this one alone, about kernels of a set.
  KernelModel asked(KernelModel alone, size_t set, size_t member, By by) const {
    if (!alone.is_of_several()) return alone;
    if (member >= members()) return abroad(std::move(alone), sets_[set], by);
    alone.members = {alone.processors.targets[set].members[member]};
    return alone;
  }

  // The model on the processor of a set as if it had not learned from that. Without fitted prices
  // rates are unknown, too.
  static KernelModel abroad(KernelModel model, const LearnedSet& set, By by) {
    std::erase_if(model.processors.targets, [&](const ModelTarget& each) {
      return each.core == core_fingerprint(*set.target);
    });
    Result<KernelModel> made =
        model_on(std::move(model), by == By::fitted ? *set.processor : *set.target);
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
    model_.processors.fitted = trust_abroad(By::fitted, "its coefficients");
    set_trust(trust_abroad(By::plain, "default coefficients"));
  }

  ModelTrust trust_abroad(By by, std::string_view coefficients) const {
    std::vector<JudgedKernel> judged = judged_by(members(), members() + processors_, by);
    ModelTrust trust = trust_by(judged);
    double gained = 0;
    for (const JudgedKernel& each : judged)
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

  JudgedKernel judged(size_t k, By by, const KernelModel& alone, const FastModel& fast) const {
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
    JudgedKernel judged{.kind = kind_of(*kernels_[k]), .schedules = seconds.size(), .slower = {}};
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

#include "learn/models/train_plan_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/hash.h"
#include "base/rng.h"
#include "learn/kernel_data.h"
#include "learn/models/plan_network.h"
#include "learn/trainer.h"
#include "target/fingerprint.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr double kMostPlanGain = 0.7;  // of a choice that counts: a logarithm
constexpr double kPlanLossesCount = 2;

class PlanModelTraining {
 public:
  PlanModelTraining(std::span<const PlanPairs> data, const Target& target,
                    const PlanTraining& options)
      : data_(data), target_(target), options_(options) {}

  Result<TrainedPlans> run() {
    HONE_TRY(check_data());
    PlanModel& model = result_.model;
    model.target = target_.name;
    model.fingerprint = data_[0].target;
    model.threads = data_[0].threads;
    model.prices = data_[0].prices;
    std::set<std::string> programs;
    for (const PlanPairs& each : data_) programs.insert(each.program);
    model.programs.assign(programs.begin(), programs.end());
    const std::vector<PlanSample> all = samples([](size_t) { return true; });
    model.pairs = std::ssize(all);
    scale_ = scale_of(all);
    model.mean = scale_.mean;
    model.factor = scale_.factor;
    HONE_TRY(prepare_folder());
    for (size_t m = 0; m < members(); ++m) HONE_TRY(train(m));
    for (size_t p = 0; p < data_.size(); ++p) result_.choices.push_back(choice(p));
    model.lead = lead_of(result_.choices);
    judge();
    return std::move(result_);
  }

 private:
  size_t members() const { return static_cast<size_t>(options_.members); }

  Status check_data() {
    if (options_.members < 2 || options_.members > kMostNetworks)
      return usage_error("{} networks are outside of 2..{}", options_.members, kMostNetworks);
    std::set<std::string_view> families;
    size_t pairs = 0;
    for (const PlanPairs& each : data_) {
      const PlanPairs& first = data_[0];
      if (each.target != fingerprint(target_))
        return bad_input("the plans of '{}' were measured on another target than '{}'",
                         each.program, target_.name);
      if (each.threads != first.threads)
        return bad_input("the plans of '{}' are of {} threads, those of '{}' of {}", first.program,
                         first.threads, each.program, each.threads);
      if (each.prices != first.prices)
        return bad_input("the plans of '{}' and of '{}' have other prices", first.program,
                         each.program)
            .with_hint("'hone dataset build --task plans' measures both by the same");
      if (!each.pairs.empty()) families.insert(family_of(each.program));
      pairs += each.pairs.size();
    }
    if (families.size() < 2)
      return bad_input("{} pairs of plans of {} families of programs are too few to learn from",
                       pairs, families.size())
          .with_hint("'hone dataset build --task plans' adds programs");
    std::vector<std::string_view> order(families.begin(), families.end());
    Rng(options_.seed).shuffle(order);
    for (size_t f = 0; f < order.size(); ++f) part_of_[order[f]] = f % members();
    return {};
  }

  size_t part(size_t program) const {
    const auto at = part_of_.find(family_of(data_[program].program));
    return at == part_of_.end() ? 0 : at->second;
  }

  template <class IsWanted>
  std::vector<PlanSample> samples(const IsWanted& is_wanted) const {
    std::vector<PlanSample> all;
    for (size_t p = 0; p < data_.size(); ++p)
      if (is_wanted(p))
        for (const PlanPair& pair : data_[p].pairs) all.push_back({&data_[p], &pair});
    return all;
  }

  // All that networks follow from.
  std::string data_hash() const {
    Hasher hasher(options_.seed);
    hasher.add(options_.members).add(options_.epochs).add(options_.rate).add(options_.pairs);
    for (const PlanPairs& each : data_)
      for (const NamedTensor& array : arrays_of(each))
        hasher.add(std::string_view(array.name)).add(array.tensor.bytes());
    return fmt::format("{:016x}", hasher.value());
  }

  // Checkpoints of other data are of no use.
  Status prepare_folder() {
    if (options_.folder.empty()) return {};
    hash_ = data_hash();
    std::error_code failed;
    fs::create_directories(options_.folder, failed);
    if (failed)
      return bad_input("cannot create '{}': {}", options_.folder.native(), failed.message());
    std::vector<fs::path> others;
    for (const fs::directory_entry& each : fs::directory_iterator(options_.folder, failed))
      if (!each.path().filename().native().ends_with(hash_)) others.push_back(each.path());
    for (const fs::path& each : others) fs::remove_all(each, failed);
    if (!others.empty()) tell("the training that was broken off was of other data: it starts anew");
    return {};
  }

  Status train(size_t member) {
    std::vector<PlanSample> seen = samples([&](size_t p) { return part(p) != member; });
    if (seen.empty()) seen = samples([](size_t) { return true; });  // its part has no pairs
    const PlanPairsData pairs(std::move(seen), scale_);
    TrainingOptions training;
    training.loader.batch_size = std::min(options_.pairs, pairs.size());
    training.epochs = options_.epochs;
    training.seed = hash_combine(options_.seed, member);
    training.update.clip_norm = 1;
    training.update.optimizer = HONE_TRY(find_optimizer("adamw"));
    training.compile = options_.compile;
    training.compile.cancel = options_.cancel;
    // One thread takes sums in one order, and the price of the step's plan is always the same one.
    training.compile.plan.threads = 1;
    training.compile.cost = nullptr;
    const int64_t steps = options_.epochs * (pairs.size() / training.loader.batch_size);
    training.rate = cosine_rate(options_.rate, steps / 20 + 1, steps);
    if (!options_.folder.empty())
      training.folder = options_.folder / fmt::format("member{}-{}", member, hash_);
    const Target here = HONE_TRY(host_target());
    Trainer trainer = HONE_TRY(Trainer::make(plan_objective, pairs, here, training));
    if (!options_.folder.empty()) HONE_TRY(trainer.resume());
    const TrainingResult result = HONE_TRY(trainer.train());
    result_.model.members.push_back(plan_member_of(trainer.weights()));
    if (!result.epochs.empty())
      tell(fmt::format("network {} of {}: {} pairs of plans, loss {:.4f}", member + 1, members(),
                       pairs.size(), result.epochs.back().loss));
    return {};
  }

  // The choice of the one network that has not seen the program.
  PlanChoice choice(size_t program) const {
    const PlanPairs& its = data_[program];
    PlanModel alone = result_.model;
    alone.members = {result_.model.members[part(program)]};
    PlanChoice choice{.program = its.program};
    std::vector<double> said;
    for (const PlanGraph& plan : its.plans) said.push_back(log_seconds(alone, plan)[0]);
    for (const PlanPair& pair : its.pairs) {
      const double learned = said[pair.second] - said[pair.first];
      const double priced =
          std::log(its.plans[pair.second].seconds / its.plans[pair.first].seconds);
      if (std::abs(pair.ratio) > 2 * pair.noise) {
        ++choice.sure;
        choice.ordered += (learned > 0) == (pair.ratio > 0) ? 1 : 0;
        choice.by_price += (priced > 0) == (pair.ratio > 0) ? 1 : 0;
      }
      if (pair.first != 0) continue;  // only those say what a choice gains over the usual plan
      ++choice.plans;
      choice.most = std::max(choice.most, -double{pair.ratio});
      if (-learned <= choice.lead) continue;
      choice.lead = -learned;
      choice.gain = std::clamp(-double{pair.ratio}, -kMostPlanGain, kMostPlanGain);
    }
    return choice;
  }

  void judge() {
    PlanModel& model = result_.model;
    double sum = 0;
    for (const PlanChoice& choice : result_.choices) {
      if (choice.plans == 0) continue;
      ++model.judged;
      if (choice.lead > model.lead) sum += choice.gain;
    }
    if (model.judged > 0) model.gain = std::max(sum / static_cast<double>(model.judged), 0.0);
  }

  void tell(std::string_view line) const {
    if (options_.told) options_.told(line);
  }

  static constexpr int64_t kMostNetworks = 64;

  const std::span<const PlanPairs> data_;
  const Target& target_;
  const PlanTraining& options_;
  std::map<std::string_view, size_t> part_of_;  // by family
  PlanScale scale_;
  std::string hash_;
  TrainedPlans result_;
};

}  // namespace

Result<TrainedPlans> train_plan_model(std::span<const PlanPairs> data, const Target& target,
                                      const PlanTraining& options) {
  return PlanModelTraining(data, target, options).run();
}

double lead_of(std::span<const PlanChoice> choices) {
  const auto judged =
      std::ranges::count_if(choices, [](const PlanChoice& c) { return c.plans > 0; });
  if (judged < kLeastPlanPrograms) return kNoPlanLead;
  double most = 0, best = kNoPlanLead;
  for (double lead : {0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1}) {
    double gained = 0;
    for (const PlanChoice& each : choices)
      if (each.lead > lead) gained += each.gain < 0 ? kPlanLossesCount * each.gain : each.gain;
    if (gained > most) most = gained, best = lead;
  }
  return best;
}

}  // namespace hone

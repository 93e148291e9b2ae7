#include "learn/models/train_plan_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/hash.h"
#include "base/rng.h"
#include "cost/votes.h"
#include "learn/kernel_data.h"
#include "learn/models/member_training.h"
#include "learn/models/plan_network.h"
#include "learn/trainer.h"
#include "target/fingerprint.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr double kMostPlanGain = 0.7;  // of a choice that counts: a logarithm
constexpr double kPlanLossesCount = 2;
constexpr double kPlanLeads[] = {0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1};

// The gain of choices over the usual plans. Programs of a family are alike, so each family counts
// as one. Its deviation is that of the times, and of families from each other.
struct GainOfPlans {
  double sum = 0, variance = 0;
  bool is_sure() const {
    return sum > deviations_for(kUsualSureness) * std::sqrt(variance) && sum > 0;
  }
};

// Each choice has a lead of its own.
template <class LeadFor>
GainOfPlans gain_of_plans(std::span<const PlanChoice> choices, const LeadFor& lead_for) {
  struct Family {
    double sum = 0, variance = 0, programs = 0;
    bool has_choice = false;
  };
  std::map<std::string_view, Family> families;
  for (const PlanChoice& each : choices) {
    if (each.plans == 0) continue;
    Family& family = families[family_of(each.program)];
    ++family.programs;
    if (each.lead <= lead_for(each)) continue;
    const double counts = each.gain < 0 ? kPlanLossesCount : 1;
    family.has_choice = true;
    family.sum += counts * each.gain;
    family.variance += counts * each.noise * counts * each.noise;
  }
  GainOfPlans all;
  double squares = 0, count = 0;
  for (const auto& [name, family] : families) {
    if (!family.has_choice) continue;
    const double mean = family.sum / family.programs;
    ++count;
    all.sum += mean;
    squares += mean * mean;
    all.variance += family.variance / (family.programs * family.programs);
  }
  if (count > 1)
    all.variance += std::max(squares - all.sum * all.sum / count, 0.0) * count / (count - 1);
  return all;
}

// The lead with which choices gained most, if surely.
double surest_lead(std::span<const PlanChoice> choices) {
  double most = 0, best = kNoPlanLead;
  for (double lead : kPlanLeads) {
    const GainOfPlans gained = gain_of_plans(choices, [&](const PlanChoice&) { return lead; });
    if (gained.is_sure() && gained.sum > most) most = gained.sum, best = lead;
  }
  return best;
}

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
    const PlanScale scale = scale_of(all);
    model.mean = scale.mean;
    model.factor = scale.factor;
    HONE_TRY(prepare_folder());
    for (size_t m = 0; m < members(); ++m) HONE_TRY(train(m));
    for (size_t p = 0; p < data_.size(); ++p) result_.choices.push_back(choice(p));
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
    const std::vector<PlanSample> seen = samples([&](size_t p) { return part(p) != member; });
    const PlanScale scale = scale_of(seen);  // the left-out programs say nothing, not even this
    const PlanPairsData pairs(std::move(seen), scale);
    const TrainingOptions training =
        HONE_TRY(member_training(options_, member, pairs.size(), options_.pairs, hash_));
    const Target here = HONE_TRY(host_target());
    Trainer trainer = HONE_TRY(Trainer::make(plan_objective, pairs, here, training));
    if (!options_.folder.empty()) HONE_TRY(trainer.resume());
    const TrainingResult result = HONE_TRY(trainer.train());
    result_.model.members.push_back(
        rescaled(plan_member_of(trainer.weights()), scale, result_.model));
    if (!result.epochs.empty())
      tell(fmt::format("network {} of {}: {} pairs of plans, loss {:.4f}", member + 1, members(),
                       pairs.size(), result.epochs.back().loss));
    return {};
  }

  // The choice among the plans that the planner would ask about, as best_of() makes it. The network
  // that has not seen the program says by how much plans are faster; how far that may be off, all
  // say, as they do in use.
  PlanChoice choice(size_t program) const {
    const PlanPairs& its = data_[program];
    PlanChoice choice{.program = its.program};
    std::vector<Votes> votes;
    std::vector<double> said;
    for (const PlanGraph& plan : its.plans) {
      const std::vector<double> all = log_seconds(result_.model, plan);
      said.push_back(all[part(program)]);
      Votes& its_votes = votes.emplace_back();
      for (double each : all) its_votes.seconds.push_back(std::exp(each));
    }
    const double deviations = deviations_for(kUsualSureness);
    for (const PlanPair& pair : its.pairs) {
      const double learned = said[pair.second] - said[pair.first];
      const double priced =
          std::log(its.plans[pair.second].seconds / its.plans[pair.first].seconds);
      if (std::abs(pair.ratio) > 2 * pair.noise) {
        ++choice.sure;
        choice.ordered += (learned > 0) == (pair.ratio > 0) ? 1 : 0;
        choice.by_price += (priced > 0) == (pair.ratio > 0) ? 1 : 0;
      }
      // Only those say what a choice gains over the usual plan.
      if (pair.first != 0 || !its.is_offered[pair.second]) continue;
      ++choice.plans;
      choice.most = std::max(choice.most, -double{pair.ratio});
      const double doubt = deviations * gain_of(votes[pair.second], votes[0]).deviation;
      if (-learned <= std::max(choice.lead, doubt)) continue;
      choice.lead = -learned;
      choice.noise = double{pair.noise};
      choice.gain = std::clamp(-double{pair.ratio}, -kMostPlanGain, kMostPlanGain);
    }
    return choice;
  }

  // The lead of all choices, if each family by the lead of the others gains surely, too.
  void judge() {
    PlanModel& model = result_.model;
    model.lead = lead_of(result_.choices);
    std::map<std::string_view, double> leads;  // by family, from the others
    for (const PlanChoice& choice : result_.choices) {
      if (choice.plans == 0) continue;
      ++model.judged;
      leads.try_emplace(family_of(choice.program), kNoPlanLead);
    }
    for (auto& [family, lead] : leads) {
      std::vector<PlanChoice> others;
      for (const PlanChoice& choice : result_.choices)
        if (family_of(choice.program) != family) others.push_back(choice);
      lead = surest_lead(others);
    }
    const auto lead_for = [&](const PlanChoice& choice) {
      return leads.at(family_of(choice.program));
    };
    if (!gain_of_plans(result_.choices, lead_for).is_sure()) model.lead = kNoPlanLead;
    if (!model.gains()) return;
    double sum = 0;
    for (const PlanChoice& choice : result_.choices)
      if (choice.plans > 0 && choice.lead > lead_for(choice)) sum += choice.gain;
    model.gain = std::max(sum / static_cast<double>(model.judged), 0.0);
  }

  void tell(std::string_view line) const {
    if (options_.told) options_.told(line);
  }

  static constexpr int64_t kMostNetworks = 64;

  const std::span<const PlanPairs> data_;
  const Target& target_;
  const PlanTraining& options_;
  std::map<std::string_view, size_t> part_of_;  // by family
  std::string hash_;
  TrainedPlans result_;
};

}  // namespace

Result<TrainedPlans> train_plan_model(std::span<const PlanPairs> data, const Target& target,
                                      const PlanTraining& options) {
  return PlanModelTraining(data, target, options).run();
}

double lead_of(std::span<const PlanChoice> choices) {
  std::set<std::string_view> families;
  for (const PlanChoice& each : choices)
    if (each.plans > 0) families.insert(family_of(each.program));
  return std::ssize(families) < kLeastPlanFamilies ? kNoPlanLead : surest_lead(choices);
}

PlanMember rescaled(PlanMember member, const PlanScale& from, const PlanModel& to) {
  for (size_t f = 0; f < kPlanFeatures; ++f)
    for (size_t k = 0; k < PlanMember::kWidth; ++k) {
      float& weight = member.input[f * PlanMember::kWidth + k];
      const float of_feature = weight * from.factor[f];
      member.bias0[k] += of_feature * (to.mean[f] - from.mean[f]);
      weight = to.factor[f] == 0 ? 0 : of_feature / to.factor[f];
    }
  return member;
}

}  // namespace hone

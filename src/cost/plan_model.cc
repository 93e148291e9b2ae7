#include "cost/plan_model.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/team.h"
#include "base/text.h"
#include "cost/learned_cost.h"
#include "cost/model_file.h"
#include "cost/votes.h"
#include "target/fingerprint.h"

namespace hone {
namespace {

constexpr size_t kWide = PlanMember::kWidth;
using States = std::vector<std::array<float, kWide>>;

// ---- Networks -----------------------------------------------------------------------------------

void add_product(std::span<const float> x, std::span<const float> weights,
                 std::array<float, kWide>& to) {
  for (size_t i = 0; i < x.size(); ++i)
    if (x[i] != 0)
      for (size_t j = 0; j < kWide; ++j) to[j] += x[i] * weights[i * kWide + j];
}

std::array<float, kWide> begun_with(std::span<const float> bias) {
  std::array<float, kWide> state;
  std::ranges::copy(bias, state.begin());
  return state;
}

void relu(std::array<float, kWide>& state) {
  for (float& each : state) each = std::max(each, 0.0F);
}

States first_states(const PlanModel& model, const PlanMember& member, const PlanGraph& plan) {
  States states;
  states.reserve(plan.nodes.size());
  PlanRow x;
  for (const PlanRow& node : plan.nodes) {
    for (size_t f = 0; f < kPlanFeatures; ++f) x[f] = (node[f] - model.mean[f]) * model.factor[f];
    states.push_back(begun_with(member.bias0));
    add_product(x, member.input, states.back());
    relu(states.back());
  }
  return states;
}

// The mean of the states of those from where an edge comes, or to where it goes.
States heard(const PlanGraph& plan, const States& states, uint32_t PlanEdge::* here,
             uint32_t PlanEdge::* there) {
  States sums(states.size());
  std::vector<float> counts(states.size());
  for (const PlanEdge& edge : plan.edges) {
    ++counts[edge.*here];
    for (size_t j = 0; j < kWide; ++j) sums[edge.*here][j] += states[edge.*there][j];
  }
  for (size_t n = 0; n < sums.size(); ++n)
    for (float& each : sums[n]) each /= std::max(counts[n], 1.0F);
  return sums;
}

States next_states(const PlanMember::Round& round, const PlanGraph& plan, const States& states) {
  const States in = heard(plan, states, &PlanEdge::to, &PlanEdge::from);
  const States out = heard(plan, states, &PlanEdge::from, &PlanEdge::to);
  States next;
  next.reserve(states.size());
  for (size_t n = 0; n < states.size(); ++n) {
    next.push_back(begun_with(round.bias));
    add_product(states[n], round.self, next.back());
    add_product(in[n], round.heard_in, next.back());
    add_product(out[n], round.heard_out, next.back());
    relu(next.back());
  }
  return next;
}

double said(const PlanModel& model, const PlanMember& member, const PlanGraph& plan) {
  States states = first_states(model, member, plan);
  for (const PlanMember::Round& round : member.rounds) states = next_states(round, plan, states);
  double times = 0;
  for (size_t n = 0; n < states.size(); ++n) {
    if (plan.share[n] == 0) continue;
    double y = member.output_bias;
    for (size_t j = 0; j < kWide; ++j) y += double{states[n][j]} * double{member.output[j]};
    times += double{plan.share[n]} * std::exp(PlanMember::kMost * std::tanh(y));
  }
  const double all = std::log(plan.seconds) + std::log(times);
  return std::isfinite(all) ? all : std::log(plan.seconds);
}

// ---- Files --------------------------------------------------------------------------------------

constexpr std::string_view kPlanFormat = "hone plan model 1";
constexpr size_t kMostMembers = 64;
constexpr int64_t kWideDim = kWide, kFeatureDim = kPlanFeatures;

Safetensors content_of(const PlanModel& model) {
  Safetensors content;
  for (size_t m = 0; m < model.members.size(); ++m) {
    const PlanMember& member = model.members[m];
    const std::string name = fmt::format("member{}/", m);
    add_numbers(content, name + "input", {kFeatureDim, kWideDim}, member.input);
    add_numbers(content, name + "bias0", {kWideDim}, member.bias0);
    for (size_t r = 0; r < PlanMember::kRounds; ++r) {
      const PlanMember::Round& round = member.rounds[r];
      const std::string its = fmt::format("{}round{}/", name, r);
      add_numbers(content, its + "self", {kWideDim, kWideDim}, round.self);
      add_numbers(content, its + "heard_in", {kWideDim, kWideDim}, round.heard_in);
      add_numbers(content, its + "heard_out", {kWideDim, kWideDim}, round.heard_out);
      add_numbers(content, its + "bias", {kWideDim}, round.bias);
    }
    add_numbers(content, name + "output", {kWideDim}, member.output);
    add_numbers(content, name + "output_bias", {1}, std::span(&member.output_bias, 1));
  }
  add_numbers(content, "mean", {kFeatureDim}, model.mean);
  add_numbers(content, "factor", {kFeatureDim}, model.factor);
  auto& metadata = content.metadata;
  metadata["format"] = kPlanFormat;
  metadata["features"] = plan_feature_version();
  metadata["target"] = model.target;
  metadata["fingerprint"] = hex_text(model.fingerprint);
  metadata["threads"] = std::to_string(model.threads);
  metadata["prices"] = hex_text(model.prices);
  metadata["programs"] = join(model.programs, "\n");
  metadata["pairs"] = std::to_string(model.pairs);
  metadata["lead"] = fmt::format("{}", model.lead);
  metadata["gain"] = fmt::format("{}", model.gain);
  metadata["judged"] = std::to_string(model.judged);
  metadata["checksum"] = hex_text(checksum_of(content));
  return content;
}

class PlanModelReader : private ModelFields {
 public:
  using ModelFields::ModelFields;

  Result<PlanModel> run() {
    if (const std::string format = HONE_TRY(text("format")); format != kPlanFormat)
      return bad_input("the format is '{}', not '{}'", excerpt(format), kPlanFormat);
    HONE_TRY(check_sum());
    if (const std::string features = HONE_TRY(text("features")); features != plan_feature_version())
      return bad_input("the model knows features of plans of version {}, this hone has {}",
                       excerpt(features), plan_feature_version())
          .with_hint(
              "'hone dataset build --task plans' and 'hone train plans' make a model for it");
    model_.target = HONE_TRY(text("target"));
    model_.fingerprint = HONE_TRY(hex("fingerprint"));
    model_.prices = HONE_TRY(hex("prices"));
    model_.threads = HONE_TRY(count("threads", 1, Team::kMaxThreads));
    model_.pairs = HONE_TRY(count("pairs", 0, INT32_MAX));
    model_.judged = HONE_TRY(count("judged", 0, INT32_MAX));
    model_.lead = HONE_TRY(number("lead"));
    model_.gain = HONE_TRY(number("gain"));
    const std::string programs = HONE_TRY(text("programs"));
    for (std::string_view program : split(programs, '\n')) model_.programs.emplace_back(program);
    HONE_TRY(fill("mean", model_.mean));
    HONE_TRY(fill("factor", model_.factor));
    for (size_t m = 0; content().find(fmt::format("member{}/input", m)) != nullptr; ++m) {
      if (m == kMostMembers) return over_limit("more than {} networks", kMostMembers);
      model_.members.push_back(HONE_TRY(member(fmt::format("member{}/", m))));
    }
    if (model_.members.empty()) return bad_input("the file has no network");
    return std::move(model_);
  }

 private:
  Result<int64_t> count(std::string_view key, int64_t low, int64_t high) const {
    const int64_t number = HONE_TRY(parse_int(HONE_TRY(text(key))));
    if (number >= low && number <= high) return number;
    return bad_input("the entry '{}' is {}, outside of {}..{}", key, number, low, high);
  }

  Result<std::vector<float>> copied(const std::string& name,
                                    std::initializer_list<Dim> dims) const {
    const std::span<const float> all = HONE_TRY(numbers(name, dims));
    return std::vector<float>(all.begin(), all.end());
  }

  Result<PlanMember> member(const std::string& name) const {
    PlanMember member;
    member.input = HONE_TRY(copied(name + "input", {kFeatureDim, kWideDim}));
    member.bias0 = HONE_TRY(copied(name + "bias0", {kWideDim}));
    for (size_t r = 0; r < PlanMember::kRounds; ++r) {
      const std::string its = fmt::format("{}round{}/", name, r);
      PlanMember::Round& round = member.rounds[r];
      round.self = HONE_TRY(copied(its + "self", {kWideDim, kWideDim}));
      round.heard_in = HONE_TRY(copied(its + "heard_in", {kWideDim, kWideDim}));
      round.heard_out = HONE_TRY(copied(its + "heard_out", {kWideDim, kWideDim}));
      round.bias = HONE_TRY(copied(its + "bias", {kWideDim}));
    }
    member.output = HONE_TRY(copied(name + "output", {kWideDim}));
    member.output_bias = HONE_TRY(numbers(name + "output_bias", {1}))[0];
    return member;
  }

  PlanModel model_;
};

Result<PlanModel> plan_model_in(const Result<Safetensors>& content, std::string_view where) {
  if (!content.ok()) return content.error();
  Result<PlanModel> model = PlanModelReader(*content).run();
  return model.ok() ? std::move(model) : Error(model.error()).within(std::string(where));
}

}  // namespace

bool PlanModel::gains() const { return lead < kNoPlanLead; }

uint64_t prices_hash(const Cost& cost) {
  const LearnedCost* const learned = cost.learned();
  return hash_string(learned != nullptr ? learned->version_of_prices() : cost.version());
}

uint64_t hash_of(const PlanModel& model) { return checksum_of(content_of(model)); }

std::vector<double> log_seconds(const PlanModel& model, const PlanGraph& plan) {
  std::vector<double> all;
  for (const PlanMember& member : model.members) all.push_back(said(model, member, plan));
  return all;
}

size_t best_of(const PlanModel& model, std::span<const PlanGraph> plans) {
  if (!model.gains() || plans.size() < 2) return 0;
  const auto votes = [&](const PlanGraph& plan) {
    Votes all;
    for (double each : log_seconds(model, plan)) all.seconds.push_back(std::exp(each));
    return all;
  };
  const Votes usual = votes(plans[0]);
  const double deviations = deviations_for(kUsualSureness);
  size_t best = 0;
  double most = model.lead;
  for (size_t i = 1; i < plans.size(); ++i) {
    const Gain gain = gain_of(votes(plans[i]), usual);
    if (gain.mean <= most || gain.mean <= deviations * gain.deviation) continue;
    most = gain.mean;
    best = i;
  }
  return best;
}

Status write_plan_model(const std::filesystem::path& path, const PlanModel& model) {
  return write_safetensors(path, content_of(model));
}

Result<PlanModel> read_plan_model(const std::filesystem::path& path) {
  HONE_TRY(check_model_size(path));
  return plan_model_in(read_safetensors(path), path.native());
}

Result<PlanModel> parse_plan_model(std::span<const std::byte> file, std::string_view where) {
  return plan_model_in(parse_safetensors(file, where), where);
}

Status check_is_for(const PlanModel& model, const Target& target, const Cost& cost) {
  if (model.fingerprint != fingerprint(target))
    return unsupported("the model of plans is of the target '{}' ({}), not of '{}' ({})",
                       model.target, hex_text(model.fingerprint), target.name,
                       hex_text(fingerprint(target)))
        .with_hint("'hone train plans' makes one for this target");
  if (model.prices == prices_hash(cost)) return {};
  return unsupported("the model of plans has learned by other prices than '{}'", cost.version())
      .with_hint("'hone dataset build --task plans' and 'hone train plans' make one for these");
}

}  // namespace hone

#include "language/sampling.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "base/rng.h"

namespace hone {
namespace {

struct Choice {
  TokenId token;
  double logit;
  double weight = 0;  // in proportion to its probability; that of the best one is 1
};

// The best ones first; of equals the lowest number.
bool is_better(const Choice& a, const Choice& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

void weigh(std::vector<Choice>& choices, double temperature) {
  for (Choice& one : choices) one.weight = std::exp((one.logit - choices[0].logit) / temperature);
}

double sum_of(const std::vector<Choice>& choices) {
  double sum = 0;
  for (const Choice& one : choices) sum += one.weight;
  return sum;
}

void keep_top_p(std::vector<Choice>& choices, double share) {
  const double wanted = share * sum_of(choices);
  double sum = 0;
  for (size_t i = 0; i < choices.size(); ++i) {
    sum += choices[i].weight;
    if (sum >= wanted) return choices.resize(i + 1);
  }
}

void penalize(std::vector<Choice>& choices, std::span<const TokenId> past,
              const SamplingOptions& options) {
  const auto recent = std::min(past.size(), static_cast<size_t>(options.repeat_tokens));
  const std::span<const TokenId> last = past.last(recent);
  for (const TokenId token : std::set<TokenId>(last.begin(), last.end())) {
    if (token < 0 || token >= std::ssize(choices)) continue;
    double& logit = choices[static_cast<size_t>(token)].logit;
    logit = logit > 0 ? logit / options.repeat_penalty : logit * options.repeat_penalty;
  }
}

// A number in [0, 1) by the seed and the step alone.
double drawn(uint64_t seed, uint64_t step) {
  return static_cast<double>(threefry2x64({seed, 0}, {step, 0})[0] >> 11) * 0x1.0p-53;
}

}  // namespace

Result<TokenId> choose_token(std::span<const float> logits, std::span<const TokenId> past,
                             const SamplingOptions& options, uint64_t step) {
  std::vector<Choice> choices;
  choices.reserve(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]))
      return check_failed("the model gives no number for token {}", i)
          .with_hint("its file may be damaged");
    choices.push_back({static_cast<TokenId>(i), logits[i]});
  }
  if (choices.empty()) return bad_input("the model has no tokens");
  if (options.repeat_penalty != 1) penalize(choices, past, options);
  if (options.temperature <= 0) return std::ranges::min_element(choices, is_better)->token;
  const size_t kept = options.top_k > 0
                          ? std::min(choices.size(), static_cast<size_t>(options.top_k))
                          : choices.size();
  std::ranges::partial_sort(choices, choices.begin() + static_cast<ptrdiff_t>(kept), is_better);
  choices.resize(kept);
  weigh(choices, 1);
  keep_top_p(choices, options.top_p);
  std::erase_if(choices, [&](const Choice& one) { return one.weight < options.min_p; });
  weigh(choices, options.temperature);
  double left = drawn(options.seed, step) * sum_of(choices);
  for (const Choice& one : choices)
    if ((left -= one.weight) < 0) return one.token;
  return choices.back().token;
}

double log_probability(std::span<const float> logits, TokenId token) {
  const double best = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float one : logits) sum += std::exp(one - best);
  return logits[static_cast<size_t>(token)] - best - std::log(sum);
}

}  // namespace hone

#include "place/policy_steps.h"

#include <algorithm>
#include <cmath>
#include <queue>

#include "place/draft.h"
#include "place/sort_by.h"

namespace hone {
namespace {

constexpr size_t kStepFeatures = PolicyShape::kStep;

// Scores of the devices that can have a node become logarithms of probabilities.
void normalize_scores(std::span<float> scores, std::span<const uint8_t> can) {
  for (size_t d = 0; d < scores.size(); ++d)
    if (can[d] == 0) scores[d] += PolicyShape::kNever;
  const float most = std::ranges::max(scores);
  float sum = 0;
  for (const float one : scores) sum += std::exp(one - most);
  for (float& one : scores) one -= most + std::log(sum);
}

class Stepper {
 public:
  Stepper(PlaceRun& run, const PolicyView& view, const PlacePolicy& policy,
          const PlacePolicy::Said& said, const PolicyStepOptions& options)
      : run_(run),
        view_(view),
        policy_(policy),
        said_(said),
        options_(options),
        draft_(run, options.share, false),
        ranks_(view.ranks()),
        features_(ranks_ * kStepFeatures),
        can_(ranks_),
        scores_(ranks_),
        busy_(ranks_),
        inputs_(view.rows()) {
    for (const PlaceTensor& tensor : run.problem().tensors)
      for (const uint32_t user : tensor.users)
        inputs_[view.row_of[user]].push_back({view.row_of[tensor.maker], tensor.bytes});
    if (PolicySteps* steps = options.steps) {
      *steps = {};
      steps->features.resize(view.rows() * ranks_ * kStepFeatures);
      steps->can.resize(view.rows() * ranks_);
      steps->chosen.resize(view.rows());
      steps->log_probability.resize(view.rows());
    }
    draw_order();
    for (const uint32_t node : draft_.ready()) push(node);
  }

  std::optional<DevicePlacement> place() {
    while (!queue_.empty()) {
      if (run_.is_late()) return std::nullopt;
      const uint32_t row = queue_.top().row;
      queue_.pop();
      if (!step(row)) return std::nullopt;
    }
    return draft_.finished();
  }

 private:
  struct Waiting {
    double key;
    uint32_t row;
    bool operator<(const Waiting& other) const {
      return key != other.key ? key < other.key : row > other.row;
    }
  };
  struct Input {
    uint32_t maker;
    double bytes;
  };

  void draw_order() {
    std::vector<float> offsets = said_.order, chances(view_.rows());
    if (options_.rng != nullptr && options_.follow == nullptr)
      for (size_t r = 0; r < offsets.size(); ++r) {
        chances[r] = static_cast<float>(options_.rng->normal());
        offsets[r] += static_cast<float>(kOrderDeviation) * chances[r];
      }
    for (size_t r = 0; r < offsets.size(); ++r)
      keys_.push_back(options_.follow != nullptr
                          ? -options_.starts[view_.node_of[r]]
                          : view_.urgency[r] + view_.order_scale * static_cast<double>(offsets[r]));
    if (options_.steps == nullptr) return;
    options_.steps->offset = std::move(offsets);
    options_.steps->chance = std::move(chances);
  }

  void push(uint32_t node) {
    const uint32_t row = view_.row_of[node];
    queue_.push({keys_[row], row});
  }

  bool step(uint32_t row) {
    const uint32_t node = view_.node_of[row];
    if (!describe(row)) return false;
    policy_.score(said_, row, features_, scores_);
    normalize_scores(scores_, can_);
    const size_t rank = chosen(row);
    if (can_[rank] == 0) return false;
    if (PolicySteps* steps = options_.steps) {
      std::ranges::copy(
          features_, steps->features.begin() + static_cast<std::ptrdiff_t>(row * features_.size()));
      std::ranges::copy(can_, steps->can.begin() + static_cast<std::ptrdiff_t>(row * ranks_));
      steps->chosen[row] = static_cast<uint32_t>(rank);
      steps->log_probability[row] = scores_[rank];
    }
    const uint32_t device = view_.device_of[rank];
    const size_t known = draft_.ready().size() - 1;
    busy_[rank] += *draft_.seconds(node, device);
    draft_.put(node, device, starts_[rank]);
    for (size_t i = known; i < draft_.ready().size(); ++i) push(draft_.ready()[i]);
    return true;
  }

  size_t chosen(uint32_t row) {
    if (options_.follow != nullptr)
      return view_.rank_of[options_.follow->device[view_.node_of[row]]];
    if (options_.rng != nullptr) {
      double draw = options_.rng->uniform();
      for (size_t d = 0; d < ranks_; ++d) {
        if (can_[d] == 0) continue;
        draw -= std::exp(static_cast<double>(scores_[d]));
        if (draw <= 0) return d;
      }
    }
    return static_cast<size_t>(std::ranges::max_element(scores_) - scores_.begin());
  }

  // The features of each device, relative to the best one. False if none can have the node.
  bool describe(uint32_t row) {
    const uint32_t node = view_.node_of[row];
    starts_.assign(ranks_, 0);
    seconds_.assign(ranks_, 0);
    there_.assign(ranks_, 0);
    double first_end = kCannotRun, first_start = kCannotRun, first_there = kCannotRun,
           first_free = kCannotRun, fastest = kCannotRun, most_busy = 0;
    for (size_t d = 0; d < ranks_; ++d) {
      const uint32_t device = view_.device_of[d];
      const std::optional<double> takes = draft_.seconds(node, device);
      can_[d] = takes && view_.can[row * ranks_ + d] != 0 ? 1 : 0;
      most_busy = std::max(most_busy, busy_[d]);
      if (can_[d] == 0) continue;
      seconds_[d] = *takes;
      starts_[d] = draft_.soonest(node, device, true);
      there_[d] = draft_.inputs_at(node, device);
      first_end = std::min(first_end, starts_[d] + seconds_[d]);
      first_start = std::min(first_start, starts_[d]);
      first_there = std::min(first_there, there_[d]);
      first_free = std::min(first_free, draft_.free_at(device));
      fastest = std::min(fastest, seconds_[d]);
    }
    if (first_end == kCannotRun) return false;
    const auto later = [&](double at, double first) {
      return static_cast<float>(std::log1p(std::max(at - first, 0.0) / view_.unit));
    };
    std::ranges::fill(features_, 0.0F);
    for (size_t d = 0; d < ranks_; ++d) {
      if (can_[d] == 0) continue;
      const uint32_t device = view_.device_of[d];
      const auto memory = static_cast<double>(run_.judge().devices()[device].memory);
      float* const f = features_.data() + d * kStepFeatures;
      f[0] = later(starts_[d] + seconds_[d], first_end);
      f[1] = later(starts_[d], first_start);
      f[2] = later(there_[d], first_there);
      f[3] = later(draft_.free_at(device), first_free);
      f[5] = memory > 0 ? static_cast<float>(1 - draft_.room(device) / memory) : 0;
      f[6] = fastest > 0 ? static_cast<float>(std::log(seconds_[d] / fastest)) : 0;
      f[7] = static_cast<float>(busy_[d] / (most_busy + view_.unit));
    }
    double all = 0;
    for (const Input& input : inputs_[row]) all += input.bytes;
    for (const Input& input : inputs_[row]) {
      const uint32_t rank = view_.rank_of[draft_.device_of(view_.node_of[input.maker])];
      if (all > 0 && can_[rank] != 0)
        features_[rank * kStepFeatures + 4] += static_cast<float>(input.bytes / all);
    }
    return true;
  }

  PlaceRun& run_;
  const PolicyView& view_;
  const PlacePolicy& policy_;
  const PlacePolicy::Said& said_;
  const PolicyStepOptions& options_;
  PlaceDraft draft_;
  size_t ranks_;
  std::vector<float> features_;
  std::vector<uint8_t> can_;
  std::vector<float> scores_;
  std::vector<double> busy_, starts_, seconds_, there_;  // by rank
  std::vector<double> keys_;                             // by row
  std::vector<std::vector<Input>> inputs_;
  std::priority_queue<Waiting> queue_;
};

}  // namespace

std::optional<DevicePlacement> place_by_steps(PlaceRun& run, const PolicyView& view,
                                              const PlacePolicy& policy,
                                              const PlacePolicy::Said& said,
                                              const PolicyStepOptions& options) {
  return Stepper(run, view, policy, said, options).place();
}

std::optional<DevicePlacement> place_at_once(const PlaceRun& run, const PolicyView& view,
                                             const PlacePolicy::Said& said, double share) {
  const std::vector<PlaceUnit>& units = run.units().units();
  const size_t ranks = view.ranks();
  std::vector<double> room;
  for (const PlaceDevice& device : run.judge().devices())
    room.push_back(static_cast<double>(device.memory));
  // Units with the most bytes come first: small ones find room behind them.
  std::vector<uint32_t> order(units.size());
  for (uint32_t u = 0; u < order.size(); ++u) order[u] = u;
  sort_by(order, [&](uint32_t u) { return -units[u].bytes(share); });
  std::vector<uint32_t> device(units.size());
  for (const uint32_t u : order) {
    const double bytes = units[u].bytes(share);
    double most = -kCannotRun;
    for (size_t k = 0; k < ranks; ++k) {
      const uint32_t d = view.device_of[k];
      if (!std::ranges::binary_search(units[u].devices, d) || bytes > room[d]) continue;
      double liked = 0;
      for (const uint32_t node : units[u].nodes)
        liked += static_cast<double>(said.once[view.row_of[node] * ranks + k]);
      if (liked > most) most = liked, device[u] = d;
    }
    if (most == -kCannotRun) return std::nullopt;
    room[device[u]] -= bytes;
  }
  return run.units().placement(device);
}

std::vector<double> unit_probabilities(const PlaceRun& run, const PolicyView& view,
                                       const PlacePolicy& policy, const PlacePolicy::Said& said,
                                       const PolicySteps& steps) {
  const std::vector<PlaceUnit>& units = run.units().units();
  const size_t ranks = view.ranks();
  std::vector<double> all(units.size() * ranks);
  std::vector<float> scores(ranks);
  for (size_t u = 0; u < units.size(); ++u)
    for (const uint32_t node : units[u].nodes) {
      const size_t row = view.row_of[node];
      const std::span<const float> features(steps.features.data() + row * ranks * kStepFeatures,
                                            ranks * kStepFeatures);
      policy.score(said, row, features, scores);
      normalize_scores(scores, std::span(view.can).subspan(row * ranks, ranks));
      for (size_t k = 0; k < ranks; ++k)
        all[u * ranks + view.device_of[k]] +=
            std::exp(static_cast<double>(scores[k])) / static_cast<double>(units[u].nodes.size());
    }
  return all;
}

}  // namespace hone

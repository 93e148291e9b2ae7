#include "place/fusion_head.h"

#include <algorithm>
#include <cmath>

#include "place/shipped_policies.h"

namespace hone {
namespace {

constexpr const char* kOfPolicy = "policy";

const WeightsFormat& head_format() {
  static const WeightsFormat format = {"hone placement fusions 1", "head of fusions",
                                       "hone train placement --fusions", FusionHead::shapes()};
  return format;
}

float more(double x) { return static_cast<float>(std::log1p(std::max(x, 0.0))); }

// Describes fusions by the whole graph.
class FusionViewer {
 public:
  FusionViewer(PlaceRun& run, const PolicyView& view, const PlacePolicy::Said& said)
      : problem_(run.problem()), devices_(run.judge().devices()), view_(view), said_(said) {
    inputs_.resize(problem_.nodes.size());
    ends_.resize(problem_.nodes.size());
    fusions_into_.resize(problem_.nodes.size());
    bytes_.resize(problem_.nodes.size());
    for (const PlaceTensor& tensor : problem_.tensors) {
      bytes_[tensor.maker] += tensor.bytes;
      for (const uint32_t user : tensor.users) inputs_[user].push_back(tensor.maker);
    }
    for (const PlaceFusion& fusion : problem_.fusions) ++fusions_into_[fusion.user];
    for (const uint32_t node : run.judge().order()) {
      double start = 0;
      for (const uint32_t maker : inputs_[node]) start = std::max(start, ends_[maker]);
      ends_[node] = start + seconds(problem_.nodes[node]);
      longest_ = std::max(longest_, ends_[node]);
      work_ += seconds(problem_.nodes[node]);
    }
    for (const PlaceDevice& device : devices_)
      port_ += device.port / static_cast<double>(devices_.size());
  }

  void describe(const PlaceFusion& fusion, float* f) const {
    constexpr size_t kWidth = PolicyShape::kWidth;
    const uint32_t maker = view_.row_of[fusion.maker], user = view_.row_of[fusion.user];
    std::copy_n(said_.state.begin() + static_cast<std::ptrdiff_t>(maker * kWidth), kWidth, f);
    std::copy_n(said_.state.begin() + static_cast<std::ptrdiff_t>(user * kWidth), kWidth,
                f + kWidth);
    float* const own = f + 2 * kWidth;
    const double takes = seconds(problem_.nodes[fusion.maker]),
                 then = seconds(problem_.nodes[fusion.user]),
                 saves = std::ranges::min(fusion.saves);
    double others = 0;
    for (const uint32_t other : inputs_[fusion.user])
      if (other != fusion.maker) others = std::max(others, ends_[other]);
    own[0] = more(saves / view_.unit);
    own[1] = more(takes / view_.unit);
    own[2] = more(then / view_.unit);
    own[3] = takes + then > 0 ? static_cast<float>(saves / (takes + then)) : 0;
    own[4] = more(bytes_[fusion.maker] * port_ / view_.unit);
    own[5] = more(static_cast<double>(inputs_[fusion.user].size()) - 1);
    own[6] = more(static_cast<double>(inputs_[fusion.maker].size()));
    own[7] = more(static_cast<double>(fusions_into_[fusion.user]) - 1);
    own[8] = static_cast<float>(view_.urgency[user]);
    own[9] = static_cast<float>(std::tanh((ends_[fusion.maker] - others) / (4 * view_.unit)));
    own[10] = longest_ > 0 ? more(work_ / longest_ / static_cast<double>(devices_.size())) : 0;
    own[11] = same_device(maker, user);
  }

 private:
  static double seconds(const PlaceNode& node) {
    double least = kCannotRun;
    for (const double one : node.seconds) least = std::min(least, one);
    return least;
  }
  // The probability that the head of devices puts both on one.
  float same_device(size_t maker, size_t user) const {
    float sum = 0;
    for (size_t d = 0; d < view_.ranks(); ++d)
      sum += std::exp(said_.once[maker * view_.ranks() + d] + said_.once[user * view_.ranks() + d]);
    return sum;
  }

  const PlaceProblem& problem_;
  const std::vector<PlaceDevice>& devices_;
  const PolicyView& view_;
  const PlacePolicy::Said& said_;
  std::vector<std::vector<uint32_t>> inputs_;  // makers
  std::vector<double> ends_;                   // at the soonest, without messages
  std::vector<uint32_t> fusions_into_;
  std::vector<double> bytes_;
  double longest_ = 0, work_ = 0, port_ = 0;
};

}  // namespace

WeightShapes FusionHead::shapes() {
  constexpr auto kIn = static_cast<int64_t>(kFeatures), kWide = static_cast<int64_t>(kHidden);
  return {{"fusion/weight", {kIn, kWide}},
          {"fusion/bias", {kWide}},
          {"pays/weight", {kWide, 1}},
          {"pays/bias", {1}}};
}

Result<FusionHead> FusionHead::make(std::span<const NamedTensor> weights) {
  std::vector<std::vector<float>> numbers = HONE_TRY(numbers_of(weights, head_format()));
  FusionHead head;
  std::ranges::move(numbers, head.weights_.begin());
  return head;
}

Result<FusionHead> FusionHead::parse(std::span<const std::byte> file, std::string_view where,
                                     const PlacePolicy& policy) {
  Safetensors read = HONE_TRY(parse_weights(file, where, head_format()));
  if (read.metadata[kOfPolicy] != checksum_of(policy.weights()))
    return bad_input("this head of fusions is for another policy").within(std::string(where));
  return make(read.tensors);
}

Status FusionHead::write(const std::filesystem::path& path, std::span<const NamedTensor> weights,
                         const PlacePolicy& policy) {
  Safetensors file = HONE_TRY(weights_file(weights, head_format()));
  file.metadata[kOfPolicy] = checksum_of(policy.weights());
  return write_safetensors(path, file);
}

const FusionHead* shipped_fusion_head(const PlacePolicy& policy) {
  if (&policy != shipped_policy()) return nullptr;
  static const std::optional<FusionHead> head = [&] {
    std::optional<FusionHead> made;
    for (const ShippedPolicy& each : shipped_policies())
      if (Result<FusionHead> parsed = FusionHead::parse(each.file, each.name, policy); parsed.ok())
        made = *std::move(parsed);
    return made;
  }();
  return head ? &*head : nullptr;
}

std::vector<float> FusionHead::logits(std::span<const float> features) const {
  std::vector<float> all;
  for (size_t at = 0; at < features.size(); at += kFeatures) {
    float sum = weights_[3][0];
    for (size_t h = 0; h < kHidden; ++h) {
      float hidden = weights_[1][h];
      for (size_t k = 0; k < kFeatures; ++k)
        hidden += features[at + k] * weights_[0][k * kHidden + h];
      sum += std::max(hidden, 0.0F) * weights_[2][h];
    }
    all.push_back(sum);
  }
  return all;
}

std::vector<float> fusion_features(PlaceRun& run, const PolicyView& view,
                                   const PlacePolicy::Said& said) {
  const FusionViewer viewer(run, view, said);
  const std::vector<PlaceFusion>& fusions = run.problem().fusions;
  std::vector<float> features(fusions.size() * FusionHead::kFeatures);
  for (size_t k = 0; k < fusions.size(); ++k)
    viewer.describe(fusions[k], features.data() + k * FusionHead::kFeatures);
  return features;
}

std::vector<std::vector<uint8_t>> proposed_fusions(const PlaceProblem& problem,
                                                   const PlacePolicy& policy,
                                                   const FusionHead& head, uint64_t seed,
                                                   size_t draws) {
  const PlaceJudge judge(problem);
  const PlaceOptions options = {.seconds = 1e9, .trials = INT64_MAX};
  PlaceRun run(judge, options);
  const PolicyView view(run);
  const std::vector<float> logits = head.logits(fusion_features(run, view, policy.look(view)));
  std::vector<std::vector<uint8_t>> proposed(1 + draws);
  Rng rng(seed);
  for (size_t p = 0; p < proposed.size(); ++p)
    for (const float logit : logits) {
      const double draw = p == 0 ? 0.5 : rng.uniform();
      proposed[p].push_back(draw < 1 / (1 + std::exp(-double{logit})) ? 1 : 0);
    }
  return proposed;
}

}  // namespace hone

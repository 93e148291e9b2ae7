#include "quantize/front.h"

#include <algorithm>

#include "base/rng.h"

namespace hone::quantize {
namespace {

constexpr double kNear = 3;           // parents have at most this many times the error of the aim
constexpr double kMixtures = 0.3;     // the share of children that have two parents
constexpr uint64_t kMostChanges = 3;  // of layers, in a child
constexpr int kMostRepeats = 50;      // of assignments that are known, one after another

class Breeder {
 public:
  Breeder(const Front& front, std::span<const int> counts, double aim, uint64_t seed)
      : front_(front), counts_(counts), aim_(aim), rng_(seed) {
    for (size_t l = 0; l < counts.size(); ++l)
      if (counts[l] > 0) layers_.push_back(l);
  }

  std::vector<int> child() {
    std::vector<int> options = parent().options;
    if (rng_.chance(kMixtures)) {
      const std::vector<int>& other = parent().options;
      for (size_t l : layers_)
        if (rng_.chance(0.5)) options[l] = other[l];
    }
    for (uint64_t changes = 1 + rng_.below(kMostChanges); changes > 0; --changes) {
      const size_t l = rng_.pick(layers_);
      // Another one of the options and f32, each with the same probability.
      const int other = static_cast<int>(rng_.below(static_cast<uint64_t>(counts_[l]))) - 1;
      options[l] = other >= options[l] ? other + 1 : other;
    }
    return options;
  }

 private:
  const Assigned& parent() {
    std::vector<const Assigned*> near;
    for (const Assigned& one : front_.all())
      if (one.error <= kNear * aim_) near.push_back(&one);
    return near.empty() ? front_.all()[rng_.below(front_.all().size())] : *rng_.pick(near);
  }

  const Front& front_;
  std::span<const int> counts_;
  double aim_;
  Rng rng_;
  std::vector<size_t> layers_;  // with options
};

}  // namespace

void Front::add(Assigned one) {
  const auto beats = [](const Assigned& a, const Assigned& b) {
    return a.cost <= b.cost && a.error <= b.error && a.is_allowed >= b.is_allowed;
  };
  for (const Assigned& other : all_)
    if (beats(other, one)) return;
  std::erase_if(all_, [&](const Assigned& other) { return beats(one, other); });
  all_.insert(std::ranges::lower_bound(all_, one.cost, {}, &Assigned::cost), std::move(one));
}

Status evolve(Front& front, std::span<const int> counts, const EvolveOptions& options,
              const MeasureAssigned& measure) {
  if (front.all().empty() || std::ranges::all_of(counts, [](int count) { return count == 0; }))
    return {};
  Breeder breeder(front, counts, options.aim, options.seed);
  std::set<std::vector<int>> known;
  for (const Assigned& one : front.all()) known.insert(one.options);
  int repeats = 0;
  for (int64_t trial = 0; trial < options.trials && repeats < kMostRepeats;) {
    std::vector<int> child = breeder.child();
    if (!known.insert(child).second) {
      ++repeats;
      continue;
    }
    repeats = 0;
    front.add(HONE_TRY(measure(child)));
    ++trial;
  }
  return {};
}

}  // namespace hone::quantize

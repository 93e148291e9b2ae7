#include <algorithm>
#include <numeric>

#include "place/placer.h"
#include "place/sort_by.h"

// Random keys: an individual is a list of numbers in [0, 1). Each unit has one for each of its
// devices, where the largest one wins that has room, and each node has one for its priority.

namespace hone {
namespace {

constexpr size_t kPopulation = 40;
constexpr size_t kElite = 8, kMutants = 8;     // of each generation
constexpr double kFromElite = 0.65;            // keys of a child
constexpr size_t kMostKeys = size_t{1} << 21;  // of a placement: two generations hold 1.3 GB
constexpr double kBias = 0.8;                  // of the start: the key of the device that it has

using Keys = std::vector<double>;

struct Individual {
  Keys keys;
  double value = kCannotRun;
};

class Genetic {
 public:
  explicit Genetic(PlaceRun& run) : run_(run) {
    for (const PlaceUnit& unit : run.units().units()) {
      first_.push_back(keys_);
      keys_ += unit.devices.size();
    }
    first_priority_ = keys_;
    if (run.goal() == PlaceGoal::step) keys_ += run.problem().nodes.size();
  }

  void evolve() {
    if (keys_ > kMostKeys) return run_.note(fmt::format("more than {} keys", kMostKeys));
    std::vector<Individual> all;
    if (run_.has_best()) all.push_back(judged(keys_of(run_.best())));
    while (all.size() < kPopulation && run_.may_go_on()) all.push_back(judged(random_keys()));
    while (run_.may_go_on()) {
      sort_by(all, [](const Individual& one) { return one.value; });
      std::vector<Individual> next(
          all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(kElite, all.size())));
      for (size_t i = 0; i < kMutants && run_.may_go_on(); ++i)
        next.push_back(judged(random_keys()));
      while (next.size() < kPopulation && run_.may_go_on()) {
        const Keys& elite = all[run_.rng().below(std::min(kElite, all.size()))].keys;
        const Keys& other = all[run_.rng().below(all.size())].keys;
        Keys child = elite;
        for (size_t k = 0; k < child.size(); ++k)
          if (!run_.rng().chance(kFromElite)) child[k] = other[k];
        next.push_back(judged(std::move(child)));
      }
      all = std::move(next);
    }
  }

 private:
  Keys random_keys() {
    Keys keys(keys_);
    for (double& key : keys) key = run_.rng().uniform();
    return keys;
  }

  Keys keys_of(const DevicePlacement& placement) {
    Keys keys = random_keys();
    const std::vector<uint32_t> devices = run_.units().devices_of(placement);
    for (size_t u = 0; u < devices.size(); ++u) {
      const std::vector<uint32_t>& list = run_.units().units()[u].devices;
      for (size_t k = 0; k < list.size(); ++k) {
        double& key = keys[first_[u] + k];
        key = list[k] == devices[u] ? kBias + (1 - kBias) * key : kBias * key;
      }
    }
    if (run_.goal() != PlaceGoal::step || placement.priority.empty()) return keys;
    std::vector<uint32_t> ranked(placement.priority.size());
    std::iota(ranked.begin(), ranked.end(), 0);
    sort_by(ranked, [&](uint32_t i) { return placement.priority[i]; });
    for (size_t r = 0; r < ranked.size(); ++r)
      keys[first_priority_ + ranked[r]] =
          static_cast<double>(r) / static_cast<double>(ranked.size());
    return keys;
  }

  Individual judged(Keys keys) {
    Individual made = {std::move(keys), kCannotRun};
    const std::optional<DevicePlacement> placement = decoded(made.keys);
    if (placement)
      made.value = run_.offer(*placement);
    else
      run_.count_trials(1);
    return made;
  }

  std::optional<DevicePlacement> decoded(const Keys& keys) const {
    const std::vector<PlaceUnit>& units = run_.units().units();
    std::vector<double> room;
    for (const PlaceDevice& device : run_.judge().devices())
      room.push_back(static_cast<double>(device.memory));
    std::vector<uint32_t> of(units.size());
    for (size_t u = 0; u < units.size(); ++u) {
      const auto held = static_cast<double>(units[u].held);
      size_t best = units[u].devices.size();
      for (size_t k = 0; k < units[u].devices.size(); ++k)
        if (held <= room[units[u].devices[k]] &&
            (best == units[u].devices.size() || keys[first_[u] + k] > keys[first_[u] + best]))
          best = k;
      if (best == units[u].devices.size()) return std::nullopt;
      of[u] = units[u].devices[best];
      room[of[u]] -= held;
    }
    DevicePlacement made = run_.units().placement(of);
    if (run_.goal() == PlaceGoal::step)
      for (size_t i = 0; i < made.priority.size(); ++i)
        made.priority[i] = static_cast<int32_t>(keys[first_priority_ + i] * 1e9);
    return made;
  }

  PlaceRun& run_;
  std::vector<size_t> first_;  // by unit: its first key
  size_t first_priority_ = 0, keys_ = 0;
};

}  // namespace

void place_genetic(PlaceRun& run) { Genetic(run).evolve(); }

}  // namespace hone

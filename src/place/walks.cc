#include <algorithm>
#include <cmath>

#include "assign/walk.h"
#include "place/learned.h"
#include "place/state.h"

// Walks from placement to placement: annealing, alone and guided by the policy, and a Markov chain
// at one heat.

namespace hone {
namespace {

constexpr size_t kMostTogether = 256;  // units that move at once
constexpr double kWeakest = 1e-3;      // of the value: what a tensor costs that holds two

// A walker (assign/walk.h).
class Walk {
 public:
  // `advice` says by unit and device how likely a policy finds it. Without a policy it is empty.
  explicit Walk(PlaceRun& run, std::vector<double> advice = {})
      : run_(run), neighbours_(run.units().units().size()), advice_(std::move(advice)) {
    back_to_best();
    const PlaceUnits& units = run.units();
    for (uint32_t t = 0; t < run.problem().tensors.size(); ++t)
      for (const uint32_t user : run.problem().tensors[t].users) {
        const uint32_t a = units.of(run.problem().tensors[t].maker), b = units.of(user);
        if (a == b) continue;
        neighbours_[a].push_back({b, t});
        neighbours_[b].push_back({a, t});
      }
    for (uint32_t u = 0; u < units.units().size(); ++u)
      if (units.units()[u].devices.size() > 1) movable_.push_back(u);
    for (const PlaceDevice& device : run.judge().devices()) port_ = std::max(port_, device.port);
  }

  bool can_move() const {
    return !movable_.empty() || (asks_for_order() && run_.problem().nodes.size() > 1);
  }

  bool move(Rng& rng) {
    if (asks_for_order() && (movable_.empty() || rng.chance(kOrderShare))) {
      const auto count = static_cast<uint64_t>(run_.problem().nodes.size());
      state_->swap_priorities(static_cast<uint32_t>(rng.below(count)),
                              static_cast<uint32_t>(rng.below(count)));
      return true;
    }
    propose(rng);
    if (moves_.empty()) {
      run_.count_trials(1);
      return false;
    }
    state_->apply(moves_);
    return true;
  }
  void undo() { state_->undo(); }
  void keep() {
    if (state_->value() < run_.best_value() * (1 - 1e-12)) run_.offer(state_->placement());
  }
  double rank() const { return state_->rank(); }
  double scale() const { return run_.best_value(); }
  void back_to_best() { state_.emplace(run_, run_.best()); }

 private:
  static constexpr double kOrderShare = 0.3;  // of steps that change the order
  static constexpr double kAdvised = 0.4;     // of moves that the policy proposes

  struct Neighbour {
    uint32_t unit, tensor;
  };
  bool asks_for_order() const { return run_.goal() == PlaceGoal::step; }
  bool may_be_on(uint32_t unit, uint32_t device) const {
    return std::ranges::binary_search(run_.units().units()[unit].devices, device);
  }

  std::span<const double> advice_of(uint32_t unit) const {
    const size_t devices = run_.problem().devices();
    return std::span(advice_).subspan(unit * devices, devices);
  }

  void propose(Rng& rng) {
    moves_.clear();
    const uint32_t unit = rng.pick(movable_);
    const uint32_t from = state_->device_of(unit);
    uint32_t to = rng.pick(run_.units().units()[unit].devices);
    // Mostly to where a neighbour is.
    if (!advice_.empty() && rng.chance(kAdvised))
      to = static_cast<uint32_t>(rng.weighted(advice_of(unit)));
    else if (!neighbours_[unit].empty() && rng.chance(0.7))
      to = state_->device_of(rng.pick(neighbours_[unit]).unit);
    if (to == from || !may_be_on(unit, to)) return;
    switch (rng.below(4)) {
      case 0: moves_ = {{unit, to}}; break;
      case 1: {  // one of that device comes here
        const uint32_t other = rng.pick(movable_);
        moves_ = {{unit, to}};
        if (state_->device_of(other) == to && may_be_on(other, from))
          moves_.push_back({other, from});
        break;
      }
      default: move_together(unit, from, to, rng);
    }
  }

  // The unit, and those of its device that hang on it by tensors of more than some cost.
  void move_together(uint32_t unit, uint32_t from, uint32_t to, Rng& rng) {
    const double weak = run_.best_value() * std::pow(kWeakest, rng.uniform());
    moves_ = {{unit, to}};
    std::vector<uint32_t> taken = {unit};
    for (size_t i = 0; i < moves_.size() && moves_.size() < kMostTogether; ++i)
      for (const Neighbour& next : neighbours_[moves_[i].unit]) {
        if (state_->device_of(next.unit) != from || !may_be_on(next.unit, to)) continue;
        if (run_.problem().tensors[next.tensor].bytes * port_ < weak) continue;
        const auto place = std::ranges::lower_bound(taken, next.unit);
        if (place != taken.end() && *place == next.unit) continue;
        taken.insert(place, next.unit);
        moves_.push_back({next.unit, to});
      }
  }

  PlaceRun& run_;
  std::optional<PlaceState> state_;
  std::vector<std::vector<Neighbour>> neighbours_;
  std::vector<uint32_t> movable_;
  std::vector<double> advice_;
  double port_ = 0;
  std::vector<PlaceMove> moves_;
};

void cool(PlaceRun& run, Walk& walk) {
  if (!walk.can_move()) return;
  constexpr int64_t kPerLook = 16;  // steps between looks at the clock
  const double from = run.progress();
  const double rest = std::max(1 - from, 1e-9);
  CoolingWalk cooling;
  while (run.may_go_on()) {
    const double done = (run.progress() - from) / rest;
    for (int64_t i = 0; i < kPerLook && run.may_go_on(); ++i) cooling.step(walk, done, run.rng());
  }
}

}  // namespace

void place_annealing(PlaceRun& run) {
  if (!run.has_best()) return;
  Walk walk(run);
  cool(run, walk);
}

void place_guided(PlaceRun& run) {
  std::vector<double> advice = offer_learned(run);
  if (!run.has_best()) return;
  Walk walk(run, std::move(advice));
  cool(run, walk);
}

void place_chain(PlaceRun& run) {
  if (!run.has_best()) return;
  Walk walk(run);
  if (!walk.can_move()) return;
  MarkovChain chain(0.002, 1000);
  while (run.may_go_on()) chain.step(walk, run.rng());
}

}  // namespace hone

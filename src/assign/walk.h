#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>

#include "base/rng.h"

// Walks from solution to solution by random moves, of whatever can tell what a move changes:
// placements of nodes, and options of an assignment.

namespace hone {

template <class T>
concept Walker = requires(T& at, const T& seen, Rng& rng) {
  { at.move(rng) } -> std::same_as<bool>;  // a random move; false: it found none
  { at.undo() };                           // takes that move back
  { at.keep() };                           // the move stays, and may have led to the best
  { at.back_to_best() };
  { seen.rank() } -> std::same_as<double>;   // the less, the better; infinity: it cannot be
  { seen.scale() } -> std::same_as<double>;  // a rank of this size is usual: heat is by it
};

// A worse solution is taken with a probability that falls with the heat.
template <Walker W>
void walk_step(W& at, double heat, Rng& rng) {
  const double before = at.rank();
  if (!at.move(rng)) return;
  const double rise = at.rank() - before;
  if (rise <= 0 || rng.uniform() < std::exp(-rise / (heat * at.scale())))
    at.keep();
  else
    at.undo();
}

// A Markov chain at one heat, which goes back to the best after some steps.
class MarkovChain {
 public:
  MarkovChain(double heat, int64_t steps_to_best) : heat_(heat), steps_to_best_(steps_to_best) {}

  template <Walker W>
  void step(W& at, Rng& rng) {
    walk_step(at, heat_, rng);
    if (++steps_ % steps_to_best_ == 0) at.back_to_best();
  }

 private:
  const double heat_;
  const int64_t steps_to_best_;
  int64_t steps_ = 0;
};

// Annealing, twice from hot to cold: the second time from the best.
class CoolingWalk {
 public:
  // `done` is the share of the walk that is behind: from 0 to 1.
  template <Walker W>
  void step(W& at, double done, Rng& rng) {
    constexpr double kHot = 0.03, kCold = 2e-5;
    double cooled = 2 * done;
    if (cooled >= 1 && !is_second_) {
      at.back_to_best();
      is_second_ = true;
    }
    cooled = std::clamp(is_second_ ? cooled - 1 : cooled, 0.0, 1.0);
    walk_step(at, kHot * std::pow(kCold / kHot, cooled), rng);
  }

 private:
  bool is_second_ = false;
};

}  // namespace hone

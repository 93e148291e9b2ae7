#include "place/chips.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "place/arena.h"
#include "place/policy_steps.h"

namespace hone {
namespace {

constexpr uint64_t chip_bit(uint32_t chip) { return uint64_t{1} << chip; }
uint32_t lowest_chip(uint64_t chips) { return static_cast<uint32_t>(std::countr_zero(chips)); }
uint32_t highest_chip(uint64_t chips) {
  return static_cast<uint32_t>(63 - std::countl_zero(chips));
}
constexpr uint64_t chips_from(uint32_t chip) { return ~uint64_t{0} << chip; }
constexpr uint64_t chips_up_to(uint32_t chip) { return ~uint64_t{0} >> (63 - chip); }

constexpr size_t kMostFailures = 8;  // of each block
constexpr int kMostMends = 8;        // of a placement

}  // namespace

std::string_view name(ChipSearch search) {
  constexpr std::string_view kNames[] = {"greedy", "random+solver", "annealing+solver",
                                         "policy+solver"};
  return kNames[static_cast<size_t>(search)];
}

// ---- The rules ---------------------------------------------------------------------------------

Status check_chips(const PlaceProblem& problem, const DevicePlacement& placement) {
  const uint32_t chips = problem.devices();
  if (chips > kMostChips)
    return over_limit("a module has at most {} chips, not {}", kMostChips, chips);
  std::vector<uint64_t> to(chips), reach(chips);
  struct Edge {
    uint32_t maker, user;
  };
  std::vector<Edge> crossing;
  for (const PlaceTensor& tensor : problem.tensors)
    for (const uint32_t user : tensor.users) {
      // Backward nodes hand back along the chips.
      uint32_t from = placement.device[tensor.maker], at = placement.device[user];
      if (problem.nodes[tensor.maker].backward) std::swap(from, at);
      if (from == at) continue;
      if (from > at)
        return check_failed("{} on chip {} hands a tensor to {} on chip {}, against their order",
                            name_of(problem.nodes[tensor.maker]), placement.device[tensor.maker],
                            name_of(problem.nodes[user]), placement.device[user]);
      to[from] |= chip_bit(at);
      crossing.push_back({tensor.maker, user});
    }
  for (uint32_t a = chips; a-- > 0;) {
    reach[a] = to[a];
    for (uint32_t b = a + 1; b < chips; ++b)
      if ((to[a] & chip_bit(b)) != 0) reach[a] |= reach[b];
  }
  for (const Edge& edge : crossing) {
    uint32_t a = placement.device[edge.maker], b = placement.device[edge.user];
    if (a > b) std::swap(a, b);
    for (uint32_t c = a + 1; c < b; ++c)
      if ((to[a] & chip_bit(c)) != 0 && (reach[c] & chip_bit(b)) != 0)
        return check_failed("{} hands a tensor from chip {} to chip {}, which chip {} joins too",
                            name_of(problem.nodes[edge.maker]), a, b, c);
  }
  uint64_t used = 0;
  for (const uint32_t device : placement.device) used |= chip_bit(device);
  if (const auto gap = static_cast<uint32_t>(std::countr_one(used)); (used >> gap) != 0)
    return check_failed("chip {} is used, but chip {} is not", highest_chip(used), gap);
  return {};
}

// ---- The solver --------------------------------------------------------------------------------

ChipSolver::ChipSolver(const PlaceRun& run)
    : run_(run), chips_(run.problem().devices()), before_(run.units().before()) {
  HONE_CHECK(chips_ <= kMostChips, "{} chips", chips_);
  after_.resize(before_.size());
  for (uint32_t b = 0; b < before_.size(); ++b)
    for (const uint32_t first : before_[b]) after_[first].push_back(b);
  for (const std::vector<uint32_t>& block : run.units().blocks()) {
    Chips can = chips_up_to(chips_ - 1);
    double held = 0;
    for (const uint32_t u : block) {
      Chips own = 0;
      for (const uint32_t device : run.units().units()[u].devices) own |= chip_bit(device);
      can &= own;
      held += static_cast<double>(run.units().units()[u].held);
    }
    can_.push_back(can);
    held_.push_back(held);
  }
  lift_bars();
}

bool ChipSolver::bar(uint32_t block, uint32_t chip) {
  const Chips before = std::exchange(barred_[block], barred_[block] | chip_bit(chip));
  if (begin()) return true;
  barred_[block] = before;
  return false;
}

DevicePlacement ChipSolver::placement(std::span<const uint32_t> chip_of_block) const {
  std::vector<uint32_t> device(run_.units().units().size());
  for (size_t b = 0; b < chip_of_block.size(); ++b)
    for (const uint32_t u : run_.units().blocks()[b]) device[u] = chip_of_block[b];
  return run_.units().placement(device);
}

bool ChipSolver::begin() {
  domain_ = can_;
  for (size_t b = 0; b < blocks(); ++b) domain_[b] &= ~barred_[b];
  is_decided_.assign(blocks(), false);
  room_.clear();
  for (const PlaceDevice& device : run_.judge().devices())
    room_.push_back(static_cast<double>(device.memory));
  to_.assign(chips_, 0);
  reach_.assign(chips_, 0);
  trail_.clear();
  decisions_.clear();
  for (uint32_t b = 0; b < blocks(); ++b)
    if (barred_[b] != 0 && (domain_[b] == 0 || !propagate(b))) return false;
  trail_.clear();
  return true;
}

// A tensor from one chip to another is one way of several exactly if some pair of chips would then
// be joined both straight and through a third one.
bool ChipSolver::may_cross(uint32_t from, uint32_t to) const {
  if (from == to || (to_[from] & chip_bit(to)) != 0) return true;
  const Chips behind = reach_[to] | chip_bit(to);
  for (uint32_t x = 0; x <= from; ++x) {
    if (x != from && (reach_[x] & chip_bit(from)) == 0) continue;
    if ((to_[x] & behind) != 0) return false;
  }
  // A way from `from` to `to` that is there already.
  return (reach_[from] & chip_bit(to)) == 0;
}

void ChipSolver::join(uint32_t from, uint32_t to) {
  if (from == to || (to_[from] & chip_bit(to)) != 0) return;
  to_[from] |= chip_bit(to);
  for (uint32_t a = chips_; a-- > 0;) {
    reach_[a] = to_[a];
    for (Chips rest = to_[a]; rest != 0; rest &= rest - 1) reach_[a] |= reach_[lowest_chip(rest)];
  }
}

ChipSolver::Chips ChipSolver::open(uint32_t block) const {
  Chips left = 0;
  for (Chips rest = domain_[block]; rest != 0; rest &= rest - 1) {
    const uint32_t chip = lowest_chip(rest);
    if (held_[block] > room_[chip]) continue;
    const auto fits = [&](const std::vector<uint32_t>& others, bool are_before) {
      return std::ranges::all_of(others, [&](uint32_t other) {
        if (!is_decided_[other]) return true;
        const uint32_t there = lowest_chip(domain_[other]);
        return are_before ? may_cross(there, chip) : may_cross(chip, there);
      });
    };
    if (fits(before_[block], true) && fits(after_[block], false)) left |= chip_bit(chip);
  }
  return left;
}

bool ChipSolver::narrow(uint32_t block, Chips to) {
  const Chips left = domain_[block] & to;
  if (left == domain_[block]) return left != 0;
  trail_.push_back({block, domain_[block]});
  domain_[block] = left;
  return left != 0;
}

// The order of chips, from a block on to all that it concerns.
bool ChipSolver::propagate(uint32_t block) {
  std::vector<uint32_t> waiting = {block};
  while (!waiting.empty()) {
    const uint32_t b = waiting.back();
    waiting.pop_back();
    const Chips later = chips_from(lowest_chip(domain_[b])),
                earlier = chips_up_to(highest_chip(domain_[b]));
    const auto limit = [&](const std::vector<uint32_t>& others, Chips to) {
      for (const uint32_t other : others) {
        const Chips was = domain_[other];
        if (!narrow(other, to)) return false;
        if (domain_[other] != was) waiting.push_back(other);
      }
      return true;
    };
    if (!limit(after_[b], later) || !limit(before_[b], earlier)) return false;
  }
  return true;
}

bool ChipSolver::has_no_gap() const {
  Chips used = 0, possible = 0;
  for (size_t b = 0; b < blocks(); ++b) {
    possible |= domain_[b];
    if (is_decided_[b]) used |= domain_[b];
  }
  return used == 0 || (chips_up_to(highest_chip(used)) & ~possible) == 0;
}

bool ChipSolver::decide(uint32_t block, uint32_t chip) {
  decisions_.push_back({block, chip, trail_.size(), to_});
  bool fits = narrow(block, chip_bit(chip));
  is_decided_[block] = true;
  room_[chip] -= held_[block];
  const auto join_with = [&](const std::vector<uint32_t>& others, bool are_before) {
    for (const uint32_t other : others) {
      if (!is_decided_[other]) continue;
      const uint32_t there = lowest_chip(domain_[other]);
      const uint32_t from = are_before ? there : chip, to = are_before ? chip : there;
      if (!may_cross(from, to)) return false;
      join(from, to);
    }
    return true;
  };
  fits = fits && join_with(before_[block], true) && join_with(after_[block], false) &&
         propagate(block) && has_no_gap();
  if (!fits) take_back();
  return fits;
}

void ChipSolver::take_back() {
  const Decision last = std::move(decisions_.back());
  decisions_.pop_back();
  while (trail_.size() > last.trail) {
    domain_[trail_.back().block] = trail_.back().before;
    trail_.pop_back();
  }
  is_decided_[last.block] = false;
  room_[last.chip] += held_[last.block];
  to_.assign(chips_, 0);
  reach_.assign(chips_, 0);
  for (uint32_t a = 0; a < chips_; ++a)
    for (Chips rest = last.to[a]; rest != 0; rest &= rest - 1) join(a, lowest_chip(rest));
}

// Decides all that is open, in a drawn order. A chip that fails is removed until an earlier
// decision is taken back.
bool ChipSolver::finish(std::span<const double> probabilities, Rng& rng) {
  std::vector<uint32_t> order;
  for (uint32_t b = 0; b < blocks(); ++b)
    if (!is_decided_[b]) order.push_back(b);
  rng.shuffle(order);
  std::vector<Chips> failed(order.size());
  std::vector<double> weights(chips_);
  size_t failures = 0, at = 0;
  const size_t first = decisions_.size();
  while (at < order.size()) {
    const uint32_t block = order[at];
    const Chips left = open(block) & ~failed[at];
    if (left == 0) {
      if (++failures > kMostFailures * blocks() || decisions_.size() == first) return false;
      failed[at] = 0;
      --at;
      failed[at] |= chip_bit(decisions_.back().chip);
      take_back();
      continue;
    }
    for (uint32_t c = 0; c < chips_; ++c)
      weights[c] = (left & chip_bit(c)) != 0 ? probabilities[block * chips_ + c] + 1e-9 : 0;
    const auto chip = static_cast<uint32_t>(rng.weighted(weights));
    if (decide(block, chip)) {
      ++at;
    } else {
      failed[at] |= chip_bit(chip);
      ++failures;
    }
  }
  return true;
}

std::vector<uint32_t> ChipSolver::chosen() const {
  std::vector<uint32_t> chips;
  for (const Chips domain : domain_) chips.push_back(lowest_chip(domain));
  return chips;
}

std::optional<std::vector<uint32_t>> ChipSolver::sample(std::span<const double> probabilities,
                                                        Rng& rng) {
  if (!begin() || !finish(probabilities, rng)) return std::nullopt;
  return chosen();
}

std::optional<std::vector<uint32_t>> ChipSolver::fix(std::span<const uint32_t> candidate,
                                                     std::span<const double> probabilities,
                                                     Rng& rng) {
  std::vector<uint32_t> order(blocks());
  std::iota(order.begin(), order.end(), 0);
  rng.shuffle(order);
  // Chips that are kept may leave others none, which propagation does not always see: then half as
  // many are kept.
  for (;;) {
    if (!begin()) return std::nullopt;
    for (const uint32_t block : order)
      if ((open(block) & chip_bit(candidate[block])) != 0) decide(block, candidate[block]);
    if (finish(probabilities, rng)) return chosen();
    if (order.empty()) return std::nullopt;
    order.resize(order.size() / 2);
  }
}

// ---- Searches ----------------------------------------------------------------------------------

namespace {

class ChipHunt {
 public:
  ChipHunt(PlaceRun& run, Rng& rng)
      : run_(run),
        solver_(run),
        rng_(rng),
        even_(solver_.blocks() * solver_.chips(), 1.0),
        block_of_(run.units().units().size()) {
    for (uint32_t b = 0; b < run.units().blocks().size(); ++b)
      for (const uint32_t unit : run.units().blocks()[b]) block_of_[unit] = b;
  }

  void sample(std::span<const double> probabilities) { keep(solver_.sample(probabilities, rng_)); }
  void sample_evenly() { sample(even_); }

  // Equal parts of the time, in the order of the blocks.
  std::vector<uint32_t> equal_parts() const {
    std::vector<double> seconds;
    double all = 0;
    for (const std::vector<uint32_t>& block : run_.units().blocks()) {
      double least = kCannotRun;
      for (uint32_t c = 0; c < solver_.chips(); ++c) {
        double sum = 0;
        for (const uint32_t u : block) sum += run_.units().units()[u].seconds[c];
        least = std::min(least, sum);
      }
      seconds.push_back(least);
      all += least;
    }
    std::vector<uint32_t> chips;
    double done = 0;
    for (const double one : seconds) {
      const double share = all > 0 ? (done + one / 2) / all : 0;
      chips.push_back(
          std::min(solver_.chips() - 1, static_cast<uint32_t>(share * solver_.chips())));
      done += one;
    }
    return chips;
  }

  double fix(std::span<const uint32_t> candidate) {
    return keep(solver_.fix(candidate, even_, rng_));
  }

  // Some blocks of the best get other chips by the probabilities, and the rest is fixed.
  void draw_again(std::span<const double> probabilities) {
    if (outcome.value == kCannotRun) return sample(probabilities);
    const double share = std::pow(static_cast<double>(solver_.blocks()), -rng_.uniform());
    std::vector<uint32_t> candidate = best_;
    for (size_t b = 0; b < candidate.size(); ++b)
      if (rng_.chance(share))
        candidate[b] = static_cast<uint32_t>(
            rng_.weighted(probabilities.subspan(b * solver_.chips(), solver_.chips())));
    keep(solver_.fix(candidate, probabilities, rng_));
  }

  void anneal(int64_t samples) {
    constexpr double kHottest = 0.1, kColdest = 1e-3;  // of the value
    std::vector<uint32_t> now = equal_parts();
    double value = fix(now);
    if (last_) now = *last_;
    for (int64_t i = 1; i < samples && status.ok(); ++i) {
      std::vector<uint32_t> next = now;
      next[rng_.below(next.size())] = static_cast<uint32_t>(rng_.below(solver_.chips()));
      const double found = fix(next);
      const double heat =
          kHottest *
          std::pow(kColdest / kHottest, static_cast<double>(i) / static_cast<double>(samples));
      if (found == kCannotRun || !last_) continue;
      if (found <= value || rng_.uniform() < std::exp((value - found) / (heat * found)))
        now = *last_, value = found;
    }
  }

  const ChipSolver& solver() const { return solver_; }
  ChipOutcome outcome;
  Status status;  // the error of a sample, which ends the search

 private:
  double keep(std::optional<std::vector<uint32_t>> chips) {
    last_ = std::move(chips);
    const Result<bool> is_mended = mend();
    if (!is_mended.ok()) {
      status = is_mended.error();
      last_.reset();
    }
    const double value = last_ ? judged() : kCannotRun;
    if (last_ && *is_mended) ++outcome.mended;
    outcome.best.push_back(outcome.value);
    return value;
  }

  // Moves blocks of the last placement from chips whose arena does not fit; none is left if that
  // does not help. Tells whether some were moved.
  Result<bool> mend() {
    solver_.lift_bars();
    for (int moves = 0; last_; ++moves) {
      const std::optional<DeviceArena> full = HONE_TRY(
          first_full_arena(run_.judge(), solver_.placement(*last_), run_.options().cancel));
      if (run_.options().cancel != nullptr) HONE_TRY(run_.options().cancel->check());
      if (!full) return moves > 0;
      const bool goes_on = moves < kMostMends && bar_one(*full);
      last_ = goes_on ? solver_.fix(*last_, even_, rng_) : std::nullopt;
    }
    return false;
  }

  // A block of the arena may not be on its chip. False: none of them may be on another one.
  bool bar_one(const DeviceArena& full) {
    std::vector<uint32_t> blocks;
    for (const uint32_t node : full.nodes) blocks.push_back(block_of_[run_.units().of(node)]);
    rng_.shuffle(blocks);
    return std::ranges::any_of(blocks,
                               [&](uint32_t block) { return solver_.bar(block, full.device); });
  }

  // Its memory is known to fit.
  double judged() {
    DevicePlacement placement = solver_.placement(*last_);
    const double value = std::ranges::max(run_.judge().loads(placement));
    ++outcome.valid;
    if (value < outcome.value)
      outcome.value = value, outcome.placement = std::move(placement), best_ = *last_;
    return value;
  }

  PlaceRun& run_;
  ChipSolver solver_;
  Rng& rng_;
  std::vector<double> even_;
  std::vector<uint32_t> block_of_;  // by unit
  std::optional<std::vector<uint32_t>> last_;
  std::vector<uint32_t> best_;  // chips of blocks
};

// The probability of each chip for each block, from what the policy says of all nodes at once.
std::vector<double> chip_probabilities(PlaceRun& run, const PlacePolicy& policy) {
  const PolicyView view(run);
  const PlacePolicy::Said said = policy.look(view);
  const size_t ranks = view.ranks();
  std::vector<double> all(run.units().blocks().size() * ranks);
  for (size_t b = 0; b < run.units().blocks().size(); ++b) {
    size_t nodes = 0;
    for (const uint32_t u : run.units().blocks()[b]) nodes += run.units().units()[u].nodes.size();
    for (const uint32_t u : run.units().blocks()[b])
      for (const uint32_t node : run.units().units()[u].nodes)
        for (size_t k = 0; k < ranks; ++k)
          all[b * ranks + view.device_of[k]] +=
              std::exp(static_cast<double>(said.once[view.row_of[node] * ranks + k])) /
              static_cast<double>(nodes);
  }
  return all;
}

}  // namespace

int64_t ChipOutcome::samples_to(double wanted) const {
  const auto reached = std::ranges::find_if(best, [&](double one) { return one <= wanted; });
  return reached - best.begin() + 1;
}

Result<ChipOutcome> search_chips(const PlaceJudge& judge, ChipSearch search, int64_t samples,
                                 uint64_t seed, const PlacePolicy* policy,
                                 const CancelToken* cancel) {
  if (judge.problem().devices() > kMostChips)
    return over_limit("a module has at most {} chips, not {}", kMostChips,
                      judge.problem().devices());
  const PlaceOptions options = {.goal = PlaceGoal::load, .seed = seed, .cancel = cancel};
  PlaceRun run(judge, options);
  Rng rng(seed);
  ChipHunt hunt(run, rng);
  switch (search) {
    case ChipSearch::greedy: hunt.fix(hunt.equal_parts()); break;
    case ChipSearch::random:
      for (int64_t i = 0; i < samples && hunt.status.ok(); ++i) hunt.sample_evenly();
      break;
    case ChipSearch::annealing: hunt.anneal(samples); break;
    case ChipSearch::policy: {
      HONE_CHECK(policy != nullptr, "no policy");
      const std::vector<double> probabilities = chip_probabilities(run, *policy);
      for (int64_t i = 0; i < samples && hunt.status.ok(); ++i)
        if (3 * i < samples)
          hunt.sample(probabilities);
        else
          hunt.draw_again(probabilities);
      break;
    }
  }
  HONE_TRY(hunt.status);
  return std::move(hunt.outcome);
}

}  // namespace hone

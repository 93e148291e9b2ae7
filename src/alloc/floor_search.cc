#include "alloc/floor_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>

#include "alloc/floor_state.h"
#include "alloc/guide.h"

namespace hone {
namespace {

// Whatever the guide says, the first turn has at least kLeastBacktracks backtracks, and each has at
// least kGrowth times as many as the last. In the end one is long enough for a proof.
constexpr double kLeastBacktracks = 10, kGrowth = 1.05;

template <class Int>
class FloorSearch {
 public:
  FloorSearch(const BlockPacking& packing, int64_t unit, Int capacity,
              const MemoryTechniques& techniques, const Guide& guide, Limits& limits,
              MemoryCounts& counts)
      : unit_(unit),
        techniques_(techniques),
        limits_(limits),
        counts_(counts),
        guide_(guide),
        preferences_(&guide.preferences[0]),
        state_(packing, unit, capacity, techniques),
        nogoods_(std::bit_ceil(std::clamp<size_t>(state_.count() * 1024, 1024, size_t{1} << 18))) {
    const size_t sections = static_cast<size_t>(packing.sections);
    weights_.assign(sections, 1);
    log_weights_.assign(sections, 0);
    reach_.assign(sections, 0);
    part_.assign(sections, 0);
    for (size_t i = 0; i <= state_.count(); ++i)
      logs_.push_back(std::log(static_cast<float>(std::max<size_t>(i, 1))));
    describe_blocks();
  }

  FoundPlacement run() {
    Order all;
    if (!state_.start(all)) return {Found::none, {}};
    const auto start = state_.mark();
    for (;;) {
      order_at(0) = all;
      root_begin_ = backtracks_;
      const Found found = solve(0);
      if (found == Found::none) return {Found::none, {}};
      if (found == Found::placement) return {Found::placement, offsets()};
      if (limits_.over()) return {Found::limit, {}};
      state_.undo(start);
      keys_.clear();
    }
  }

 private:
  using Order = typename FloorState<Int>::Order;

  std::vector<int64_t> offsets() const {
    std::vector<int64_t> offsets;
    for (uint16_t i = 0; i < state_.count(); ++i)
      offsets.push_back(static_cast<int64_t>(state_.offset(i)) * unit_);
    return offsets;
  }

  Order& order_at(size_t depth) {
    while (orders_.size() <= depth) orders_.emplace_back();
    return orders_[depth];
  }

  BlockSet& conflict_at(size_t depth) {
    while (conflicts_.size() <= depth) conflicts_.emplace_back(state_.count());
    return conflicts_[depth];
  }

  // Places the blocks of the order at that depth. Changes stay if it is found; else they are for
  // the caller to undo. A limit is also the answer on the way back to target_.
  Found solve(size_t depth) {
    const size_t first_key = keys_.size();
    Found found;
    for (;;) {
      Order& order = order_at(depth);
      ++counts_.nodes;
      if (depth > turn_.deepest) {
        turn_.deepest = depth;
        turn_.deepest_at = backtracks_;
      }
      if (limits_.over(1)) {
        found = Found::limit;
        break;
      }
      if (order.empty()) {
        found = Found::placement;
        break;
      }
      if (techniques_.decompose && has_parts(order)) {
        found = solve_parts(depth);
        break;
      }
      if (techniques_.nogoods) {
        keys_.push_back(state_.key(order));
        if (nogoods_.has(keys_.back())) {
          state_.blame_floors(order);
          found = Found::none;
          break;
        }
      }
      found = branch(choose(order), depth);
      if (found != Found::none || !goes_on_) break;
      if (goes_back(depth)) {
        found = Found::limit;
        break;
      }
    }
    if (found == Found::none)
      for (size_t i = first_key; i < keys_.size(); ++i) nogoods_.add(keys_[i]);
    keys_.resize(first_key);
    return found;
  }

  // The block on its floor and, if that fails and it has a part in that, higher: what then remains
  // is for the caller. So is all that there was if the search comes back to decide anew.
  Found branch(uint16_t block, size_t depth) {
    const auto mark = state_.mark();
    order_at(depth + 1);
    decide(depth, block);
    goes_on_ = false;
    if (state_.place(block, orders_[depth], orders_[depth + 1])) {
      const Found found = solve(depth + 1);
      if (found == Found::limit && target_ == static_cast<ptrdiff_t>(depth)) {
        state_.undo(mark);
        target_ = kRoot;
        goes_on_ = true;
        return Found::none;
      }
      if (found != Found::none) return found;
    } else {
      blame();
    }
    state_.undo(mark);
    if (techniques_.backjump && !state_.conflict().has(block)) {
      goes_on_ = false;
      return Found::none;
    }
    BlockSet& conflict = conflict_at(depth);
    conflict = state_.conflict();
    conflict.remove(block);
    goes_on_ = state_.postpone(block, orders_[depth], conflict);
    if (!goes_on_) blame();
    return Found::none;
  }

  void blame() {
    ++counts_.backtracks;
    ++backtracks_;
    if (state_.failed_section() < 0) return;
    const auto section = static_cast<size_t>(state_.failed_section());
    weights_[section] += 1;
    log_weights_[section] = std::log(weights_[section]);
  }

  // ---- How far to go back ----

  void decide(size_t depth, uint16_t block) {
    decisions_.resize(depth);
    decisions_.push_back({block, backtracks_});
  }

  // After a failure that proved that the search goes back to that depth: whether it goes back
  // further, to target_. Nogoods and weights that were found in between remain.
  bool goes_back(size_t depth) {
    if (!techniques_.restarts || static_cast<double>(backtracks_ - turn_.begin) < turn_.least)
      return false;
    const BlockSet& reasons = conflict_at(depth);
    const double least = -failure_score(orders_[depth]);
    double best = least;
    const auto consider = [&](ptrdiff_t to, int64_t taken_at) {
      const double score = decision_score(static_cast<ptrdiff_t>(depth) - to, taken_at);
      if (score <= best) return;
      best = score;
      target_ = to;
    };
    consider(kRoot, root_begin_);
    for (size_t to = 0; to < depth; ++to)
      if (decisions_[to].block != kNoBlock && reasons.has(decisions_[to].block))
        consider(static_cast<ptrdiff_t>(to), decisions_[to].taken_at);
    if (best > least) begin_turn();
    return best > least;
  }

  double failure_score(const Order& order) const {
    const auto& weight = guide_.jump.failure;
    const double open = static_cast<double>(order.size()) / static_cast<double>(state_.count());
    return weight[0] + weight[1] * static_cast<double>(turn_.number) +
           weight[2] * log_of(static_cast<int64_t>(state_.count())) + weight[3] * open +
           weight[4] * log_of(backtracks_ - turn_.deepest_at);
  }

  double decision_score(int64_t levels, int64_t taken_at) const {
    const auto& weight = guide_.jump.decision;
    return weight[0] * log_of(backtracks_ - taken_at) + weight[1] * log_of(levels);
  }

  static double log_of(int64_t count) {
    return std::log(static_cast<double>(std::max<int64_t>(count, 1)));
  }

  void begin_turn() {
    ++counts_.restarts;
    turn_ = {turn_.number + 1, turn_.least * kGrowth, backtracks_, 0, backtracks_};
    preferences_ = &guide_.preferences[turn_.number % guide_.preferences.size()];
  }

  // ---- Parts of the time that no open block joins ----

  // Fills part_ for the sections in which blocks begin.
  bool has_parts(const Order& order) {
    std::ranges::fill(reach_, 0);
    for (uint16_t i : order) {
      const auto first = static_cast<size_t>(first_[i]);
      reach_[first] = std::max(reach_[first], end_[i]);
    }
    parts_ = -1;
    int32_t reach = 0;
    for (int32_t s = 0; s < state_.sections(); ++s) {
      if (reach_[static_cast<size_t>(s)] == 0) continue;
      if (s >= reach) ++parts_;
      reach = std::max(reach, reach_[static_cast<size_t>(s)]);
      part_[static_cast<size_t>(s)] = parts_;
    }
    return parts_ > 0;
  }

  Found solve_parts(size_t depth) {
    std::vector<Order> parts(static_cast<size_t>(parts_) + 1);
    for (uint16_t i : orders_[depth])
      parts[static_cast<size_t>(part_[static_cast<size_t>(first_[i])])].push_back(i);
    std::ranges::sort(parts, {}, &Order::size);
    decide(depth, kNoBlock);
    for (Order& part : parts) {
      order_at(depth + 1) = part;
      if (!state_.turn_to(orders_[depth + 1])) return Found::none;
      const Found found = solve(depth + 1);
      if (found != Found::placement) return found;
    }
    return Found::placement;
  }

  // ---- What to place next ----

  void describe_blocks() {
    for (uint16_t i = 0; i < state_.count(); ++i) {
      int32_t end = 0, length = 0, overlaps = 0;
      for (const Slab& slab : state_.slabs(i)) {
        end = std::max(end, slab.end);
        length += slab.end - slab.first;
      }
      for (uint16_t other = 0; other < state_.count(); ++other)
        overlaps += state_.overlap(i, other);
      first_.push_back(state_.slabs(i)[0].first);
      end_.push_back(end);
      log_size_.push_back(std::log(static_cast<float>(state_.size(i))));
      log_length_.push_back(std::log(static_cast<float>(length)));
      log_overlaps_.push_back(std::log(static_cast<float>(overlaps + 1)));
    }
  }

  float section_score(size_t s) const {
    const SectionFacts<Int>& facts = state_.facts();
    const float share = 1.0F / static_cast<float>(state_.capacity());
    const auto& weight = preferences_->section;
    return weight[0] * logs_[static_cast<size_t>(facts.firsts[s])] + weight[1] * log_weights_[s] +
           weight[2] * static_cast<float>(state_.capacity() - facts.top[s]) * share +
           weight[3] * static_cast<float>(facts.low[s]) * share +
           weight[4] * static_cast<float>(state_.capacity() - facts.low[s] - facts.open[s]) * share;
  }

  float block_score(uint16_t i) const {
    const auto& weight = preferences_->block;
    float sum = 0;
    if (weight[2] != 0)
      for (const Slab& slab : state_.slabs(i))
        for (int32_t s = slab.first; s < slab.end; ++s) sum += weights_[static_cast<size_t>(s)];
    return weight[0] * log_size_[i] + weight[1] * log_length_[i] +
           (weight[2] != 0 ? weight[2] * std::log(sum) : 0) + weight[3] * log_overlaps_[i] +
           neighbours(i);
  }

  // Where what is open right before or behind the block's life can lie no lower than the block, or
  // no lower than its end, no room beside it is lost.
  float neighbours(uint16_t i) const {
    const auto& weight = preferences_->block;
    const Int floor = state_.floor(i), top = floor + state_.size(i);
    float score = 0;
    for (int32_t s : {first_[i] - 1, end_[i]}) {
      const Int low = s < 0 || s >= state_.sections() ? kNothing<Int>
                                                      : state_.facts().low[static_cast<size_t>(s)];
      if (low > floor) score += weight[4];
      if (low == top) score += weight[5];
    }
    return score;
  }

  uint16_t choose(const Order& order) {
    lowest_.clear();
    float best = -HUGE_VALF;
    int32_t section = -1;
    for (uint16_t i : order) {
      if (!state_.is_lowest(order, i)) continue;
      lowest_.push_back(i);
      for (const Slab& slab : state_.slabs(i))
        for (int32_t s = slab.first; s < slab.end; ++s) {
          const float score = section_score(static_cast<size_t>(s));
          if (score > best) {
            best = score;
            section = s;
          }
        }
    }
    best = -HUGE_VALF;
    uint16_t chosen = lowest_[0];
    for (uint16_t i : lowest_) {
      const bool is_there = std::ranges::any_of(state_.slabs(i), [&](const Slab& slab) {
        return slab.first <= section && section < slab.end;
      });
      if (!is_there) continue;
      const float score = block_score(i);
      if (score > best) {
        best = score;
        chosen = i;
      }
    }
    return chosen;
  }

  const int64_t unit_;
  const MemoryTechniques techniques_;
  Limits& limits_;
  MemoryCounts& counts_;
  const Guide& guide_;
  const Preferences* preferences_;  // of the turn
  FloorState<Int> state_;
  Nogoods nogoods_;
  bool goes_on_ = false;  // at its depth, after the last branch

  // Moments are told by how many backtracks of this search there were.
  struct Decision {
    uint16_t block;
    int64_t taken_at;
  };
  struct Turn {
    size_t number = 0;
    double least = kLeastBacktracks;
    int64_t begin = 0;
    size_t deepest = 0;
    int64_t deepest_at = 0;
  };
  static constexpr uint16_t kNoBlock = 0xFFFF;  // where parts of the time are solved
  static constexpr ptrdiff_t kRoot = -1;        // before the decision at depth 0
  int64_t backtracks_ = 0;
  int64_t root_begin_ = 0;
  Turn turn_;
  std::vector<Decision> decisions_;  // by depth, on the way to where the search is
  ptrdiff_t target_ = kRoot;         // the depth that it goes back to

  std::deque<Order> orders_;  // by depth
  std::deque<BlockSet> conflicts_;
  std::vector<Nogoods::Key> keys_;            // of the states on the way
  std::vector<float> weights_, log_weights_;  // per section
  std::vector<int32_t> reach_, part_;
  int32_t parts_ = 0;  // less one
  Order lowest_;

  std::vector<float> logs_;  // of small numbers
  std::vector<int32_t> first_, end_;
  std::vector<float> log_size_, log_length_, log_overlaps_;
};

}  // namespace

bool is_for_floors(const BlockPacking& packing) {
  return std::ranges::all_of(packing.blocks, [](const Block& block) {
    return !block.offset && std::ranges::all_of(block.slabs, [&](const Slab& slab) {
      return slab.low == 0 && slab.high == block.size;
    });
  });
}

FoundPlacement search_floors(const BlockPacking& packing, int64_t capacity,
                             const MemoryTechniques& techniques, const Guide& guide, Limits& limits,
                             MemoryCounts& counts) {
  const int64_t unit = unit_of(packing);
  const int64_t units = capacity / unit;
  const bool is_small =
      units < kNothing<int32_t> / 2 &&
      std::ranges::all_of(
          packing.blocks,
          [&](const Block& block) { return block.alignment / unit < kNothing<int32_t> / 2; });
  if (is_small)
    return FloorSearch<int32_t>(packing, unit, static_cast<int32_t>(units), techniques, guide,
                                limits, counts)
        .run();
  return FloorSearch<int64_t>(packing, unit, units, techniques, guide, limits, counts).run();
}

}  // namespace hone

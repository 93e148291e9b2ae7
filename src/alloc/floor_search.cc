#include "alloc/floor_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>

#include "alloc/floor_state.h"
#include "alloc/guide.h"

namespace hone {
namespace {

// Each turn is so many times as long as the last: in the end one is long enough for a proof.
constexpr double kGrowth = 1.1;

template <class Int>
class FloorSearch {
 public:
  FloorSearch(const Packing& packing, int64_t unit, Int capacity,
              const MemoryTechniques& techniques, const Guide& guide, Limits& limits,
              MemoryCounts& counts)
      : unit_(unit),
        techniques_(techniques),
        limits_(limits),
        counts_(counts),
        guide_(guide),
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

  SearchResult run() {
    Order all;
    if (!state_.start(all)) return {Found::none, {}};
    const auto start = state_.mark();
    double backtracks = techniques_.restarts ? guide_.backtracks : HUGE_VAL;
    for (size_t turn = 0;; ++turn, ++counts_.restarts, backtracks *= kGrowth) {
      preferences_ = &guide_.preferences[turn % guide_.preferences.size()];
      backtracks_left_ = static_cast<int64_t>(std::min(backtracks, 1e18));
      order_at(0) = all;
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
  // the caller to undo.
  Found solve(size_t depth) {
    const size_t first_key = keys_.size();
    Found found;
    for (;;) {
      Order& order = order_at(depth);
      ++counts_.nodes;
      if (limits_.over(1) || backtracks_left_ < 0) {
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
      if (found != Found::none || !is_postponed_) break;
    }
    if (found == Found::none)
      for (size_t i = first_key; i < keys_.size(); ++i) nogoods_.add(keys_[i]);
    keys_.resize(first_key);
    return found;
  }

  // The block on its floor and, if that fails and it has a part in that, higher: what then remains
  // is for the caller.
  Found branch(uint16_t block, size_t depth) {
    const auto mark = state_.mark();
    order_at(depth + 1);
    is_postponed_ = false;
    if (state_.place(block, orders_[depth], orders_[depth + 1])) {
      const Found found = solve(depth + 1);
      if (found != Found::none) return found;
    } else {
      blame();
    }
    state_.undo(mark);
    if (techniques_.backjump && !state_.conflict().has(block)) {
      is_postponed_ = false;
      return Found::none;
    }
    BlockSet& conflict = conflict_at(depth);
    conflict = state_.conflict();
    conflict.remove(block);
    is_postponed_ = state_.postpone(block, orders_[depth], conflict);
    if (!is_postponed_) blame();
    return Found::none;
  }

  void blame() {
    ++counts_.backtracks;
    --backtracks_left_;
    if (state_.failed_section() < 0) return;
    const auto section = static_cast<size_t>(state_.failed_section());
    weights_[section] += 1;
    log_weights_[section] = std::log(weights_[section]);
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
  const Preferences* preferences_ = nullptr;
  FloorState<Int> state_;
  Nogoods nogoods_;
  int64_t backtracks_left_ = 0;  // until the next restart
  bool is_postponed_ = false;    // by the last branch

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

bool is_for_floors(const Packing& packing) {
  return std::ranges::all_of(packing.blocks, [](const Block& block) {
    return !block.offset && std::ranges::all_of(block.slabs, [&](const Slab& slab) {
      return slab.low == 0 && slab.high == block.size;
    });
  });
}

SearchResult search_floors(const Packing& packing, int64_t capacity,
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

#include "alloc/floor_state.h"

#include <algorithm>
#include <bit>
#include <map>

namespace hone {

template <class Int>
FloorState<Int>::FloorState(const BlockPacking& packing, int64_t unit, Int capacity,
                            const MemoryTechniques& techniques)
    : packing_(packing),
      techniques_(techniques),
      kernels_(section_kernels<Int>()),
      capacity_(capacity) {
  for (const Block& block : packing.blocks) {
    size_.push_back(static_cast<Int>(block.size / unit));
    alignment_.push_back(static_cast<Int>(std::max<int64_t>(1, block.alignment / unit)));
    phase_.push_back(static_cast<Int>(block.phase / unit));
  }
  make_lanes();
  find_overlaps();
  find_twins();
  const size_t chunks = (static_cast<size_t>(packing.sections) + kLanes - 1) / kLanes;
  facts_.resize(chunks * kLanes);
  dirty_.assign(chunks, 0);
  touched_.assign(chunks, 0);
  saved_.assign(chunks, 0);
  is_raised_.assign(count(), 0);
  floor_.assign(count(), 0);
  postponed_.assign(count(), -1);
  offset_.assign(count(), 0);
  is_placed_.assign(count(), 0);
  if (techniques.backjump) reasons_ = Reasons(count());
  conflict_ = BlockSet(count());
}

template <class Int>
void FloorState<Int>::make_lanes() {
  for (size_t i = 0; i < count(); ++i) {
    lanes_begin_.push_back(static_cast<uint32_t>(lanes_.size()));
    for (const Slab& slab : packing_.blocks[i].slabs)
      for (int32_t section = slab.first; section < slab.end; ++section) {
        const int32_t chunk = section / kLanes;
        if (lanes_.size() == lanes_begin_.back() || lanes_.back().chunk != chunk)
          lanes_.push_back({{}, {}, chunk});
        lanes_.back().size[section % kLanes] = size_[i];
        lanes_.back().inside[section % kLanes] = -1;
      }
  }
  lanes_begin_.push_back(static_cast<uint32_t>(lanes_.size()));
}

template <class Int>
void FloorState<Int>::find_overlaps() {
  words_ = (count() + 63) / 64;
  overlaps_.assign(count() * words_, 0);
  std::vector<std::vector<uint16_t>> members(static_cast<size_t>(packing_.sections));
  for (uint16_t i = 0; i < count(); ++i)
    for (const Slab& slab : slabs(i))
      for (int32_t s = slab.first; s < slab.end; ++s) members[static_cast<size_t>(s)].push_back(i);
  std::vector<uint64_t> together(words_);
  for (const std::vector<uint16_t>& in : members) {
    std::ranges::fill(together, 0);
    for (uint16_t i : in) together[i / 64] |= uint64_t{1} << (i % 64);
    for (uint16_t i : in)
      for (size_t w = 0; w < words_; ++w) overlaps_[i * words_ + w] |= together[w];
  }
  for (uint16_t i = 0; i < count(); ++i)
    overlaps_[i * words_ + i / 64] &= ~(uint64_t{1} << (i % 64));
}

// Two that lie one on the other can change places where neither leaves a gap for its alignment.
template <class Int>
void FloorState<Int>::find_twins() {
  using Life = std::pair<std::vector<std::pair<int32_t, int32_t>>, std::pair<Int, Int>>;
  std::map<Life, uint32_t> groups;
  twin_.assign(count(), 0);
  for (uint16_t i = 0; i < count(); ++i) {
    if (size_[i] % alignment_[i] != 0) continue;
    Life life{{}, {alignment_[i], phase_[i]}};
    for (const Slab& slab : slabs(i)) life.first.emplace_back(slab.first, slab.end);
    twin_[i] = groups.try_emplace(life, static_cast<uint32_t>(groups.size()) + 1).first->second;
  }
}

// ---- Changes, and how they are undone -----------------------------------------------------------

template <class Int>
void FloorState<Int>::save(int32_t chunk) {
  if (saved_[static_cast<size_t>(chunk)]) return;
  saved_[static_cast<size_t>(chunk)] = 1;
  Chunk& to = chunks_.emplace_back();
  to.chunk = chunk;
  size_t next = 0;
  for (std::vector<Int>* facts : facts_.all())
    std::copy_n(facts->begin() + chunk * kLanes, kLanes, to.facts[next++].begin());
}

template <class Int>
void FloorState<Int>::undo(const Mark& to) {
  for (; values_.size() > to.values; values_.pop_back()) *values_.back().at = values_.back().value;
  if (techniques_.backjump) reasons_.undo(to.reasons);
  for (; chunks_.size() > to.chunks; chunks_.pop_back()) {
    const Chunk& chunk = chunks_.back();
    size_t next = 0;
    for (std::vector<Int>* facts : facts_.all())
      std::ranges::copy(chunk.facts[next++], facts->begin() + chunk.chunk * kLanes);
  }
}

template <class Int>
void FloorState<Int>::add_reason(uint16_t block, uint16_t other) {
  if (!techniques_.backjump) return;
  reasons_.add(block, other);
  if (is_placed_[other] != 0) reasons_.add_block(block, other);
}

template <class Int>
void FloorState<Int>::add_neighbours(uint16_t block, bool only_open) {
  if (!techniques_.backjump) return;
  for (size_t w = 0; w < words_; ++w)
    for (uint64_t bits = overlaps_[block * words_ + w]; bits != 0; bits &= bits - 1) {
      const auto other =
          static_cast<uint16_t>(w * 64 + static_cast<size_t>(std::countr_zero(bits)));
      if (!only_open || is_placed_[other] == 0) add_reason(block, other);
    }
}

template <class Int>
bool FloorState<Int>::fail(uint16_t block) {
  if (techniques_.backjump) {
    conflict_.clear();
    reasons_.add_to(conflict_, block);
  }
  return false;
}

template <class Int>
void FloorState<Int>::blame_floors(const Order& order) {
  if (!techniques_.backjump) return;
  conflict_.clear();
  for (uint16_t block : order) reasons_.add_to(conflict_, block);
}

template <class Int>
void FloorState<Int>::touch(uint16_t block) {
  for (uint32_t l = lanes_begin_[block]; l < lanes_begin_[block + 1u]; ++l)
    touched_[static_cast<size_t>(lanes_[l].chunk)] = 1;
}

template <class Int>
bool FloorState<Int>::raise(uint16_t block, Int to) {
  if (to <= capacity_ - size_[block]) to = aligned(block, to);
  if (to > capacity_ - size_[block]) {
    failed_section_ = slabs(block)[0].first;
    return fail(block);
  }
  set(floor_[block], to);
  is_raised_[block] = 1;
  any_raised_ = true;
  touch(block);
  return true;
}

// It lies on an open block that it overlaps.
template <class Int>
bool FloorState<Int>::lift(uint16_t block, const Order& order) {
  Int lowest = kNothing<Int>;
  for (uint16_t other : order)
    if (overlap(block, other)) lowest = std::min<Int>(lowest, floor_[other] + size_[other]);
  add_neighbours(block, false);
  if (lowest == kNothing<Int>) return fail(block);
  return raise(
      block, techniques_.canonical ? std::max<Int>(lowest, floor_[block] + 1) : floor_[block] + 1);
}

// After some floors rose: those blocks to their places among the others.
template <class Int>
void FloorState<Int>::sort(Order& order) {
  if (!any_raised_) return;
  any_raised_ = false;
  kept_.resize(order.size());
  raised_.clear();
  size_t kept = 0;
  for (uint16_t block : order) {
    kept_[kept] = block;
    kept += !is_raised_[block];
    if (is_raised_[block]) raised_.push_back(block);
  }
  kept_.resize(kept);
  const auto is_lower = [&](uint16_t a, uint16_t b) {
    return std::pair(floor_[a], a) < std::pair(floor_[b], b);
  };
  std::ranges::sort(raised_, is_lower);
  std::ranges::merge(kept_, raised_, order.begin(), is_lower);
  for (uint16_t block : raised_) is_raised_[block] = 0;
}

// ---- Steps --------------------------------------------------------------------------------------

template <class Int>
bool FloorState<Int>::start(Order& order) {
  order.clear();
  for (uint16_t i = 0; i < count(); ++i) {
    order.push_back(i);
    floor_[i] = aligned(i, 0);
    touch(i);
    if (floor_[i] > capacity_ - size_[i]) return false;
  }
  std::ranges::sort(order, {}, [&](uint16_t i) { return std::pair(floor_[i], i); });
  return propagate(order, true);
}

// The facts of chunks in which there are other blocks, too, were of these.
template <class Int>
bool FloorState<Int>::turn_to(Order& order) {
  for (uint16_t block : order) touch(block);
  return propagate(order, true);
}

template <class Int>
bool FloorState<Int>::place(uint16_t block, const Order& order, Order& rest) {
  const Int at = floor_[block], top = at + size_[block];
  offset_[block] = at;
  set(is_placed_[block], 1);
  failed_section_ = -1;
  rest.clear();
  lifted_.clear();
  touch(block);
  bool fits = true;
  for (uint16_t other : order) {
    if (other == block) continue;
    rest.push_back(other);
    if (!overlap(block, other)) continue;
    set(postponed_[other], -1);
    const bool is_below = floor_[other] <= at && belongs_below(other, block);
    if (floor_[other] < top && fits) {
      add_reason(other, block);
      fits = raise(other, top);
    }
    if (techniques_.symmetry && is_below && floor_[other] == top) lifted_.push_back(other);
  }
  sort(rest);
  for (uint16_t other : lifted_) fits = fits && lift(other, rest);
  if (!lifted_.empty()) sort(rest);
  return propagate(rest, fits);
}

template <class Int>
bool FloorState<Int>::postpone(uint16_t block, Order& order, const BlockSet& conflict) {
  if (techniques_.backjump) reasons_.add(block, conflict);
  if (techniques_.dominance && postponed_[block] < 0) set(postponed_[block], floor_[block]);
  failed_section_ = -1;
  const bool fits = lift(block, order);
  sort(order);
  return propagate(order, fits);
}

// ---- What follows -------------------------------------------------------------------------------

template <class Int>
bool FloorState<Int>::propagate(Order& order, bool is_possible) {
  for (bool is_done = !is_possible; !is_done;) {
    std::swap(dirty_, touched_);
    for (size_t chunk = 0; chunk < dirty_.size(); ++chunk)
      if (dirty_[chunk]) save(static_cast<int32_t>(chunk));
    kernels_.stack(open(order), dirty_.data(), facts_);
    is_possible = !techniques_.sections || fits(order);
    is_done = true;
    if (is_possible) {
      kernels_.find_firsts(open(order), dirty_.data(), capacity_, facts_);
      if (techniques_.first)
        for (uint16_t block : order) {
          const Int to =
              kernels_.behind_firsts(open(order), block, dirty_.data(), capacity_, facts_);
          if (to <= floor_[block]) continue;
          is_done = false;
          add_neighbours(block, true);
          if (!(is_possible = raise(block, to))) break;
        }
      sort(order);
      is_done |= !is_possible;
    }
    std::ranges::fill(dirty_, 0);
  }
  std::ranges::fill(touched_, 0);
  std::ranges::fill(saved_, 0);
  return is_possible && (!techniques_.dominance || has_intruders(order));
}

template <class Int>
bool FloorState<Int>::fits(const Order& order) {
  Int highest = capacity_;
  failed_section_ = -1;
  for (size_t chunk = 0; chunk < dirty_.size(); ++chunk) {
    if (!dirty_[chunk]) continue;
    for (size_t s = chunk * kLanes; s < (chunk + 1) * kLanes; ++s)
      if (facts_.top[s] > highest) {
        highest = facts_.top[s];
        failed_section_ = static_cast<int32_t>(s);
      }
  }
  if (failed_section_ < 0) return true;
  if (techniques_.backjump) {
    conflict_.clear();
    for (uint16_t block : order)
      for (const Slab& slab : slabs(block))
        if (slab.first <= failed_section_ && failed_section_ < slab.end)
          reasons_.add_to(conflict_, block);
  }
  return false;
}

// Tells whether something is in the way of each block that could lie lower. It is an open block
// that the block overlaps, and that can begin below the block's end there.
template <class Int>
bool FloorState<Int>::has_intruders(const Order& order) {
  for (uint16_t block : order) {
    if (postponed_[block] < 0) continue;
    const Int end = postponed_[block] + size_[block];
    const auto intruder = std::ranges::find_if(
        order, [&](uint16_t other) { return floor_[other] >= end || overlap(block, other); });
    if (intruder != order.end() && floor_[*intruder] < end) continue;
    add_neighbours(block, false);
    return fail(block);
  }
  return true;
}

template <class Int>
Nogoods::Key FloorState<Int>::key(const Order& order) const {
  Nogoods::Key key = Nogoods::hash(~uint64_t{0}, static_cast<uint64_t>(capacity_));
  for (uint16_t block : order) {
    key += Nogoods::hash(block, static_cast<uint64_t>(floor_[block]));
    if (postponed_[block] >= 0)
      key += Nogoods::hash(block + (uint64_t{1} << 32), static_cast<uint64_t>(postponed_[block]));
  }
  return key;
}

template class FloorState<int32_t>;
template class FloorState<int64_t>;

}  // namespace hone

#pragma once

#include <span>

#include "alloc/blocks.h"
#include "alloc/nogoods.h"
#include "alloc/plan_memory.h"
#include "alloc/reasons.h"
#include "alloc/section_lanes.h"

namespace hone {

// The state of a floor search, how its steps change it, and what follows from them at once. Numbers
// are in units of which all sizes and alignments are multiples.
template <class Int>
class FloorState {
 public:
  // Open blocks, those with lower floors first.
  using Order = std::vector<uint16_t>;

  FloorState(const BlockPacking& packing, int64_t unit, Int capacity,
             const MemoryTechniques& techniques);

  // All blocks are open. False if there is no placement; so for the others that say so.
  bool start(Order& order);
  // Only these blocks are open from now on, until that is undone; nothing joins them to others.
  bool turn_to(Order& order);
  // The block lies on its floor; `rest` are the others.
  bool place(uint16_t block, const Order& order, Order& rest);
  // It lies higher, as its place on its floor conflicts with these placed blocks.
  bool postpone(uint16_t block, Order& order, const BlockSet& conflict);

  // Placed blocks that alone rule out what the last step that failed asked for.
  const BlockSet& conflict() const { return conflict_; }
  // Blames the blocks that led to the floors of all open blocks.
  void blame_floors(const Order& order);

  struct Mark {
    size_t values, chunks, reasons;
  };
  Mark mark() const { return {values_.size(), chunks_.size(), reasons_.mark()}; }
  void undo(const Mark& to);

  Nogoods::Key key(const Order& order) const;
  bool is_lowest(const Order& order, uint16_t block) const {
    return kernels_.is_lowest(open(order), block, facts_);
  }

  // Guides look at these.
  Int capacity() const { return capacity_; }
  Int offset(uint16_t block) const { return offset_[block]; }
  Int floor(uint16_t block) const { return floor_[block]; }
  Int size(uint16_t block) const { return size_[block]; }
  const SectionFacts<Int>& facts() const { return facts_; }
  std::span<const Slab> slabs(uint16_t block) const { return packing_.blocks[block].slabs; }
  int32_t sections() const { return packing_.sections; }
  size_t count() const { return size_.size(); }
  bool overlap(uint16_t a, uint16_t b) const {
    return (overlaps_[a * words_ + b / 64] >> (b % 64) & 1) != 0;
  }
  // The section that showed the last failure; -1 if none did.
  int32_t failed_section() const { return failed_section_; }

 private:
  void make_lanes();
  void find_overlaps();
  void find_twins();
  OpenBlocks<Int> open(const Order& order) const {
    return {lanes_.data(), lanes_begin_.data(), floor_.data(), order.data(), order.size()};
  }

  void set(Int& value, Int to) {
    if (value == to) return;
    values_.push_back({&value, value});
    value = to;
  }
  // Adds to the reasons of a block's floor: those of another's, and its place if it has one; those
  // of all that it overlaps.
  void add_reason(uint16_t block, uint16_t other);
  void add_neighbours(uint16_t block, bool only_open);
  bool fail(uint16_t block);  // for the reasons of its floor
  void touch(uint16_t block);
  void save(int32_t chunk);
  bool raise(uint16_t block, Int to);
  bool lift(uint16_t block, const Order& order);
  void sort(Order& order);
  bool propagate(Order& order, bool is_possible);
  bool fits(const Order& order);
  bool has_intruders(const Order& order);
  // The larger of two twins does not come directly on the smaller; of equals, the one before.
  bool belongs_below(uint16_t a, uint16_t b) const {
    return twin_[a] == twin_[b] && twin_[a] != 0 &&
           (size_[a] != size_[b] ? size_[a] > size_[b] : a < b);
  }
  Int aligned(uint16_t block, Int from) const {
    const Int behind = (from - phase_[block]) % alignment_[block];
    return behind == 0 ? from : from + (behind < 0 ? -behind : alignment_[block] - behind);
  }

  const BlockPacking& packing_;
  const MemoryTechniques techniques_;
  const SectionKernels<Int>& kernels_;
  const Int capacity_;

  std::vector<Int> size_, alignment_, phase_;
  std::vector<uint32_t> twin_;  // blocks of one life that can change places; 0: alone
  std::vector<BlockLanes<Int>> lanes_;
  std::vector<uint32_t> lanes_begin_;
  size_t words_ = 0;
  std::vector<uint64_t> overlaps_;

  std::vector<Int> floor_;
  // Where the block could lie and does not, if nothing has been placed below it since: something
  // will. -1: no such place.
  std::vector<Int> postponed_;
  std::vector<Int> offset_;
  std::vector<Int> is_placed_;
  Reasons reasons_;  // of the floors
  BlockSet conflict_;
  SectionFacts<Int> facts_;

  // Chunks whose facts are to be computed now, and in the next round; those that can be undone.
  std::vector<uint8_t> dirty_, touched_, saved_;
  std::vector<uint8_t> is_raised_;
  bool any_raised_ = false;
  Order kept_, raised_, lifted_;
  int32_t failed_section_ = -1;

  struct Value {
    Int* at;
    Int value;
  };
  struct Chunk {
    int32_t chunk;
    std::array<std::array<Int, kLanes>, 5> facts;
  };
  std::vector<Value> values_;
  std::vector<Chunk> chunks_;
};

extern template class FloorState<int32_t>;
extern template class FloorState<int64_t>;

}  // namespace hone

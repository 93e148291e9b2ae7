#include "alloc/free_search.h"

#include <algorithm>

namespace hone {
namespace {

constexpr int64_t kNowhere = kNoCapacity;
constexpr size_t kMostContacts = 8'000'000;  // some hundred megabytes

class FreeSearch {
 public:
  FreeSearch(const BlockPacking& packing, int64_t capacity, const MemoryTechniques& techniques,
             Limits& limits, MemoryCounts& counts)
      : blocks_(packing.blocks),
        sections_(static_cast<size_t>(packing.sections)),
        capacity_(capacity),
        unit_(unit_of(packing)),
        techniques_(techniques),
        limits_(limits),
        counts_(counts),
        lowest_(blocks_.size(), 0),
        is_placed_(blocks_.size(), false),
        members_(sections_),
        neighbours_(blocks_.size()),
        united_(blocks_.size()) {
    for (uint32_t i = 0; i < blocks_.size(); ++i)
      for (const Slab& slab : blocks_[i].slabs)
        for (int32_t s = slab.first; s < slab.end; ++s)
          members_[static_cast<size_t>(s)].push_back({i, slab.low, slab.high});
  }

  FoundPlacement run() {
    if (!find_contacts()) return {Found::limit, {}};
    for (uint32_t i = 0; i < blocks_.size(); ++i)
      if (blocks_[i].offset) {
        lowest_[i] = *blocks_[i].offset;
        is_placed_[i] = true;
      }
    for (uint32_t i = 0; i < blocks_.size(); ++i) {
      const int64_t at = blocks_[i].offset.value_or(0);
      if (free_from(i, at) == kNowhere || (is_placed_[i] && free_from(i, at) != at))
        return {Found::none, {}};
      lowest_[i] = free_from(i, at);
    }
    const Found found = solve();
    return {found, found == Found::placement ? lowest_ : std::vector<int64_t>()};
  }

 private:
  struct Member {
    uint32_t block;
    int64_t low, high;
    auto operator<=>(const Member&) const = default;
  };
  // Bytes of a block and of another that are in use at the same time. The block is in the way of
  // the other while its offset is more than `below` and less than `above` behind that one's.
  struct Contact {
    uint32_t other;
    int64_t below, above;
    auto operator<=>(const Contact&) const = default;
  };

  // False if they are too many, or it is late.
  bool find_contacts() {
    size_t count = 0;
    const auto unite = [&](std::vector<Contact>& contacts) {
      count -= contacts.size();
      std::ranges::sort(contacts);
      contacts.erase(std::ranges::unique(contacts).begin(), contacts.end());
      count += contacts.size();
    };
    for (const std::vector<Member>& in : members_) {
      for (const Member& a : in) {
        std::vector<Contact>& contacts = neighbours_[a.block];
        for (const Member& b : in)
          if (a.block != b.block) contacts.push_back({b.block, b.low - a.high, b.high - a.low});
        count += in.size() - 1;
        if (contacts.size() > 2 * united_[a.block] + in.size()) {
          unite(contacts);
          united_[a.block] = contacts.size();
        }
      }
      if (count > kMostContacts || limits_.is_late()) return false;
    }
    for (std::vector<Contact>& contacts : neighbours_) unite(contacts);
    return true;
  }

  // The least offset from there on that what is placed leaves free.
  int64_t free_from(uint32_t block, int64_t from) const {
    const int64_t last = capacity_ - blocks_[block].size;
    for (bool is_free = false; !is_free;) {
      if (from > last || (from = aligned_up(blocks_[block], from)) > last) return kNowhere;
      is_free = true;
      for (const auto& [other, below, above] : neighbours_[block]) {
        if (!is_placed_[other] || from >= lowest_[other] + above || from <= lowest_[other] + below)
          continue;
        from = lowest_[other] + above;
        is_free = false;
        break;
      }
    }
    return from;
  }

  // The least offset above its lowest at which the block may touch another from above.
  int64_t next_for(uint32_t block) const {
    const int64_t higher = lowest_[block] + unit_;
    if (!techniques_.canonical) return free_from(block, higher);
    int64_t next = kNowhere;
    for (const auto& [other, below, above] : neighbours_[block]) {
      const int64_t touches = lowest_[other] + above;
      if (!is_placed_[other])
        next = std::min(next, std::max(touches, higher));
      else if (touches >= higher)
        next = std::min(next, touches);
    }
    return next == kNowhere ? kNowhere : free_from(block, next);
  }

  // True if at each moment what is open fits into what is free above the lowest of it.
  bool fits() const {
    for (const std::vector<Member>& in : members_) {
      int64_t floor = capacity_, bytes = 0;
      for (const auto& [block, low, high] : in)
        if (!is_placed_[block]) floor = std::min(floor, lowest_[block] + low);
      for (const auto& [block, low, high] : in)
        bytes += is_placed_[block] ? std::max<int64_t>(0, lowest_[block] + high -
                                                              std::max(floor, lowest_[block] + low))
                                   : high - low;
      if (bytes > capacity_ - floor) return false;
    }
    return true;
  }

  std::optional<uint32_t> choose() const {
    std::optional<uint32_t> best;
    for (uint32_t i = 0; i < blocks_.size(); ++i)
      if (!is_placed_[i] && (!best || std::pair(lowest_[i], -blocks_[i].size) <
                                          std::pair(lowest_[*best], -blocks_[*best].size)))
        best = i;
    return best;
  }

  void set_lowest(uint32_t block, int64_t to) {
    changes_.emplace_back(block, lowest_[block]);
    lowest_[block] = to;
  }
  void undo(size_t changes) {
    for (; changes_.size() > changes; changes_.pop_back())
      lowest_[changes_.back().first] = changes_.back().second;
  }

  bool place(uint32_t block) {
    is_placed_[block] = true;
    for (const auto& [other, below, above] : neighbours_[block]) {
      if (is_placed_[other]) continue;
      const int64_t free = free_from(other, lowest_[other]);
      if (free == kNowhere) return false;
      if (free != lowest_[other]) set_lowest(other, free);
    }
    return !techniques_.sections || fits();
  }

  // Changes of lowest_ are for the caller to undo, unless it is found.
  Found solve() {
    for (;;) {
      ++counts_.nodes;
      limits_.over(1);
      if (limits_.is_late()) return Found::limit;
      const std::optional<uint32_t> block = choose();
      if (!block) return Found::placement;
      const size_t changes = changes_.size();
      if (place(*block)) {
        const Found found = solve();
        if (found != Found::none) return found;
      }
      ++counts_.backtracks;
      is_placed_[*block] = false;
      undo(changes);
      const int64_t next = next_for(*block);
      if (next == kNowhere) return Found::none;
      set_lowest(*block, next);
      if (techniques_.sections && !fits()) return Found::none;
    }
  }

  const std::vector<Block>& blocks_;
  const size_t sections_;
  const int64_t capacity_;
  const int64_t unit_;
  const MemoryTechniques techniques_;
  Limits& limits_;
  MemoryCounts& counts_;

  std::vector<int64_t> lowest_;  // of a placed block: where it lies
  std::vector<bool> is_placed_;
  std::vector<std::vector<Member>> members_;  // per section
  std::vector<std::vector<Contact>> neighbours_;
  std::vector<size_t> united_;  // the number of neighbours that are in order, each once
  std::vector<std::pair<uint32_t, int64_t>> changes_;
};

}  // namespace

FoundPlacement search_freely(const BlockPacking& packing, int64_t capacity,
                             const MemoryTechniques& techniques, Limits& limits,
                             MemoryCounts& counts) {
  return FreeSearch(packing, capacity, techniques, limits, counts).run();
}

}  // namespace hone

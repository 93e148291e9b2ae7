#include "alloc/arena.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"

namespace hone {
namespace {

constexpr size_t kMaxItemsBySize = 8192;  // quadratic: a tenth of a second
constexpr int64_t kEndless = std::numeric_limits<int64_t>::max() / 2;

int64_t aligned(int64_t offset, int64_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

// By key, then by index.
std::vector<uint32_t> sorted_indices(size_t count, const auto& key) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, {}, [&](uint32_t i) { return std::pair(key(i), i); });
  return order;
}

void finish(std::span<const ArenaItem> items, Arena& arena) {
  arena.bytes = 0;
  for (size_t i = 0; i < items.size(); ++i)
    arena.bytes = std::max(arena.bytes, arena.offsets[i] + items[i].bytes);
}

// The free parts of the arena at one moment, by place and by size.
class Gaps {
 public:
  Gaps() { insert(0, kEndless); }

  // The smallest part that is large enough.
  int64_t take(int64_t bytes, int64_t alignment) {
    for (auto at = by_size_.lower_bound({bytes, 0});; ++at) {
      const auto [size, begin] = *at;
      const int64_t offset = aligned(begin, alignment);
      if (offset + bytes > begin + size) continue;
      erase(begin, size);
      if (offset > begin) insert(begin, offset - begin);
      if (offset + bytes < begin + size) insert(offset + bytes, begin + size - offset - bytes);
      return offset;
    }
  }

  void give_back(int64_t begin, int64_t bytes) {
    auto behind = by_place_.lower_bound(begin);
    if (behind != by_place_.end() && behind->first == begin + bytes) {
      const int64_t size = behind->second;
      erase(begin + bytes, size);
      bytes += size;
    }
    behind = by_place_.lower_bound(begin);
    if (behind != by_place_.begin()) {
      const auto [start, size] = *std::prev(behind);
      if (start + size == begin) {
        erase(start, size);
        begin = start;
        bytes += size;
      }
    }
    insert(begin, bytes);
  }

 private:
  void insert(int64_t begin, int64_t size) {
    by_place_.emplace(begin, size);
    by_size_.emplace(size, begin);
  }
  void erase(int64_t begin, int64_t size) {
    by_place_.erase(begin);
    by_size_.erase({size, begin});
  }

  std::map<int64_t, int64_t> by_place_;
  std::set<std::pair<int64_t, int64_t>> by_size_;
};

Arena place_in_time(std::span<const ArenaItem> items) {
  Arena arena;
  arena.offsets.assign(items.size(), 0);
  const auto starting = sorted_indices(
      items.size(), [&](uint32_t i) { return std::pair(items[i].first, -items[i].bytes); });
  const auto ending = sorted_indices(items.size(), [&](uint32_t i) { return items[i].last; });
  Gaps gaps;
  size_t ended = 0;
  for (uint32_t i : starting) {
    for (; items[ending[ended]].last < items[i].first; ++ended)
      if (const ArenaItem& old = items[ending[ended]]; old.bytes > 0)
        gaps.give_back(arena.offsets[ending[ended]], old.bytes);
    if (items[i].bytes > 0) arena.offsets[i] = gaps.take(items[i].bytes, items[i].alignment);
  }
  finish(items, arena);
  return arena;
}

Arena place_by_size(std::span<const ArenaItem> items) {
  Arena arena;
  arena.offsets.assign(items.size(), 0);
  const auto order = sorted_indices(items.size(), [&](uint32_t i) {
    return std::tuple(!items[i].offset, -items[i].bytes, items[i].first - items[i].last);
  });
  std::vector<uint32_t> placed;  // by offset
  for (uint32_t i : order) {
    const ArenaItem& item = items[i];
    if (item.bytes > 0 && !item.offset) {
      int64_t best = -1, best_gap = kEndless, end = 0;
      for (uint32_t other : placed) {
        if (items[other].last < item.first || item.last < items[other].first) continue;
        const int64_t begin = aligned(end, item.alignment);
        const int64_t gap = arena.offsets[other] - begin;
        if (gap >= item.bytes && gap < best_gap) {
          best = begin;
          best_gap = gap;
        }
        end = std::max(end, arena.offsets[other] + items[other].bytes);
      }
      arena.offsets[i] = best >= 0 ? best : aligned(end, item.alignment);
    } else {
      arena.offsets[i] = item.offset.value_or(0);
    }
    if (item.bytes == 0) continue;
    const auto behind = std::ranges::upper_bound(placed, arena.offsets[i], {},
                                                 [&](uint32_t p) { return arena.offsets[p]; });
    placed.insert(behind, i);
  }
  finish(items, arena);
  return arena;
}

}  // namespace

Arena place(std::span<const ArenaItem> items) {
  for (const ArenaItem& item : items)
    HONE_CHECK(item.first <= item.last && item.bytes >= 0 && item.alignment > 0,
               "an item of {} bytes lives from {} to {}", item.bytes, item.first, item.last);
  const bool is_bound =
      std::ranges::any_of(items, [](const ArenaItem& item) { return item.offset.has_value(); });
  if (is_bound) return place_by_size(items);
  Arena in_time = place_in_time(items);
  if (items.size() > kMaxItemsBySize) return in_time;
  Arena by_size = place_by_size(items);
  return by_size.bytes < in_time.bytes ? by_size : in_time;
}

int64_t peak_bytes(std::span<const ArenaItem> items) {
  std::map<int64_t, int64_t> change;  // of the bytes in use, by moment
  for (const ArenaItem& item : items) {
    change[item.first] += item.bytes;
    change[item.last + 1] -= item.bytes;
  }
  int64_t now = 0, peak = 0;
  for (const auto& [moment, bytes] : change) peak = std::max(peak, now += bytes);
  return peak;
}

}  // namespace hone

#include <algorithm>

#include "alloc/problem.h"
#include "alloc/uses.h"
#include "base/checked_math.h"

namespace hone {
namespace {

// A stretch of a buffer's life, at its offset.
struct CheckedUse {
  uint32_t buffer;
  uint32_t owner;  // the same for buffers that are aliases of each other
  int64_t begin, end;
  int64_t low, high;
};

// Who uses which bytes at one moment, as a tree over the places where uses begin or end. A use is
// noted at the nodes that it covers wholly and whose parents it does not: O(log n) of them.
class Memory {
 public:
  explicit Memory(size_t places) {
    while (width_ + 1 < places) width_ *= 2;
    nodes_.resize(2 * width_);
  }

  struct Stretch {
    size_t low, high;  // places
    uint32_t owner;
  };
  bool is_free_for(const Stretch& s) const { return is_free(1, 0, width_, s.low, s.high, s.owner); }
  void add(const Stretch& s) { count(1, 0, width_, s.low, s.high, s.owner, 1); }
  void remove(const Stretch& s) { count(1, 0, width_, s.low, s.high, s.owner, -1); }

 private:
  static constexpr uint32_t kNobody = UINT32_MAX;
  static constexpr uint32_t kSeveral = UINT32_MAX - 1;

  struct Node {
    uint32_t uses = 0;          // noted here; all of one owner
    uint32_t owner = kNobody;   // of these
    uint32_t within = kNobody;  // of all that are noted here and below
  };

  bool is_free(size_t node, size_t first, size_t end, size_t low, size_t high,
               uint32_t owner) const {
    const Node& here = nodes_[node];
    if (high <= first || end <= low || here.within == kNobody || here.within == owner) return true;
    if ((low <= first && end <= high) || (here.owner != kNobody && here.owner != owner))
      return false;
    const size_t middle = (first + end) / 2;
    return is_free(2 * node, first, middle, low, high, owner) &&
           is_free(2 * node + 1, middle, end, low, high, owner);
  }

  void count(size_t node, size_t first, size_t end, size_t low, size_t high, uint32_t owner,
             int change) {
    if (high <= first || end <= low) return;
    Node& here = nodes_[node];
    const bool is_covered = low <= first && end <= high;
    if (is_covered) {
      here.uses += static_cast<uint32_t>(change);
      here.owner = here.uses > 0 ? owner : kNobody;
    } else {
      const size_t middle = (first + end) / 2;
      count(2 * node, first, middle, low, high, owner, change);
      count(2 * node + 1, middle, end, low, high, owner, change);
    }
    here.within = here.owner;
    if (end - first > 1)
      for (size_t child : {2 * node, 2 * node + 1})
        here.within = both(here.within, nodes_[child].within);
  }

  static uint32_t both(uint32_t a, uint32_t b) {
    if (a == kNobody || a == b) return b;
    return b == kNobody ? a : kSeveral;
  }

  size_t width_ = 1;  // leaves; the first is between the first two places
  std::vector<Node> nodes_;
};

bool meet(const CheckedUse& a, const CheckedUse& b) {
  return a.owner != b.owner && a.begin < b.end && b.begin < a.end && a.low < b.high &&
         b.low < a.high;
}

// The use overlaps one that began no later.
Error overlap_of(const CheckedUse& use, std::span<const CheckedUse> uses, uint32_t space) {
  for (const CheckedUse& other : uses)
    if (meet(use, other))
      return check_failed(
          "buffers {} and {} overlap at moment {} in space {}: bytes [{}, {}) and [{}, {})",
          other.buffer, use.buffer, std::max(use.begin, other.begin), space, other.low, other.high,
          use.low, use.high);
  HONE_CHECK(false, "buffer {} overlaps with nothing", use.buffer);
  __builtin_unreachable();
}

Status check_apart(std::vector<CheckedUse> uses, uint32_t space) {
  std::ranges::sort(uses, {}, &CheckedUse::begin);
  std::vector<std::pair<int64_t, uint32_t>> ends;  // when, and which
  std::vector<int64_t> places;
  for (uint32_t i = 0; i < uses.size(); ++i) {
    ends.emplace_back(uses[i].end, i);
    places.insert(places.end(), {uses[i].low, uses[i].high});
  }
  std::ranges::sort(ends);
  std::ranges::sort(places);
  places.erase(std::unique(places.begin(), places.end()), places.end());
  const auto place = [&](int64_t at) {
    return static_cast<size_t>(std::ranges::lower_bound(places, at) - places.begin());
  };
  std::vector<Memory::Stretch> stretches;
  for (const CheckedUse& use : uses)
    stretches.push_back({place(use.low), place(use.high), use.owner});

  Memory memory(places.size());
  auto next_end = ends.begin();
  for (size_t i = 0; i < uses.size(); ++i) {
    for (; next_end->first <= uses[i].begin; ++next_end) memory.remove(stretches[next_end->second]);
    if (!memory.is_free_for(stretches[i])) return overlap_of(uses[i], uses, space);
    memory.add(stretches[i]);
  }
  return {};
}

// The end of the buffer, if it lies where it may.
Result<int64_t> end_of(const MemoryProblem& problem, const std::vector<int64_t>& offsets,
                       size_t index) {
  const MemoryBuffer& buffer = problem.buffers[index];
  const int64_t offset = offsets[index];
  if (offset < 0) return check_failed("buffer {} has the offset {}", index, offset);
  if (offset % buffer.alignment != 0)
    return check_failed("buffer {} has the offset {}, which is not a multiple of {}", index, offset,
                        buffer.alignment);
  if (buffer.offset && offset != *buffer.offset)
    return check_failed("buffer {} has the offset {} instead of {}", index, offset, *buffer.offset);
  if (buffer.alias && checked_sub(offset, buffer.alias->shift) != offsets[buffer.alias->of])
    return check_failed(
        "buffer {} has the offset {}, but must lie {} after buffer {}, which has {}", index, offset,
        buffer.alias->shift, buffer.alias->of, offsets[buffer.alias->of]);
  const std::optional<int64_t> end = checked_add(offset, buffer.size);
  if (!end) return check_failed("buffer {} has the offset {}, which is too large", index, offset);
  return *end;
}

// The buffers that aliases lead to; halves the ways that it goes.
uint32_t owner_of(std::vector<uint32_t>& next, uint32_t i) {
  while (next[i] != i) {
    next[i] = next[next[i]];
    i = next[i];
  }
  return i;
}

}  // namespace

std::vector<MemoryUse> uses_of(const MemoryBuffer& buffer) {
  std::vector<MemoryUse> uses;
  const auto add = [&](const MemoryUse& use) {
    if (use.begin < use.end && use.low < use.high) uses.push_back(use);
  };
  int64_t from = buffer.begin;
  for (const MemoryGap& gap : buffer.gaps) {
    add({from, gap.begin, 0, buffer.size});
    add({gap.begin, gap.end, gap.low, gap.high});
    from = gap.end;
  }
  add({from, buffer.end, 0, buffer.size});
  return uses;
}

Result<std::vector<int64_t>> heights_of(const MemoryProblem& problem,
                                        const std::vector<int64_t>& offsets) {
  HONE_TRY(check(problem));
  const auto count = static_cast<uint32_t>(problem.buffers.size());
  if (offsets.size() != count)
    return check_failed("{} offsets of {} buffers", offsets.size(), count);
  std::vector<uint32_t> next(count);
  for (uint32_t i = 0; i < count; ++i)
    next[i] = problem.buffers[i].alias ? problem.buffers[i].alias->of : i;

  std::vector<int64_t> heights(space_count(problem));
  std::vector<std::vector<CheckedUse>> uses(heights.size());
  for (uint32_t i = 0; i < count; ++i) {
    const MemoryBuffer& buffer = problem.buffers[i];
    const int64_t end = HONE_TRY(end_of(problem, offsets, i));
    const std::vector<MemoryUse> own = uses_of(buffer);
    if (own.empty()) continue;  // lies nowhere
    heights[buffer.space] = std::max(heights[buffer.space], end);
    for (const MemoryUse& use : own)
      uses[buffer.space].push_back(
          {i, owner_of(next, i), use.begin, use.end, offsets[i] + use.low, offsets[i] + use.high});
  }
  for (uint32_t space = 0; space < uses.size(); ++space)
    HONE_TRY(check_apart(std::move(uses[space]), space));
  return heights;
}

}  // namespace hone

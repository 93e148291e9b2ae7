#include "alloc/blocks.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"

namespace hone {
namespace {

// Offsets that leave the remainder `phase` by `modulus`; 128 bits, for products of two.
struct Congruence {
  __int128 modulus = 1;
  __int128 phase = 0;
};

__int128 remainder(__int128 a, __int128 modulus) {
  const __int128 r = a % modulus;
  return r < 0 ? r + modulus : r;
}

// The factor that makes `a` leave 1, by Euclid; a and modulus have no common divisor.
__int128 inverse(__int128 a, __int128 modulus) {
  __int128 r0 = modulus, r1 = remainder(a, modulus), t0 = 0, t1 = 1;
  while (r1 != 0) {
    const __int128 q = r0 / r1;
    std::tie(r0, r1) = std::pair(r1, r0 - q * r1);
    std::tie(t0, t1) = std::pair(t1, t0 - q * t1);
  }
  return remainder(t0, modulus);
}

// Both at once, or nothing if they contradict each other. Common multiples are below 2^62: what is
// well formed has none above.
std::optional<Congruence> both(const Congruence& a, const Congruence& b) {
  const __int128 divisor =
      std::gcd(static_cast<int64_t>(a.modulus), static_cast<int64_t>(b.modulus));
  const __int128 apart = b.phase - a.phase;
  if (apart % divisor != 0) return std::nullopt;
  const __int128 rest = b.modulus / divisor;
  const __int128 times =
      rest == 1 ? 0 : remainder(apart / divisor, rest) * inverse(a.modulus / divisor, rest) % rest;
  const __int128 modulus = a.modulus * rest;
  return Congruence{modulus, remainder(a.phase + a.modulus * times, modulus)};
}

// Per buffer: the one at the root of its aliases, and how far behind that it lies.
struct Root {
  uint32_t buffer;
  int64_t shift;
};
std::vector<Root> roots_of(const MemoryProblem& problem) {
  constexpr uint32_t kUnknown = ~uint32_t{0};
  std::vector<Root> roots(problem.buffers.size(), {kUnknown, 0});
  std::vector<uint32_t> path;
  for (uint32_t i = 0; i < roots.size(); ++i) {
    uint32_t at = i;
    for (; roots[at].buffer == kUnknown && problem.buffers[at].alias;
         at = problem.buffers[at].alias->of)
      path.push_back(at);
    if (roots[at].buffer == kUnknown) roots[at] = {at, 0};
    for (; !path.empty(); at = path.back(), path.pop_back())
      roots[path.back()] = {roots[at].buffer,
                            roots[at].shift + problem.buffers[path.back()].alias->shift};
  }
  return roots;
}

// ---- What is in use when ------------------------------------------------------------------------

struct Use {
  int64_t begin, end;  // moments
  int64_t low, high;
};

void add_uses(const MemoryBuffer& buffer, int64_t shift, std::vector<Use>& uses) {
  const auto add = [&](int64_t begin, int64_t end, int64_t low, int64_t high) {
    if (begin < end && low < high) uses.push_back({begin, end, low + shift, high + shift});
  };
  int64_t at = buffer.begin;
  for (const MemoryGap& gap : buffer.gaps) {
    add(at, gap.begin, 0, buffer.size);
    add(gap.begin, gap.end, gap.low, gap.high);
    at = gap.end;
  }
  add(at, buffer.end, 0, buffer.size);
}

// For the aliases of one buffer: how often one is looked at at a moment, which some seconds allow.
constexpr int64_t kMostLooks = 300'000'000;

// The same bytes at the same moments, each once.
Result<std::vector<Use>> united(std::vector<Use> uses) {
  std::ranges::sort(uses, {}, &Use::begin);
  if (std::ranges::adjacent_find(
          uses, [](const Use& a, const Use& b) { return a.end > b.begin; }) == uses.end())
    return uses;
  std::set<int64_t> moments;
  for (const Use& use : uses) moments.insert({use.begin, use.end});
  std::vector<Use> result;
  std::multimap<int64_t, const Use*> active;  // by the first byte
  int64_t looks = 0;
  size_t next = 0;
  for (auto at = moments.begin(); std::next(at) != moments.end(); ++at) {
    const int64_t begin = *at, end = *std::next(at);
    for (; next < uses.size() && uses[next].begin == begin; ++next)
      active.emplace(uses[next].low, &uses[next]);
    std::erase_if(active, [&](const auto& each) { return each.second->end <= begin; });
    looks += std::ssize(active);
    if (looks > kMostLooks)
      return over_limit("a buffer has {} aliases and gaps, too many that overlap in time",
                        uses.size());
    const size_t first = result.size();
    for (const auto& [low, use] : active) {
      if (result.size() > first && low <= result.back().high)
        result.back().high = std::max(result.back().high, use->high);
      else
        result.push_back({begin, end, low, use->high});
    }
  }
  return result;
}

// ---- Sections -----------------------------------------------------------------------------------

// The last begin before each end that comes before the next begin: there the most is in use.
std::vector<int64_t> crowded_moments(const std::vector<std::vector<Use>>& uses) {
  std::vector<std::pair<int64_t, bool>> events;  // ends before begins
  for (const std::vector<Use>& of : uses)
    for (const Use& use : of) {
      events.emplace_back(use.begin, true);
      events.emplace_back(use.end, false);
    }
  std::ranges::sort(events);
  std::vector<int64_t> moments;
  std::optional<int64_t> begin;
  for (const auto& [moment, begins] : events) {
    if (begins) {
      begin = moment;
    } else if (begin) {
      moments.push_back(*begin);
      begin.reset();
    }
  }
  return moments;
}

std::vector<Slab> slabs_of(const std::vector<Use>& uses, const std::vector<int64_t>& moments) {
  const auto section = [&](int64_t moment) {
    return static_cast<int32_t>(std::ranges::lower_bound(moments, moment) - moments.begin());
  };
  std::vector<Slab> slabs;
  std::map<std::pair<int64_t, int64_t>, size_t> last;  // of the same bytes
  for (const Use& use : uses) {
    const Slab slab{section(use.begin), section(use.end), use.low, use.high};
    if (slab.first == slab.end) continue;
    const auto [at, is_new] = last.try_emplace({slab.low, slab.high}, slabs.size());
    if (!is_new && slabs[at->second].end >= slab.first) {
      slabs[at->second].end = slab.end;
      continue;
    }
    at->second = slabs.size();
    slabs.push_back(slab);
  }
  std::ranges::sort(slabs, {}, [](const Slab& s) { return std::pair(s.first, s.low); });
  return slabs;
}

// ---- Blocks -------------------------------------------------------------------------------------

// Two blocks whose offsets are given and overlap.
std::optional<std::pair<size_t, size_t>> collision(const BlockPacking& packing) {
  struct Event {
    int32_t section;
    bool begins;  // after what ends
    int64_t low, high;
    size_t block;
  };
  std::vector<Event> events;
  for (size_t i = 0; i < packing.blocks.size(); ++i)
    if (const auto offset = packing.blocks[i].offset)
      for (const Slab& slab : packing.blocks[i].slabs) {
        const int64_t low = *offset + slab.low, high = *offset + slab.high;
        events.push_back({slab.first, true, low, high, i});
        events.push_back({slab.end, false, low, high, i});
      }
  std::ranges::sort(events, {}, [](const Event& e) { return std::pair(e.section, e.begins); });
  std::map<int64_t, Event> active;  // by the first byte; apart from each other
  for (const Event& event : events) {
    if (!event.begins) {
      active.erase(event.low);
      continue;
    }
    const auto behind = active.lower_bound(event.low);
    if (behind != active.end() && behind->first < event.high)
      return std::pair(behind->second.block, event.block);
    if (behind != active.begin() && std::prev(behind)->second.high > event.low)
      return std::pair(std::prev(behind)->second.block, event.block);
    active.emplace(event.low, event);
  }
  return std::nullopt;
}

// In an order that does not depend on that of the buffers: by time, large ones first. Blocks that
// this order does not tell apart are alike in all that placers look at.
BlockPacking sorted(BlockPacking packing) {
  std::vector<uint32_t> order(packing.blocks.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto key = [&](uint32_t i) {
    const Block& b = packing.blocks[i];
    return std::tuple(b.first(), b.end(), -b.size, b.alignment, b.phase, b.offset.value_or(-1));
  };
  const auto slab_key = [](const Slab& s) { return std::tuple(s.first, s.low, s.end, s.high); };
  const auto is_before = [&](uint32_t a, uint32_t b) {
    return std::ranges::lexicographical_compare(packing.blocks[a].slabs, packing.blocks[b].slabs,
                                                {}, slab_key, slab_key);
  };
  std::ranges::sort(order, [&](uint32_t a, uint32_t b) {
    if (key(a) != key(b)) return key(a) < key(b);
    if (is_before(a, b)) return true;
    return !is_before(b, a) && a < b;
  });
  return in_order(packing, order);
}

class BlockBuilder {
 public:
  explicit BlockBuilder(const MemoryProblem& problem) : problem_(problem) {}

  Result<Blocks> build() {
    blocks_.offsets.assign(problem_.buffers.size(), 0);
    std::vector<BlockPacking> spaces(space_count(problem_));
    std::vector<std::vector<std::vector<Use>>> uses(spaces.size());  // per block
    for (std::vector<BlockPacking::Part>& parts : classes()) {
      Block block;
      std::vector<Use> of;
      for (size_t p = 0; p < parts.size(); ++p) {
        if (!constrain(block, parts, p)) return std::move(blocks_);
        const BlockPacking::Part& part = parts[p];
        const size_t uses_before = of.size();
        add_uses(problem_.buffers[part.buffer], part.shift, of);
        if (of.size() > uses_before)
          block.size = std::max(block.size, part.shift + problem_.buffers[part.buffer].size);
      }
      const uint32_t space = problem_.buffers[parts[0].buffer].space;
      if (of.empty()) {
        const int64_t offset = block.offset.value_or(block.phase);
        for (const auto& [buffer, shift] : parts) blocks_.offsets[buffer] = offset + shift;
        continue;
      }
      spaces[space].blocks.push_back(std::move(block));
      spaces[space].parts.push_back(std::move(parts));
      uses[space].push_back(HONE_TRY(united(std::move(of))));
    }
    for (size_t s = 0; s < spaces.size(); ++s) {
      spaces[s].moments = crowded_moments(uses[s]);
      spaces[s].sections = static_cast<int32_t>(spaces[s].moments.size());
      for (size_t i = 0; i < uses[s].size(); ++i)
        spaces[s].blocks[i].slabs = slabs_of(uses[s][i], spaces[s].moments);
      spaces[s] = sorted(std::move(spaces[s]));
      if (const auto both = collision(spaces[s])) {
        const auto buffer = [&](size_t block) { return fixed_part(spaces[s].parts[block]); };
        blocks_.contradiction = {buffer(both->first), buffer(both->second)};
        return std::move(blocks_);
      }
    }
    blocks_.spaces = std::move(spaces);
    return std::move(blocks_);
  }

 private:
  // Buffers that are aliases of each other, in the order of their first ones.
  std::vector<std::vector<BlockPacking::Part>> classes() const {
    const std::vector<Root> roots = roots_of(problem_);
    std::vector<std::vector<BlockPacking::Part>> result;
    std::vector<size_t> of_root(roots.size(), SIZE_MAX);
    for (uint32_t i = 0; i < roots.size(); ++i) {
      size_t& at = of_root[roots[i].buffer];
      if (at == SIZE_MAX) {
        at = result.size();
        result.emplace_back();
      }
      result[at].push_back({i, roots[i].shift});
    }
    for (std::vector<BlockPacking::Part>& parts : result) {
      const int64_t lowest = std::ranges::min(parts, {}, &BlockPacking::Part::shift).shift;
      for (BlockPacking::Part& part : parts) part.shift -= lowest;
    }
    return result;
  }

  // Adds what a buffer asks of the block that it is in. False if it contradicts what the ones
  // before it asked: then it contradicts one of them, or itself.
  bool constrain(Block& block, const std::vector<BlockPacking::Part>& parts, size_t at) {
    const BlockPacking::Part& part = parts[at];
    const MemoryBuffer& buffer = problem_.buffers[part.buffer];
    const auto sum = both({block.alignment, block.phase}, congruence(part));
    if (sum) {
      block.alignment = static_cast<int64_t>(sum->modulus);
      block.phase = static_cast<int64_t>(sum->phase);
    }
    const std::optional<int64_t> before = block.offset;
    if (buffer.offset) block.offset = *buffer.offset - part.shift;
    const bool fits =
        sum && (!before || before == block.offset) &&
        (!block.offset ||
         (*block.offset >= 0 && remainder(*block.offset - block.phase, block.alignment) == 0));
    if (fits) return true;
    blocks_.contradiction = {part.buffer};
    for (size_t other = 0; other < at && blocks_.contradiction.size() == 1; ++other)
      if (!go_together(parts[other], part))
        blocks_.contradiction.insert(blocks_.contradiction.begin(), parts[other].buffer);
    return false;
  }

  Congruence congruence(const BlockPacking::Part& part) const {
    const int64_t alignment = problem_.buffers[part.buffer].alignment;
    return {alignment, remainder(-part.shift, alignment)};
  }

  // True if there are offsets for two parts of a block.
  bool go_together(const BlockPacking::Part& a, const BlockPacking::Part& b) const {
    const MemoryBuffer &of_a = problem_.buffers[a.buffer], &of_b = problem_.buffers[b.buffer];
    if (!both(congruence(a), congruence(b))) return false;
    for (const auto& [fixed, with, shift] : {std::tuple(&of_a, &of_b, b.shift - a.shift),
                                             std::tuple(&of_b, &of_a, a.shift - b.shift)}) {
      if (!fixed->offset) continue;
      const int64_t offset = *fixed->offset + shift;  // of the other
      if (offset < 0 || offset % with->alignment != 0 || with->offset.value_or(offset) != offset)
        return false;
    }
    return true;
  }

  uint32_t fixed_part(const std::vector<BlockPacking::Part>& parts) const {
    return std::ranges::find_if(parts,
                                [&](const BlockPacking::Part& part) {
                                  return problem_.buffers[part.buffer].offset.has_value();
                                })
        ->buffer;
  }

  const MemoryProblem& problem_;
  Blocks blocks_;
};

}  // namespace

int32_t Block::end() const { return std::ranges::max(slabs, {}, &Slab::end).end; }

std::vector<int64_t> loads(const BlockPacking& packing) {
  std::vector<int64_t> change(static_cast<size_t>(packing.sections) + 1);
  for (const Block& block : packing.blocks)
    for (const Slab& slab : block.slabs) {
      change[static_cast<size_t>(slab.first)] += slab.high - slab.low;
      change[static_cast<size_t>(slab.end)] -= slab.high - slab.low;
    }
  change.pop_back();
  std::partial_sum(change.begin(), change.end(), change.begin());
  return change;
}

BlockPacking in_order(const BlockPacking& packing, std::span<const uint32_t> order) {
  BlockPacking result = {
      .blocks = {}, .sections = packing.sections, .moments = packing.moments, .parts = {}};
  for (uint32_t i : order) {
    result.blocks.push_back(packing.blocks[i]);
    result.parts.push_back(packing.parts[i]);
  }
  return result;
}

Result<Blocks> blocks_of(const MemoryProblem& problem) { return BlockBuilder(problem).build(); }

int64_t unit_of(const BlockPacking& packing) {
  int64_t unit = 0;
  for (const Block& block : packing.blocks) {
    unit = std::gcd(std::gcd(unit, block.size), block.phase);
    unit = std::gcd(unit, block.offset.value_or(0));
    if (block.alignment > 1) unit = std::gcd(unit, block.alignment);
    for (const Slab& slab : block.slabs) unit = std::gcd(std::gcd(unit, slab.low), slab.high);
  }
  return std::max<int64_t>(unit, 1);
}

void spread(const BlockPacking& packing, std::span<const int64_t> block_offsets,
            std::vector<int64_t>& buffer_offsets) {
  for (size_t i = 0; i < packing.blocks.size(); ++i)
    for (const auto& [buffer, shift] : packing.parts[i])
      buffer_offsets[buffer] = block_offsets[i] + shift;
}

}  // namespace hone

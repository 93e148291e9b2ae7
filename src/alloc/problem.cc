#include "alloc/problem.h"

#include <algorithm>
#include <numeric>

#include "alloc/problem_fault.h"
#include "base/checked_math.h"

namespace hone {
namespace {

using Fault = std::optional<ProblemFault>;

// Any sum of offsets, sizes and what alignment adds stays below: adding two of them is safe.
constexpr int64_t kMaxBytes = int64_t{1} << 62;
// Limits buffers and gaps together: sections are counted in 32 bits, and each of these begins two.
constexpr size_t kMaxStretches = size_t{1} << 28;

Fault fault_in_gaps(const MemoryBuffer& buffer, size_t index) {
  int64_t free_from = buffer.begin;
  for (const MemoryGap& gap : buffer.gaps) {
    const auto wrong = [&]<class... Args>(fmt::format_string<Args...> text, const Args&... args) {
      return ProblemFault{index, MemoryField::gaps, bad_input(text, args...)};
    };
    if (gap.end < gap.begin)
      return wrong("a gap ends at {}, before it begins at {}", gap.end, gap.begin);
    if (gap.begin < buffer.begin || gap.end > buffer.end)
      return wrong("the gap [{}, {}) is outside of the life [{}, {})", gap.begin, gap.end,
                   buffer.begin, buffer.end);
    if (gap.begin < free_from)
      return wrong("the gap [{}, {}) begins before the end of the one before it, {}", gap.begin,
                   gap.end, free_from);
    if (gap.low < 0 || gap.high < gap.low || gap.high > buffer.size)
      return wrong("the window [{}, {}) of a gap is not one of {} bytes", gap.low, gap.high,
                   buffer.size);
    free_from = gap.end;
  }
  return {};
}

Fault fault_in_alias(const MemoryProblem& problem, size_t index) {
  const MemoryBuffer& buffer = problem.buffers[index];
  if (!buffer.alias) return {};
  const auto wrong = [&](Error error) {
    return ProblemFault{index, MemoryField::alias, std::move(error)};
  };
  if (buffer.alias->of >= problem.buffers.size())
    return wrong(bad_input("alias of buffer {}, of {}", buffer.alias->of, problem.buffers.size()));
  if (buffer.alias->shift < 0)
    return wrong(bad_input("shift {} of an alias is negative", buffer.alias->shift));
  const uint32_t space = problem.buffers[buffer.alias->of].space;
  if (space != buffer.space)
    return wrong(
        bad_input("in space {}, but the alias of a buffer in space {}", buffer.space, space));
  return {};
}

Fault fault_in_buffer(const MemoryProblem& problem, size_t index) {
  const MemoryBuffer& buffer = problem.buffers[index];
  const auto wrong = [&](MemoryField field, Error error) {
    return ProblemFault{index, field, std::move(error)};
  };
  if (buffer.begin < 0)
    return wrong(MemoryField::life, bad_input("begins at {}, which is negative", buffer.begin));
  if (buffer.end < buffer.begin)
    return wrong(MemoryField::life,
                 bad_input("ends at {}, before it begins at {}", buffer.end, buffer.begin));
  if (buffer.size < 0)
    return wrong(MemoryField::size, bad_input("size {} is negative", buffer.size));
  if (buffer.alignment < 1)
    return wrong(MemoryField::alignment,
                 bad_input("alignment {} is not positive", buffer.alignment));
  if (buffer.offset && *buffer.offset < 0)
    return wrong(MemoryField::offset, bad_input("offset {} is negative", *buffer.offset));
  if (buffer.space >= kMaxMemorySpaces)
    return wrong(MemoryField::space,
                 bad_input("space {} is outside of 0..{}", buffer.space, kMaxMemorySpaces - 1));
  if (Fault fault = fault_in_gaps(buffer, index)) return fault;
  return fault_in_alias(problem, index);
}

// The buffer that each buffer's aliases lead to, if they do not go round in a circle. Follows each
// but once.
Fault find_roots(const MemoryProblem& problem, std::vector<uint32_t>& roots) {
  const auto count = static_cast<uint32_t>(problem.buffers.size());
  constexpr uint32_t kOpen = UINT32_MAX;
  roots.assign(count, kOpen);
  std::vector<uint32_t> way;
  std::vector<uint8_t> on_way(count);
  for (uint32_t start = 0; start < count; ++start) {
    way.clear();
    uint32_t at = start;
    while (roots[at] == kOpen && problem.buffers[at].alias) {
      if (on_way[at])
        return ProblemFault{at, MemoryField::alias, bad_input("its aliases lead back to itself")};
      on_way[at] = 1;
      way.push_back(at);
      at = problem.buffers[at].alias->of;
    }
    const uint32_t root = roots[at] == kOpen ? at : roots[at];
    roots[at] = root;
    for (uint32_t passed : way) roots[passed] = root;
  }
  return {};
}

// Buffers that are aliases move by the least common multiple of their alignments.
Fault fault_in_sums(const MemoryProblem& problem) {
  std::vector<uint32_t> roots;
  if (Fault fault = find_roots(problem, roots)) return fault;
  std::vector<int64_t> steps(roots.size(), 1);
  int64_t sum = 0;
  int64_t highest = 0;
  for (size_t i = 0; i < roots.size(); ++i) {
    const MemoryBuffer& buffer = problem.buffers[i];
    int64_t& step = steps[roots[i]];
    const std::optional<int64_t> common =
        checked_mul(step / std::gcd(step, buffer.alignment), buffer.alignment);
    if (!common || *common > kMaxBytes)
      return ProblemFault{i, MemoryField::alignment,
                          bad_input("the alignments of it and its aliases have no common multiple "
                                    "up to 2^62")};
    highest = std::max(highest, buffer.offset.value_or(0));
    const int64_t shift = buffer.alias ? buffer.alias->shift : 0;
    // Each is below 2^63, so the sum of four is below 2^65.
    const __int128 next = static_cast<__int128>(sum) + buffer.size + shift + (*common - step);
    step = *common;
    if (next + highest > kMaxBytes)
      return ProblemFault{i, MemoryField::size,
                          bad_input("the sizes, shifts and alignments up to it and the highest "
                                    "offset have a sum above 2^62")};
    sum = static_cast<int64_t>(next);
  }
  return {};
}

}  // namespace

uint32_t space_count(const MemoryProblem& problem) {
  uint32_t count = std::max<uint32_t>(1, static_cast<uint32_t>(problem.capacity.size()));
  for (const MemoryBuffer& buffer : problem.buffers) count = std::max(count, buffer.space + 1);
  return count;
}

std::optional<ProblemFault> fault_of(const MemoryProblem& problem) {
  for (size_t i = 0; i < problem.buffers.size(); ++i)
    if (Fault fault = fault_in_buffer(problem, i)) return fault;
  return fault_in_sums(problem);
}

Status check(const MemoryProblem& problem) {
  size_t stretches = problem.buffers.size();
  for (const MemoryBuffer& buffer : problem.buffers) stretches += buffer.gaps.size();
  if (stretches > kMaxStretches)
    return over_limit("{} buffers and gaps, of at most {}", stretches, kMaxStretches);
  if (problem.capacity.size() > kMaxMemorySpaces)
    return bad_input("{} capacities, of at most {} spaces", problem.capacity.size(),
                     kMaxMemorySpaces);
  for (size_t space = 0; space < problem.capacity.size(); ++space)
    if (problem.capacity[space] < 0)
      return bad_input("the capacity of space {} is negative: {}", space, problem.capacity[space]);
  if (Fault fault = fault_of(problem))
    return std::move(fault->error).about(fmt::format("buffer {}", fault->buffer));
  return {};
}

}  // namespace hone

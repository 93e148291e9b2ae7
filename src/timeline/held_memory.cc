#include "timeline/held_memory.h"

#include <algorithm>
#include <iterator>

#include "base/checked_math.h"

namespace hone {
namespace {

// A buffer is made or freed. Within a tick the turns come in this order.
enum class Turn : uint8_t { free, make, free_at_once };
struct Change {
  Ticks at;
  Turn turn;
  uint32_t buffer;

  auto operator<=>(const Change&) const = default;
};

Status check_buffer(const Timeline& timeline, const HeldBuffer& buffer, size_t number,
                    uint32_t devices) {
  if (buffer.device >= devices)
    return bad_input("buffer {} is on device {} of {}", number, buffer.device, devices);
  if (buffer.bytes < 0) return bad_input("buffer {} has {} bytes", number, buffer.bytes);
  const auto check_job = [&](uint32_t job) -> Status {
    if (job < timeline.size()) return {};
    return bad_input("buffer {} names job {} of {}", number, job, timeline.size());
  };
  if (buffer.maker != HeldBuffer::kNoJob) HONE_TRY(check_job(buffer.maker));
  for (uint32_t user : buffer.users) HONE_TRY(check_job(user));
  return {};
}

// The buffers that are held after the first changes, ascending.
std::vector<uint32_t> held_after(std::span<const Change> changes) {
  std::vector<uint32_t> made, freed, held;
  for (const Change& change : changes)
    (change.turn == Turn::make ? made : freed).push_back(change.buffer);
  std::ranges::sort(made);
  std::ranges::sort(freed);
  std::ranges::set_difference(made, freed, std::back_inserter(held));
  return held;
}

// Follows one device through its changes, which are in order. Memory may rise with each of them, so
// only that of the last peak is listed.
HeldMemory follow(std::span<const Change> changes, std::span<const HeldBuffer> buffers) {
  HeldMemory memory;
  size_t until_peak = 0;
  int64_t bytes = 0;
  for (size_t i = 0; i < changes.size(); ++i) {
    const Change& change = changes[i];
    if (change.turn == Turn::make) {
      bytes += buffers[change.buffer].bytes;
      // The last one that is made at the tick has the most.
      const bool more = i + 1 < changes.size() && changes[i + 1].at == change.at &&
                        changes[i + 1].turn == Turn::make;
      if (!more && bytes > memory.peak) {
        memory.peak = bytes;
        memory.at = change.at;
        until_peak = i + 1;
      }
    } else {
      bytes -= buffers[change.buffer].bytes;
    }
    const bool ends_tick = i + 1 == changes.size() || changes[i + 1].at != change.at;
    if (ends_tick && (memory.curve.empty() || memory.curve.back().second != bytes))
      memory.curve.emplace_back(change.at, bytes);
  }
  memory.buffers = held_after(changes.first(until_peak));
  return memory;
}

}  // namespace

HeldTime held_time(const Timeline& timeline, const HeldBuffer& buffer) {
  const bool has_maker = buffer.maker != HeldBuffer::kNoJob;
  const Ticks begin = has_maker ? timeline.start(buffer.maker) : 0;
  Ticks end = buffer.users.empty() ? timeline.end() : begin;
  if (has_maker) end = std::max(end, timeline.end(buffer.maker));
  for (uint32_t user : buffer.users) end = std::max(end, timeline.end(user));
  return {begin, end};
}

Result<std::vector<HeldMemory>> held_memory(const Timeline& timeline,
                                            std::span<const HeldBuffer> buffers, uint32_t devices) {
  std::vector<std::vector<Change>> changes(devices);
  std::vector<int64_t> all(devices);
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    const HeldBuffer& buffer = buffers[i];
    HONE_TRY(check_buffer(timeline, buffer, i, devices));
    const std::optional<int64_t> sum = checked_add(all[buffer.device], buffer.bytes);
    if (!sum) return over_limit("the buffers of device {} have 2^63 bytes", buffer.device);
    all[buffer.device] = *sum;
    const auto [begin, end] = held_time(timeline, buffer);
    changes[buffer.device].push_back({begin, Turn::make, i});
    changes[buffer.device].push_back({end, end == begin ? Turn::free_at_once : Turn::free, i});
  }
  std::vector<HeldMemory> found;
  for (std::vector<Change>& of_device : changes) {
    std::sort(of_device.begin(), of_device.end());
    found.push_back(follow(of_device, buffers));
  }
  return found;
}

}  // namespace hone

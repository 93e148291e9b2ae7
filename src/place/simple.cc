#include <algorithm>
#include <numeric>

#include "place/placer.h"
#include "place/sort_by.h"

// The first ideas of a person: one device, and runs of layers.

namespace hone {
namespace {

// Devices by the time that all would take there, the fastest first.
std::vector<uint32_t> fastest_first(const PlaceRun& run) {
  std::vector<double> seconds(run.problem().devices());
  for (const PlaceUnit& unit : run.units().units())
    for (uint32_t d = 0; d < seconds.size(); ++d) seconds[d] += unit.seconds[d];
  std::vector<uint32_t> devices(seconds.size());
  std::iota(devices.begin(), devices.end(), 0);
  sort_by(devices, [&](uint32_t d) { return seconds[d]; });
  return devices;
}

// Fills the devices with units in the order of blocks. It goes on to the next device at a cut, or
// where this one is full. A unit that its device cannot hold goes to any device that can.
std::optional<DevicePlacement> filled(const PlaceRun& run, const std::vector<uint32_t>& devices,
                                      const std::vector<size_t>& cuts, double share) {
  const std::vector<PlaceUnit>& units = run.units().units();
  std::vector<double> room;
  for (const PlaceDevice& device : run.judge().devices())
    room.push_back(static_cast<double>(device.memory));
  std::vector<uint32_t> of(units.size());
  size_t at = 0;
  for (size_t b = 0; b < run.units().blocks().size(); ++b) {
    while (at < cuts.size() && b >= cuts[at]) ++at;
    for (const uint32_t u : run.units().blocks()[b]) {
      const auto has_room = [&](uint32_t d) {
        return std::ranges::find(units[u].devices, d) != units[u].devices.end() &&
               units[u].bytes(share) <= room[d];
      };
      // From the device at hand on, and round to the first ones.
      size_t k = 0;
      while (k < devices.size() && !has_room(devices[(at + k) % devices.size()])) ++k;
      if (k == devices.size()) return std::nullopt;
      const uint32_t device = devices[(at + k) % devices.size()];
      of[u] = device;
      room[device] -= units[u].bytes(share);
    }
  }
  return run.units().placement(of);
}

// Behind which blocks to cut: each device gets a share of the work by its speed, and a border moves
// a little to where the fewest bytes cross.
std::vector<size_t> balanced_cuts(const PlaceRun& run, const std::vector<uint32_t>& devices) {
  const size_t count = run.units().blocks().size();
  std::vector<size_t> block_of(run.units().units().size());
  for (size_t b = 0; b < count; ++b)
    for (const uint32_t u : run.units().blocks()[b]) block_of[u] = b;
  // Bytes that cross each border, and the work before it.
  std::vector<double> bytes(count + 1), work(count + 1);
  for (const PlaceTensor& tensor : run.problem().tensors) {
    size_t low = block_of[run.units().of(tensor.maker)], high = low;
    for (const uint32_t user : tensor.users) {
      low = std::min(low, block_of[run.units().of(user)]);
      high = std::max(high, block_of[run.units().of(user)]);
    }
    bytes[low + 1] += tensor.bytes;  // borders low+1 to high
    bytes[high + 1 > count ? count : high + 1] -= tensor.bytes;
  }
  for (size_t b = 1; b <= count; ++b) bytes[b] += bytes[b - 1];
  std::vector<double> speed(devices.size());
  for (size_t b = 0; b < count; ++b) {
    work[b + 1] = work[b];
    for (const uint32_t u : run.units().blocks()[b]) {
      double least = kCannotRun;
      for (size_t k = 0; k < devices.size(); ++k)
        least = std::min(least, run.units().units()[u].seconds[devices[k]]);
      work[b + 1] += least == kCannotRun ? 0 : least;
      for (size_t k = 0; k < devices.size(); ++k) {
        const double one = run.units().units()[u].seconds[devices[k]];
        if (one != kCannotRun) speed[k] += one;
      }
    }
  }
  for (double& one : speed) one = one > 0 ? 1 / one : 1;
  const double all = std::accumulate(speed.begin(), speed.end(), 0.0);
  constexpr double kSlack = 0.1;  // of a device's share
  std::vector<size_t> cuts;
  double share = 0;
  for (size_t k = 0; k + 1 < devices.size(); ++k) {
    share += speed[k] / all;
    const double aim = share * work[count], slack = kSlack * speed[k] / all * work[count];
    const auto border = [&](double value) {
      return static_cast<size_t>(std::ranges::lower_bound(work, value) - work.begin());
    };
    size_t best = std::min(border(aim), count);
    for (size_t b = border(aim - slack); b <= count && work[b] <= aim + slack; ++b)
      if (bytes[b] < bytes[best]) best = b;
    cuts.push_back(std::max(best, cuts.empty() ? 0 : cuts.back()));
  }
  return cuts;
}

}  // namespace

void place_one(PlaceRun& run) {
  const std::vector<uint32_t> devices = fastest_first(run);
  run.build([&](double share) -> std::optional<DevicePlacement> {
    // Cuts at the end: each device is filled before the next one.
    const std::vector<size_t> none(devices.size() - 1, run.units().blocks().size());
    return filled(run, devices, none, share);
  });
}

void place_contiguous(PlaceRun& run) {
  std::vector<uint32_t> devices(run.problem().devices());
  std::iota(devices.begin(), devices.end(), 0);
  const std::vector<size_t> cuts = balanced_cuts(run, devices);
  run.build([&](double share) { return filled(run, devices, cuts, share); });
}

}  // namespace hone

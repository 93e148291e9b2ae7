#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "cost/kernel_price.h"

// The findings of pricing about a schedule, for the parts of KernelPrice.

namespace hone {

inline constexpr double kLine = 64;    // bytes
inline constexpr double kPage = 4096;  // bytes

// The arguments are counts: whole numbers.
inline bool divides(double part, double whole) {
  const double times = whole / part;
  return times == std::floor(times);
}

// Features of what is so or not, and of a part of a whole.
inline float as_switch(bool is_so) { return is_so ? 1.0F : 0.0F; }
inline float share(double part, double whole) {
  return whole > 0 ? static_cast<float>(std::clamp(part / whole, 0.0, 1.0)) : 0.0F;
}

// The loops of a schedule, from outside in.
struct KernelPrice::Nest {
  struct Step {
    uint8_t loop;
    double trips;
  };
  std::array<Step, 3 * kMaxLoops> steps;
  size_t count = 0;
  std::array<double, kMaxLoops> tile;          // points of a loop that run side by side
  std::array<double, kMaxLoops> instructions;  // that they take, where vectors can be used
  std::array<uint8_t, kMaxLoops> known;  // the number of steps outside of which its index is open
  size_t divided = 0;  // the outermost steps, which threads divide: nothing stands between them
  int lanes = -1;      // the loop; -1: none
  double lane_count = 1;
  double copies = 0;                    // slots of packing
  double passed = 0;                    // of sums that go to memory and back between blocks
  Loops cut = 0;                        // loops that end at their cuts
  std::array<double, kMaxLoops> block;  // points of a loop that stay in a cache
  std::array<Packing, 2> packings = {};
  std::optional<double> matrix;  // slots of a vector of products on a matrix unit
  std::optional<double> word;    // slots of a vector whose lanes add the products of a word each

  bool is_cut(Loops loops) const { return (loops & ~cut) == 0; }
  // The loops that decide whether the array is read, where its own do not tell.
  Loops guards(const Access& access) const {
    return is_cut(access.cut) ? access.uncut : access.guards;
  }
  Packing packing(const Access& access) const {
    if (access.side < 0 || access.side > 1) return Packing::no;
    return packings[static_cast<size_t>(access.side)];
  }
  void add(int loop, double trips) { steps[count++] = {static_cast<uint8_t>(loop), trips}; }
};

// The counts that price_loops() makes on its way, for features.
struct KernelPrice::Counted {
  double arithmetic = 0, access = 0;  // slots, for all threads
  double starts = 0;                  // of those of accesses
  double runs = 0;                    // of neighbours, in a tile
  double followed = 0;                // of these, those that the next tile goes on with
  double trips = 0;                   // of inner loops
  double divided = 0;                 // of the loops that threads divide; 0: there are none
  double code = 0;                    // instructions side by side
  double sums = 0, spilled = 0;       // numbers side by side, and the share without a register
  double threads = 1, balance = 1;
  std::array<double, kMaxAccesses> by_access = {};  // slots
  // A cache; the last of three also stands for those behind it.
  struct Level {
    double bytes = 0;    // from behind it
    size_t outside = 0;  // loops that it does not hold
  };
  std::array<Level, 3> levels = {};
  double tile_bytes = 0;  // that the innermost tile touches
};

}  // namespace hone

#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernel/kernel_body.h"

// What a kernel takes on a target, by schedule, from its body alone: nothing is built. It is for
// comparing schedules; the terms are in proportion, not exact. docs/cost.md describes them.

namespace hone {

// Seconds.
struct KernelTerms {
  double arithmetic = 0;  // instructions that compute, on as many threads as have work
  double access = 0;      // those that load and store
  double latency = 0;     // of sums, where too few of them run side by side
  double memory = 0;      // the slowest level: bytes that come from it over its rate
  double overhead = 0;    // counting and jumping, copies into panels
  double fork_join = 0;   // starting the threads
  // The first four overlap.
  double total() const;
};

class KernelPrice {
 public:
  // `threads` is how many there are at most.
  KernelPrice(const KernelBody& body, const Target& target, int64_t threads);

  // Of a nest or gemm that check_schedule() accepts; a fault of the caller for a chain, which
  // SchedulePrice prices by its stages. Symbols count as their largest values.
  KernelTerms terms(const Schedule& schedule) const;
  double seconds(const Schedule& schedule) const { return terms(schedule).total(); }
  // The same where that is less than the limit, otherwise something that is not. Memory takes most
  // of the time to price, and many schedules cost too much without it.
  double seconds(const Schedule& schedule, double limit) const {
    return terms(schedule, limit).total();
  }

  // How many arrays have neighbours in a dim of the results side by side, weighted by size.
  double contiguity(int dim) const;

 private:
  friend class KernelReader;
  static constexpr size_t kMaxLoops = 30;     // others are left out
  static constexpr size_t kMaxAccesses = 24;  // the largest
  using Loops = uint32_t;                     // a set: bits are positions in loops_

  struct Loop {
    double extent = 1;
    bool is_result = false;  // a dim of the results; otherwise of a reduction
    Loops around = 0;        // of a reduction: what its result depends on
  };
  // Something that is computed once per point of some loops.
  struct Work {
    Loops loops = 0;
    double slots = 1;     // of a vector, or of a number where there are no lanes
    bool is_sum = false;  // each trip of a reduction waits for the one before
  };
  // An array that is read or written.
  struct Access {
    Loops loops = 0;
    double element = 4;  // bytes
    double bytes = 0;    // of the whole array
    bool is_store = false;
    int side = -1;                           // the operand of the contraction that it is
    std::array<double, kMaxLoops> stride{};  // in elements; NaN: not the same everywhere
    std::array<double, kMaxLoops> span{};    // elements from the first to the last of a vector
    std::array<double, kMaxLoops> repeat{};  // so many points next to each other need the same one
    double run = 1e300;                      // so many neighbours lie side by side at most
    Loops guards = 0;                        // that decide whether it meets padding
    Loops contiguous = 0;                    // where the stride is 1
    Loops near = 0;                          // where a vector lies within a few
    // In so many places of their pages neighbours lie, where they are a page or more apart; 1: they
    // compete for the same places of a cache.
    std::array<double, kMaxLoops> places{};
    // Per dim of an operand: how far each loop goes along it.
    std::vector<std::vector<std::pair<int, double>>> steps = {};
  };
  struct Nest;

  // Of a vector multiply-add of numbers of the type, as its peak says; 1: it has none. Peaks of
  // types below 32 bits are those of instructions that no code has, so they say nothing here.
  double slots_in(DType type) const;
  KernelTerms terms(const Schedule& schedule, double limit) const;
  Nest nest_of(const Schedule& schedule) const;
  void add_gemm(const Schedule& schedule, Nest& nest) const;
  void add_nest(const Schedule& schedule, Nest& nest) const;
  double copied_by_block(const Schedule& schedule, const Nest& nest, int side) const;
  double runs(const Nest& nest, Loops loops) const;
  double side_by_side(const Nest& nest, Loops loops) const;
  double slots_apart(const Nest& nest, const Access& access, size_t loop) const;
  double displaced(const Access& access, size_t l, double points) const;
  double slots_of(const Nest& nest, const Access& access) const;
  double repeats(const Nest& nest, const Access& access) const;
  double starts(const Nest& nest, const Access& access) const;
  // Of an array.
  struct Footprint {
    double bytes = 0;  // in whole cache lines
    double apart = 1;  // lines that lie whole pages apart
  };
  Footprint footprint(const Access& access, const std::array<double, kMaxLoops>& inside,
                      Packing packing) const;
  double memory(const Nest& nest, double threads) const;

  const Target target_;
  double threads_ = 1;
  double slot_ = 0;     // seconds: a core starts a vector multiply-add of f32, or a load
  double vector_ = 16;  // numbers of the widest type in a register
  double registers_ = 32;
  std::vector<Loop> loops_;  // the kernel's space, then other reductions
  int parallel_ = 0;
  std::vector<Work> work_;
  std::vector<Access> accesses_;
};

}  // namespace hone

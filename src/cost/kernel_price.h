#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cost/cost.h"
#include "cost/features.h"
#include "cost/prices.h"
#include "kernel/facts.h"
#include "kernel/matrix.h"
#include "target/target.h"

// The time of a kernel on a target, by schedule, from its facts alone: nothing is built. It is for
// comparing schedules; the terms are in proportion, not exact. docs/cost.md describes them.

namespace hone {

// Seconds.
struct KernelTerms {
  double arithmetic = 0;    // instructions that compute, on as many threads as have work
  double access = 0;        // those that load and store
  double latency = 0;       // of sums, where too few of them run side by side
  double memory = 0;        // the slowest level: bytes that come from it over its rate
  double overhead = 0;      // counting and jumping, copies into panels
  double fork_join = 0;     // starting the threads
  double not_hidden = 0.2;  // of what overlaps: the share that is seen beside the largest term
  // The first four overlap.
  double total() const;
  std::vector<PriceTerm> named() const;
};

class KernelPrice {
 public:
  // `threads` is how many there are at most.
  KernelPrice(const KernelFacts& facts, const Target& target, const Prices& prices,
              int64_t threads);
  // A stage of a chain may have another window than the body has. Arrays of `held` values, by the
  // numbers of the stage's graph, are those that stages pass on.
  KernelPrice(const KernelFacts& facts, const Target& target, const Prices& prices, int64_t threads,
              std::span<const int64_t> window, std::span<const ValueId> held = {});

  // Prices by other coefficients from now on.
  void reprice(const Prices& prices);

  // The terms of a nest, gemm or winograd that check_schedule() accepts; a fault of the caller for
  // a chain, whose stages are priced one by one (analytic_kernel.h).
  KernelTerms terms(const Schedule& schedule) const;
  double seconds(const Schedule& schedule) const { return terms(schedule).total(); }
  // The same where that is less than the limit, otherwise a number that is not. Memory takes most
  // of the time to price, and many schedules cost too much without it.
  double seconds(const Schedule& schedule, double limit) const {
    return terms(schedule, limit, nullptr).total();
  }
  // The least time of all arrays, if no cache holds them.
  double memory_seconds() const;
  // The terms, and what learned prices know of the schedule.
  KernelTerms describe(const Schedule& schedule, Features& features) const;
  // The first kKernelFeatures of them; the others are 0.
  const Features& of_kernel() const { return of_kernel_; }

 private:
  static constexpr size_t kMaxLoops = KernelFacts::kMaxLoops;
  static constexpr size_t kMaxAccesses = 24;  // the largest arrays
  using Loops = KernelFacts::Loops;

  // Something that is computed once per point of some loops.
  struct Work {
    Loops loops = 0;
    double slots = 1;     // of a vector, or of a number where there are no lanes
    bool is_sum = false;  // each trip of a reduction waits for the one before
    Loops cut = 0;        // whose cuts tell where it is needed,
    double share = 1;     // for this share of the points
    int side = -1;        // the operand of the contraction that it makes
  };
  // An array that is read or written, as far as this target sees it.
  struct Access {
    Loops loops = 0;
    double element = 4;  // bytes
    double bytes = 0;    // of the whole array; of what a stage passes on or reads: of its part
    bool is_store = false;
    bool is_held = false;     // passed on from stage to stage
    bool is_field = false;    // of blocks of which another access has the lines
    uint32_t value = 0;       // whose memory it is, in the body
    bool is_widened = false;  // f16 or bf16, for products in f32
    int side = -1;            // the operand of the contraction that it is
    double run = 1e300;       // the most neighbours that lie side by side
    double jump = 0;          // from one run to the next, in elements
    double jump_places = 0;   // `places` of one run and the next
    Loops elsewhere = 0;      // of other reductions than those that it serves
    Loops guards = 0;         // that decide whether it meets padding
    Loops uncut = 0;          // of these, those of guards that no cut decides
    Loops cut = 0;            // whose cuts decide the other guards,
    double share = 1;         // for this share of the points
    Loops contiguous = 0;     // where the stride is 1
    Loops near = 0;           // where a vector lies within a few
    // The loops with a stride, the nearest neighbours first.
    std::array<uint8_t, kMaxLoops> ascending{};
    size_t ascending_count = 0;
    // Per loop. Prices read the first few, so what they read of a loop lies together.
    struct Along {
      double stride = 0;  // in elements; NaN: not the same everywhere
      double span = 0;    // elements from the first to the last of a vector
      double repeat = 0;  // the neighbouring points that share an element
      // For neighbours a page or more apart: the number of places in a page that they take. 1: they
      // compete for the same places of a cache.
      double places = 0;
    };
    std::array<Along, kMaxLoops> along{};
    // Per dim of an operand of the anchor: how far each loop goes along it.
    std::vector<std::vector<std::pair<int, double>>> steps = {};
  };
  struct Nest;
  struct Counted;

  // The slots of a vector multiply-add of numbers of the type, by its peak; 1: it has none. Peaks
  // of types below 32 bits are those of instructions that no code has, so they say nothing here.
  double slots_in(DType type) const;
  void add_work(const KernelFacts& facts);
  double slots_alone(const Work& work) const;
  double part_in_order(const KernelFacts& facts) const;
  void add_accesses(const KernelFacts& facts, std::span<const ValueId> held);
  Access access_of(const KernelFacts::Array& array) const;
  double part_in_window(const Access& access) const;
  void find_fields();
  double slots_of_unpacking(const Nest& nest, const Work& work) const;
  Loops reductions_beside(Loops loops) const;
  void look_along(size_t loop, const std::vector<double>& first, Access& access) const;
  KernelTerms terms(const Schedule& schedule, double limit, Features* features) const;
  // A function for each algorithm: price_nest(), ....
#define HONE_ALGORITHM(member, ...) \
  KernelTerms price_##member(const Schedule& schedule, double limit, Features* features) const;
#include "kernel/algorithms.def"
  // For an algorithm that is priced in a way of its own, in its file.
  template <Algorithm algorithm>
  class Own;
  static constexpr int kMaxDivided = 4;  // loops whose ends are phases of their own
  double threads_at_work(const Nest& nest, int divided) const;
  double slots_of_folding(const Nest& nest, const Work& work) const;
  KernelTerms price_loops(const Schedule& schedule, Nest& nest, double limit,
                          Features* features) const;
  Nest nest_of(const Schedule& schedule) const;
  void add_gemm(const Schedule& schedule, Nest& nest) const;
  void add_nest(const Schedule& schedule, Nest& nest) const;
  double slots_on_matrix_unit(const Schedule& schedule, const Nest& nest) const;
  double copied_by_block(const Schedule& schedule, const Nest& nest, int side) const;
  double made_by_block(const Schedule& schedule, const Nest& nest, int side) const;
  double slots_behind_cache(double bytes) const;
  bool is_made(int side) const { return side >= 0 && is_made_[static_cast<size_t>(side)]; }
  bool is_packed(int side) const { return side >= 0 && is_packed_[static_cast<size_t>(side)]; }
  double panel_slots(const Nest& nest, const Access& access) const;
  double filled_up(const Nest& nest) const;
  double slots_of_sums(const Nest& nest) const;
  double matrix_panel_slots(const Nest& nest, const Access& access) const;
  double slots_of_jumps(const Nest& nest, const Access& access, bool is_along) const;
  double transposing() const;
  double run_of(const Nest& nest, const Access& access, size_t loop) const;
  double slots_transposed(const Nest& nest, const Access& access, size_t loop) const;
  size_t depth(const Nest& nest, Loops loops) const;
  double runs(const Nest& nest, Loops loops, bool in_each_tile = false) const;
  bool is_beside(const Nest& nest, size_t step, const Access& access, size_t depth) const;
  double side_by_side(const Nest& nest, Loops loops) const;
  double slots_apart(const Nest& nest, const Access& access, size_t loop) const;
  double displaced(const Access& access, size_t l, double points) const;
  bool is_crowded(const Nest& nest, const Access& access) const;
  double slots_of(const Nest& nest, const Access& access) const;
  double repeats(const Nest& nest, const Access& access) const;
  void end_at_cuts(const Schedule& schedule, Nest& nest) const;
  double branches(const Nest& nest, const Access& access) const;
  bool are_trips_inside(const Nest& nest, Loops guards) const;
  // Where an array is touched.
  struct Runs {
    double count = 1;    // places where neighbours begin
    bool go_on = false;  // the next tile goes on where they end
  };
  double moves_on(const Nest& nest, const Access& access) const;
  Runs runs_of(const Nest& nest, const Access& access) const;
  // The footprint of an array.
  struct Footprint {
    double bytes;  // in whole cache lines
    double apart;  // lines that lie whole pages apart
  };  // without initializers: pricing has many of them, most of which nobody reads
  Footprint footprint(const Access& access, const std::array<double, kMaxLoops>& inside,
                      Packing packing) const;
  double memory(const Nest& nest, double threads, Counted& counted) const;
  double bursts(const Counted& counted) const;
  double seconds_from_behind(size_t cache, double bytes, double threads) const;
  // Features, part by part (kernel_features.cc).
  Features features_of_kernel(const KernelFacts& facts) const;
  void describe_terms(const KernelTerms& terms, const Nest& nest, const Counted& counted,
                      Features& to) const;
  void describe_memory(const Nest& nest, const Counted& counted, Features& to) const;
  void describe_accesses(const Nest& nest, const Counted& counted, Features& to) const;
  void describe_tiles(const Schedule& schedule, const Nest& nest, Features& to) const;
  void describe_loops(const Schedule& schedule, const Nest& nest, Features& to) const;
  void describe_gemm(const Schedule& schedule, const Nest& nest, Features& to) const;

  void find_near(Access& access) const;

  const Target target_;
  Prices prices_;
  double threads_ = 1;
  double slot_ = 0;     // seconds: a core starts a vector multiply-add of f32, or a load
  double vector_ = 16;  // numbers of the widest type in a register
  double registers_ = 32;
  std::vector<KernelFacts::Loop> loops_;
  int parallel_ = 0;
  bool is_whole_ = true;  // not a part of the results
  std::vector<Work> work_;
  std::array<bool, 2> is_made_ = {};    // by operand of the contraction: the kernel computes it
  std::array<bool, 2> is_packed_ = {};  // and of bytes
  Loops fields_ = 0;  // of the reduction: their points are in the same bytes of packed weights
  std::vector<Access> accesses_;
  double in_order_ = 1;    // the part of the points that an ordered op comes to
  double work_slots_ = 0;  // of all points, one after another
  double bytes_ = 0;       // of all arrays
  Features of_kernel_ = {};
  std::optional<int> word_loop_;         // that words are taken along, if numbers are multiplied so
  double in_word_ = 1;                   // numbers of a word
  std::optional<MatrixNumbers> matrix_;  // that a matrix unit takes
  // AlgorithmDef::roles() of the body, by algorithm.
  std::array<std::shared_ptr<const void>, std::size(kAlgorithms)> roles_;
};

}  // namespace hone

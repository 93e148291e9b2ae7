#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cost/cost.h"
#include "kernel/algorithms/algorithm.h"
#include "planner/heuristics.h"

namespace hone {

// The cheapest schedule of a kernel so far, and what decides about others. All who try schedules of
// the kernel share it.
struct CheapestSchedule {
  const std::shared_ptr<const KernelFacts> facts;
  const Target& target;
  PricedKernel& price;
  const int64_t threads;
  const Heuristics& on;
  std::optional<Schedule> best = {};  // none: no schedule that was considered fits
  double least = std::numeric_limits<double>::infinity();
};

// Schedules by the algorithms that compute a kernel alone. `nest` is the simplest one.

// Points, rows and blocks of a GPU (gpu_schedules.cc).
void try_gpu_schedules(CheapestSchedule& cheapest, const Schedule& nest);
// The cheapest one is a nest: its lanes, rows and registers (nest_schedules.cc).
void improve_nest(CheapestSchedule& cheapest);
// A nest that unpacks weights takes all fields of a byte at once. Comes last, whatever the price.
void unroll_fields(CheapestSchedule& cheapest);
// Gemms, and other ways to multiply (product_schedules.cc).
void try_products(CheapestSchedule& cheapest, const Schedule& nest);

// Changes one field of the best schedule after another to what costs least. These are the fields
// that several algorithms have; those who choose by one algorithm derive from it.
class FieldChooser {
 public:
  explicit FieldChooser(CheapestSchedule& cheapest) : cheapest_(cheapest) {}

 protected:
  static constexpr int64_t kLeastRun = 4;  // neighbours in a block that is transposed

  void consider(const Schedule& schedule) { keep(schedule, price_.seconds(schedule, least_)); }
  // The same as one after another. Networks take several at once in less time.
  void consider_all(std::span<const Schedule> schedules);
  // If it costs less than the best and can be carried out.
  void keep(const Schedule& schedule, double seconds);

  int64_t extent(int dim) const { return site_.extent(dim); }
  int dims() const { return site_.dims(); }
  int rounds() const { return on_.second_round ? 2 : 1; }
  int most_threads() const { return std::min(space_.parallel, 3); }
  // True if the second operand is made here, as weights are that are unpacked. In a window its
  // neighbours in memory are neighbours in lanes.
  bool computes_weights() const;

  static void set(std::vector<Tile>& tiles, int dim, int64_t count);
  // Blocks hold whole tiles.
  Schedule whole_blocks(Schedule schedule) const;

  void try_lanes(const std::vector<int>& candidates);
  void try_unroll(const std::vector<int>& candidates);
  // Neighbours of an array side by side in registers, lanes across them: so blocks are transposed
  // in registers where an array lies across another one.
  void try_transposed();
  // `keeps_row`: nothing but the number of divided loops may change.
  void try_threads(bool keeps_row = false);

  // Blocks of a gemm in a cache.
  void try_block(int dim);
  // Threads divide a few large blocks: in each of them an operand is packed again. For one thread
  // such blocks gain nothing, so both come together.
  void try_divided_blocks();

  CheapestSchedule& cheapest_;
  const KernelFacts& facts_ = *cheapest_.facts;
  const KernelBody& body_ = facts_.body;
  const KernelSpace& space_ = facts_.space;
  const Target& target_ = cheapest_.target;
  const ScheduleSite site_ = {body_, facts_, target_};
  PricedKernel& price_ = cheapest_.price;
  const int64_t threads_ = cheapest_.threads;
  const Heuristics& on_ = cheapest_.on;
  std::optional<Schedule>& best_ = cheapest_.best;
  double& least_ = cheapest_.least;

 private:
  // The dims of the results along which the array's neighbours lie, each going on where those
  // before end; empty: there are few.
  std::vector<Tile> run_of(const KernelFacts::Array& array) const;
};

}  // namespace hone

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "kernel/algorithms/loops.h"
#include "planner/field_chooser.h"
#include "target/estimate.h"

namespace hone {
namespace {

constexpr size_t kMaxLaneDims = 3;
constexpr int64_t kMostFields = 8;  // of a byte that are unpacked at once
constexpr int64_t kMostRows = 8;    // that share what is unpacked in registers

// Chooses the loops of a nest: lanes, rows, registers, and fields of packed weights side by side.
class NestChooser : public FieldChooser {
 public:
  using FieldChooser::FieldChooser;

  void run() {
    improve_nest();
    try_shared_unpacking();
  }

  // A nest that unpacks weights takes all fields of some bytes at once: then shifts are by
  // constants, and nothing goes from a trip to the next through one register. The time is halved,
  // which no price sees: it comes last, whatever the price says.
  void unroll_fields() {
    const bool is_nest = best_->if_is<NestFields>() != nullptr;
    if (!on_.unroll || !is_nest || best_->lanes.empty() || !computes_weights()) return;
    const std::optional<Schedule> next = with_fields(*best_);
    if (!next || *next == *best_) return;
    best_ = next;
    least_ = price_.seconds(*next, std::numeric_limits<double>::infinity());
  }

 private:
  // Dims of the results whose neighbours lie side by side in memory, the best first.
  std::vector<int> lane_dims() const {
    std::vector<int> all;
    for (int dim = 0; dim < space_.parallel; ++dim)
      if (extent(dim) > 1) all.push_back(dim);
    std::ranges::sort(all, {}, [&](int dim) { return std::pair(-facts_.contiguity(dim), dim); });
    if (all.size() > kMaxLaneDims) all.resize(kMaxLaneDims);
    return all;
  }

  void improve_nest() {
    const Schedule start = *best_;
    const double least = least_;
    improve_nest(lane_dims());
    if (!on_.reduction_lanes || !computes_weights()) return;
    // Fields of packed weights have neighbours along the sum alone.
    const std::optional<Schedule> other = std::exchange(best_, start);
    const double least_other = std::exchange(least_, least);
    improve_nest({});
    if (!(least_ < least_other)) best_ = other, least_ = least_other;
  }

  // Lanes along one of these dims of the results, or along the sum.
  void improve_nest(const std::vector<int>& lanes) {
    std::vector<int> all(static_cast<size_t>(dims())), reduction;
    std::iota(all.begin(), all.end(), 0);
    for (int dim = space_.parallel; dim < dims(); ++dim) reduction.push_back(dim);
    for (int round = 0; round < rounds(); ++round) {
      try_lanes(lanes);
      if (on_.reduction_lanes) try_lanes(reduction);
      if (on_.rows) try_rows(lanes);
      try_unroll(all);
      try_transposed();
      try_threads();
    }
  }

  // A row is the better, the more is done with its sum. So lanes along the sum, the best of a nest
  // without rows, may hide the best lanes of a row.
  void try_rows(const std::vector<int>& lanes) {
    const Schedule start = *best_;
    const bool is_sum_in_lanes = !start.lanes.empty() && start.lanes.front().dim >= space_.parallel;
    std::vector<Schedule> tried;
    for (int row = 0; row <= space_.parallel; ++row) {
      if (row > 0 && row < start.threads) continue;
      Schedule next = start;
      next.get<NestFields>().row = row;
      tried.push_back(next);
      if (row == 0 || !is_sum_in_lanes) continue;
      next.order.resize(static_cast<size_t>(space_.parallel));
      std::iota(next.order.begin(), next.order.end(), 0);
      next.unroll.clear();
      for (int dim : lanes)
        for (int64_t count : usual_lanes(site_, dim)) {
          next.lanes = {{dim, count}};
          tried.push_back(next);
        }
    }
    consider_all(tried);
  }

  // Decides if lanes along a dim take bytes that all points of this dim of the sum share: they are
  // fields of the same bytes.
  bool has_fields(int dim, int lane_dim) const {
    const auto lane = static_cast<size_t>(lane_dim), at = static_cast<size_t>(dim);
    return std::ranges::any_of(facts_.arrays, [&](const KernelFacts::Array& array) {
      return array.side == 1 && array.element == 1 && array.stride[lane] != 0 &&
             array.stride[at] == 0;
    });
  }

  // The schedule with all fields of the bytes in its lanes side by side; none: they are too many.
  std::optional<Schedule> with_fields(Schedule next) const {
    int64_t fields = 1;
    for (int dim = space_.parallel; dim < dims(); ++dim) {
      const bool is_lane = std::ranges::count(next.lanes, dim, &Tile::dim) > 0;
      if (is_lane || extent(dim) < 2 || !has_fields(dim, next.lanes.front().dim)) continue;
      fields *= extent(dim);
      if (fields > kMostFields) return std::nullopt;
      set(next.unroll, dim, extent(dim));
    }
    return check_schedule(body_, facts_, next, target_).ok() ? std::optional(next) : std::nullopt;
  }

  // Several rows read the same weights. A nest with lanes along the bytes of a block unpacks them
  // once for all rows that are side by side in registers. These may lie along several dims, and the
  // search changes one after another.
  void try_shared_unpacking() {
    const int last = dims() - 1;
    if (!on_.unroll || !on_.reduction_lanes || !computes_weights() || last < space_.parallel ||
        !has_blocks_along(last))
      return;
    Schedule next = plain_nest(space_.parallel);
    std::vector<int> row_dims;
    int64_t rows = 1;
    for (int dim = 0; dim < space_.parallel; ++dim) {
      if (site_.is_open(dim)) return;
      const auto at = static_cast<size_t>(dim);
      if (!facts_.contraction->sides[0][at] || facts_.contraction->sides[1][at]) continue;
      rows = std::min(rows * extent(dim), kMostRows);
      row_dims.push_back(dim);
      std::erase(next.order, dim);
      next.order.push_back(dim);
    }
    const auto points = static_cast<int64_t>(vector_bytes(target_.isa) / sizeof(float));
    const int64_t lanes = std::min(points, extent(last));
    if (lanes < kLeastRun) return;
    next.lanes = {{last, lanes}};
    next.threads = threads_ < 2 ? 0 : 1;
    // Formats of many fields have room for fewer rows.
    for (; rows > 1; rows /= 2) {
      // All of the last rows, then some of those before: about `rows` together.
      int64_t left = rows;
      for (size_t i = row_dims.size(); i-- > 0;) {
        const int64_t count = std::min(extent(row_dims[i]), left);
        set(next.unroll, row_dims[i], count);
        left /= count;
      }
      if (const std::optional<Schedule> shared = with_fields(next)) consider(*shared);
    }
    try_threads();
  }

  // Decides if neighbours along the dim are neighbours of bytes in blocks of several fields.
  bool has_blocks_along(int dim) const {
    return std::ranges::any_of(facts_.arrays, [&](const KernelFacts::Array& array) {
      return array.side == 1 && array.element == 1 && !array.is_store &&
             array.stride[static_cast<size_t>(dim)] == 1 &&
             std::ranges::count(facts_.arrays, array.value, &KernelFacts::Array::value) > 1;
    });
  }
};

}  // namespace

void improve_nest(CheapestSchedule& cheapest) { NestChooser(cheapest).run(); }

void unroll_fields(CheapestSchedule& cheapest) { NestChooser(cheapest).unroll_fields(); }

}  // namespace hone

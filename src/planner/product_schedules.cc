#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <ranges>
#include <utility>
#include <vector>

#include "ir/op_facts.h"
#include "kernel/algorithms/gemm.h"
#include "kernel/algorithms/loops.h"
#include "kernel/algorithms/winograd.h"
#include "kernel/matrix.h"
#include "planner/field_chooser.h"

namespace hone {
namespace {

// If two cost the same, a gemm is faster than a nest by this much: its loops read neighbours.
constexpr double kGemmAhead = 1.1;
constexpr int64_t kMatrixBlocks[] = {256, 512, 1024}, kMatrixDepths[] = {128, 256, 512};

// Computes a dot or a conv by a gemm, in each way to multiply, or a conv by winograd: operands are
// packed, and blocks of them stay in a cache.
class ProductChooser : public FieldChooser {
 public:
  using FieldChooser::FieldChooser;

  void run(const Schedule& nest) {
    if (on_.gemm && facts_.contraction.ok()) {
      try_gemm(nest, *facts_.contraction, Products::plain);
      if (has_open_sizes(space_))
        try_gemm(open_dims_last(nest), *facts_.contraction, Products::plain);
      for (Products products : other_products(site_))
        if (is_on(on_, products)) try_gemm(nest, *facts_.contraction, products);
    }
    if (on_.winograd && body_.window.empty()) try_winograd();
  }

 private:
  // Dims of open sizes have no blocks: if their loops are the innermost, panels of the other
  // operand are packed once.
  Schedule open_dims_last(Schedule schedule) const {
    std::ranges::sort(schedule.order, {},
                      [&](int dim) { return std::pair(site_.is_open(dim), dim); });
    return schedule;
  }

  // From a start of its own: a bad gemm leads to a good one, through others that cost more than a
  // nest.
  void try_gemm(Schedule start, const Contraction& contraction, Products products) {
    const std::optional<Schedule> before = std::exchange(best_, std::nullopt);
    const double least = std::exchange(least_, std::numeric_limits<double>::infinity());
    GemmFields& own = start.own.emplace<GemmFields>();
    own.pack_lhs = own.pack_rhs = Packing::panels;
    own.products = products;
    const bool on_matrix_unit = products == Products::matrix;
    if (on_matrix_unit)
      try_matrix(start, contraction);
    else
      consider(start);
    if (best_) improve_gemm(contraction);
    // From whole rows of the first operand: of images, or of data by weights that are unpacked.
    const bool has_windows = reads_windows() && !on_matrix_unit;
    if (on_.window_packing &&
        (has_windows || (computes_weights() && products == Products::plain))) {
      (has_windows ? own.pack_lhs : own.pack_rhs) = Packing::window;
      for (int dim = 0; dim < space_.parallel; ++dim)
        if (contraction.sides[0][static_cast<size_t>(dim)] && !site_.is_open(dim))
          own.block.push_back({dim, extent(dim)});
      const std::optional<Schedule> panels = std::exchange(best_, std::nullopt);
      const double least_panels = std::exchange(least_, std::numeric_limits<double>::infinity());
      consider(start);
      if (best_) improve_gemm(contraction);
      if (!(least_ < least_panels)) best_ = panels, least_ = least_panels;
    }
    if (least_ < (on_.gemm_ahead ? kGemmAhead : 1) * least) return;
    best_ = before;
    least_ = least;
  }

  // Tiles of a matrix unit: they have columns in lanes from the start.
  void try_matrix(const Schedule& start, const Contraction& contraction) {
    std::vector<Schedule> tried;
    for (size_t side = 0; side < 2; ++side) {
      std::vector<int> columns, rows;
      for (int dim = 0; dim < space_.parallel; ++dim) {
        const auto d = static_cast<size_t>(dim);
        if (extent(dim) == 1 || (contraction.sides[0][d] && contraction.sides[1][d])) continue;
        (contraction.sides[side][d] ? columns : rows).push_back(dim);
      }
      for (int dim : columns)
        for (const std::vector<Tile>& tile : usual_matrix_rows(site_, rows))
          for (int64_t vectors : {1, 2}) {
            Schedule next = start;
            next.lanes = {{dim, MatrixShape::kWords}};
            next.unroll = tile;
            set(next.unroll, dim, vectors);
            tried.push_back(std::move(next));
          }
    }
    consider_all(tried);
  }

  // Blocks along a dim of each operand and of the reduction together: one alone costs more, as
  // panels are packed again.
  void try_matrix_blocks(const std::array<std::vector<int>, 2>& sides) {
    const auto longest = [&](const auto& dims) {
      return *std::ranges::max_element(dims, {}, [&](int dim) { return extent(dim); });
    };
    if (sides[0].empty() || sides[1].empty()) return;
    const int left = longest(sides[0]), right = longest(sides[1]);
    const int depth = longest(std::views::iota(space_.parallel, dims()));
    std::vector<Schedule> tried;
    for (int64_t points : kMatrixBlocks)
      for (int64_t others : kMatrixBlocks)
        for (int64_t reduced : kMatrixDepths) {
          if (points >= extent(left) && others >= extent(right)) continue;
          Schedule next = *best_;
          std::vector<Tile>& block = next.get<GemmFields>().block;
          set(block, left, std::min(points, extent(left)));
          set(block, right, std::min(others, extent(right)));
          set(block, depth, reduced < extent(depth) ? reduced : 0);
          tried.push_back(whole_blocks(next));
        }
    consider_all(tried);
  }

  // True if a point of the first operand is read for several points of the results.
  bool reads_windows() const {
    const NodeId anchor = space_.anchor;
    if (!is_convolution(body_.graph.opcode(anchor))) return false;
    for (int dim = space_.parallel + 1; dim < dims(); ++dim)
      if (extent(dim) > 1) return true;
    return false;
  }

  void improve_gemm(const Contraction& contraction) {
    std::array<std::vector<int>, 2> sides;
    std::vector<int> results, shared;
    for (int dim = 0; dim < space_.parallel; ++dim) {
      const auto d = static_cast<size_t>(dim);
      results.push_back(dim);
      if (extent(dim) == 1) continue;
      const std::array<bool, 2> reads = {contraction.sides[0][d], contraction.sides[1][d]};
      if (reads[0] && reads[1])
        shared.push_back(dim);
      else
        sides[reads[0] ? 0 : 1].push_back(dim);
    }
    // The features of a conv in groups, each of which has several channels of its own.
    const bool has_channels = space_.parallel < dims() && extent(space_.parallel) > 1;
    if (on_.shared_columns && has_channels && sides[1].empty()) sides[1] = shared;
    for (int round = 0; round < rounds(); ++round) {
      // Lanes along one operand, registers along the other.
      const bool on_matrix_unit = best_->get<GemmFields>().products == Products::matrix;
      for (size_t side = 0; side < 2 && !on_matrix_unit; ++side)
        for (int lanes : sides[side]) register_tiles(lanes, sides[1 - side]);
      if (on_.cache_blocks && on_matrix_unit) try_matrix_blocks(sides);
      for (int dim = 0; dim < dims(); ++dim)
        if (on_.cache_blocks && extent(dim) > 1) try_block(dim);
      if (on_.packing) try_packing();
      Schedule reversed = *best_;
      std::ranges::reverse(reversed.order);
      if (on_.reversed_order) consider(reversed);
      try_threads();
      try_divided_blocks();
      try_unroll(results);
      try_transposed();
    }
  }

  void try_packing() {
    for (Packing lhs : kUsualLhs) {
      if (lhs == Packing::window && !on_.window_packing) continue;
      for (Packing rhs : kUsualRhs) {
        if (rhs == Packing::window && !(on_.window_packing && computes_weights())) continue;
        Schedule next = *best_;
        next.get<GemmFields>().pack_lhs = lhs;
        next.get<GemmFields>().pack_rhs = rhs;
        consider(next);
      }
    }
  }

  void register_tiles(int lanes, const std::vector<int>& other) {
    const Schedule start = *best_;
    std::vector<Schedule> tried;
    for (int64_t count : usual_lanes(site_, lanes)) {
      // A single row of words: a nest, which is as good for other numbers, has none.
      if (other.empty() && start.get<GemmFields>().products != Products::plain) {
        for (int64_t vectors : usual_vectors(site_, lanes, count)) {
          Schedule next = start;
          next.lanes = {{lanes, count}};
          next.unroll.clear();
          set(next.unroll, lanes, vectors);
          tried.push_back(whole_blocks(next));
        }
      }
      for (int dim : std::views::reverse(other)) {
        for (int64_t unroll : usual_rows(site_, dim)) {
          for (int64_t vectors : usual_vectors(site_, lanes, count)) {
            Schedule next = start;
            next.lanes = {{lanes, count}};
            next.unroll.clear();
            set(next.unroll, dim, unroll);
            set(next.unroll, lanes, vectors);
            tried.push_back(whole_blocks(next));
          }
        }
      }
    }
    consider_all(tried);
  }

  // For each number of points from a start of its own, like a gemm.
  void try_winograd() {
    const Result<WinogradDims> dims = winograd_dims(body_, facts_);
    if (!dims.ok()) return;
    Schedule start = plain_nest(space_.parallel);
    std::erase(start.order, dims->features);
    start.order.push_back(dims->features);
    int64_t lanes = numbers_in_vector(site_);
    // Half a vector is as fast as one whose other lanes a group has no features for.
    if (const int64_t groups = dims->groups; groups > 1)
      while (lanes > 2 && lanes / 2 * groups >= site_.extent(dims->features)) lanes /= 2;
    start.lanes = {{dims->features, lanes}};
    for (int64_t points : kWinogradPoints) {
      const std::optional<Schedule> before = std::exchange(best_, std::nullopt);
      const double least = std::exchange(least_, std::numeric_limits<double>::infinity());
      start.own = WinogradFields{.points = static_cast<int>(points)};
      consider(start);
      for (int round = 0; best_ && round < rounds(); ++round) improve_winograd(*dims);
      if (least_ < least) continue;
      best_ = before;
      least_ = least;
    }
  }

  void improve_winograd(const WinogradDims& dims) {
    std::vector<Schedule> tried;
    for (int64_t vectors : {1, 2, 4})
      for (int64_t rows : usual_rows(site_, dims.spatial.back())) {
        Schedule next = *best_;
        set(next.unroll, dims.features, vectors);
        set(next.unroll, dims.spatial.back(), rows);
        tried.push_back(std::move(next));
      }
    consider_all(tried);
    tried.clear();
    // A block that is best for one thread, as a whole image, may leave nothing to share.
    for (const std::vector<Tile>& block : usual_winograd_blocks(site_, dims, *best_)) {
      Schedule next = *best_;
      auto& own = next.get<WinogradFields>();
      own.block = block;
      tried.push_back(next);
      if (threads_ < 2) continue;
      own.parts = 0;
      next.threads = most_threads();
      tried.push_back(next);
      // Each thread with weights of its own.
      next.threads = space_.parallel;
      for (int parts : {0, 2, 4}) {
        own.parts = parts;
        if (parts > 0 || dims.groups > 1) tried.push_back(next);
      }
    }
    consider_all(tried);
    try_threads();
  }
};

}  // namespace

void try_products(CheapestSchedule& cheapest, const Schedule& nest) {
  ProductChooser(cheapest).run(nest);
}

}  // namespace hone

#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/checked_math.h"
#include "base/thread_pool.h"
#include "ir/reference/domain.h"

// A blocked matrix product over any scalar of the reference evaluator.
//
// Each element of the product is summed in order of depth, starting from zero, by one thread: the
// result depends neither on the blocking nor on the number of threads.

namespace hone {

// The type in which products of elements of type T are computed: int64 images wrap as unsigned
// numbers.
template <class T>
using Ring = std::conditional_t<std::is_same_v<T, int64_t>, uint64_t, T>;

template <class T>
const Ring<T>* as_ring(std::span<const T> elements) {
  return reinterpret_cast<const Ring<T>*>(elements.data());
}

template <class T>
void multiply_add(T& sum, const T& a, const T& b) {
  if constexpr (std::is_same_v<T, Tracked<int64_t>>) {
    uint64_t product = static_cast<uint64_t>(a.value) * static_cast<uint64_t>(b.value);
    sum.value = static_cast<int64_t>(static_cast<uint64_t>(sum.value) + product);
    sum.from = sum.from | a.from | b.from;
  } else {
    sum += a * b;
  }
}

struct GemmShape {
  int64_t batches = 1;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
};

// A finished block of the product of one batch.
template <class T>
struct GemmTile {
  int64_t batch;
  int64_t row;  // of its first element
  int64_t rows;
  int64_t column;
  int64_t columns;
  const T* data;
  int64_t row_step;
  int64_t column_step;

  const T& at(int64_t i, int64_t j) const { return data[i * row_step + j * column_step]; }
};

// One side of a product, in panels: ceil(count / width) times [depth_count][width] elements, what
// is missing in the last panel being zero.
struct GemmPanels {
  int64_t batch;
  int64_t begin;  // rows of the left side, columns of the right side
  int64_t count;
  int64_t depth_begin;
  int64_t depth_count;
  int64_t width;
};

namespace detail {

inline constexpr int64_t kGemmPanelRows = 4;
inline constexpr int64_t kGemmPanelColumns = 8;
// For double, the packed sides and the tile take 1 MB together: they stay in a level 2 cache.
inline constexpr int64_t kGemmTileRows = 128;
inline constexpr int64_t kGemmTileColumns = 256;
// Not a power of two: the same place in neighbouring panels must not meet in one cache set.
inline constexpr int64_t kGemmDepth = 248;

// c[kRows][8] += a[depth][kRows] * b[depth][8]. The sums stay in registers.
template <int kRows, class T>
void gemm_kernel(int64_t depth, const T* __restrict a, const T* __restrict b, T* __restrict c,
                 int64_t row_step) {
  constexpr int kColumns = kGemmPanelColumns;
  T sums[kRows][kColumns];
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kColumns; ++j) sums[i][j] = c[i * row_step + j];
  }
  for (int64_t d = 0; d < depth; ++d, a += kRows, b += kColumns) {
    T row[kColumns];
    for (int j = 0; j < kColumns; ++j) row[j] = b[j];
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const T factor = a[i];
      for (int j = 0; j < kColumns; ++j) multiply_add(sums[i][j], factor, row[j]);
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kColumns; ++j) c[i * row_step + j] = sums[i][j];
  }
}

template <class T>
class GemmWorker {
 public:
  explicit GemmWorker(const GemmShape& shape)
      : shape_(shape), depth_(std::min(shape.depth, kGemmDepth)) {
    int64_t rows = round_up(std::min(shape.rows, kGemmTileRows), kGemmPanelRows);
    int64_t columns = round_up(std::min(shape.columns, kGemmTileColumns), kGemmPanelColumns);
    lhs_.resize(static_cast<size_t>(rows * depth_));
    rhs_.resize(static_cast<size_t>(columns * depth_));
    tile_.resize(static_cast<size_t>(rows * columns));
  }

  template <class Lhs, class Rhs>
  GemmTile<T> compute(int64_t batch, int64_t row, int64_t column, const Lhs& lhs, const Rhs& rhs) {
    const int64_t rows = std::min(shape_.rows - row, kGemmTileRows);
    const int64_t columns = std::min(shape_.columns - column, kGemmTileColumns);
    const int64_t panel_rows = rows >= 3 ? kGemmPanelRows : rows;
    const int64_t row_step = round_up(columns, kGemmPanelColumns);
    std::fill(tile_.begin(), tile_.end(), T());
    for (int64_t d = 0; d < shape_.depth; d += depth_) {
      const int64_t depth = std::min(shape_.depth - d, depth_);
      lhs.pack(GemmPanels{batch, row, rows, d, depth, panel_rows}, lhs_.data());
      rhs.pack(GemmPanels{batch, column, columns, d, depth, kGemmPanelColumns}, rhs_.data());
      for (int64_t j = 0; j < columns; j += kGemmPanelColumns) {
        for (int64_t i = 0; i < rows; i += panel_rows) {
          add_product(panel_rows, depth, lhs_.data() + i * depth, rhs_.data() + j * depth,
                      tile_.data() + i * row_step + j, row_step);
        }
      }
    }
    return {batch, row, rows, column, columns, tile_.data(), row_step, 1};
  }

 private:
  static void add_product(int64_t panel_rows, int64_t depth, const T* a, const T* b, T* c,
                          int64_t row_step) {
    switch (panel_rows) {
      case 1: return gemm_kernel<1>(depth, a, b, c, row_step);
      case 2: return gemm_kernel<2>(depth, a, b, c, row_step);
      default: return gemm_kernel<kGemmPanelRows>(depth, a, b, c, row_step);
    }
  }

  GemmShape shape_;
  int64_t depth_;
  std::vector<T> lhs_;
  std::vector<T> rhs_;
  std::vector<T> tile_;
};

template <class T, class Lhs, class Rhs, class Store>
void gemm_tiles(ThreadPool& pool, const GemmShape& shape, const Lhs& lhs, const Rhs& rhs,
                const Store& store) {
  const int64_t row_tiles = ceil_div(shape.rows, kGemmTileRows);
  const int64_t column_tiles = ceil_div(shape.columns, kGemmTileColumns);
  const int64_t tiles = shape.batches * row_tiles * column_tiles;
  const int64_t tile_work = std::min(shape.rows, kGemmTileRows) *
                            std::min(shape.columns, kGemmTileColumns) *
                            std::max<int64_t>(shape.depth, 1);
  constexpr int64_t kPieceWork = int64_t{1} << 18;  // worth a thread's attention
  const int64_t grain = ceil_div(kPieceWork, std::max<int64_t>(tile_work, 1));
  pool.parallel_for(0, tiles, grain, [&](int64_t begin, int64_t end) {
    GemmWorker<T> worker(shape);
    for (int64_t t = begin; t < end; ++t) {
      const int64_t row = t % row_tiles * kGemmTileRows;
      const int64_t column = t / row_tiles % column_tiles * kGemmTileColumns;
      store(worker.compute(t / row_tiles / column_tiles, row, column, lhs, rhs));
    }
  });
}

}  // namespace detail

// Calls store(GemmTile<T>) for tiles that together are the product of lhs [batches, rows, depth]
// and rhs [batches, depth, columns], from several threads. Each side has
//   void pack(const GemmPanels& wanted, T* out) const;
// Scratch memory is about 1 MB of doubles per thread.
template <class T, class Lhs, class Rhs, class Store>
void gemm(ThreadPool& pool, const GemmShape& shape, const Lhs& lhs, const Rhs& rhs,
          const Store& store) {
  // Vectors run along the columns: make them the longer side of a thin product.
  if (shape.columns >= detail::kGemmPanelColumns || shape.rows <= shape.columns) {
    return detail::gemm_tiles<T>(pool, shape, lhs, rhs, store);
  }
  GemmShape transposed = {shape.batches, shape.columns, shape.rows, shape.depth};
  detail::gemm_tiles<T>(pool, transposed, rhs, lhs, [&](const GemmTile<T>& tile) {
    store(GemmTile<T>{tile.batch, tile.column, tile.columns, tile.row, tile.rows, tile.data,
                      tile.column_step, tile.row_step});
  });
}

// A side whose elements are found by adding up offsets: any order of the dims of a tensor. `own`
// are the rows of a left side, the columns of a right side.
template <class T>
class GemmTableSide {
 public:
  GemmTableSide(const T* data, std::vector<int64_t> batch, std::vector<int64_t> own,
                std::vector<int64_t> depth)
      : data_(data), batch_(std::move(batch)), own_(std::move(own)), depth_(std::move(depth)) {}

  void pack(const GemmPanels& wanted, T* out) const {
    const T* base = data_ + batch_[static_cast<size_t>(wanted.batch)];
    const int64_t* own = own_.data() + wanted.begin;
    const int64_t* depth = depth_.data() + wanted.depth_begin;
    auto copy_row = [&](int64_t i, int64_t d) {
      const int64_t filled = std::min(wanted.width, wanted.count - i);
      const T* from = base + depth[d];
      T* to = out + i * wanted.depth_count + d * wanted.width;
      for (int64_t j = 0; j < filled; ++j) to[j] = from[own[i + j]];
      for (int64_t j = filled; j < wanted.width; ++j) to[j] = T();
    };
    // Along memory: neighbours of either kind may be the closer ones.
    if (distance(own, wanted.count) < distance(depth, wanted.depth_count)) {
      for (int64_t d = 0; d < wanted.depth_count; ++d) {
        for (int64_t i = 0; i < wanted.count; i += wanted.width) copy_row(i, d);
      }
    } else {
      for (int64_t i = 0; i < wanted.count; i += wanted.width) {
        for (int64_t d = 0; d < wanted.depth_count; ++d) copy_row(i, d);
      }
    }
  }

 private:
  static int64_t distance(const int64_t* offsets, int64_t count) {
    return count < 2 ? INT64_MAX : offsets[1] - offsets[0];
  }

  const T* data_;
  std::vector<int64_t> batch_;
  std::vector<int64_t> own_;
  std::vector<int64_t> depth_;
};

}  // namespace hone

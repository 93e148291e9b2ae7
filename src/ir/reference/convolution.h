#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ir/ops/window_axis.h"
#include "ir/reference/gemm.h"

// Convolutions over any scalar of the reference evaluator, in two ways that give the same bits. One
// is a matrix product with patches of the input, packed block by block; the other is a direct loop.
// Each output element is summed over input features and then over positions of the kernel.

namespace hone {

// A batch dim (a window of one position) or a spatial dim.
struct ConvAxis {
  WindowAxis window;
  int64_t in_stride = 0;
  int64_t kernel_stride = 0;
  int64_t out_stride = 0;
};

struct ConvProblem {
  int64_t groups = 1;
  int64_t in_features = 0;   // of one group
  int64_t out_features = 0;  // of one group
  int64_t in_feature_stride = 0;
  int64_t kernel_in_stride = 0;
  int64_t kernel_out_stride = 0;
  int64_t out_feature_stride = 0;
  std::vector<ConvAxis> axes;  // the batch dim first, then spatial dims in order
};

namespace detail {

// The output positions as rows: all but one axis are fixed in a row.
class ConvRows {
 public:
  explicit ConvRows(const ConvProblem& problem) : axes_(problem.axes) {
    size_t row = axes_.size() - 1;
    for (size_t a = 0; a < axes_.size(); ++a) {
      if (axes_[row].window.out < kShortRow && axes_[a].window.out > axes_[row].window.out) row = a;
    }
    row_ = row;
    for (size_t a = 0; a < axes_.size(); ++a) {
      if (a != row_) rows_ *= axes_[a].window.out;
    }
    list_taps();
  }

  int64_t rows() const { return rows_; }
  int64_t row_length() const { return row_axis().window.out; }
  int64_t positions() const { return rows_ * row_length(); }
  const ConvAxis& row_axis() const { return axes_[row_]; }
  // A tap is a position of the kernel.
  int64_t taps() const { return static_cast<int64_t>(tap_offset_.size()); }
  int64_t kernel_offset(int64_t tap) const { return tap_offset_[static_cast<size_t>(tap)]; }

  // Where the row lies: an index per axis, 0 for the axis along it.
  std::vector<int64_t> row_index(int64_t row) const {
    std::vector<int64_t> index(axes_.size(), 0);
    for (size_t a = axes_.size(); a-- > 0;) {
      if (a == row_) continue;
      index[a] = row % axes_[a].window.out;
      row /= axes_[a].window.out;
    }
    return index;
  }
  int64_t out_offset(const std::vector<int64_t>& row_index) const {
    int64_t offset = 0;
    for (size_t a = 0; a < axes_.size(); ++a) offset += row_index[a] * axes_[a].out_stride;
    return offset;
  }

  // The elements that [begin, end) of a row reads at a tap. It has the windows along the row axis,
  // and the place of the first element for input feature 0. Later features are in_step apart.
  struct Reach {
    WindowAxis::Run run;
    int64_t in_offset = 0;
    int64_t in_step = 0;
  };
  Reach reach(const std::vector<int64_t>& row_index, int64_t begin, int64_t end,
              int64_t tap) const {
    const int64_t* window = tap_window_.data() + static_cast<size_t>(tap) * axes_.size();
    Reach reach;
    for (size_t a = 0; a < axes_.size(); ++a) {
      if (a == row_) continue;
      std::optional<int64_t> element = axes_[a].window.element(row_index[a], window[a]);
      if (!element) return {};
      reach.in_offset += *element * axes_[a].in_stride;
    }
    reach.run = row_axis().window.elements(begin, end, window[row_]);
    reach.in_offset += reach.run.first_in * row_axis().in_stride;
    reach.in_step = reach.run.in_step * row_axis().in_stride;
    return reach;
  }

 private:
  static constexpr int64_t kShortRow = 8;

  void list_taps() {
    int64_t taps = 1;
    for (const ConvAxis& axis : axes_) taps *= axis.window.window;
    for (int64_t tap = 0; tap < taps; ++tap) {
      std::vector<int64_t> window(axes_.size());
      int64_t rest = tap;
      int64_t offset = 0;
      for (size_t a = axes_.size(); a-- > 0;) {
        window[a] = rest % axes_[a].window.window;
        rest /= axes_[a].window.window;
        offset += window[a] * axes_[a].kernel_stride;
      }
      tap_window_.insert(tap_window_.end(), window.begin(), window.end());
      tap_offset_.push_back(offset);
    }
  }

  const std::vector<ConvAxis>& axes_;
  size_t row_ = 0;
  int64_t rows_ = 1;
  std::vector<int64_t> tap_window_;  // [taps, axes]
  std::vector<int64_t> tap_offset_;
};

// to[i * to_step] = from[i * from_step]
template <class T>
void copy_strided(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t count) {
  if (from_step == 1 && to_step == 1) {
    std::copy(from, from + count, to);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i * to_step] = from[i * from_step];
  }
}

// The patches that the positions read, as the right side of a product: depth runs over input
// features and then taps; batches are groups. Elements that a window skips are zero.
template <class T>
struct ConvPatches {
  const ConvProblem& problem;
  const ConvRows& rows;
  const T* input;

  void pack(const GemmPanels& wanted, T* out) const {
    const std::vector<Segment> segments = segments_of(wanted.begin, wanted.count);
    const std::vector<ConvRows::Reach> reaches = reaches_of(segments, wanted);
    const int64_t cycle = static_cast<int64_t>(reaches.size() / segments.size());
    const int64_t padded = round_up(wanted.count, wanted.width);
    std::vector<T> line(static_cast<size_t>(padded));
    for (int64_t d = 0; d < wanted.depth_count; ++d) {
      const int64_t feature = (wanted.depth_begin + d) / rows.taps();
      const int64_t plane =
          (wanted.batch * problem.in_features + feature) * problem.in_feature_stride;
      const ConvRows::Reach* reach =
          reaches.data() + static_cast<size_t>(d % cycle) * segments.size();
      fill_line(segments, reach, plane, line);
      for (int64_t i = 0; i < padded; i += wanted.width) {
        std::copy_n(line.data() + i, wanted.width, out + i * wanted.depth_count + d * wanted.width);
      }
    }
  }

  // A piece of a row inside of a block of positions.
  struct Segment {
    std::vector<int64_t> row_index;
    int64_t begin;  // along the row
    int64_t end;
    int64_t at;  // in the block
  };
  std::vector<Segment> segments_of(int64_t position, int64_t count) const {
    std::vector<Segment> segments;
    for (int64_t at = 0; at < count;) {
      const int64_t begin = (position + at) % rows.row_length();
      const int64_t end = std::min(rows.row_length(), begin + count - at);
      segments.push_back({rows.row_index((position + at) / rows.row_length()), begin, end, at});
      at += end - begin;
    }
    return segments;
  }

 private:
  // [depth or taps, whichever is less][segments]
  std::vector<ConvRows::Reach> reaches_of(const std::vector<Segment>& segments,
                                          const GemmPanels& wanted) const {
    std::vector<ConvRows::Reach> reaches;
    const int64_t cycle = std::min(wanted.depth_count, rows.taps());
    reaches.reserve(static_cast<size_t>(cycle) * segments.size());
    for (int64_t d = 0; d < cycle; ++d) {
      const int64_t tap = (wanted.depth_begin + d) % rows.taps();
      for (const Segment& s : segments) {
        reaches.push_back(rows.reach(s.row_index, s.begin, s.end, tap));
      }
    }
    return reaches;
  }

  // The input elements that one tap of one feature adds to the block's positions.
  void fill_line(const std::vector<Segment>& segments, const ConvRows::Reach* reach, int64_t plane,
                 std::vector<T>& line) const {
    for (size_t s = 0; s < segments.size(); ++s, ++reach) {
      T* to = line.data() + segments[s].at;
      const int64_t length = segments[s].end - segments[s].begin;
      const WindowAxis::Run& run = reach->run;
      if (run.count < length) std::fill(to, to + length, T());
      if (run.count == 0) continue;
      copy_strided(input + plane + reach->in_offset, reach->in_step,
                   to + (run.first_out - segments[s].begin), run.out_step, run.count);
    }
  }
};

template <class T, class Store>
void convolve_by_product(ThreadPool& pool, const ConvProblem& problem, const ConvRows& rows,
                         const T* input, const T* kernel, const Store& store) {
  std::vector<int64_t> group_offsets, out_offsets, depth_offsets;
  for (int64_t g = 0; g < problem.groups; ++g)
    group_offsets.push_back(g * problem.out_features * problem.kernel_out_stride);
  for (int64_t o = 0; o < problem.out_features; ++o)
    out_offsets.push_back(o * problem.kernel_out_stride);
  for (int64_t i = 0; i < problem.in_features; ++i) {
    for (int64_t tap = 0; tap < rows.taps(); ++tap)
      depth_offsets.push_back(i * problem.kernel_in_stride + rows.kernel_offset(tap));
  }
  const GemmTableSide<T> weights(kernel, std::move(group_offsets), std::move(out_offsets),
                                 std::move(depth_offsets));
  ConvPatches<T> patches = {problem, rows, input};
  GemmShape shape = {problem.groups, problem.out_features, rows.positions(),
                     problem.in_features * rows.taps()};
  gemm<T>(pool, shape, weights, patches, [&](const GemmTile<T>& tile) {
    for (const auto& s : patches.segments_of(tile.column, tile.columns)) {
      const int64_t step = rows.row_axis().out_stride;
      const int64_t offset = rows.out_offset(s.row_index) + s.begin * step;
      for (int64_t i = 0; i < tile.rows; ++i) {
        const int64_t feature = tile.batch * problem.out_features + tile.row + i;
        const int64_t first = offset + feature * problem.out_feature_stride;
        for (int64_t x = 0; x < s.end - s.begin; ++x) {
          store(first + x * step, tile.at(i, s.at + x));
        }
      }
    }
  });
}

// sums[first_out + i * out_step] += factor * from[i * in_step] for the run of the reach
template <class T>
void add_reach(const ConvRows::Reach& reach, const T& factor, const T* from, T* sums) {
  const int64_t count = reach.run.count;
  if (reach.in_step == 1 && reach.run.out_step == 1) {
    for (int64_t i = 0; i < count; ++i) multiply_add(sums[i], factor, from[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      multiply_add(sums[i * reach.run.out_step], factor, from[i * reach.in_step]);
    }
  }
}

// Without packing: for each piece of a row, what its taps reach is found once and serves a block of
// features.
template <class T>
class DirectConvolution {
 public:
  DirectConvolution(const ConvProblem& problem, const ConvRows& rows, const T* input,
                    const T* kernel)
      : problem_(problem), rows_(rows), input_(input), kernel_(kernel) {}

  template <class Store>
  void run(ThreadPool& pool, const Store& store) const {
    const int64_t features = problem_.groups * problem_.out_features;
    const int64_t blocks = ceil_div(features, kFeatureBlock);
    const int64_t pieces = ceil_div(rows_.row_length(), kPieceLength);
    pool.parallel_for(0, rows_.rows() * pieces * blocks, 0, [&](int64_t begin, int64_t end) {
      Scratch scratch;
      for (int64_t task = begin; task < end; ++task) {
        const int64_t feature = task % blocks * kFeatureBlock;
        const int64_t from = task / blocks % pieces * kPieceLength;
        find_reaches(task / blocks / pieces, from, scratch);
        for (int64_t f = feature; f < std::min(feature + kFeatureBlock, features); ++f) {
          add_feature(f, scratch);
          store_sums(f, scratch, store);
        }
      }
    });
  }

 private:
  static constexpr int64_t kFeatureBlock = 16;
  static constexpr int64_t kPieceLength = 4096;

  struct Scratch {
    int64_t out_offset = 0;                     // of the piece, for feature 0
    int64_t begin = 0;                          // of the piece in its row
    std::vector<ConvRows::Reach> reaches = {};  // per tap
    std::vector<T> sums = {};
  };

  void find_reaches(int64_t row, int64_t begin, Scratch& scratch) const {
    const std::vector<int64_t> index = rows_.row_index(row);
    const int64_t end = std::min(begin + kPieceLength, rows_.row_length());
    scratch.begin = begin;
    scratch.out_offset = rows_.out_offset(index) + begin * rows_.row_axis().out_stride;
    scratch.sums.resize(static_cast<size_t>(end - begin));
    scratch.reaches.clear();
    for (int64_t tap = 0; tap < rows_.taps(); ++tap) {
      scratch.reaches.push_back(rows_.reach(index, begin, end, tap));
    }
  }

  void add_feature(int64_t feature, Scratch& scratch) const {
    std::fill(scratch.sums.begin(), scratch.sums.end(), T());
    const int64_t group = feature / problem_.out_features;
    for (int64_t i = 0; i < problem_.in_features; ++i) {
      const T* plane = input_ + (group * problem_.in_features + i) * problem_.in_feature_stride;
      const T* factors =
          kernel_ + feature * problem_.kernel_out_stride + i * problem_.kernel_in_stride;
      for (int64_t tap = 0; tap < rows_.taps(); ++tap) {
        const ConvRows::Reach& reach = scratch.reaches[static_cast<size_t>(tap)];
        if (reach.run.count == 0) continue;
        add_reach(reach, factors[rows_.kernel_offset(tap)], plane + reach.in_offset,
                  scratch.sums.data() + (reach.run.first_out - scratch.begin));
      }
    }
  }

  template <class Store>
  void store_sums(int64_t feature, const Scratch& scratch, const Store& store) const {
    const int64_t first = scratch.out_offset + feature * problem_.out_feature_stride;
    for (size_t x = 0; x < scratch.sums.size(); ++x) {
      store(first + static_cast<int64_t>(x) * rows_.row_axis().out_stride, scratch.sums[x]);
    }
  }

  const ConvProblem& problem_;
  const ConvRows& rows_;
  const T* input_;
  const T* kernel_;
};

// A product multiplies kernel elements by the zeros that stand for padding: harmless if they are
// finite and nobody asks which elements were used.
template <class T>
bool skips_matter(const T* kernel, int64_t kernel_size) {
  if constexpr (std::is_floating_point_v<T>) {
    return !std::all_of(kernel, kernel + kernel_size, [](T x) { return std::isfinite(x); });
  }
  return is_tracked<T>;
}

// Plain float arithmetic multiplies padding in any case, as compiled code does.
template <class T>
inline constexpr bool multiplies_padding = std::is_same_v<T, float>;

}  // namespace detail

// Calls store(offset, sum) for every element of the output, from several threads.
template <class T, class Store>
void convolve(ThreadPool& pool, const ConvProblem& problem, const T* input, const T* kernel,
              int64_t kernel_size, const Store& store) {
  const detail::ConvRows rows(problem);
  if (rows.positions() == 0 || problem.out_features == 0) return;
  const bool depthwise = problem.out_features == 1;
  const bool skips = detail::skips_matter(kernel, kernel_size);
  if (detail::multiplies_padding<T> ? depthwise && !skips : depthwise || skips) {
    detail::DirectConvolution<T>(problem, rows, input, kernel).run(pool, store);
  } else {
    detail::convolve_by_product(pool, problem, rows, input, kernel, store);
  }
}

}  // namespace hone

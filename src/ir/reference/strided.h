#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/checked_math.h"
#include "base/thread_pool.h"
#include "tensor/type.h"

// Copies between boxes of elements whose neighbours are a fixed distance apart: all that reshape,
// transpose, slice, pad, concat, reverse, broadcast and windows of gathers do.

namespace hone {

// Offsets into a source and a destination for every point of a box, in row-major order.
class StridedLoop {
 public:
  // Strides are in elements and may be negative (reversal) or 0 (repetition).
  StridedLoop(std::span<const int64_t> dims, std::span<const int64_t> source_strides,
              std::span<const int64_t> target_strides) {
    for (size_t i = 0; i < dims.size(); ++i) {
      total_ *= dims[i];
      if (dims[i] != 1) push({dims[i], source_strides[i], target_strides[i]});
    }
    if (axes_.empty()) axes_.push_back({1, 1, 1});
  }

  int64_t size() const { return total_; }

  // Calls run(source, target, count, source_step, target_step) for stretches of the points
  // [begin, end) along the last axis; offsets are relative to the first point's.
  template <class Run>
  void for_each_run(int64_t begin, int64_t end, const Run& run) const {
    if (begin >= end) return;
    std::vector<int64_t> index(axes_.size());
    int64_t source = 0;
    int64_t target = 0;
    int64_t rest = begin;
    for (size_t i = axes_.size(); i-- > 0;) {
      index[i] = rest % axes_[i].size;
      rest /= axes_[i].size;
      source += index[i] * axes_[i].source;
      target += index[i] * axes_[i].target;
    }
    const Axis& last = axes_.back();
    while (begin < end) {
      int64_t count = std::min(last.size - index.back(), end - begin);
      run(source, target, count, last.source, last.target);
      begin += count;
      index.back() += count;
      source += count * last.source;
      target += count * last.target;
      for (size_t i = axes_.size(); i-- > 1 && index[i] == axes_[i].size;) {
        index[i] = 0;
        ++index[i - 1];
        source += axes_[i - 1].source - axes_[i].size * axes_[i].source;
        target += axes_[i - 1].target - axes_[i].size * axes_[i].target;
      }
    }
  }

  // Copies every point; `source` and `target` start at the first point's elements.
  template <class T>
  void copy(ThreadPool& pool, const T* source, T* target) const {
    constexpr int64_t kGrain = int64_t{1} << 15;
    pool.parallel_for(0, total_, kGrain, [&](int64_t begin, int64_t end) {
      for_each_run(
          begin, end,
          [&](int64_t from, int64_t to, int64_t count, int64_t from_step, int64_t to_step) {
            copy_run(source + from, from_step, target + to, to_step, count);
          });
    });
  }

 private:
  struct Axis {
    int64_t size;
    int64_t source;
    int64_t target;
  };

  // Joins the axis to the previous one where both together advance evenly.
  void push(Axis axis) {
    if (!axes_.empty()) {
      Axis& outer = axes_.back();
      if (outer.source == axis.source * axis.size && outer.target == axis.target * axis.size) {
        outer = {outer.size * axis.size, axis.source, axis.target};
        return;
      }
    }
    axes_.push_back(axis);
  }

  template <class T>
  static void copy_run(const T* source, int64_t source_step, T* target, int64_t target_step,
                       int64_t count) {
    if (source_step == 1 && target_step == 1) {
      std::copy(source, source + count, target);
    } else if (source_step == 0 && target_step == 1) {
      std::fill(target, target + count, *source);
    } else {
      for (int64_t i = 0; i < count; ++i) target[i * target_step] = source[i * source_step];
    }
  }

  std::vector<Axis> axes_;
  int64_t total_ = 1;
};

}  // namespace hone

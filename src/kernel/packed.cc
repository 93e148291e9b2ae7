#include "kernel/packed.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/hash.h"

namespace hone {
namespace {

// A dim of the memory: the distance of neighbours in the tensor and in memory, in elements.
struct Axis {
  int64_t size = 1, from = 1, to = 1;
};

// The dims of the memory, the innermost first. Dims that are one in both are joined.
std::vector<Axis> axes_of(Type logical, const Layout& layout) {
  const Ints strides = row_major_strides(logical.static_dims());
  const Ints dims = stored_type(layout, logical).static_dims();
  std::vector<Axis> axes;
  int64_t to = 1;
  for (size_t i = dims.size(); i-- > 0; to *= dims[i]) {
    if (dims[i] == 1) continue;
    const Layout::Part& part = layout.parts[i];
    const int64_t from = strides[static_cast<size_t>(part.dim)] * (part.is_inner ? 1 : part.block);
    if (!axes.empty() && from == axes.back().size * axes.back().from)
      axes.back().size *= dims[i];
    else
      axes.push_back({dims[i], from, to});
  }
  return axes;
}

// Calls copy(from, to) for the elements of two axes. Few of the outer axis are taken at a time, so
// that what is read and what is written both stay in the first cache.
template <class Copy>
void each_of_plane(Axis inner, Axis outer, int64_t from, int64_t to, const Copy& copy) {
  constexpr int64_t kAtOnce = 16;
  for (int64_t first = 0; first < outer.size; first += kAtOnce) {
    const int64_t end = std::min(first + kAtOnce, outer.size);
    for (int64_t i = 0; i < inner.size; ++i)
      for (int64_t k = first; k < end; ++k)
        copy(from + i * inner.from + k * outer.from, to + i * inner.to + k * outer.to);
  }
}

// Calls copy(from, to) once for each element.
template <class Copy>
void each_element(std::vector<Axis> axes, const Copy& copy) {
  if (std::ranges::any_of(axes, [](const Axis& axis) { return axis.size == 0; })) return;
  if (axes.empty()) axes.push_back({});
  const Axis inner = axes.front();
  axes.erase(axes.begin());
  Axis outer;  // the one whose neighbours are closest in the tensor
  const auto closest = std::ranges::min_element(axes, {}, &Axis::from);
  if (closest != axes.end()) {
    outer = *closest;
    axes.erase(closest);
  }
  std::vector<int64_t> at(axes.size());
  int64_t from = 0, to = 0;
  while (true) {
    each_of_plane(inner, outer, from, to, copy);
    size_t i = 0;
    for (; i < axes.size(); ++i) {
      from += axes[i].from, to += axes[i].to;
      if (++at[i] < axes[i].size) break;
      from -= axes[i].size * axes[i].from, to -= axes[i].size * axes[i].to;
      at[i] = 0;
    }
    if (i == axes.size()) return;
  }
}

// Elements of whole bytes.
template <size_t size>
void copy_elements(std::vector<Axis> axes, std::span<const std::byte> from,
                   std::span<std::byte> to) {
  each_element(std::move(axes), [&](int64_t source, int64_t target) {
    std::memcpy(to.data() + target * static_cast<int64_t>(size),
                from.data() + source * static_cast<int64_t>(size), size);
  });
}

// Elements that share bytes, as unsigned integers.
Tensor packed_patterns(const Tensor& tensor, const Layout& layout) {
  const Tensor source = tensor.viewed_as(tensor.type().with_dtype(pattern_type(tensor.dtype())));
  std::vector<int64_t> patterns(static_cast<size_t>(tensor.elements()));
  each_element(axes_of(tensor.type(), layout), [&](int64_t from, int64_t to) {
    patterns[static_cast<size_t>(to)] = source.integer_at(from);
  });
  const Type stored = stored_type(layout, tensor.type());
  return Tensor::from_integers(stored.with_dtype(source.dtype()), patterns).viewed_as(stored);
}

}  // namespace

Tensor packed(const Tensor& tensor, const Layout& layout) {
  if (layout.is_row_major()) return tensor;
  if (bits(tensor.dtype()) < 8) return packed_patterns(tensor, layout);
  const uint64_t identity =
      hash_combine(tensor.content_hash(), hash_string(print(layout), 0x7061636b));
  auto fill = [tensor, layout](std::span<std::byte> to) {
    std::vector<Axis> axes = axes_of(tensor.type(), layout);
    std::vector<std::byte> scratch;
    const std::span<const std::byte> from = tensor.bytes_once(scratch);
    switch (bits(tensor.dtype()) / 8) {
      case 1: return copy_elements<1>(std::move(axes), from, to);
      case 2: return copy_elements<2>(std::move(axes), from, to);
      case 4: return copy_elements<4>(std::move(axes), from, to);
      default: return copy_elements<8>(std::move(axes), from, to);
    }
  };
  return Tensor::lazy(stored_type(layout, tensor.type()), identity, std::move(fill));
}

}  // namespace hone

#include "kernel/packed.h"

#include <cstring>

#include "base/hash.h"

namespace hone {
namespace {

// A walk over memory in order, and where each element comes from.
struct Walk {
  Ints dims;     // of the memory
  Ints strides;  // in elements of the tensor
};

Walk walk_of(Type logical, const Layout& layout) {
  const Ints strides = row_major_strides(logical.static_dims());
  Walk walk{stored_type(layout, logical).static_dims(), {}};
  for (const Layout::Part& part : layout.parts)
    walk.strides.push_back(strides[static_cast<size_t>(part.dim)] *
                           (part.is_inner ? 1 : part.block));
  return walk;
}

template <class Copy>
void each_element(const Walk& walk, size_t depth, int64_t from, int64_t& to, const Copy& copy) {
  if (depth == walk.dims.size()) return copy(from, to++);
  for (int64_t i = 0; i < walk.dims[depth]; ++i)
    each_element(walk, depth + 1, from + i * walk.strides[depth], to, copy);
}

// Elements of whole bytes.
template <size_t size>
void copy_elements(const Walk& walk, std::span<const std::byte> from, std::span<std::byte> to) {
  int64_t next = 0;
  each_element(walk, 0, 0, next, [&](int64_t source, int64_t target) {
    std::memcpy(to.data() + target * static_cast<int64_t>(size),
                from.data() + source * static_cast<int64_t>(size), size);
  });
}

// Elements that share bytes, as unsigned integers.
Tensor packed_patterns(const Tensor& tensor, const Layout& layout) {
  const Tensor source = tensor.viewed_as(tensor.type().with_dtype(pattern_type(tensor.dtype())));
  std::vector<int64_t> patterns(static_cast<size_t>(tensor.elements()));
  int64_t next = 0;
  each_element(walk_of(tensor.type(), layout), 0, 0, next, [&](int64_t from, int64_t to) {
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
    const Walk walk = walk_of(tensor.type(), layout);
    std::vector<std::byte> scratch;
    const std::span<const std::byte> from = tensor.bytes_once(scratch);
    switch (bits(tensor.dtype()) / 8) {
      case 1: return copy_elements<1>(walk, from, to);
      case 2: return copy_elements<2>(walk, from, to);
      case 4: return copy_elements<4>(walk, from, to);
      default: return copy_elements<8>(walk, from, to);
    }
  };
  return Tensor::lazy(stored_type(layout, tensor.type()), identity, std::move(fill));
}

}  // namespace hone

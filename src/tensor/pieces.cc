#include "tensor/pieces.h"

#include <cstring>
#include <vector>

namespace hone {

namespace {

// The elements as unsigned integers, which can be read and written one by one.
Tensor patterns_of(const Tensor& tensor) {
  return tensor.viewed_as(tensor.type().with_dtype(pattern_type(tensor.dtype())));
}

}  // namespace

Type with_dim(Type type, int axis, int64_t size) {
  Dims dims(type.dims().begin(), type.dims().end());
  dims[static_cast<size_t>(axis)] = size;
  return type.with_dims(dims);
}

Tensor cut(const Tensor& tensor, int axis, int64_t count) {
  Type type = with_dim(tensor.type(), axis, count);
  Ints dims = tensor.type().static_dims();
  int64_t outer = 1, inner = 1;  // elements per step of the axis
  for (int i = 0; i < axis; ++i) outer *= dims[static_cast<size_t>(i)];
  for (size_t i = static_cast<size_t>(axis) + 1; i < dims.size(); ++i) inner *= dims[i];
  int64_t from = dims[static_cast<size_t>(axis)] * inner, to = count * inner;
  if (bits(type.dtype()) < 8) {
    const Tensor patterns = patterns_of(tensor);
    std::vector<int64_t> cut(static_cast<size_t>(outer * to));
    for (int64_t i = 0; i < outer; ++i)
      patterns.read_integers(
          i * from, std::span(cut).subspan(static_cast<size_t>(i * to), static_cast<size_t>(to)));
    return Tensor::from_integers(type.with_dtype(patterns.dtype()), cut).viewed_as(type);
  }
  int64_t width = bits(type.dtype()) / 8;
  std::vector<std::byte> bytes(static_cast<size_t>(outer * to * width));
  for (int64_t i = 0; to > 0 && i < outer; ++i)
    std::memcpy(bytes.data() + i * to * width, tensor.bytes().data() + i * from * width,
                static_cast<size_t>(to * width));
  return Tensor::copy_of(type, bytes);
}

Result<Tensor> joined(std::span<const Tensor> parts) {
  Dims dims(parts[0].type().dims().begin(), parts[0].type().dims().end());
  for (const Tensor& part : parts.subspan(1)) dims[0] += part.type().dim(0);
  Type type = HONE_TRY(Type::make(parts[0].dtype(), dims));
  if (bits(type.dtype()) < 8) {
    std::vector<int64_t> patterns(static_cast<size_t>(type.static_elements()));
    std::span<int64_t> rest = patterns;
    for (const Tensor& part : parts) {
      patterns_of(part).read_integers(0, rest.first(static_cast<size_t>(part.elements())));
      rest = rest.subspan(static_cast<size_t>(part.elements()));
    }
    return Tensor::from_integers(type.with_dtype(pattern_type(type.dtype())), patterns)
        .viewed_as(type);
  }
  std::vector<std::byte> bytes;
  bytes.reserve(static_cast<size_t>(type.static_bytes()));
  for (const Tensor& part : parts)
    bytes.insert(bytes.end(), part.bytes().begin(), part.bytes().end());
  return Tensor::copy_of(type, bytes);
}

}  // namespace hone

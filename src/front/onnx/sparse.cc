#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "base/text.h"
#include "front/onnx/tensor_source.h"

namespace hone::onnx_io {

namespace {

// Where in the dense tensor each value goes, in elements; ascending.
using Positions = std::vector<int64_t>;

// The entry's index, one number per axis, as a position.
Result<int64_t> position_of(std::span<const int64_t> index, const Ints& dims, int64_t entry) {
  int64_t position = 0;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (index[axis] < 0 || index[axis] >= dims[axis]) {
      return bad_input("entry {} has index {} on axis {}, which has size {}", entry, index[axis],
                       axis, dims[axis]);
    }
    position = position * dims[axis] + index[axis];
  }
  return position;
}

Status check_shape(const Tensor& values, const Tensor& indices, Type type) {
  if (values.type().rank() != 1) {
    return bad_input("the values are {}, not a list", values.type().to_string());
  }
  if (indices.dtype() != DType::i64) {
    return bad_input("the indices are {}, not i64", indices.type().to_string());
  }
  const int64_t count = values.elements();
  const Ints shape = indices.type().static_dims();
  if (shape == Ints{count} || shape == Ints{count, type.rank()}) return {};
  return bad_input("the indices are {}, but {} values of {} need i64[{}] or i64[{}, {}]",
                   indices.type().to_string(), count, type.to_string(), count, count, type.rank());
}

Result<Positions> positions_of(const Tensor& indices, int64_t count, Type type) {
  const bool linear = indices.type().rank() == 1;
  const Ints dims = linear ? Ints{type.static_elements()} : type.static_dims();
  const std::span<const int64_t> numbers = indices.as<int64_t>();
  Positions positions(static_cast<size_t>(count));
  for (size_t i = 0; i < positions.size(); ++i) {
    const std::span<const int64_t> index = numbers.subspan(i * dims.size(), dims.size());
    positions[i] = HONE_TRY(position_of(index, dims, static_cast<int64_t>(i)));
    if (i > 0 && positions[i] <= positions[i - 1]) {
      return bad_input("entry {} is at element {}, not after element {} of the entry before", i,
                       positions[i], positions[i - 1]);
    }
  }
  return positions;
}

void scatter(const Tensor& values, const Positions& positions, std::span<std::byte> out) {
  std::ranges::fill(out, std::byte{0});
  const std::span<const std::byte> in = values.bytes();
  const int width = bits(values.dtype());
  if (width >= 8) {
    const auto size = static_cast<size_t>(width) / 8;
    for (size_t i = 0; i < positions.size(); ++i) {
      std::memcpy(&out[static_cast<size_t>(positions[i]) * size], &in[i * size], size);
    }
    return;
  }
  const int in_byte = 8 / width;  // the first element in the lowest bits
  const auto mask = static_cast<std::byte>((1 << width) - 1);
  for (size_t i = 0; i < positions.size(); ++i) {
    const auto from = static_cast<int64_t>(i);
    const std::byte element =
        (in[i / static_cast<size_t>(in_byte)] >> (from % in_byte * width)) & mask;
    out[static_cast<size_t>(positions[i] / in_byte)] |= element << (positions[i] % in_byte * width);
  }
}

}  // namespace

Result<Tensor> TensorSource::sparse(const onnx::SparseTensorProto& proto) const {
  Result<Tensor> tensor = scattered(proto);
  if (tensor.ok() || !tensor.error().where().empty()) return tensor;
  return std::move(tensor).error().within(
      fmt::format("sparse tensor '{}'", escape(proto.values().name())));
}

// Lazy: a file of a few bytes may claim a large tensor.
Result<Tensor> TensorSource::scattered(const onnx::SparseTensorProto& proto) const {
  const Type type = HONE_TRY(claimed_type(proto.values().data_type(), proto.dims(), limits_));
  const Tensor values = HONE_TRY(dense(proto.values()));
  const Tensor indices = HONE_TRY(dense(proto.indices()));
  HONE_TRY(check_shape(values, indices, type));
  Positions positions = HONE_TRY(positions_of(indices, values.elements(), type));
  const uint64_t identity =
      hash_combine(hash_combine(hash_string("sparse"), values.content_hash()),
                   hash_bytes(std::as_bytes(std::span<const int64_t>(positions))));
  return Tensor::lazy(type, identity,
                      [values, positions = std::move(positions)](std::span<std::byte> out) {
                        scatter(values, positions, out);
                      });
}

}  // namespace hone::onnx_io

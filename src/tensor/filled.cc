#include "tensor/filled.h"

#include <algorithm>

namespace hone {
namespace {

constexpr int64_t kPiece = 1 << 16;  // elements; of every type they end with a byte

template <class T, class Make>
Tensor filled(Type type, const std::function<void(int64_t, std::span<T>)>& fill, Make make) {
  Tensor tensor = Tensor::zeros(type);
  std::span<std::byte> rest = tensor.mutable_bytes();
  std::vector<T> numbers;
  for (int64_t first = 0; first < tensor.elements(); first += kPiece) {
    const int64_t count = std::min(kPiece, tensor.elements() - first);
    numbers.resize(static_cast<size_t>(count));
    fill(first, numbers);
    const Tensor piece = make(Type::get(type.dtype(), {count}), numbers);
    std::ranges::copy(piece.bytes(), rest.begin());
    rest = rest.subspan(piece.bytes().size());
  }
  return tensor;
}

}  // namespace

Tensor filled_with_reals(Type type, const std::function<void(int64_t, std::span<double>)>& fill) {
  return filled(type, fill, Tensor::from_reals);
}

Tensor filled_with_integers(Type type,
                            const std::function<void(int64_t, std::span<int64_t>)>& fill) {
  return filled(type, fill, Tensor::from_integers);
}

Tensor rounded_to(const Tensor& tensor, DType dtype) {
  return filled_with_reals(
      tensor.type().with_dtype(dtype),
      [&](int64_t first, std::span<double> numbers) { tensor.read_reals(first, numbers); });
}

Tensor repeated(const Tensor& scalar, Type type) {
  const auto piece = [scalar](int64_t count) {
    const Type some = Type::get(scalar.dtype(), {count});
    if (is_real(scalar.dtype()))
      return Tensor::from_reals(some, std::vector<double>(static_cast<size_t>(count),  //
                                                          scalar.real_at(0)));
    return Tensor::from_integers(some, std::vector<int64_t>(static_cast<size_t>(count),  //
                                                            scalar.integer_at(0)));
  };
  const auto fill = [piece, elements = type.static_elements()](std::span<std::byte> rest) {
    const Tensor whole = piece(std::min(kPiece, elements));
    for (int64_t left = elements; left > 0; left -= kPiece) {
      const Tensor part = left >= whole.elements() ? whole : piece(left);
      std::ranges::copy(part.bytes(), rest.begin());
      rest = rest.subspan(part.bytes().size());
    }
  };
  return Tensor::lazy(type, scalar.content_hash(), fill);
}

}  // namespace hone

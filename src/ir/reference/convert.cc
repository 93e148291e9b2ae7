#include "ir/reference/convert.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "base/checked_math.h"

namespace hone {

namespace {

constexpr int64_t kGrain = int64_t{1} << 15;

// out[i] = the lowest sizeof(Bits) bytes of pattern(in[i]).
template <class Bits, class T, class Fn>
void store(std::span<const T> in, std::span<std::byte> out, ThreadPool& pool, const Fn& pattern) {
  pool.parallel_for(0, static_cast<int64_t>(in.size()), kGrain, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      size_t at = static_cast<size_t>(i);
      Bits bits = static_cast<Bits>(pattern(plain(in[at])));
      std::memcpy(out.data() + at * sizeof(Bits), &bits, sizeof(Bits));
    }
  });
}

template <class T, class Fn>
void store_width(int width, std::span<const T> in, std::span<std::byte> out, ThreadPool& pool,
                 const Fn& pattern) {
  switch (width) {
    case 8: return store<uint8_t>(in, out, pool, pattern);
    case 16: return store<uint16_t>(in, out, pool, pattern);
    case 32: return store<uint32_t>(in, out, pool, pattern);
    default: return store<uint64_t>(in, out, pool, pattern);
  }
}

template <class T>
void store_reals(DType type, std::span<const T> in, std::span<std::byte> out, ThreadPool& pool) {
  if (type == DType::f32) {
    store<uint32_t>(in, out, pool, [](double x) {
      float narrow = static_cast<float>(x);
      uint32_t pattern;
      std::memcpy(&pattern, &narrow, sizeof(pattern));
      return pattern;
    });
  } else {
    store_width(bits(type), in, out, pool, [type](double x) { return encode_real(type, x); });
  }
}

}  // namespace

FieldElement field_from_real(double value) {
  int exponent = 0;
  double mantissa = std::frexp(value, &exponent);
  FieldElement whole(static_cast<int64_t>(std::ldexp(mantissa, 53)));
  int shift = static_cast<int>(floor_mod(exponent - 53, 61));
  return whole * FieldElement::from_residue(uint64_t{1} << shift);
}

template <class D>
Result<Buffer<D>> to_buffer(const Tensor& tensor, ThreadPool& pool) {
  using Real = typename D::Real;
  Buffer<D> buffer(tensor.type());
  tensor.bytes();  // a lazy tensor is filled here, not by the first piece
  int64_t count = tensor.elements();
  bool in_domain = true;
  pool.parallel_for(0, count, kGrain, [&](int64_t from, int64_t to) {
    size_t begin = static_cast<size_t>(from);
    size_t size = static_cast<size_t>(to - from);
    if (!buffer.holds_reals()) {
      if constexpr (is_tracked<typename D::Int>) {
        for (size_t i = begin; i < begin + size; ++i) {
          buffer.ints()[i] = tensor.integer_at(static_cast<int64_t>(i));
        }
      } else {
        tensor.read_integers(from, buffer.ints().subspan(begin, size));
      }
    } else if constexpr (std::is_floating_point_v<Real>) {
      tensor.read_reals(from, buffer.reals().subspan(begin, size));
    } else {
      for (size_t i = begin; i < begin + size; ++i) {
        double value = tensor.real_at(static_cast<int64_t>(i));
        if constexpr (is_ordered_real<Real>) {
          buffer.reals()[i] = value;
        } else if (std::isfinite(value)) {
          buffer.reals()[i] = field_from_real(value);
        } else {
          std::atomic_ref<bool>(in_domain).store(false, std::memory_order_relaxed);
        }
      }
    }
  });
  if (!in_domain) return unsupported("infinity and NaN are not elements of a field");
  return buffer;
}

template <class D>
Tensor to_tensor(const Buffer<D>& buffer, bool reals_as_f64, ThreadPool& pool) {
  Type type = buffer.type();
  if (buffer.holds_reals()) {
    if (reals_as_f64) type = type.with_dtype(DType::f64);
    if (bits(type.dtype()) < 8) {
      std::vector<double> numbers;
      for (const auto& element : buffer.reals()) numbers.push_back(plain(element));
      return Tensor::from_reals(type, numbers);
    }
    Tensor tensor = Tensor::zeros(type);
    store_reals(type.dtype(), buffer.reals(), tensor.mutable_bytes(), pool);
    return tensor;
  }
  if (bits(type.dtype()) < 8) {
    std::vector<int64_t> images;
    for (const auto& element : buffer.ints()) images.push_back(plain(element));
    return Tensor::from_integers(type, images);
  }
  Tensor tensor = Tensor::zeros(type);
  store_width(bits(type.dtype()), buffer.ints(), tensor.mutable_bytes(), pool,
              [](int64_t image) { return image; });
  return tensor;
}

void round_in_place(DType type, std::span<double> numbers, ThreadPool& pool) {
  if (type == DType::f64) return;
  pool.parallel_for(0, static_cast<int64_t>(numbers.size()), kGrain, [&](int64_t from, int64_t to) {
    std::span<double> piece =
        numbers.subspan(static_cast<size_t>(from), static_cast<size_t>(to - from));
    if (type == DType::f32) {
      for (double& x : piece) x = static_cast<double>(static_cast<float>(x));
    } else {
      for (double& x : piece) x = round_to(type, x);
    }
  });
}

template Result<Buffer<WideDomain>> to_buffer(const Tensor&, ThreadPool&);
template Result<Buffer<Fp32Domain>> to_buffer(const Tensor&, ThreadPool&);
template Result<Buffer<FieldDomain>> to_buffer(const Tensor&, ThreadPool&);
template Result<Buffer<DependencyDomain>> to_buffer(const Tensor&, ThreadPool&);
template Tensor to_tensor(const Buffer<WideDomain>&, bool, ThreadPool&);
template Tensor to_tensor(const Buffer<Fp32Domain>&, bool, ThreadPool&);

}  // namespace hone

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "tensor/real_format.h"
#include "tensor/tensor.h"

// Between the bytes of tensors and numbers. One walk over the element types gives a reader, on
// which all forms of reading are built, and one gives a writer.

namespace hone {

static_assert(std::endian::native == std::endian::little, "tensors hold little-endian bytes");

namespace {

// The number types that stand for themselves in memory; the bytes need not be aligned.
template <class T>
struct PlainReader {
  const std::byte* data;
  T operator()(int64_t index) const {
    T value;
    std::memcpy(&value, data + static_cast<size_t>(index) * sizeof(T), sizeof(T));
    return value;
  }
};

struct BoolReader {
  const std::byte* data;
  int64_t operator()(int64_t index) const { return data[index] != std::byte{0} ? 1 : 0; }
};

// The pattern of an element that shares a byte.
template <int bits>
int64_t packed(const std::byte* data, int64_t index) {
  constexpr int kInByte = 8 / bits;
  const std::byte moved = data[index / kInByte] >> (index % kInByte * bits);
  return std::to_integer<int>(moved) & ((1 << bits) - 1);
}

template <int bits, bool is_signed>
struct PackedReader {
  const std::byte* data;
  int64_t operator()(int64_t index) const {
    constexpr int kSign = 1 << (bits - 1);
    const int64_t value = packed<bits>(data, index);
    return is_signed ? (value ^ kSign) - kSign : value;
  }
};

struct PackedRealReader {
  const std::byte* data;
  float operator()(int64_t index) const {
    return static_cast<float>(kF4e2m1.decode(static_cast<uint32_t>(packed<4>(data, index))));
  }
};

struct Bf16Reader {
  PlainReader<uint16_t> patterns;
  float operator()(int64_t index) const {
    return std::bit_cast<float>(static_cast<uint32_t>(patterns(index)) << 16);
  }
};

struct F16Reader {
  PlainReader<uint16_t> patterns;
  // Moves exponent and mantissa into the place where a float has them, and corrects the bias by a
  // multiplication, which also takes care of subnormals.
  float operator()(int64_t index) const {
    uint32_t pattern = patterns(index);
    float size = std::bit_cast<float>((pattern & 0x7fff) << 13) * 0x1p112f;
    uint32_t special = (pattern & 0x7c00) == 0x7c00 ? 0x7f800000u : 0u;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(size) | special | (pattern & 0x8000) << 16);
  }
};

template <const RealFormat& format>
struct ByteRealReader {
  const std::byte* data;
  static constexpr std::array<float, 256> kTable = [] {
    std::array<float, 256> table = {};
    for (uint32_t i = 0; i < 256; ++i) table[i] = static_cast<float>(format.decode(i));
    return table;
  }();
  float operator()(int64_t index) const { return kTable[std::to_integer<size_t>(data[index])]; }
};

// Calls use(reader); the reader gives a float, a double or an integer of the element's own type.
template <class Use>
decltype(auto) with_reader(DType type, const std::byte* data, Use use) {
  switch (type) {
    case DType::f64: return use(PlainReader<double>{data});
    case DType::f32: return use(PlainReader<float>{data});
    case DType::f16: return use(F16Reader{{data}});
    case DType::bf16: return use(Bf16Reader{{data}});
    case DType::f8e4m3fn: return use(ByteRealReader<kF8e4m3fn>{data});
    case DType::f8e4m3fnuz: return use(ByteRealReader<kF8e4m3fnuz>{data});
    case DType::f8e5m2: return use(ByteRealReader<kF8e5m2>{data});
    case DType::f8e5m2fnuz: return use(ByteRealReader<kF8e5m2fnuz>{data});
    case DType::f8e8m0: return use(ByteRealReader<kF8e8m0>{data});
    case DType::f4e2m1: return use(PackedRealReader{data});
    case DType::i64: return use(PlainReader<int64_t>{data});
    case DType::i32: return use(PlainReader<int32_t>{data});
    case DType::i16: return use(PlainReader<int16_t>{data});
    case DType::i8: return use(PlainReader<int8_t>{data});
    case DType::i4: return use(PackedReader<4, true>{data});
    case DType::i2: return use(PackedReader<2, true>{data});
    case DType::u64: return use(PlainReader<uint64_t>{data});
    case DType::u32: return use(PlainReader<uint32_t>{data});
    case DType::u16: return use(PlainReader<uint16_t>{data});
    case DType::u8: return use(PlainReader<uint8_t>{data});
    case DType::u4: return use(PackedReader<4, false>{data});
    case DType::u2: return use(PackedReader<2, false>{data});
    case DType::boolean: return use(BoolReader{data});
  }
  HONE_CHECK(false, "element type {}", static_cast<int>(type));
  return use(BoolReader{data});
}

template <class Out>
void read(const Tensor& tensor, int64_t begin, std::span<Out> out) {
  auto count = static_cast<int64_t>(out.size());
  HONE_CHECK(begin >= 0 && begin <= tensor.elements() && count <= tensor.elements() - begin,
             "elements {} to {} of {}", begin, begin + count, tensor.type().to_string());
  with_reader(tensor.dtype(), tensor.bytes().data(), [&](auto reader) {
    for (int64_t i = 0; i < count; ++i) {
      out[static_cast<size_t>(i)] = static_cast<Out>(reader(begin + i));
    }
  });
}

// A number that rounding to any of our formats treats like the integer: a double with 53 bits, of
// which the last one says whether anything was cut off.
double for_rounding(int64_t value) {
  uint64_t size = value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  int cut = std::bit_width(size) - 53;
  if (cut <= 0) return static_cast<double>(value);
  uint64_t kept = size >> cut;
  if (kept << cut != size) kept |= 1;
  double result = std::ldexp(static_cast<double>(kept), cut);
  return value < 0 ? -result : result;
}
double for_rounding(double value) { return value; }

template <class T, class In>
T converted(In value) {
  if constexpr (std::is_integral_v<T> && std::is_floating_point_v<In>) {
    return saturating_cast<T>(value);
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
struct PlainWriter {
  std::byte* data;
  template <class In>
  void operator()(size_t index, In value) const {
    T stored = converted<T>(value);
    std::memcpy(data + index * sizeof(T), &stored, sizeof(T));
  }
};

struct BoolWriter {
  std::byte* data;
  template <class In>
  void operator()(size_t index, In value) const {
    data[index] = std::byte{value != 0};
  }
};

// The bytes must be 0 before.
template <int bits>
void pack(std::byte* data, size_t index, int64_t value) {
  constexpr size_t kInByte = 8 / bits;
  const auto pattern = static_cast<std::byte>(value & ((1 << bits) - 1));
  data[index / kInByte] |= pattern << (index % kInByte * bits);
}

template <int bits>
struct PackedWriter {
  std::byte* data;
  DType type;
  void operator()(size_t index, double value) const {
    pack<bits>(data, index, real_to_integer(type, value));
  }
  void operator()(size_t index, int64_t value) const { pack<bits>(data, index, value); }
};

struct PackedRealWriter {
  std::byte* data;
  template <class In>
  void operator()(size_t index, In value) const {
    pack<4>(data, index, static_cast<int64_t>(kF4e2m1.encode(for_rounding(value))));
  }
};

template <const RealFormat& format, class Pattern>
struct SmallRealWriter {
  std::byte* data;
  template <class In>
  void operator()(size_t index, In value) const {
    auto pattern = static_cast<Pattern>(format.encode(for_rounding(value)));
    std::memcpy(data + index * sizeof(Pattern), &pattern, sizeof(Pattern));
  }
};

// Calls use(writer), which converts a double or an int64_t to the element type.
template <class Use>
void with_writer(DType type, std::byte* data, Use use) {
  switch (type) {
    case DType::f64: return use(PlainWriter<double>{data});
    case DType::f32: return use(PlainWriter<float>{data});
    case DType::f16: return use(SmallRealWriter<kF16, uint16_t>{data});
    case DType::bf16: return use(SmallRealWriter<kBf16, uint16_t>{data});
    case DType::f8e4m3fn: return use(SmallRealWriter<kF8e4m3fn, uint8_t>{data});
    case DType::f8e4m3fnuz: return use(SmallRealWriter<kF8e4m3fnuz, uint8_t>{data});
    case DType::f8e5m2: return use(SmallRealWriter<kF8e5m2, uint8_t>{data});
    case DType::f8e5m2fnuz: return use(SmallRealWriter<kF8e5m2fnuz, uint8_t>{data});
    case DType::f8e8m0: return use(SmallRealWriter<kF8e8m0, uint8_t>{data});
    case DType::f4e2m1: return use(PackedRealWriter{data});
    case DType::i64: return use(PlainWriter<int64_t>{data});
    case DType::i32: return use(PlainWriter<int32_t>{data});
    case DType::i16: return use(PlainWriter<int16_t>{data});
    case DType::i8: return use(PlainWriter<int8_t>{data});
    case DType::u64: return use(PlainWriter<uint64_t>{data});
    case DType::u32: return use(PlainWriter<uint32_t>{data});
    case DType::u16: return use(PlainWriter<uint16_t>{data});
    case DType::u8: return use(PlainWriter<uint8_t>{data});
    case DType::i4:
    case DType::u4: return use(PackedWriter<4>{data, type});
    case DType::i2:
    case DType::u2: return use(PackedWriter<2>{data, type});
    case DType::boolean: return use(BoolWriter{data});
  }
}

template <class In>
void write(Tensor& tensor, std::span<const In> values) {
  HONE_CHECK(static_cast<int64_t>(values.size()) == tensor.elements(), "{} numbers for {}",
             values.size(), tensor.type().to_string());
  with_writer(tensor.dtype(), tensor.mutable_bytes().data(), [values](auto writer) {
    for (size_t i = 0; i < values.size(); ++i) writer(i, values[i]);
  });
}

}  // namespace

Tensor Tensor::from_reals(Type type, std::span<const double> values) {
  Tensor tensor = zeros(type);
  write(tensor, values);
  return tensor;
}

Tensor Tensor::from_integers(Type type, std::span<const int64_t> values) {
  Tensor tensor = zeros(type);
  write(tensor, values);
  return tensor;
}

Tensor Tensor::scalar(DType dtype, double value) {
  return from_reals(Type::scalar(dtype), std::span(&value, 1));
}

double Tensor::real_at(int64_t index) const {
  double value = 0;
  read_reals(index, std::span(&value, 1));
  return value;
}

int64_t Tensor::integer_at(int64_t index) const {
  int64_t value = 0;
  read_integers(index, std::span(&value, 1));
  return value;
}

void Tensor::read_reals(int64_t begin, std::span<double> out) const { read(*this, begin, out); }
void Tensor::read_reals(int64_t begin, std::span<float> out) const { read(*this, begin, out); }

void Tensor::read_integers(int64_t begin, std::span<int64_t> out) const {
  HONE_CHECK(!is_real(dtype()), "integers of {}", type_.to_string());
  read(*this, begin, out);
}

}  // namespace hone

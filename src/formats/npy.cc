#include "formats/npy.h"

#include <algorithm>
#include <cstring>

#include "base/file.h"
#include "formats/npy_header.h"

namespace hone {

namespace {

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void reverse_elements(std::span<std::byte> bytes, size_t size) {
  for (size_t at = 0; at < bytes.size(); at += size) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 bytes.begin() + static_cast<std::ptrdiff_t>(at + size));
  }
}

// From column-major order to row-major. Counts through the elements in the order of `out`.
template <class T>
void transpose(const std::byte* in, std::byte* out, const Ints& shape) {
  Ints strides(shape.size(), 1), index(shape.size(), 0);
  for (size_t axis = 1; axis < shape.size(); ++axis) {
    strides[axis] = strides[axis - 1] * shape[axis - 1];
  }
  int64_t inner = shape.back(), inner_stride = strides.back(), base = 0;
  for (;;) {
    for (int64_t i = 0; i < inner; ++i, out += sizeof(T)) {
      std::memcpy(out, in + static_cast<size_t>(base + i * inner_stride) * sizeof(T), sizeof(T));
    }
    size_t axis = shape.size() - 1;
    for (; axis > 0; --axis) {
      base += strides[axis - 1];
      if (++index[axis - 1] < shape[axis - 1]) break;
      base -= strides[axis - 1] * shape[axis - 1];
      index[axis - 1] = 0;
    }
    if (axis == 0) return;
  }
}

Tensor to_row_major(Type type, std::span<const std::byte> data) {
  Tensor tensor = Tensor::zeros(type);
  std::byte* out = tensor.mutable_bytes().data();
  Ints shape = type.static_dims();
  switch (bits(type.dtype())) {
    case 8: transpose<uint8_t>(data.data(), out, shape); break;
    case 16: transpose<uint16_t>(data.data(), out, shape); break;
    case 32: transpose<uint32_t>(data.data(), out, shape); break;
    case 64: transpose<uint64_t>(data.data(), out, shape); break;
    default: HONE_CHECK(false, "{}", type.to_string());
  }
  return tensor;
}

// Somebody may have stored other bytes than 0 and 1 as bool.
bool has_odd_bools(Type type, std::span<const std::byte> data) {
  return is_bool(type.dtype()) &&
         std::any_of(data.begin(), data.end(), [](std::byte b) { return b > std::byte{1}; });
}

Result<Tensor> parse(std::span<const std::byte> file, std::shared_ptr<const void> owner) {
  NpyHeader header = HONE_TRY(parse_npy_header(as_text(file)));
  Dims dims(header.shape.begin(), header.shape.end());
  Type type = HONE_TRY(Type::make(header.dtype, dims));
  std::span<const std::byte> data = file.subspan(header.size);
  auto size = static_cast<size_t>(type.static_bytes());
  if (data.size() < size) {
    return bad_input("{} needs {} bytes of data, but only {} come after the header",
                     type.to_string(), size, data.size());
  }
  if (data.size() > size) {
    return bad_input("{} bytes come after the data of {}", data.size() - size, type.to_string());
  }
  if (size == 0) return Tensor::zeros(type);

  auto element = static_cast<size_t>(bits(header.dtype)) / 8;
  bool transposed = header.column_major && type.rank() > 1;
  bool swapped = header.big_endian && element > 1;
  bool odd = has_odd_bools(type, data);
  if (!transposed && !swapped && !odd && owner != nullptr) {
    return Tensor::shared(type, std::move(owner), data);
  }
  Tensor tensor = transposed ? to_row_major(type, data) : Tensor::copy_of(type, data);
  std::span<std::byte> bytes = tensor.mutable_bytes();
  if (swapped) reverse_elements(bytes, element);
  if (odd) {
    for (std::byte& b : bytes) b = std::byte{b != std::byte{0}};
  }
  return tensor;
}

DType written_as(DType dtype) {
  if (npy_descr(dtype)) return dtype;
  if (is_real(dtype)) return DType::f32;
  return is_signed(dtype) ? DType::i8 : DType::u8;
}

std::string header_of(const Tensor& tensor, int64_t offset) {
  return print_npy_header(*npy_descr(written_as(tensor.dtype())), tensor.type().static_dims(),
                          offset);
}

// The numbers in the type that they are written as.
std::vector<std::byte> widened(const Tensor& tensor) {
  auto count = static_cast<size_t>(tensor.elements());
  if (is_real(tensor.dtype())) {
    std::vector<std::byte> bytes(count * sizeof(float));
    auto* floats = reinterpret_cast<float*>(bytes.data());
    tensor.read_reals(0, std::span(floats, count));
    return bytes;
  }
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>(tensor.integer_at(static_cast<int64_t>(i)));
  }
  return bytes;
}

}  // namespace

bool begins_like_npy(std::string_view beginning) { return beginning.starts_with("\x93NUMPY"); }

Result<Tensor> read_npy(const std::filesystem::path& path) {
  auto file = std::make_shared<const MappedFile>(HONE_TRY(MappedFile::open(path)));
  std::span<const std::byte> bytes = file->bytes();
  return parse_npy(bytes, path.native(), std::move(file));
}

Result<Tensor> parse_npy(std::span<const std::byte> file, std::string_view where,
                         std::shared_ptr<const void> owner) {
  Result<Tensor> tensor = parse(file, std::move(owner));
  if (!tensor.ok()) return std::move(tensor).error().within(where);
  return tensor;
}

NpyImage npy_image(const Tensor& tensor, int64_t offset) {
  NpyImage image = {header_of(tensor, offset), {}, {}};
  if (written_as(tensor.dtype()) == tensor.dtype()) {
    image.data = tensor.bytes_once(image.scratch);
  } else {
    image.scratch = widened(tensor);
    image.data = image.scratch;
  }
  return image;
}

int64_t npy_size(const Tensor& tensor, int64_t offset) {
  return static_cast<int64_t>(header_of(tensor, offset).size()) +
         tensor.type().with_dtype(written_as(tensor.dtype())).static_bytes();
}

Status write_npy(const std::filesystem::path& path, const Tensor& tensor) {
  NpyImage image = npy_image(tensor);
  const std::string_view pieces[] = {image.header, as_text(image.data)};
  return write_file_atomic(path, pieces);
}

}  // namespace hone

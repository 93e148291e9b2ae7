#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.h"

// The wire format of protocol buffers, as far as finding fields takes: a message is a sequence of
// fields, each a tag (number and wire type) and a value.

namespace hone::onnx_io {

enum class WireType : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

// Offsets are into the whole file.
struct WireField {
  int number = 0;
  WireType type = WireType::varint;
  size_t begin = 0;  // of the tag
  size_t value = 0;  // of the content, after the length if there is one
  size_t end = 0;
};

// Reads the fields of the message at [begin, end) of the file, one after the other.
class WireReader {
 public:
  WireReader(std::span<const std::byte> file, size_t begin, size_t end)
      : file_(file), at_(begin), end_(end) {}

  bool done() const { return at_ == end_; }
  // Errors say at which byte; a group (which ONNX has never used) is one.
  Result<WireField> next();

 private:
  Result<uint64_t> varint(std::string_view what);
  Result<size_t> end_of(const WireField& field);

  std::span<const std::byte> file_;
  size_t at_;
  const size_t end_;
};

// The numbers in a packed field of varints; an error if one is cut off or has more than 64 bits.
Result<int64_t> count_varints(std::span<const std::byte> packed);
// Calls `take` with each of them; they have been counted.
template <class Take>
void for_each_varint(std::span<const std::byte> packed, Take&& take) {
  uint64_t value = 0;
  int shift = 0;
  for (std::byte byte : packed) {
    auto bits = static_cast<uint64_t>(byte);
    value |= (bits & 0x7f) << shift;
    shift += 7;
    if (bits < 0x80) {
      take(value);
      value = 0;
      shift = 0;
    }
  }
}

}  // namespace hone::onnx_io

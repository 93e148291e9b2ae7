#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"

// The wire format of protocol buffers, for readers that look for fields: a message is a sequence of
// fields, each a tag (number and wire type) and a value. All offsets are into the whole file, and
// errors say at which byte.
//
//   WireReader reader(WireBytes::all(file));
//   while (!reader.done()) {
//     const WireField field = HONE_TRY(reader.next());
//     if (field.number == 1) name = HONE_TRY(field.message()).text();
//   }

namespace hone {

enum class WireType : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

// The bytes [begin, end) of a file: a message, a text, or a packed list.
struct WireBytes {
  std::span<const std::byte> file = {};
  size_t begin = 0, end = 0;

  static WireBytes all(std::span<const std::byte> file) { return {file, 0, file.size()}; }
  std::span<const std::byte> bytes() const { return file.subspan(begin, end - begin); }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(file.data()) + begin, end - begin};
  }
};

struct WireField {
  int number = 0;
  WireType type = WireType::varint;
  size_t begin = 0;  // of the tag
  size_t value = 0;  // of the content, after the length if there is one
  size_t end = 0;
  std::span<const std::byte> file = {};

  // Errors: the field is of another type.
  Result<int64_t> integer() const;
  Result<WireBytes> message() const;
  // One integer, or a packed list of them, behind those that are there.
  Status append_to(std::vector<int64_t>& integers) const;
};

// Reads the fields of a message, one after the other.
class WireReader {
 public:
  explicit WireReader(const WireBytes& message)
      : file_(message.file), at_(message.begin), end_(message.end) {}

  bool done() const { return at_ == end_; }
  // A group is an error: nobody has written one for a long time.
  Result<WireField> next();

 private:
  Result<uint64_t> varint(std::string_view what);
  Result<size_t> end_of(const WireField& field);

  std::span<const std::byte> file_;
  size_t at_;
  const size_t end_;
};

// Calls with each field of a message.
template <class Call>
Status each_field(const WireBytes& message, const Call& call) {
  WireReader reader(message);
  while (!reader.done()) HONE_TRY(call(HONE_TRY(reader.next())));
  return {};
}

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

}  // namespace hone

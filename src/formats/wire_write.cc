#include "formats/wire_write.h"

#include <bit>

namespace hone::wire {
namespace {

std::string tag(uint32_t field, WireType type) {
  std::string bytes;
  append_tag(bytes, field, type);
  return bytes;
}

}  // namespace

void append_varint(std::string& bytes, uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7f) | 0x80);
  bytes += static_cast<char>(value);
}

void append_tag(std::string& bytes, uint32_t field, WireType type) {
  append_varint(bytes, uint64_t{field} << 3 | static_cast<uint64_t>(type));
}

std::string integer(uint32_t field, int64_t value) {
  std::string bytes = tag(field, WireType::varint);
  append_varint(bytes, static_cast<uint64_t>(value));
  return bytes;
}

std::string number(uint32_t field, double value) {
  return tag(field, WireType::fixed64) + little_endian(std::bit_cast<uint64_t>(value));
}

std::string number(uint32_t field, float value) {
  return tag(field, WireType::fixed32) + little_endian(std::bit_cast<uint32_t>(value));
}

std::string text(uint32_t field, std::string_view value) {
  std::string bytes = tag(field, WireType::bytes);
  append_varint(bytes, value.size());
  bytes += value;
  return bytes;
}

}  // namespace hone::wire

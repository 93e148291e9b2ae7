#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/wire.h"

// Fields of protocol buffers as bytes, for writers that put a message together from its fields:
//
//   const std::string message = wire::integer(1, 300) + wire::text(2, "ab");
//
// Whoever knows a length only at the end writes tag and value on their own.

namespace hone::wire {

void append_varint(std::string& bytes, uint64_t value);
void append_tag(std::string& bytes, uint32_t field, WireType type);

template <class T>
std::string little_endian(T value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

std::string integer(uint32_t field, int64_t value);
std::string number(uint32_t field, double value);
std::string number(uint32_t field, float value);
std::string text(uint32_t field, std::string_view value);  // or a message

}  // namespace hone::wire

#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

// Messages of protobuf by hand, and the measured files of TpuGraphs where they are at hand.

namespace hone::tpu {

inline std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
inline std::string number(uint64_t field, uint64_t value) {
  return varint(field << 3) + varint(value);
}
inline std::string message(uint64_t field, std::string_view content) {
  return varint(field << 3 | 2) + varint(content.size()) + std::string(content);
}
inline std::string packed(uint64_t field, std::initializer_list<uint64_t> values) {
  std::string content;
  for (uint64_t value : values) content += varint(value);
  return message(field, content);
}

inline std::filesystem::path measured_file(std::string_view name) {
  return std::filesystem::path(HONE_TEST_DIR) / "../../shared/data/tpu" / name;
}

}  // namespace hone::tpu

// The file of a test, which nobody has to have.
#define HONE_NEED_MEASURED(path) \
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "there is no " << (path)

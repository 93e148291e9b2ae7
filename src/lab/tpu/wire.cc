#include "lab/tpu/wire.h"

namespace hone::tpu {
namespace {

Result<uint64_t> take_varint(std::string_view& bytes) {
  constexpr int kMostBytes = 10;
  uint64_t value = 0;
  for (int i = 0; i < kMostBytes; ++i) {
    if (bytes.empty()) return bad_input("the message ends within a number");
    const auto byte = static_cast<uint8_t>(bytes[0]);
    bytes.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) return value;
  }
  return bad_input("a number has more than {} bytes", kMostBytes);
}

Result<uint64_t> take_fixed(std::string_view& bytes, size_t size) {
  if (bytes.size() < size) return bad_input("the message ends within a number");
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i)
    value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  bytes.remove_prefix(size);
  return value;
}

}  // namespace

Result<int64_t> WireField::integer() const {
  if (kind == Kind::varint) return static_cast<int64_t>(value);
  return bad_input("field {} is no integer", number);
}

Result<std::string_view> WireField::message() const {
  if (kind == Kind::bytes) return bytes;
  return bad_input("field {} is no message", number);
}

Status WireField::append_to(std::vector<int64_t>& integers) const {
  if (kind == Kind::varint) {
    integers.push_back(static_cast<int64_t>(value));
    return {};
  }
  std::string_view left = HONE_TRY(message());
  while (!left.empty()) integers.push_back(static_cast<int64_t>(HONE_TRY(take_varint(left))));
  return {};
}

Result<bool> WireReader::next(WireField& field) {
  if (left_.empty()) return false;
  const uint64_t tag = HONE_TRY(take_varint(left_));
  field = {.number = tag >> 3};
  if (field.number == 0 || field.number >= uint64_t{1} << 29)
    return bad_input("there is no field {}", field.number);
  switch (tag & 7) {
    case 0: field.value = HONE_TRY(take_varint(left_)); return true;
    case 1:
      field.kind = WireField::Kind::fixed64;
      field.value = HONE_TRY(take_fixed(left_, 8));
      return true;
    case 2: {
      const uint64_t size = HONE_TRY(take_varint(left_));
      if (size > left_.size())
        return bad_input("field {} has {} bytes, and {} are left", field.number, size,
                         left_.size());
      field.kind = WireField::Kind::bytes;
      field.bytes = left_.substr(0, size);
      left_.remove_prefix(size);
      return true;
    }
    case 5:
      field.kind = WireField::Kind::fixed32;
      field.value = HONE_TRY(take_fixed(left_, 4));
      return true;
    default: return bad_input("field {} has the wire type {}", field.number, tag & 7);
  }
}

}  // namespace hone::tpu

#include "formats/wire.h"

namespace hone {
namespace {

constexpr int kVarintBytes = 10;           // that 64 bits take
constexpr uint64_t kMaxTag = 0xffff'ffff;  // a field number has 29 bits
constexpr uint64_t kStartGroup = 3, kEndGroup = 4;

}  // namespace

Result<int64_t> WireField::integer() const {
  if (type != WireType::varint)
    return bad_input("field {} at byte {} is not a number", number, begin);
  uint64_t found = 0;
  for_each_varint(file.subspan(value, end - value), [&](uint64_t one) { found = one; });
  return static_cast<int64_t>(found);
}

Result<WireBytes> WireField::message() const {
  if (type != WireType::bytes)
    return bad_input("field {} at byte {} is not a message", number, begin);
  return WireBytes{file, value, end};
}

Status WireField::append_to(std::vector<int64_t>& integers) const {
  if (type == WireType::varint) {
    integers.push_back(HONE_TRY(integer()));
    return {};
  }
  const std::span<const std::byte> packed = HONE_TRY(message()).bytes();
  if (Result<int64_t> count = count_varints(packed); !count.ok())
    return std::move(count).error().within(fmt::format("field {} at byte {}", number, begin));
  for_each_varint(packed, [&](uint64_t one) { integers.push_back(static_cast<int64_t>(one)); });
  return {};
}

Result<uint64_t> WireReader::varint(std::string_view what) {
  const size_t begin = at_;
  uint64_t value = 0;
  for (int i = 0; i < kVarintBytes; ++i) {
    if (at_ == end_) return bad_input("the {} at byte {} is cut off", what, begin);
    auto bits = static_cast<uint64_t>(file_[at_++]);
    value |= (bits & 0x7f) << (7 * i);
    if (bits < 0x80) return value;
  }
  return bad_input("the {} at byte {} has more than {} bytes", what, begin, kVarintBytes);
}

Result<size_t> WireReader::end_of(const WireField& field) {
  uint64_t size = 0;
  switch (field.type) {
    case WireType::varint: HONE_TRY(varint("number")); return at_;
    case WireType::fixed64: size = 8; break;
    case WireType::fixed32: size = 4; break;
    case WireType::bytes: size = HONE_TRY(varint("length")); break;
  }
  if (size > end_ - at_) {
    return bad_input("field {} at byte {} claims {} bytes, but its message has {} left",
                     field.number, field.begin, size, end_ - at_);
  }
  return at_ + size;
}

Result<WireField> WireReader::next() {
  WireField field;
  field.file = file_;
  field.begin = at_;
  const uint64_t tag = HONE_TRY(varint("tag"));
  field.number = static_cast<int>(tag >> 3);
  if (tag > kMaxTag || field.number == 0) {
    return bad_input("the tag at byte {} names field {}, which no message has", field.begin,
                     tag >> 3);
  }
  const uint64_t type = tag & 7;
  if (type == kStartGroup || type == kEndGroup) {
    return bad_input("field {} at byte {} is a group, which no message has", field.number,
                     field.begin);
  }
  if (type > 5) {
    return bad_input("field {} at byte {} has wire type {}, which does not exist", field.number,
                     field.begin, type);
  }
  field.type = static_cast<WireType>(type);
  const size_t after_tag = at_;
  field.end = HONE_TRY(end_of(field));
  field.value = field.type == WireType::bytes ? at_ : after_tag;
  at_ = field.end;
  return field;
}

Result<int64_t> count_varints(std::span<const std::byte> packed) {
  int64_t count = 0;
  int run = 0;
  for (std::byte byte : packed) {
    if (++run > kVarintBytes) return bad_input("a number has more than {} bytes", kVarintBytes);
    if (byte < std::byte{0x80}) {
      ++count;
      run = 0;
    }
  }
  if (run > 0) return bad_input("the last number is cut off");
  return count;
}

}  // namespace hone

#include "formats/zip_layout.h"

#include <algorithm>
#include <string_view>

// The format: PKWARE's APPNOTE.TXT 6.3.9, sections 4.3.6 to 4.3.16 and 4.5.3.

namespace hone {

namespace {

constexpr uint32_t kLocalHeaderMark = 0x04034b50, kCentralEntry = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kZip64End = 0x06064b50, kZip64Locator = 0x07064b50;
constexpr uint64_t kIn64Bits = 0xffff'ffff;  // the value is in the zip64 record instead

// Little-endian numbers one after the other; the first read beyond the end spoils all.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, uint64_t at) : bytes_(bytes), at_(at) {
    ok_ = at <= bytes.size();
  }

  uint64_t number(size_t size) {
    std::span<const std::byte> raw = take(size);
    uint64_t value = 0;
    for (size_t i = raw.size(); i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(raw[i]);
    return value;
  }
  std::span<const std::byte> take(uint64_t size) {
    if (!ok_ || size > bytes_.size() - at_) {
      ok_ = false;
      return {};
    }
    std::span<const std::byte> piece = bytes_.subspan(at_, size);
    at_ += size;
    return piece;
  }
  void skip(uint64_t size) { take(size); }
  bool ok() const { return ok_; }
  bool at_end() const { return !ok_ || at_ == bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
  uint64_t at_;
  bool ok_;
};

struct Directory {
  uint64_t offset;
  uint64_t entries;
};

// The end record stands at the end of the file, before a comment of at most 65535 bytes.
std::optional<uint64_t> find_end(std::span<const std::byte> file) {
  constexpr uint64_t kSize = 22;
  if (file.size() < kSize) return std::nullopt;
  uint64_t last = file.size() - kSize;
  for (uint64_t comment = 0; comment <= std::min<uint64_t>(last, 0xffff); ++comment) {
    uint64_t at = last - comment;
    if (Cursor(file, at).number(4) == kEnd && Cursor(file, at + 20).number(2) == comment) return at;
  }
  return std::nullopt;
}

std::optional<Directory> find_directory(std::span<const std::byte> file) {
  std::optional<uint64_t> end = find_end(file);
  if (!end) return std::nullopt;
  Cursor cursor(file, *end + 10);
  uint64_t entries = cursor.number(2);
  cursor.skip(4);
  uint64_t offset = cursor.number(4);
  if (entries != 0xffff && offset != kIn64Bits) return Directory{offset, entries};

  if (*end < 20) return std::nullopt;
  Cursor locator(file, *end - 20);
  if (locator.number(4) != kZip64Locator) return Directory{offset, entries};
  locator.skip(4);
  Cursor record(file, locator.number(8));
  if (record.number(4) != kZip64End) return std::nullopt;
  record.skip(28);
  entries = record.number(8);
  record.skip(8);
  offset = record.number(8);
  if (!record.ok()) return std::nullopt;
  return Directory{offset, entries};
}

// Replaces the numbers that are in the zip64 field, which has only those, in this order.
bool widen(std::span<const std::byte> extra, uint64_t& size, uint64_t& packed, uint64_t& offset) {
  if (size != kIn64Bits && packed != kIn64Bits && offset != kIn64Bits) return true;
  Cursor fields(extra, 0);
  while (!fields.at_end()) {
    uint64_t id = fields.number(2);
    Cursor field(fields.take(fields.number(2)), 0);
    if (id != 1) continue;
    for (uint64_t* value : {&size, &packed, &offset}) {
      if (*value == kIn64Bits) *value = field.number(8);
    }
    return fields.ok() && field.ok();
  }
  return false;
}

// The local header repeats the name, and has an extra field of its own length.
std::optional<std::span<const std::byte>> find_data(std::span<const std::byte> file,
                                                    uint64_t offset, uint64_t size) {
  Cursor cursor(file, offset);
  if (cursor.number(4) != kLocalHeaderMark) return std::nullopt;
  cursor.skip(22);
  uint64_t name = cursor.number(2), extra = cursor.number(2);
  cursor.skip(name + extra);
  std::span<const std::byte> data = cursor.take(size);
  if (!cursor.ok()) return std::nullopt;
  return data;
}

std::optional<ZipMember> read_entry(std::span<const std::byte> file, Cursor& cursor) {
  if (cursor.number(4) != kCentralEntry) return std::nullopt;
  cursor.skip(4);
  uint64_t flags = cursor.number(2), method = cursor.number(2);
  cursor.skip(8);
  uint64_t packed = cursor.number(4), size = cursor.number(4);
  uint64_t name_size = cursor.number(2), extra_size = cursor.number(2);
  uint64_t comment_size = cursor.number(2);
  cursor.skip(8);
  uint64_t offset = cursor.number(4);
  std::span<const std::byte> name = cursor.take(name_size), extra = cursor.take(extra_size);
  cursor.skip(comment_size);
  if (!cursor.ok() || !widen(extra, size, packed, offset)) return std::nullopt;
  std::optional<std::span<const std::byte>> data = find_data(file, offset, packed);
  if (!data) return std::nullopt;
  bool encrypted = (flags & 1) != 0;
  return ZipMember{{reinterpret_cast<const char*>(name.data()), name.size()},
                   method == 0 && !encrypted && packed == size,
                   *data};
}

}  // namespace

std::vector<ZipMember> zip_layout(std::span<const std::byte> file) {
  std::optional<Directory> directory = find_directory(file);
  if (!directory) return {};
  std::vector<ZipMember> members;
  Cursor cursor(file, directory->offset);
  for (uint64_t i = 0; i < directory->entries; ++i) {
    std::optional<ZipMember> member = read_entry(file, cursor);
    if (!member) return {};
    members.push_back(*member);
  }
  return members;
}

}  // namespace hone

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hone {

// Text that knows which of its bytes come from outside of the template: from messages. These never
// become a part of a control token.
class MarkedText {
 public:
  MarkedText() = default;
  explicit MarkedText(std::string_view bytes, bool is_given = false) { append(bytes, is_given); }

  std::string_view bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // Some byte of the part is given.
  bool is_given(size_t begin, size_t count) const;

  void append(std::string_view bytes, bool is_given);
  void append(const MarkedText& other) { append(other, 0, other.size()); }
  void append(const MarkedText& other, size_t begin, size_t count);
  MarkedText part(size_t begin, size_t count) const;
  // Other bytes in the same places.
  MarkedText with_bytes(std::string bytes) const;

 private:
  std::string bytes_;
  std::string given_;  // '\1' where a byte is; as long as the text, or empty: none is
};

}  // namespace hone

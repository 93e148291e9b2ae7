#include "language/chat/marked_text.h"

#include "base/error.h"

namespace hone {

bool MarkedText::is_given(size_t begin, size_t count) const {
  return !given_.empty() &&
         std::string_view(given_).substr(begin, count).find('\1') != std::string_view::npos;
}

void MarkedText::append(std::string_view bytes, bool is_given) {
  if (is_given && given_.empty()) given_.assign(bytes_.size(), '\0');
  if (is_given || !given_.empty()) given_.append(bytes.size(), is_given ? '\1' : '\0');
  bytes_ += bytes;
}

void MarkedText::append(const MarkedText& other, size_t begin, size_t count) {
  if (other.given_.empty()) return append(other.bytes().substr(begin, count), false);
  if (given_.empty()) given_.assign(bytes_.size(), '\0');
  given_ += std::string_view(other.given_).substr(begin, count);
  bytes_ += other.bytes().substr(begin, count);
}

MarkedText MarkedText::part(size_t begin, size_t count) const {
  MarkedText made;
  made.append(*this, begin, count);
  return made;
}

MarkedText MarkedText::with_bytes(std::string bytes) const {
  HONE_CHECK(bytes.size() == bytes_.size(), "{} bytes for {}", bytes.size(), bytes_.size());
  MarkedText made;
  made.bytes_ = std::move(bytes);
  made.given_ = given_;
  return made;
}

}  // namespace hone

#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "base/error.h"
#include "base/text.h"

namespace hone::honec {

// Reads the values of a section one after another, and never beyond its end.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, std::string_view section)
      : bytes_(bytes), section_(section) {}

  Result<int64_t> number() {
    if (left() < kNumber) return at("it ends inside of a number");
    int64_t value = 0;
    std::memcpy(&value, bytes_.data() + next_, sizeof value);
    next_ += kNumber;
    return value;
  }
  // Within low..high; `what` names it in errors.
  Result<int64_t> number(std::string_view what, int64_t low, int64_t high) {
    const int64_t value = HONE_TRY(number());
    if (value < low || value > high)
      return at(fmt::format("{} is {}, outside of {}..{}", what, value, low, high));
    return value;
  }
  Result<uint32_t> index(std::string_view what) {
    return static_cast<uint32_t>(HONE_TRY(number(what, 0, UINT32_MAX)));
  }
  Result<bool> truth(std::string_view what) { return HONE_TRY(number(what, 0, 1)) == 1; }
  // The count of things that take at least `least` bytes each: the rest has room for them.
  Result<int64_t> count(std::string_view what, int64_t least) {
    const int64_t value = HONE_TRY(number());
    if (value < 0 || value > left() / least)
      return at(fmt::format("{} {} have no room in {} bytes", value, what, left()));
    return value;
  }
  Result<std::string> text(std::string_view what) {
    const auto size = static_cast<size_t>(HONE_TRY(count(what, 1)));
    std::string text(reinterpret_cast<const char*>(bytes_.data()) + next_, size);
    next_ += static_cast<int64_t>(size);
    return text;
  }
  // The same bytes where they lie.
  Result<std::string_view> view(std::string_view what) {
    const auto size = static_cast<size_t>(HONE_TRY(count(what, 1)));
    const std::string_view found(reinterpret_cast<const char*>(bytes_.data()) + next_, size);
    next_ += static_cast<int64_t>(size);
    return found;
  }
  bool is_at_end() const { return left() == 0; }
  Status end() const {
    if (left() == 0) return {};
    return at(fmt::format("it has {} bytes more than it says", left()));
  }

  Error at(std::string_view what) const {
    return bad_input("{}", what).at(fmt::format("{}, byte {}", section_, next_));
  }

  static constexpr int64_t kNumber = 8;

 private:
  int64_t left() const { return static_cast<int64_t>(bytes_.size()) - next_; }

  const std::span<const std::byte> bytes_;
  const std::string_view section_;
  int64_t next_ = 0;
};

}  // namespace hone::honec

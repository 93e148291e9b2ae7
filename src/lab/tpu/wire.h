#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace hone::tpu {

// A field of a message in protobuf's wire format. Groups and what is cut off are refused.
struct WireField {
  enum class Kind : uint8_t { varint, fixed64, bytes, fixed32 };
  uint64_t number = 0;
  Kind kind = Kind::varint;
  uint64_t value = 0;           // of a varint or fixed field
  std::string_view bytes = {};  // of a message, text or packed list

  // Errors: the field is of another kind.
  Result<int64_t> integer() const;
  Result<std::string_view> message() const;
  // One integer, or a packed list of them, behind those that are there.
  Status append_to(std::vector<int64_t>& integers) const;
};

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : left_(bytes) {}
  // False: there is no more.
  Result<bool> next(WireField& field);

 private:
  std::string_view left_;
};

// Calls with each field of a message.
template <class Call>
Status each_field(std::string_view message, const Call& call) {
  WireReader reader(message);
  WireField field;
  while (HONE_TRY(reader.next(field))) HONE_TRY(call(field));
  return {};
}

}  // namespace hone::tpu

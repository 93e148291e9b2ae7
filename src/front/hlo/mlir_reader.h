#pragma once

#include <string_view>
#include <vector>

#include "front/hlo/reader.h"

// Types and attributes of MLIR's text, as StableHLO's programs have them.

namespace hone::hlo {

class MlirReader {
 public:
  explicit MlirReader(const Program& program) : cursor(program) {}

  ValueType type();
  // "(t, t)" or "t"
  std::vector<ValueType> type_list();
  // With `typed`, ": i64" may follow a number.
  Attribute attribute(bool typed);
  // "{a = 1, b}"
  AttributeList dictionary();
  // "@f" or "@"odd name""
  std::string_view symbol();
  // "[b, 0]x[0, o]->[b, 0]" and shorter forms: one list, or a list of lists.
  Attribute lists();
  // Skips "loc(...)", if it stands there.
  void skip_location();

 protected:
  Cursor cursor;
  int depth = 0;

 private:
  ValueType tensor_type(size_t begin);
  ValueType foreign(size_t begin, std::string_view lack);
  Attribute list();
  Attribute array();
  Attribute literal();
  Attribute number(bool typed);
  Attribute dialect_attribute();
  Attribute named_attribute(bool typed);
};

}  // namespace hone::hlo

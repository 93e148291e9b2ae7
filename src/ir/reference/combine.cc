#include "ir/reference/combine.h"

namespace hone {

Status check_combine(std::string_view kind, DType dtype) {
  const DTypeSet legal = op_def(combine_of(kind)).dtypes;
  if (legal.contains(dtype)) return {};
  const bool is_bitwise = legal.contains(DType::boolean);
  return bad_input("kind '{}' takes {}, not {}", kind,
                   is_bitwise ? "bools and integers" : "numbers", name(dtype));
}

}  // namespace hone

#include "ir/reference/combine.h"

namespace hone {

CombineKind combine_kind(std::string_view word) {
  constexpr std::string_view kWords[] = {"sum", "product", "max", "min", "and", "or"};
  for (size_t i = 0; i < std::size(kWords); ++i) {
    if (word == kWords[i]) return static_cast<CombineKind>(i);
  }
  HONE_CHECK(false, "'{}' is no way to combine", word);
}

Status check_combine(std::string_view word, DType dtype) {
  CombineKind kind = combine_kind(word);
  bool bitwise = kind == CombineKind::and_ || kind == CombineKind::or_;
  DTypeSet legal = bitwise ? kBool | kInteger : kNumber;
  if (legal.contains(dtype)) return {};
  return bad_input("kind '{}' takes {}, not {}", word, bitwise ? "bools and integers" : "numbers",
                   name(dtype));
}

}  // namespace hone

#pragma once

#include <array>
#include <string_view>

#include "tensor/type.h"

namespace hone {

// Names of iteration dims that are reduced over: "r0", "r1", ...
inline std::string_view reduction_name(int n) {
  static constexpr std::array<std::string_view, kMaxRank> kNames = {
      "r0", "r1", "r2",  "r3",  "r4",  "r5",  "r6",  "r7",
      "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"};
  return kNames.at(static_cast<size_t>(n));
}

}  // namespace hone

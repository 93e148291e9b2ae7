#include <cstdint>
#include <string_view>

#include "front/hlo/hlo.h"

// Bytes as a text of StableHLO or HLO: an error, or a model that verifies (the import checks that
// itself).
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kMost = 1 << 14;
  if (size > kMost) return 0;
  (void)hone::parse_hlo({reinterpret_cast<const char*>(data), size}, "fuzz");
  return 0;
}

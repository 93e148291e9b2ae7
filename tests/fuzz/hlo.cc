#include <cstdint>
#include <string_view>

#include "front/hlo/hlo.h"
#include "tests/fuzz/target.h"

namespace hone::HONE_FILE {

// Bytes as a text of StableHLO or HLO: an error, or a model that verifies (the import checks that
// itself).
HONE_FUZZ(hlo) {
  constexpr size_t kMost = 1 << 14;
  if (size > kMost) return;
  (void)hone::parse_hlo({reinterpret_cast<const char*>(data), size}, "fuzz");
}

}  // namespace hone::HONE_FILE

#include "cost/features.h"

#include <fmt/format.h>

#include "base/hash.h"

namespace hone {

std::string feature_version() {
  Hasher hasher;
#define HONE_FEATURE(member, doc) hasher.add(std::string_view(#member)).add(std::string_view(doc));
#include "cost/features.def"
  return fmt::format("{:016x}", hasher.value());
}

}  // namespace hone

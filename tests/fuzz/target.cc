#include <cstdint>
#include <string_view>

#include "target/target.h"
#include "tests/fuzz/target.h"

namespace hone::HONE_FILE {

// Parsing never crashes; what is read has passed check(), prints as a text that means the same, and
// can be restricted to any level.
HONE_FUZZ(target) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const hone::Result<hone::Target> target = hone::parse_target(text, "fuzz");
  if (!target.ok()) return;
  HONE_CHECK(hone::check(*target).ok(), "{}", text);
  const std::string printed = hone::print(*target);
  const hone::Result<hone::Target> again = hone::parse_target(printed, "again");
  HONE_CHECK(again.ok(), "{}\n{}", again.error().to_string(), printed);
  HONE_CHECK(*again == *target, "{}", printed);
  HONE_CHECK(hone::print(*again) == printed, "{}", printed);
  for (hone::Isa isa : hone::kIsas) {
    const hone::Status status = hone::check(hone::restricted(*target, isa));
    HONE_CHECK(status.ok(), "{}\n{}", status.error().to_string(), printed);
  }
}

}  // namespace hone::HONE_FILE

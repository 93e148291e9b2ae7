#include <cstdint>
#include <string_view>

#include "target/target.h"

// Parsing never crashes; what is read has passed check(), prints as a text that means the same, and
// can be restricted to any level.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const hone::Result<hone::Target> target = hone::parse_target(text, "fuzz");
  if (!target.ok()) return 0;
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
  return 0;
}

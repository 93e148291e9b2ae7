#include <cstdint>
#include <string_view>

#include "target/system.h"
#include "target/topology.h"
#include "tests/fuzz/target.h"

namespace hone::HONE_FILE {

// Parsing never crashes; what is read has passed check(), prints as a text that means the same, and
// has a route from its first device to its last one.
HONE_FUZZ(system) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const hone::Result<hone::System> system = hone::parse_system(text, "fuzz");
  if (!system.ok()) return;
  HONE_CHECK(hone::check(*system).ok(), "{}", text);
  const std::string printed = hone::print(*system);
  const hone::Result<hone::System> again = hone::parse_system(printed, "again");
  HONE_CHECK(again.ok(), "{}\n{}", again.error().to_string(), printed);
  HONE_CHECK(*again == *system, "{}", printed);
  HONE_CHECK(hone::print(*again) == printed, "{}", printed);
  const hone::Topology topology(*system);
  const int64_t last = system->device_count() - 1;
  const std::vector<uint32_t> route = topology.route(0, last);
  for (uint32_t link : route) HONE_CHECK(!topology.link_name(link).empty(), "{}", printed);
}

}  // namespace hone::HONE_FILE

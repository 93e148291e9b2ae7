#include <cstdint>
#include <string_view>

#include "kernel/facts.h"
#include "kernel/kernel_text.h"
#include "tests/fuzz/target.h"

namespace hone::HONE_FILE {

// Parsing never crashes; what is read has passed check(), prints as a text that means the same, and
// has facts and an answer about schedules.
HONE_FUZZ(kernel) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const hone::Result<hone::KernelBody> body = hone::parse_kernel(text, "fuzz");
  if (!body.ok()) return;
  HONE_CHECK(hone::check(*body).ok(), "{}", text);
  const std::string printed = hone::print(*body);
  const hone::Result<hone::KernelBody> again = hone::parse_kernel(printed, "again");
  HONE_CHECK(again.ok(), "{}\n{}", again.error().to_string(), printed);
  HONE_CHECK(hone::kernel_hash(*again) == hone::kernel_hash(*body), "{}", printed);
  HONE_CHECK(hone::print(*again) == printed, "{}", printed);
  const hone::KernelFacts facts(*body);
  hone::Target target;
  target.cores = 4;
  (void)hone::check_schedule(*body, facts, hone::plain_nest(facts.space.parallel), target).ok();
}

}  // namespace hone::HONE_FILE

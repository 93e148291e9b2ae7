#include <cstdint>
#include <cstdlib>

#include "ir/model_text.h"

// Parsing never crashes; what verifies prints as a text that means the same.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  hone::Result<hone::Model> model = hone::parse_model(text);
  if (!model.ok() || !hone::verify(*model).ok()) return 0;
  std::string printed = hone::print(*model);
  hone::Result<hone::Model> again = hone::parse_model(printed);
  HONE_CHECK(again.ok(), "{}\n{}", again.error().to_string(), printed);
  HONE_CHECK(hone::verify(*again).ok(), "{}", printed);
  HONE_CHECK(hone::print(*again) == printed, "{}\nis not\n{}", hone::print(*again), printed);
  return 0;
}

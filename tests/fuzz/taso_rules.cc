#include <cstdint>

#include "prove/foreign.h"
#include "tests/fuzz/target.h"

namespace hone::HONE_FILE {

// Rules of other systems, as TASO's bytes and as lines: an error, or rules that can be typed or
// cannot, and of which the text can be read again.
HONE_FUZZ(taso_rules) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto read = [](const hone::Result<std::vector<hone::ForeignRule>>& rules) {
    if (!rules.ok()) return;
    for (const hone::ForeignRule& rule : *rules) {
      const hone::Result<hone::TypedRule> typed = hone::typed_rule(rule);
      if (typed.ok()) (void)hone::parse_rules(hone::print(typed->rule)).value();
    }
  };
  const auto rules = hone::parse_taso_rules(bytes, "fuzz");
  if (rules.ok()) read(hone::foreign_rules(*rules));
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read(hone::parse_foreign_rules(text, "fuzz", size % 2 == 0));
}

}  // namespace hone::HONE_FILE

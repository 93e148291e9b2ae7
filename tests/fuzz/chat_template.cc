#include "language/chat/chat_template.h"

#include <cstdint>

#include "tests/fuzz/target.h"

namespace hone::HONE_FILE {

// A chat template never crashes, and ends soon.
HONE_FUZZ(chat_template) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const hone::Result<hone::ChatTemplate> made = hone::ChatTemplate::parse(text);
  if (!made.ok()) return;
  const hone::ChatMessage messages[] = {
      {"system", " Be brief. "}, {"user", "Why\xFF \u2028?\n"}, {"assistant", "a-b-a"}};
  constexpr int64_t kWork = 1 << 22;
  (void)made
      ->write(messages, {.begin = "<s>", .end = "</s>", .json = R"({"tools": [{"a": [1, 2.5]}]})"},
              kWork)
      .ok();
}

}  // namespace hone::HONE_FILE

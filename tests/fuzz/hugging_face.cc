#include "front/hugging_face/hf_model.h"
#include "language/language_source.h"
#include "tests/fuzz/target.h"

#include <cstdint>

namespace hone::HONE_FILE {

// Reading config.json or tokenizer.json never crashes; nor does the tokenizer that is made of it.
HONE_FUZZ(hugging_face) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)hone::parse_hf_config(text, "fuzz").ok();
  hone::Result<hone::Vocabulary> vocabulary = hone::parse_hf_vocabulary(text, "fuzz");
  if (!vocabulary.ok()) return;
  const hone::Result<hone::Tokenizer> tokenizer = hone::Tokenizer::make(*std::move(vocabulary));
  if (!tokenizer.ok()) return;
  const std::vector<hone::TokenId> tokens =
      tokenizer->encode(text.substr(0, 256), hone::Tokenizer::Control::is_token);
  (void)tokenizer->decode(tokens);
}

}  // namespace hone::HONE_FILE

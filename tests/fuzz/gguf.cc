#include "front/gguf/gguf_model.h"
#include "language/tokenizer.h"
#include "tests/fuzz/target.h"

#include <cstdint>

namespace hone::HONE_FILE {

// Reading a GGUF file never crashes; nor do the model and the tokenizer that are made of it.
HONE_FUZZ(gguf) {
  const hone::Result<hone::Gguf> file =
      hone::parse_gguf(std::as_bytes(std::span(data, size)), "fuzz");
  if (!file.ok()) return;
  if (const hone::Result<hone::DecoderConfig> config = hone::gguf_config(*file); config.ok())
    // A graph of many layers takes long to refuse; few show all that one can be.
    if (config->layers <= 4) (void)hone::build_gguf(*file, *config).ok();
  if (const hone::Result<hone::EncoderConfig> config = hone::gguf_encoder_config(*file);
      config.ok() && config->layers <= 4)
    (void)hone::build_encoder(*config, *hone::gguf_weights(*file)).ok();
  hone::Result<hone::Vocabulary> vocabulary = hone::gguf_vocabulary(*file);
  if (!vocabulary.ok()) return;
  const hone::Result<hone::Tokenizer> tokenizer = hone::Tokenizer::make(*std::move(vocabulary));
  if (!tokenizer.ok()) return;
  const std::string text(reinterpret_cast<const char*>(data), std::min<size_t>(size, 256));
  const std::vector<hone::TokenId> tokens =
      tokenizer->encode(text, hone::Tokenizer::Control::is_token);
  (void)tokenizer->decode(tokens);
}

}  // namespace hone::HONE_FILE

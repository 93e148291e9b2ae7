#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>

#include "front/decoder/decoder.h"
#include "language/tokenizer.h"

namespace hone {

// A language model as a file or a folder has it. Nothing of its weights is read yet.
struct LanguageSource {
  DecoderConfig config;
  Tokenizer tokenizer;
  // For build_decoder(). They do not outlive this.
  std::function<Result<std::unique_ptr<DecoderWeights>>()> weights;
};

// A GGUF file, or a folder of Hugging Face. Refused: a vocabulary with more tokens than the
// embedding has rows.
Result<LanguageSource> read_language(const std::filesystem::path& path);
Result<LanguageSource> language_of(Gguf file);

// The vocabulary of a folder of Hugging Face: tokenizer.json, and from other files which tokens
// begin and end a text.
Result<Vocabulary> hf_vocabulary(const std::filesystem::path& folder);
Result<Vocabulary> parse_hf_vocabulary(std::string_view tokenizer_json, std::string_view where);

}  // namespace hone

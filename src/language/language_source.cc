#include "language/language_source.h"

#include "front/gguf/gguf_model.h"
#include "front/hugging_face/hf_model.h"

namespace hone {
namespace {

Result<LanguageSource> fitting(LanguageSource source) {
  if (source.tokenizer.size() > source.config.vocabulary)
    return bad_input("the tokenizer has {} tokens, but the embedding has {} rows",
                     source.tokenizer.size(), source.config.vocabulary);
  return source;
}

Result<LanguageSource> language_of_folder(const std::filesystem::path& folder) {
  DecoderConfig config = HONE_TRY(hf_config(folder));
  Tokenizer tokenizer = HONE_TRY(Tokenizer::make(HONE_TRY(hf_vocabulary(folder))));
  auto weights = [folder, config] { return hf_weights(folder, config); };
  return fitting({std::move(config), std::move(tokenizer), std::move(weights)});
}

}  // namespace

Result<LanguageSource> language_of(Gguf file) {
  const auto kept = std::make_shared<const Gguf>(std::move(file));
  DecoderConfig config = HONE_TRY(gguf_config(*kept));
  Tokenizer tokenizer = HONE_TRY(Tokenizer::make(HONE_TRY(gguf_vocabulary(*kept))));
  auto weights = [kept]() -> Result<std::unique_ptr<DecoderWeights>> {
    return gguf_weights(*kept);
  };
  return fitting({std::move(config), std::move(tokenizer), std::move(weights)});
}

Result<LanguageSource> read_language(const std::filesystem::path& path) {
  Result<LanguageSource> source =
      is_hf_folder(path) ? language_of_folder(path) : language_of(HONE_TRY(read_gguf(path)));
  if (!source.ok() && source.error().where().empty())
    return std::move(source).error().within(path.native());
  return source;
}

}  // namespace hone

#include "base/text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/language.h"
#include "cli/memory_limit.h"
#include "cli/native.h"
#include "formats/npy.h"
#include "language/embedding_model.h"

namespace hone::cli {
namespace {

// One of --prompt, --prompt-file and --prompts.
Result<std::vector<std::string>> given_texts(const Arguments& arguments) {
  int given = 0;
  for (const char* one : {"prompt", "prompt-file", "prompts"}) given += arguments.given(one);
  if (given != 1)
    return usage_error("one of --prompt, --prompt-file and --prompts says which texts get vectors")
        .with_hint("hone embed model.gguf -p Once");
  if (arguments.given("prompt")) return std::vector<std::string>{arguments.text("prompt")};
  if (arguments.given("prompt-file"))
    return std::vector<std::string>{HONE_TRY(language_text_at(arguments.text("prompt-file")))};
  const std::string text = HONE_TRY(language_text_at(arguments.text("prompts")));
  const std::vector<std::string_view> lines = split_lines(text);
  return std::vector<std::string>(lines.begin(), lines.end());
}

Result<std::unique_ptr<EmbeddingModel>> load_embedding(const Arguments& arguments,
                                                       Console& console) {
  const std::string path = arguments.text("MODEL");
  EmbeddingSource source = HONE_TRY(read_embedding(path));
  EmbeddingModel::Options options = {
      .native = HONE_TRY(native_options(arguments, console, DefaultCache::user, LogPlans::left)),
      .drops_end = arguments.given("drop-end")};
  if (arguments.given("pooling")) options.pooling = pooling_of(arguments.text("pooling"));
  if (arguments.given("raw")) options.is_normalized = false;
  if (arguments.given("to")) options.weights = *quantize::precision_of(arguments.text("to"));
  Result<std::unique_ptr<EmbeddingModel>> model =
      EmbeddingModel::make(std::move(source), std::move(options), limited_face(arguments, console));
  if (!model.ok())
    return name_memory_limit(std::move(model).error().within(path), arguments).error();
  return model;
}

}  // namespace

Status cmd_embed(const Arguments& arguments, Console& console) {
  const std::vector<std::string> texts = HONE_TRY(given_texts(arguments));
  const std::unique_ptr<EmbeddingModel> model = HONE_TRY(load_embedding(arguments, console));
  std::vector<float> all;
  for (const std::string& text : texts) {
    HONE_TRY(console.cancel().check());
    const std::vector<float> numbers = HONE_TRY(model->embed(text));
    if (arguments.given("output")) {
      all.insert(all.end(), numbers.begin(), numbers.end());
      continue;
    }
    std::string line;
    for (const float one : numbers) line += fmt::format("{}{}", line.empty() ? "" : " ", one);
    console.print("{}\n", line);
  }
  if (!arguments.given("output")) return {};
  const Type type = Type::get(DType::f32, {std::ssize(texts), model->config().width});
  return write_npy(arguments.text("output"), Tensor::of<float>(type, all));
}

}  // namespace hone::cli

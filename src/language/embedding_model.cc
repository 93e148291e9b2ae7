#include "language/embedding_model.h"

#include <algorithm>

#include "base/text.h"
#include "front/gguf/gguf_model.h"
#include "front/hugging_face/hf_model.h"
#include "ir/op_facts.h"
#include "language/language_source.h"
#include "language/weights_in_blocks.h"
#include "session/memory.h"

namespace hone {
namespace {

constexpr int64_t kLeastSize = 16;  // tokens that code is made for

Result<EmbeddingSource> embedding_of_folder(const std::filesystem::path& folder) {
  EncoderConfig config = HONE_TRY(hf_encoder_config(folder));
  Tokenizer tokenizer = HONE_TRY(Tokenizer::make(HONE_TRY(hf_vocabulary(folder))));
  auto weights = [folder] { return hf_encoder_weights(folder); };
  return EmbeddingSource{std::move(config), std::move(tokenizer), std::move(weights)};
}

Result<EmbeddingSource> embedding_of_file(Gguf file) {
  const auto kept = std::make_shared<const Gguf>(std::move(file));
  EncoderConfig config = HONE_TRY(gguf_encoder_config(*kept));
  Tokenizer tokenizer = HONE_TRY(Tokenizer::make(HONE_TRY(gguf_vocabulary(*kept))));
  auto weights = [kept]() -> Result<std::unique_ptr<DecoderWeights>> {
    return gguf_weights(*kept);
  };
  return EmbeddingSource{std::move(config), std::move(tokenizer), std::move(weights)};
}

Status check_weights_fit(const Graph& graph, const Face& face) {
  int64_t bytes = 0;
  for (const NodeId n : graph.nodes())
    if (is_constant(graph.opcode(n))) bytes += graph.constant(n).byte_size();
  // Products of many rows read a copy that lies as they take it.
  const int64_t needed = 2 * bytes, limit = memory_limit(face);
  if (needed <= limit) return {};
  return over_limit("the model needs {}; the limit is {}", format_bytes(needed),
                    format_bytes(limit));
}

}  // namespace

Result<EmbeddingSource> read_embedding(const std::filesystem::path& path) {
  Result<EmbeddingSource> source =
      is_hf_folder(path) ? embedding_of_folder(path) : embedding_of_file(HONE_TRY(read_gguf(path)));
  if (source.ok() && source->tokenizer.size() > source->config.vocabulary)
    source = bad_input("the tokenizer has {} tokens, but the embedding has {} rows",
                       source->tokenizer.size(), source->config.vocabulary);
  if (!source.ok() && source.error().where().empty())
    return std::move(source).error().within(path.native());
  return source;
}

Result<std::unique_ptr<EmbeddingModel>> EmbeddingModel::make(EmbeddingSource source,
                                                             Options options, const Face& face) {
  if (options.pooling) source.config.pooling = *options.pooling;
  if (options.is_normalized) source.config.is_normalized = *options.is_normalized;
  const std::unique_ptr<DecoderWeights> weights =
      weights_in_blocks(HONE_TRY(source.weights()), options.weights);
  Graph graph = HONE_TRY(build_encoder(source.config, *weights));
  HONE_TRY(check_weights_fit(graph, face));
  const int64_t threads = options.native.threads.value_or(options.native.target.cores);
  std::unique_ptr<EmbeddingModel> made(
      new EmbeddingModel(std::move(source.config), std::move(source.tokenizer), std::move(graph),
                         std::move(options), face));
  made->team_ = HONE_TRY(Team::create({.threads = threads}));
  return made;
}

Result<const Executable*> EmbeddingModel::code_for(int64_t size) {
  std::shared_ptr<const Executable>& made = by_size_[size];
  if (made == nullptr) {
    CompileOptions options = compile_options(options_.native, nullptr, face_);
    options.team = team_;
    Compilation compilation(
        HONE_TRY(specialize(graph_, {{"tokens", Dim(size)}})), options_.native.target,
                            std::move(options));
    made = HONE_TRY(compilation.executable());
  }
  return made.get();
}

Result<std::vector<float>> EmbeddingModel::embed(std::string_view text) {
  std::vector<TokenId> tokens = tokenizer_.prompt(text);
  const auto most = static_cast<size_t>(config_.context);
  if (options_.drops_end && tokens.size() > most) {
    // The token that ends a text stays.
    const TokenId last = tokens.back();
    tokens.resize(most);
    if (tokenizer_.vocabulary().adds_end) tokens.back() = last;
  }
  return embed_tokens(tokens);
}

Result<std::vector<float>> EmbeddingModel::embed_tokens(std::span<const TokenId> tokens) {
  const int64_t count = std::ssize(tokens);
  if (count == 0) return usage_error("the text has no token");
  if (count > config_.context)
    return usage_error("the text has {} tokens; the model takes {}", count, config_.context)
        .with_hint("--drop-end leaves out its end");
  for (const TokenId token : tokens)
    if (token < 0 || token >= config_.vocabulary)
      return usage_error("there is no token {}; the model has {}", token, config_.vocabulary);
  int64_t size = kLeastSize;
  while (size < count) size *= 2;
  size = std::min(size, config_.context);
  const Executable* const code = HONE_TRY(code_for(size));
  std::vector<int64_t> ids(static_cast<size_t>(size), 0);
  std::ranges::copy(tokens, ids.begin());
  const std::vector<Tensor> inputs = {Tensor::from_integers(Type::get(DType::i64, {size}), ids),
                                      Tensor::scalar(DType::i64, static_cast<double>(count))};
  const std::vector<Tensor> made = HONE_TRY(code->run(inputs, {.cancel = face_.cancel}));
  const std::span<const float> numbers = made[0].as<float>();
  return std::vector<float>(numbers.begin(), numbers.end());
}

}  // namespace hone

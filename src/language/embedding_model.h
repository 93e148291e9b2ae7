#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "front/decoder/encoder.h"
#include "language/tokenizer.h"
#include "quantize/layers.h"
#include "session/native.h"

namespace hone {

// A model that gives texts vectors, as a file or a folder has it. Nothing of its weights is read
// yet.
struct EmbeddingSource {
  EncoderConfig config;
  Tokenizer tokenizer;
  std::function<Result<std::unique_ptr<DecoderWeights>>()> weights;
};
// A GGUF file of a bert or nomic-bert, or a folder of Hugging Face (hf_encoder_config()).
Result<EmbeddingSource> read_embedding(const std::filesystem::path& path);

// One thread at a time.
class EmbeddingModel {
 public:
  struct Options {
    NativeOptions native = {};
    std::optional<Pooling> pooling = {};     // none: as the model says
    std::optional<bool> is_normalized = {};  // the same
    bool drops_end = false;                  // of a text that is too long; else it is refused
    quantize::Precision weights = quantize::Precision::f32;  // weights_in_blocks()
  };
  // The pointers of the face outlive the model.
  static Result<std::unique_ptr<EmbeddingModel>> make(EmbeddingSource source, Options options,
                                                      const Face& face = {});

  const Tokenizer& tokenizer() const { return tokenizer_; }
  const EncoderConfig& config() const { return config_; }

  // As many numbers as the model is wide.
  Result<std::vector<float>> embed(std::string_view text);
  Result<std::vector<float>> embed_tokens(std::span<const TokenId> tokens);

  void set_face(const Face& face) { face_ = face; }

 private:
  EmbeddingModel(EncoderConfig config, Tokenizer tokenizer, Graph graph, Options options,
                 const Face& face)
      : config_(std::move(config)),
        tokenizer_(std::move(tokenizer)),
        graph_(std::move(graph)),
        options_(std::move(options)),
        face_(face) {}
  Result<const Executable*> code_for(int64_t size);

  const EncoderConfig config_;
  const Tokenizer tokenizer_;
  const Graph graph_;
  const Options options_;
  Face face_;
  std::shared_ptr<Team> team_;
  std::map<int64_t, std::shared_ptr<const Executable>> by_size_;
};

}  // namespace hone

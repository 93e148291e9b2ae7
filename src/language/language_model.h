#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compile/compilation.h"
#include "language/caches.h"
#include "language/language_source.h"
#include "quantize/layers.h"
#include "session/native.h"

namespace hone {

// A language model and what it has read: its caches hold the keys and values of the tokens so far.
// On a CPU they grow to twice their size when they are full, since a step reads all of them; its
// code stays. On a GPU they have room for the context, as code is for one size there: kernels whose
// sizes are numbers are faster. Tokens go to the GPU and logits come back, and nothing else.
// Any number of threads gives the same bits. One thread of the caller at a time.
class LanguageModel {
 public:
  // A prompt is read in long chunks, since each unpacks all weights, and the rest of it in short
  // ones; the last one is filled up.
  static constexpr int64_t kChunk = 32, kLongChunk = 128;
  // The most tokens that are read together with the logits of each, if guesses are checked.
  static constexpr int64_t kFew = 8;
  // How many texts may share a pass over the weights, as often as it goes.
  static constexpr std::array<size_t, 3> kTogether = {8, 4, 2};

  struct Options {
    NativeOptions native = {};
    int64_t context = 0;  // tokens that the caches may have room for; 0: all that the model takes
    CacheType cache = CacheType::f32;
    quantize::Precision weights = quantize::Precision::f32;  // weights_in_blocks()
  };
  // Refused: a context that is longer than the model's, and a model that needs more memory than
  // the face allows. The pointers of the face outlive the model.
  static Result<std::unique_ptr<LanguageModel>> make(LanguageSource source, Options options,
                                                     const Face& face = {});

  const Tokenizer& tokenizer() const { return tokenizer_; }
  const DecoderConfig& config() const { return config_; }
  int64_t context() const { return context_; }
  // Bytes of weights, and of full caches for each text.
  int64_t memory(size_t texts = 1) const;
  int64_t places() const { return places_; }  // tokens that the caches have room for now
  std::span<const TokenId> tokens() const { return tokens_; }

  // Makes the code for a prompt of this many tokens and for what follows. Otherwise the first
  // tokens that are read do it.
  Status prepare(int64_t prompt_tokens);
  // Makes that of read_together() for as many texts.
  Status prepare_together(size_t texts);

  // Reads on. Gives the logits behind the last token. At least one token; all must have room.
  Result<std::vector<float>> read(std::span<const TokenId> tokens);
  // The same with the logits behind each of them, one row after another.
  Result<std::vector<float>> read_all(std::span<const TokenId> tokens);
  // Forgets all but the first tokens. After an error on a CPU it has forgotten all. On a GPU it
  // has those before.
  void keep(size_t tokens);
  // Keeps what the tokens begin with, but not the last one of them: it is read again for its
  // logits. Says how many.
  size_t keep_shared(std::span<const TokenId> tokens);

  // A text that was read, with its caches: several texts share the weights and the code.
  struct Memory {
    Caches caches;
    int64_t places = 0;
    std::vector<TokenId> tokens;
  };
  // They hold nothing yet. Refused: more memory than the face allows, or than a GPU has.
  Result<std::vector<Memory>> new_memories(size_t count) const;
  void swap_memory(Memory& other) {
    std::swap(caches_, other.caches);
    std::swap(places_, other.places);
    tokens_.swap(other.tokens);
  }

  // Reads one token in each of these texts: as many as kTogether has. Gives the logits behind each,
  // one row after another. A run that fails on a CPU forgets all of them; other errors change no
  // token.
  Result<std::vector<float>> read_together(std::span<Memory* const> texts,
                                           std::span<const TokenId> tokens);

  // Bytes that a step of one token reads: all weights but tables of which it takes rows, and the
  // caches as they are.
  int64_t step_bytes() const { return weights_read_ + config_.cache_bytes(places_); }
  // Bytes a second that memory delivers to the threads of the model, by the target.
  double bandwidth() const;

  // Products that a token of a prompt takes in the matrices of the layers. The cores of the model
  // compute products_per_second() by the target, in bytes or in f32, whichever are more. 0: on a
  // GPU.
  double token_products() const;
  double products_per_second() const;

  // Measures the steps of one token from now on.
  void start_profile() { is_profiled_ = true; }
  // The steps since the caches grew last. Nothing: there was none.
  struct StepProfile {
    Compilation* code;  // the model's own
    Bindings sizes;
    Profile times;
    int64_t runs;
  };
  std::optional<StepProfile> profile() const;

  // The face for what is read from now on. Its pointers outlive that.
  void set_face(const Face& face) { face_ = face; }
  const Face& face() const { return face_; }

  int64_t compiled() const { return compiled_; }  // programs that were made so far

 private:
  LanguageModel(DecoderConfig config, Tokenizer tokenizer, Graph graph,
                std::unique_ptr<const DecoderWeights> weights, Options options, const Face& face)
      : config_(std::move(config)),
        tokenizer_(std::move(tokenizer)),
        graph_(std::move(graph)),
        weights_(std::move(weights)),
        options_(std::move(options)),
        face_(face) {}

  struct Step {
    int64_t tokens;
    int64_t rows;
    auto operator<=>(const Step&) const = default;
  };
  bool is_on_gpu() const { return options_.native.device != nullptr; }
  int64_t threads() const;
  void divide_plans(CompileOptions& options);
  Status set_up();
  Status forget();
  Result<Memory> empty_memory() const;
  Result<std::vector<Type>> cache_types(int64_t places) const;
  int64_t grown(int64_t places, int64_t wanted) const;
  Status make_room(int64_t places);
  Status make_room_for(int64_t tokens);
  Status check_memory() const;
  Status check_room(std::span<const TokenId> tokens) const;
  Result<const StepCode*> code_of(Step step);
  Result<const StepCode*> code_of_texts(size_t texts, int64_t places);
  Result<std::vector<float>> run(std::span<const TokenId> tokens, bool all_rows);
  Result<std::vector<float>> read_by(std::span<const TokenId> tokens, bool all_rows);

  // On a CPU code is for caches with any room, and is loaded for some sizes of them.
  struct Code {
    std::unique_ptr<Compilation> compilation;
    std::map<int64_t, StepCode> by_places;
  };
  Status compile(Code& code, Graph graph);
  Result<StepCode> load(Compilation& code, const Bindings& room, size_t texts) const;
  Result<const StepCode*> loaded(Code& code, int64_t places, int64_t tokens, size_t texts);
  Bindings room_of(int64_t places, int64_t tokens) const;
  int64_t bytes_of_caches() const;  // of a text
  size_t layers() const { return static_cast<size_t>(config_.layers); }

  const DecoderConfig config_;
  const Tokenizer tokenizer_;
  const Graph graph_;
  const std::unique_ptr<const DecoderWeights> weights_;  // those of the graph
  const Options options_;
  Face face_;
  std::shared_ptr<Team> team_;
  int64_t context_ = 0;      // what is asked for
  int64_t most_places_ = 0;  // of caches: a filled-up chunk fits behind the context
  int64_t memory_ = 0;
  int64_t weights_read_ = 0;  // bytes, by a step
  std::map<Step, Code> steps_;
  std::map<size_t, Code> together_;  // by texts
  int64_t compiled_ = 0;
  bool is_profiled_ = false;
  Profile times_ = {};
  int64_t timed_ = 0;         // runs in times_
  int64_t timed_places_ = 0;  // of their caches
  Caches caches_;
  int64_t places_ = 0;
  std::vector<TokenId> tokens_;
};

}  // namespace hone

#include "language/language_model.h"

#include <algorithm>

#include "base/checked_math.h"
#include "base/text.h"
#include "ir/op_facts.h"
#include "session/memory.h"

namespace hone {
namespace {

constexpr size_t kInputs = 3;  // before the caches: tokens, position, rows

// Blocks are read as they lie in their file. Single tokens read reals as they lie, too, and chunks
// read a copy that lies as they take it.
int64_t weight_bytes_of(const Graph& graph) {
  int64_t bytes = 0;
  for (const NodeId n : graph.nodes()) {
    if (!is_constant(graph.opcode(n))) continue;
    const Tensor& weight = graph.constant(n);
    bytes += (weight.dtype() == DType::u8 ? 1 : 2) * weight.byte_size();
  }
  return bytes;
}

Tensor integers(std::span<const int64_t> values) {
  return Tensor::of<int64_t>(Type::get(DType::i64, {std::ssize(values)}), values);
}

}  // namespace

Result<std::unique_ptr<LanguageModel>> LanguageModel::make(LanguageSource source, Options options,
                                                           const Face& face) {
  if (options.context > source.config.context)
    return usage_error("a context of {} tokens is asked for; the model takes {}", options.context,
                       source.config.context);
  Graph graph = HONE_TRY(source.graph());
  std::unique_ptr<LanguageModel> made(
      new LanguageModel(std::move(source.config), std::move(source.tokenizer), std::move(graph),
                        std::move(options), face));
  HONE_TRY(made->set_up());
  return made;
}

Status LanguageModel::set_up() {
  context_ = options_.context > 0 ? options_.context : config_.context;
  // A chunk that begins within the context may end behind it.
  places_ = round_up(context_, kChunk) + kChunk;
  memory_ = weight_bytes_of(graph_) + config_.cache_bytes(places_);
  HONE_TRY(check_memory());
  const int64_t threads = options_.native.threads.value_or(options_.native.target.cores);
  team_ = HONE_TRY(Team::create({.threads = threads}));
  return forget();
}

Result<std::vector<Tensor>> LanguageModel::empty_caches() const {
  std::vector<Tensor> made;
  for (size_t i = kInputs; i < graph_.inputs().size(); ++i) {
    const Type type = graph_.type(graph_.inputs()[i]);
    made.push_back(Tensor::zeros(
        HONE_TRY(type.bind({{"tokens", Dim(1)}, {"room", Dim(places_ - 1)}}))));
  }
  return made;
}

Status LanguageModel::forget() {
  tokens_.clear();
  caches_ = HONE_TRY(empty_caches());
  return {};
}

Result<std::vector<LanguageModel::Memory>> LanguageModel::new_memories(size_t count) const {
  const int64_t limit = memory_limit(face_), each = config_.cache_bytes(places_);
  const std::optional<int64_t> more = checked_mul(static_cast<int64_t>(count), each);
  if (!more || *more > limit - memory_)
    return over_limit("{} more texts need {} each beside {}; the limit is {}", count,
                      format_bytes(each), format_bytes(memory_), format_bytes(limit))
        .with_hint("choose a shorter context, or fewer texts");
  std::vector<Memory> made(count);
  for (Memory& one : made) one.caches = HONE_TRY(empty_caches());
  return made;
}

Status LanguageModel::check_memory() const {
  const int64_t limit = memory_limit(face_);
  if (memory_ <= limit) return {};
  const int64_t weights = memory_ - config_.cache_bytes(places_);
  const int64_t fits = (limit - weights) / config_.cache_bytes(1) - 2 * kChunk;
  Error error = over_limit(
      "the model needs {}: {} for weights and {} for a context of {} tokens; "
      "the limit is {}",
      format_bytes(memory_), format_bytes(weights), format_bytes(memory_ - weights), context_,
      format_bytes(limit));
  if (fits < 1) return error;
  return std::move(error).with_hint(fmt::format("a context of {} tokens fits", fits));
}

Status LanguageModel::check_room(std::span<const TokenId> tokens) const {
  if (tokens.empty()) return usage_error("there is no token to read");
  const int64_t after = std::ssize(tokens_) + std::ssize(tokens);
  if (after > context_)
    return usage_error("{} tokens are read, and {} come, but the context has {}", tokens_.size(),
                       tokens.size(), context_);
  for (const TokenId token : tokens)
    if (token < 0 || token >= config_.vocabulary)
      return usage_error("there is no token {}; the model has {}", token, config_.vocabulary);
  return {};
}

Result<const Executable*> LanguageModel::code_of(const Step& step) {
  std::shared_ptr<const Executable>& made = steps_[step];
  if (made == nullptr) {
    const Bindings sizes = {{"tokens", Dim(step.tokens)},
                            {"room", Dim(places_ - step.tokens)},
                            {"rows", Dim(step.rows)}};
    CompileOptions options = compile_options(options_.native, nullptr, face_);
    options.team = team_;
    Compilation compilation(
        HONE_TRY(specialize(graph_, sizes)), options_.native.target, std::move(options));
    made = HONE_TRY(compilation.executable());
  }
  return made.get();
}

// One step: a token, or a chunk that is filled up. Rows behind the tokens are written to the
// caches, too. No token sees them, for they stand behind it; later tokens overwrite them.
Result<std::vector<float>> LanguageModel::run(std::span<const TokenId> tokens, bool all_rows) {
  const int64_t count = std::ssize(tokens);
  const int64_t size = count == 1 || count == kLongChunk ? count
                       : all_rows && count <= kFew       ? kFew
                                                         : kChunk;
  const Executable* const code = HONE_TRY(code_of({size, all_rows ? size : 1}));
  std::vector<int64_t> ids(static_cast<size_t>(size), 0);
  std::ranges::copy(tokens, ids.begin());
  std::vector<int64_t> rows = {count - 1};
  if (all_rows) {
    rows.resize(static_cast<size_t>(size));
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(i);
  }
  std::vector<Tensor> inputs = {
      integers(ids), Tensor::from_integers(Type::scalar(DType::i64), {{std::ssize(tokens_)}}),
      integers(rows)};
  std::ranges::move(caches_, std::back_inserter(inputs));
  Result<std::vector<Tensor>> ran = code->run_donating(std::move(inputs), {.cancel = face_.cancel});
  if (!ran.ok()) {
    HONE_TRY(forget());  // the caches were given up
    return std::move(ran).error();
  }
  const std::vector<Tensor>& outputs = *ran;
  caches_.assign(outputs.begin() + 1, outputs.end());
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  const std::span<const float> logits = outputs[0].as<float>();
  const auto wanted = static_cast<size_t>((all_rows ? count : 1) * config_.vocabulary);
  return std::vector<float>(logits.begin(), logits.begin() + static_cast<ptrdiff_t>(wanted));
}

Result<std::vector<float>> LanguageModel::read_by(std::span<const TokenId> tokens, bool all_rows) {
  HONE_TRY(check_room(tokens));
  std::vector<float> all;
  while (!tokens.empty()) {
    const int64_t left = std::ssize(tokens);
    const auto count = static_cast<size_t>(left < kLongChunk ? std::min(left, kChunk) : kLongChunk);
    std::vector<float> logits = HONE_TRY(run(tokens.first(count), all_rows));
    tokens = tokens.subspan(count);
    if (!all_rows)
      all = std::move(logits);
    else
      all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

Status LanguageModel::prepare(int64_t prompt_tokens) {
  if (prompt_tokens >= kLongChunk) (void)HONE_TRY(code_of({kLongChunk, 1}));
  if (prompt_tokens % kLongChunk > 1) (void)HONE_TRY(code_of({kChunk, 1}));
  (void)HONE_TRY(code_of({1, 1}));
  return {};
}

Result<std::vector<float>> LanguageModel::read(std::span<const TokenId> tokens) {
  return read_by(tokens, false);
}

Result<std::vector<float>> LanguageModel::read_all(std::span<const TokenId> tokens) {
  return read_by(tokens, true);
}

void LanguageModel::keep(size_t tokens) { tokens_.resize(std::min(tokens, tokens_.size())); }

size_t LanguageModel::keep_shared(std::span<const TokenId> tokens) {
  const auto shared = std::ranges::mismatch(tokens_, tokens).in1 - tokens_.begin();
  const size_t most = tokens.empty() ? 0 : tokens.size() - 1;
  keep(std::min(static_cast<size_t>(shared), most));
  return tokens_.size();
}

}  // namespace hone

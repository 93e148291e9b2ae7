#include "language/language_model.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/checked_math.h"
#include "base/text.h"
#include "compile/resident_code.h"
#include "cost/gpu_cost.h"
#include "ir/op_facts.h"
#include "language/weights_in_blocks.h"
#include "planner/division.h"
#include "session/cpu_kernels.h"
#include "session/memory.h"
#include "target/memory_speed.h"

namespace hone {
namespace {

constexpr size_t kInputs = 3;  // before the caches: tokens, position, rows
constexpr int64_t kFirstPlaces = 512;
constexpr size_t kMostNotedKernels = 5;

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

int64_t bytes_of_constants(const Graph& graph) {
  int64_t bytes = 0;
  for (const NodeId n : graph.nodes())
    if (is_constant(graph.opcode(n))) bytes += graph.constant(n).byte_size();
  return bytes;
}

int64_t weights_read_by(const Graph& graph) {
  int64_t all = 0, embedding = 0;
  bool is_tied = true;
  for (const NodeId n : graph.nodes()) {
    if (!is_constant(graph.opcode(n))) continue;
    const std::string_view name = graph.name(graph.result(n));
    const int64_t bytes = graph.constant(n).byte_size();
    if (name == "token_embd.weight") embedding = bytes;
    if (name == "output.weight") is_tied = false;
    if (name != "position_embd.weight") all += bytes;
  }
  return is_tied ? all : all - embedding;
}

// Weights that are read again for another graph: they are the same tensors, in memory once.
class KeptWeights final : public DecoderWeights {
 public:
  explicit KeptWeights(std::unique_ptr<DecoderWeights> source) : source_(std::move(source)) {}

  bool has(const std::string& name) const override {
    const auto found = has_.find(name);
    return found != has_.end() ? found->second : (has_[name] = source_->has(name));
  }
  Result<Weight> get(const std::string& name) const override {
    const auto found = weights_.find(name);
    if (found != weights_.end()) return found->second;
    return weights_[name] = HONE_TRY(source_->get(name));
  }
  // From now on nobody asks for others.
  void leave_source() { source_ = nullptr; }

 private:
  std::unique_ptr<DecoderWeights> source_;
  mutable std::map<std::string, bool> has_;
  mutable std::map<std::string, Weight> weights_;
};

Tensor integers(std::span<const int64_t> values) {
  return Tensor::of<int64_t>(Type::get(DType::i64, {std::ssize(values)}), values);
}

}  // namespace

Result<std::unique_ptr<LanguageModel>> LanguageModel::make(LanguageSource source, Options options,
                                                           const Face& face) {
  if (options.context > source.config.context)
    return usage_error("a context of {} tokens is asked for; the model takes {}", options.context,
                       source.config.context);
  source.config.cache = options.cache;
  auto weights =
      std::make_unique<KeptWeights>(weights_in_blocks(HONE_TRY(source.weights()), options.weights));
  Graph graph = HONE_TRY(build_decoder(source.config, *weights));
  weights->leave_source();
  std::unique_ptr<LanguageModel> made(
      new LanguageModel(std::move(source.config), std::move(source.tokenizer), std::move(graph),
                        std::move(weights), std::move(options), face));
  HONE_TRY(made->set_up());
  return made;
}

int64_t LanguageModel::threads() const {
  return options_.native.threads.value_or(options_.native.target.cores);
}

Status LanguageModel::set_up() {
  context_ = options_.context > 0 ? options_.context : config_.context;
  // A chunk that begins within the context may end behind it.
  most_places_ = round_up(context_, kChunk) + kChunk;
  memory_ = weight_bytes_of(graph_) + bytes_of_caches();
  weights_read_ = weights_read_by(graph_);
  HONE_TRY(check_memory());
  if (!is_on_gpu()) team_ = HONE_TRY(Team::create({.threads = threads()}));
  return forget();
}

int64_t LanguageModel::bytes_of_caches() const { return config_.cache_bytes(most_places_); }

Result<std::vector<Type>> LanguageModel::cache_types(int64_t places) const {
  std::vector<Type> types;
  for (const ValueId input : graph_.inputs().subspan(kInputs))
    types.push_back(
        HONE_TRY(graph_.type(input).bind({{"tokens", Dim(1)}, {"room", Dim(places - 1)}})));
  return types;
}

Result<LanguageModel::Memory> LanguageModel::empty_memory() const {
  const int64_t places = is_on_gpu() ? most_places_ : std::min(kFirstPlaces, most_places_);
  return Memory{
      HONE_TRY(Caches::make(HONE_TRY(cache_types(places)), options_.native.device)), places, {}};
}

Status LanguageModel::forget() {
  Memory empty = HONE_TRY(empty_memory());
  swap_memory(empty);
  return {};
}

int64_t LanguageModel::grown(int64_t places, int64_t wanted) const {
  if (wanted <= places) return places;
  return std::min(std::max(wanted, 2 * places), most_places_);
}

Status LanguageModel::make_room(int64_t places) {
  const int64_t more = grown(places_, places);
  if (more == places_) return {};
  caches_.grow(HONE_TRY(cache_types(more)));
  places_ = more;
  return {};
}

// At once for all of a text, so that little code is loaded for caches that do not last.
Status LanguageModel::make_room_for(int64_t tokens) {
  return make_room(std::min(std::ssize(tokens_) + round_up(tokens, kChunk), most_places_));
}

Result<std::vector<LanguageModel::Memory>> LanguageModel::new_memories(size_t count) const {
  const int64_t limit = memory_limit(face_), each = bytes_of_caches();
  const std::optional<int64_t> more = checked_mul(static_cast<int64_t>(count), each);
  if (!more || *more > limit - memory_)
    return over_limit("{} more texts need {} each beside {}; the limit is {}", count,
                      format_bytes(each), format_bytes(memory_), format_bytes(limit))
        .with_hint("choose a shorter context, or fewer texts");
  std::vector<Memory> made;
  for (size_t i = 0; i < count; ++i) made.push_back(HONE_TRY(empty_memory()));
  return made;
}

int64_t LanguageModel::memory(size_t texts) const {
  return memory_ + (static_cast<int64_t>(texts) - 1) * bytes_of_caches();
}

// On a GPU weights may need more than they have; this is known when code is loaded.
Status LanguageModel::check_memory() const {
  const int64_t limit = memory_limit(face_), caches = bytes_of_caches();
  const auto with_context_that_fits = [&](Error error, int64_t left) {
    const int64_t fits = left / (caches / most_places_) - 2 * kChunk;
    if (fits < 1) return error;
    return std::move(error).with_hint(fmt::format("a context of {} tokens fits", fits));
  };
  const std::string context = fmt::format("a context of {} tokens", context_);
  if (memory_ > limit)
    return with_context_that_fits(
        over_limit("the model needs {}: {} for weights and {} for {}; the limit is {}",
                   format_bytes(memory_), format_bytes(memory_ - caches), format_bytes(caches),
                   context, format_bytes(limit)),
        limit - (memory_ - caches));
  if (!is_on_gpu()) return {};
  const CudaDevice& device = *options_.native.device;
  const int64_t weights = bytes_of_constants(graph_);
  const Status fits = device.has_room(
      weights + caches, fmt::format(": {} for weights and {} for {}", format_bytes(weights),
                                    format_bytes(caches), context));
  if (fits.ok()) return {};
  return with_context_that_fits(fits.error(), HONE_TRY(device.free_bytes()) - weights);
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

// The plan is that of all cores, whatever the number of threads, so that sums have one order.
void LanguageModel::divide_plans(CompileOptions& options) {
  options.plan.threads = options_.native.target.cores;
  if (options.cost == nullptr) options.cost = analytic_cost(options_.native.target);
  options.best_plan = {};  // a plan that somebody knows is not divided among other threads
  options.revise = [this, cost = options.cost, revise = options.revise](
                       const Graph& planned, Plan plan, const Target& target) -> Result<Plan> {
    if (revise) plan = HONE_TRY(revise(planned, std::move(plan), target));
    return divided_among(threads(), planned, std::move(plan), target, *cost,
                         {.cancel = face_.cancel, .heuristics = options_.native.heuristics});
  };
}

Status LanguageModel::compile(Code& code, Graph graph) {
  CompileOptions options = compile_options(options_.native, nullptr, face_);
  options.team = team_;
  options.memory_limit = memory_limit(face_);
  if (!is_on_gpu()) divide_plans(options);
  auto made =
      std::make_unique<Compilation>(std::move(graph), options_.native.target, std::move(options));
  (void)HONE_TRY(made->kernels());
  if (const GpuShare share = HONE_TRY(gpu_share(*made)); !share.on_cpu.empty())
    face_.note(trim(gpu_share_text(share, kMostNotedKernels)));
  code.compilation = std::move(made);
  ++compiled_;
  return {};
}

Bindings LanguageModel::room_of(int64_t places, int64_t tokens) const {
  return {{"room", Dim(places - tokens)}};
}

// Caches are the last inputs.
Result<StepCode> LanguageModel::load(Compilation& code, const Bindings& room, size_t texts) const {
  if (!is_on_gpu()) {
    const std::shared_ptr<const Runnable> made = HONE_TRY(code.runnable_for(room));
    return StepCode(std::shared_ptr<const Executable>(made, made->single()));
  }
  const size_t inputs = HONE_TRY(code.graph())->inputs().size();
  std::vector<uint32_t> resident(texts * (graph_.inputs().size() - kInputs));
  std::iota(resident.begin(), resident.end(), static_cast<uint32_t>(inputs - resident.size()));
  return StepCode(HONE_TRY(
      resident_code(code, std::move(resident), compile_options(options_.native, nullptr, face_))));
}

Result<const StepCode*> LanguageModel::loaded(Code& code, int64_t places, int64_t tokens,
                                              size_t texts) {
  auto known = code.by_places.find(places);
  if (known == code.by_places.end()) {
    StepCode made = HONE_TRY(load(*code.compilation, room_of(places, tokens), texts));
    known = code.by_places.emplace(places, std::move(made)).first;
  }
  return &known->second;
}

Result<const StepCode*> LanguageModel::code_of(Step step) {
  Code& code = steps_[step];
  if (code.compilation == nullptr) {
    Bindings sizes = {{"tokens", Dim(step.tokens)}, {"rows", Dim(step.rows)}};
    if (is_on_gpu()) sizes.merge(room_of(places_, step.tokens));
    HONE_TRY(compile(code, HONE_TRY(specialize(graph_, sizes))));
  }
  return loaded(code, places_, step.tokens, 1);
}

Result<const StepCode*> LanguageModel::code_of_texts(size_t texts, int64_t places) {
  Code& code = together_[texts];
  if (code.compilation == nullptr) {
    Graph graph = HONE_TRY(build_decoder_of_texts(config_, *weights_, static_cast<int64_t>(texts)));
    if (is_on_gpu()) graph = HONE_TRY(specialize(graph, room_of(places, 1)));
    HONE_TRY(compile(code, std::move(graph)));
  }
  return loaded(code, places, 1, texts);
}

// One step: a token, or a chunk that is filled up. Rows behind the tokens are written to the
// caches, too. No token sees them, for they stand behind it; later tokens overwrite them.
Result<std::vector<float>> LanguageModel::run(std::span<const TokenId> tokens, bool all_rows) {
  const int64_t count = std::ssize(tokens);
  const int64_t size = count == 1 || count == kLongChunk ? count
                       : all_rows && count <= kFew       ? kFew
                                                         : kChunk;
  HONE_TRY(make_room(std::ssize(tokens_) + size));
  const StepCode* const code = HONE_TRY(code_of({size, all_rows ? size : 1}));
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
  const bool is_timed = is_profiled_ && size == 1;
  if (is_timed && std::exchange(timed_places_, places_) != places_) times_.clear(), timed_ = 0;
  Caches* const own[] = {&caches_};
  Result<Tensor> ran = code->run(std::move(inputs), own, layers(),
                                 {.cancel = face_.cancel, .profile = is_timed ? &times_ : nullptr});
  timed_ += is_timed ? 1 : 0;
  if (!ran.ok()) {
    if (caches_.size() == 0) HONE_TRY(forget());
    return std::move(ran).error();
  }
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  const std::span<const float> logits = ran->as<float>();
  const auto wanted = static_cast<size_t>((all_rows ? count : 1) * config_.vocabulary);
  return std::vector<float>(logits.begin(), logits.begin() + static_cast<ptrdiff_t>(wanted));
}

Result<std::vector<float>> LanguageModel::read_together(std::span<Memory* const> texts,
                                                        std::span<const TokenId> tokens) {
  HONE_CHECK(texts.size() == tokens.size() && texts.size() > 1, "{} tokens of {} texts",
             tokens.size(), texts.size());
  int64_t places = 0, wanted = 0;
  std::vector<int64_t> ids, positions;
  for (size_t t = 0; t < texts.size(); ++t) {
    const int64_t position = std::ssize(texts[t]->tokens);
    if (position >= context_)
      return usage_error("a text has {} tokens, and the context has room for no more", position);
    if (tokens[t] < 0 || tokens[t] >= config_.vocabulary)
      return usage_error("there is no token {}; the model has {}", tokens[t], config_.vocabulary);
    ids.push_back(tokens[t]), positions.push_back(position);
    places = std::max(places, texts[t]->places);
    wanted = std::max(wanted, position + 1);
  }
  places = grown(places, wanted);
  for (Memory* text : texts) {
    if (text->places == places) continue;
    text->caches.grow(HONE_TRY(cache_types(places)));
    text->places = places;
  }
  const StepCode* const code = HONE_TRY(code_of_texts(texts.size(), places));
  std::vector<Caches*> caches;
  for (Memory* text : texts) caches.push_back(&text->caches);
  const Result<Tensor> ran =
      code->run({integers(ids), integers(positions)}, caches, layers(), {.cancel = face_.cancel});
  if (!ran.ok()) {
    for (Memory* text : texts)
      if (text->caches.size() == 0) *text = HONE_TRY(empty_memory());
    return Error(ran.error());
  }
  for (size_t t = 0; t < texts.size(); ++t) texts[t]->tokens.push_back(tokens[t]);
  const std::span<const float> logits = ran->as<float>();
  return std::vector<float>(logits.begin(), logits.end());
}

double LanguageModel::bandwidth() const { return memory_speed(options_.native.target, threads()); }

double LanguageModel::token_products() const {
  const int64_t heads = config_.heads + config_.kv_heads;
  const int64_t parts = config_.gate == Gate::none ? 2 : 3;
  return static_cast<double>(config_.layers) * static_cast<double>(config_.width) *
         static_cast<double>(heads * (config_.key_width + config_.value_width) +
                             parts * config_.hidden);
}

double LanguageModel::products_per_second() const {
  if (is_on_gpu()) return 0;  // in bytes its kernels do not multiply
  const Target& target = options_.native.target;
  const double operations = std::max(target.peak(DType::f32), target.peak(DType::i8));
  return static_cast<double>(threads()) * operations / 2;  // a product and a sum are two
}

std::optional<LanguageModel::StepProfile> LanguageModel::profile() const {
  const auto found = steps_.find({1, 1});
  if (timed_ == 0 || found == steps_.end()) return std::nullopt;
  return StepProfile{found->second.compilation.get(),
                     is_on_gpu() ? Bindings() : room_of(timed_places_, 1), times_, timed_};
}

Result<std::vector<float>> LanguageModel::read_by(std::span<const TokenId> tokens, bool all_rows) {
  HONE_TRY(check_room(tokens));
  HONE_TRY(make_room_for(std::ssize(tokens)));
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
  HONE_TRY(make_room_for(prompt_tokens));
  if (prompt_tokens >= kLongChunk) (void)HONE_TRY(code_of({kLongChunk, 1}));
  if (prompt_tokens % kLongChunk > 1) (void)HONE_TRY(code_of({kChunk, 1}));
  (void)HONE_TRY(code_of({1, 1}));
  return {};
}

Status LanguageModel::prepare_together(size_t texts) {
  HONE_TRY(make_room(places_));
  for (const size_t count : kTogether) {
    if (texts >= count) (void)HONE_TRY(code_of_texts(count, places_));
    texts %= count;
  }
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

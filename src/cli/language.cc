#include "cli/language.h"

#include "base/file.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/console.h"
#include "cli/memory_limit.h"
#include "cli/native.h"
#include "cli/source.h"
#include "report/profile.h"

namespace hone::cli {
namespace {

constexpr int64_t kMostTextBytes = int64_t{1} << 30;

std::string speed_text(int64_t tokens, double seconds, double rate) {
  std::string text =
      fmt::format("{} {} in {}", tokens, tokens == 1 ? "token" : "tokens", format_seconds(seconds));
  if (rate > 0) text += fmt::format(" ({:.1f} a second)", rate);
  return text;
}

}  // namespace

Result<std::string> language_text_at(const std::string& path) {
  return path == "-" ? read_stdin() : read_file(path, kMostTextBytes);
}

Result<SamplingOptions> sampling_options(const Arguments& arguments) {
  const SamplingOptions options = {.repeat_penalty = arguments.real("repeat-penalty"),
                                   .top_k = arguments.integer("top-k"),
                                   .top_p = arguments.real("top-p"),
                                   .min_p = arguments.real("min-p"),
                                   .temperature = arguments.real("temperature"),
                                   .seed = static_cast<uint64_t>(arguments.integer("seed"))};
  if (options.top_p > 1 || options.min_p > 1)
    return usage_error("--top-p and --min-p are parts of 1");
  if (options.repeat_penalty == 0) return usage_error("--repeat-penalty 0 divides by 0");
  return options;
}

int64_t context_for(int64_t tokens, const DecoderConfig& config, const Arguments& arguments) {
  if (arguments.given("context")) return arguments.integer("context");
  return std::min(tokens, config.context);
}

Result<std::unique_ptr<LanguageModel>> load_language_model(LanguageSource read, int64_t context,
                                                           const Arguments& arguments,
                                                           Console& console) {
  const Face face = limited_face(arguments, console);
  LanguageModel::Options options = {
      .native = HONE_TRY(native_options(arguments, console, DefaultCache::user, LogPlans::left)),
      .context = context,
      .cache = *cache_type_of(arguments.text("cache-type"))};
  if (arguments.given("to")) options.weights = *quantize::precision_of(arguments.text("to"));
  Result<std::unique_ptr<LanguageModel>> model =
      LanguageModel::make(std::move(read), std::move(options), face);
  if (!model.ok())
    return name_memory_limit(std::move(model).error().within(arguments.text("MODEL")), arguments)
        .error();
  return model;
}

void note_generation(const Generation& made, const LanguageModel& model, Console& console) {
  if (made.dropped_tokens > 0)
    console.note("{} tokens of the prompt were left out: the context has room for {}",
                 made.dropped_tokens, model.context());
  if (made.guessed_tokens > 0)
    console.note("{} of {} guessed tokens were right", made.right_guesses, made.guessed_tokens);
  console.note("prompt: {}; then {}; {} of weights and caches; the end: {}",
               speed_text(made.prompt_tokens, made.prompt_seconds, made.prompt_rate()),
               speed_text(std::ssize(made.tokens), made.decode_seconds, made.decode_rate()),
               format_bytes(model.memory()), name(made.end));
  // No time was taken of a prompt that was not read to its end.
  if (made.prompt_tokens >= LanguageModel::kChunk && made.prompt_rate() > 0 &&
      model.products_per_second() > 0)
    console.note(
        "a token of the prompt takes {:.3g} million products: {:.0f} % of what the cores "
        "multiply",
        model.token_products() / 1e6,
        100 * made.prompt_rate() * model.token_products() / model.products_per_second());
  if (made.decode_rate() == 0 || model.bandwidth() == 0) return;
  const double speed = made.decode_rate() * static_cast<double>(model.step_bytes());
  console.note("a token reads {}: {} a second, {:.0f} % of what the memory delivers",
               format_bytes(model.step_bytes()), format_bytes(static_cast<int64_t>(speed)),
               100 * speed / model.bandwidth());
}

Status print_step_profile(const LanguageModel& model, Console& console) {
  std::optional<LanguageModel::StepProfile> profile = model.profile();
  if (!profile) {
    console.note("no step of one token was measured");
    return {};
  }
  Compilation& code = *profile->code;
  const Graph& graph = *HONE_TRY(code.graph());
  LayerNames layers;
  for (const NodeId n : graph.nodes())
    for (const ValueId value : graph.results(n))
      if (const std::string_view name = graph.name(value); name.starts_with("layer/"))
        layers.emplace(name, name.substr(0, name.find('/', std::string_view("layer/").size())));
  const SegmentProfile made =
      HONE_TRY(profile_of(profile->times, profile->runs, graph, *HONE_TRY(code.plan()),
                          code.target(), code.cost(), layers, profile->sizes));
  constexpr size_t kRows = 20;
  console.say(trim(profile_text(std::span(&made, 1), kRows)));
  return {};
}

}  // namespace hone::cli

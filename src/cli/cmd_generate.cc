#include "base/file.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/memory_limit.h"
#include "cli/native.h"
#include "cli/source.h"
#include "language/generation.h"

namespace hone::cli {
namespace {

constexpr int64_t kMostTextBytes = int64_t{1} << 30;

Result<std::string> text_at(const std::string& path) {
  return path == "-" ? read_stdin() : read_file(path, kMostTextBytes);
}

Result<std::string> given_prompt(const Arguments& arguments) {
  if (arguments.given("prompt") == arguments.given("prompt-file"))
    return usage_error("one of --prompt and --prompt-file says what is gone on with")
        .with_hint("hone generate model.gguf -p Once");
  return arguments.given("prompt") ? arguments.text("prompt")
                                   : text_at(arguments.text("prompt-file"));
}

Result<SamplingOptions> sampling_of(const Arguments& arguments) {
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

std::vector<TokenId> prompt_tokens(const LanguageSource& read, const std::string& text,
                                   const Arguments& arguments) {
  return read.tokenizer.prompt(text, arguments.given("control") ? Tokenizer::Control::is_token
                                                                : Tokenizer::Control::is_text);
}

// Room for all tokens that can come, as far as the model has it.
int64_t context_for(int64_t tokens, const DecoderConfig& config, const Arguments& arguments) {
  if (arguments.given("context")) return arguments.integer("context");
  return std::min(tokens, config.context);
}

Result<std::unique_ptr<LanguageModel>> loaded(LanguageSource read, int64_t context,
                                              const Arguments& arguments, Console& console) {
  const Face face = limited_face(arguments, console);
  Result<std::unique_ptr<LanguageModel>> model = LanguageModel::make(
      std::move(read),
      {.native = HONE_TRY(native_options(arguments, console, DefaultCache::user, LogPlans::left)),
       .context = context},
      face);
  if (!model.ok())
    return name_memory_limit(std::move(model).error().within(arguments.text("MODEL")), arguments)
        .error();
  return model;
}

std::string speed_text(int64_t tokens, double seconds, double rate) {
  std::string text =
      fmt::format("{} {} in {}", tokens, tokens == 1 ? "token" : "tokens", format_seconds(seconds));
  if (rate > 0) text += fmt::format(" ({:.1f} a second)", rate);
  return text;
}

}  // namespace

Status cmd_tokens(const Arguments& arguments, Console& console) {
  const std::string text = HONE_TRY(given_prompt(arguments));
  LanguageSource read = HONE_TRY(read_language(arguments.text("MODEL")));
  const std::vector<Vocabulary::Token>& all = read.tokenizer.vocabulary().tokens;
  for (const TokenId token : prompt_tokens(read, text, arguments))
    console.print("{} {}\n", token, hone::quoted(all[static_cast<size_t>(token)].text));
  return {};
}

Status cmd_generate(const Arguments& arguments, Console& console) {
  const std::string text = HONE_TRY(given_prompt(arguments));
  GenerationOptions options = {.max_tokens = arguments.integer("max-tokens"),
                               .sampling = HONE_TRY(sampling_of(arguments)),
                               .stops = arguments.list("stop")};
  LanguageSource read = HONE_TRY(read_language(arguments.text("MODEL")));
  const std::vector<TokenId> prompt = prompt_tokens(read, text, arguments);
  const int64_t context =
      context_for(std::ssize(prompt) + options.max_tokens, read.config, arguments);
  const std::unique_ptr<LanguageModel> model =
      HONE_TRY(loaded(std::move(read), context, arguments, console));

  HONE_TRY(model->prepare(std::ssize(prompt)));
  const Console::Keeping keeping(console);
  options.cancel = &console.cancel();
  options.on_text = [&](std::string_view part) {
    console.write(part);
    (void)console.flush().ok();
  };
  const Generation made = HONE_TRY(generate(*model, prompt, options));
  console.write("\n");
  console.note("prompt: {}; then {}; {} of weights and caches; the end: {}",
               speed_text(made.prompt_tokens, made.prompt_seconds, made.prompt_rate()),
               speed_text(std::ssize(made.tokens), made.decode_seconds, made.decode_rate()),
               format_bytes(model->memory()), name(made.end));
  return made.end == GenerationEnd::cancelled ? console.cancel().check() : Status();
}

Status cmd_evaluate(const Arguments& arguments, Console& console) {
  if (!arguments.given("text")) return usage_error("--text says which text is scored");
  const std::string text = HONE_TRY(text_at(arguments.text("text")));
  LanguageSource read = HONE_TRY(read_language(arguments.text("MODEL")));
  const std::vector<TokenId> tokens = read.tokenizer.prompt(text);
  const int64_t window = arguments.integer("window");
  const int64_t context = std::min(window, read.config.context);
  const std::unique_ptr<LanguageModel> model =
      HONE_TRY(loaded(std::move(read), context, arguments, console));
  const std::unique_ptr<Progress> progress = console.progress();
  const Perplexity found = HONE_TRY(perplexity(*model, tokens, window, *progress));
  console.print("perplexity {:.4f} of {} tokens in {} windows of {}\n", found.value, found.scored,
                found.windows, window);
  return {};
}

}  // namespace hone::cli

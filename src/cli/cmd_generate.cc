#include <chrono>

#include "base/text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/devices.h"
#include "cli/language.h"
#include "cli/source.h"
#include "language/conversation.h"
#include "language/embedding_model.h"
#include "language/speculation.h"

namespace hone::cli {
namespace {

Result<std::string> given_prompt(const Arguments& arguments) {
  if (arguments.given("prompt") == arguments.given("prompt-file"))
    return usage_error("one of --prompt and --prompt-file says what to continue")
        .with_hint("hone generate model.gguf -p Once");
  return arguments.given("prompt") ? arguments.text("prompt")
                                   : language_text_at(arguments.text("prompt-file"));
}

// As text, or with --chat as what a user says to the model.
Result<std::vector<TokenId>> prompt_tokens(const Tokenizer& tokenizer, const std::string& text,
                                           const Arguments& arguments) {
  if (arguments.given("chat")) {
    if (arguments.given("control"))
      return usage_error("--chat takes no control tokens from the prompt (--control)");
    std::vector<ChatMessage> messages;
    if (arguments.given("system")) messages.push_back({"system", arguments.text("system")});
    messages.push_back({"user", text});
    return HONE_TRY(Conversation::make(tokenizer)).tokens(messages);
  }
  if (arguments.given("system")) return usage_error("--system goes with --chat");
  return tokenizer.prompt(text, arguments.given("control") ? Tokenizer::Control::is_token
                                                           : Tokenizer::Control::is_text);
}

// The model makes texts, or gives them vectors.
Result<Tokenizer> tokenizer_at(const std::string& path) {
  Result<LanguageSource> read = read_language(path);
  if (read.ok()) return std::move(read->tokenizer);
  Result<EmbeddingSource> other = read_embedding(path);
  if (other.ok()) return std::move(other->tokenizer);
  return std::move(read).error();
}

// A model that was trained to answer goes on badly with a bare question, or not at all.
void note_chat_template(const Tokenizer& tokenizer, const Arguments& arguments, Console& console) {
  if (tokenizer.vocabulary().chat_template.empty()) return;
  if (arguments.given("chat") || arguments.given("control")) return;
  console.note("the model was made to answer: --chat puts its chat template around the prompt");
}

// A line for each token: its number, the logarithm of its probability, and its text.
std::string log_probability_lines(const Generation& made, const LanguageModel& model) {
  std::string lines;
  for (size_t i = 0; i < made.tokens.size(); ++i)
    lines += fmt::format("{} {:.6f} {}\n", made.tokens[i], made.log_probabilities[i],
                         hone::quoted(model.tokenizer().bytes_of(made.tokens[i])));
  return lines;
}

// As --lookup and --draft say; null: nothing is guessed.
Result<std::unique_ptr<Drafter>> drafter_for(const LanguageModel& model, const Arguments& arguments,
                                             Console& console) {
  if (arguments.given("lookup") && arguments.given("draft"))
    return usage_error("--lookup and --draft both say how the text is guessed");
  if (arguments.given("lookup")) return std::unique_ptr<Drafter>(new LookupDrafter);
  if (!arguments.given("draft")) return std::unique_ptr<Drafter>();
  const std::string path = arguments.text("draft");
  LanguageSource read = HONE_TRY(read_language(path));
  const int64_t context = std::min(model.context(), read.config.context);
  std::unique_ptr<LanguageModel> small =
      HONE_TRY(load_language_model(std::move(read), context, arguments, console));
  Result<std::unique_ptr<ModelDrafter>> made =
      ModelDrafter::make(std::move(small), model.tokenizer());
  if (!made.ok()) return std::move(made).error().within(path);
  return std::unique_ptr<Drafter>(*std::move(made));
}

Result<GenerationOptions> generation_options(const Arguments& arguments) {
  return GenerationOptions{.max_tokens = arguments.integer("max-tokens"),
                           .sampling = HONE_TRY(sampling_options(arguments)),
                           .drops_start = arguments.given("drop-start"),
                           .stops = arguments.list("stop")};
}

// --prompts: several texts.
Status generate_lines(const Arguments& arguments, Console& console) {
  for (const char* one : {"prompt", "prompt-file", "draft", "log-probabilities", "profile"})
    if (arguments.given(one)) return usage_error("--prompts does not go with --{}", one);
  const std::string text = HONE_TRY(language_text_at(arguments.text("prompts")));
  GenerationOptions options = HONE_TRY(generation_options(arguments));
  LanguageSource read = HONE_TRY(read_language(arguments.text("MODEL")));
  std::vector<std::vector<TokenId>> prompts;
  size_t longest = 0;
  for (const std::string_view line : split_lines(text)) {
    prompts.push_back(HONE_TRY(prompt_tokens(read.tokenizer, std::string(line), arguments)));
    longest = std::max(longest, prompts.back().size());
  }
  const int64_t context =
      context_for(static_cast<int64_t>(longest) + options.max_tokens, read.config, arguments);
  const std::unique_ptr<LanguageModel> model =
      HONE_TRY(load_language_model(std::move(read), context, arguments, console));
  LookupDrafter lookup;
  if (arguments.given("lookup")) options.drafter = &lookup;
  options.is_apart = arguments.given("apart");
  HONE_TRY(model->prepare(static_cast<int64_t>(longest)));
  if (!options.is_apart && options.drafter == nullptr)
    HONE_TRY(model->prepare_together(prompts.size()));
  const Console::Keeping keeping(console);
  options.cancel = &console.cancel();
  int64_t tokens = 0;
  const auto start = std::chrono::steady_clock::now();
  for (const Generation& made : HONE_TRY(generate_all(*model, prompts, options))) {
    console.print("{}\n", hone::quoted(made.text));
    tokens += std::ssize(made.tokens);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  console.note("{} texts, {} tokens in {}, {:.1f} tokens a second; {} of weights and caches",
               prompts.size(), tokens, format_seconds(took.count()),
               static_cast<double>(tokens) / took.count(),
               format_bytes(model->memory(prompts.size())));
  return console.cancel().check();
}

}  // namespace

Status cmd_tokens(const Arguments& arguments, Console& console) {
  const std::string text = HONE_TRY(given_prompt(arguments));
  const Tokenizer tokenizer = HONE_TRY(tokenizer_at(arguments.text("MODEL")));
  const std::vector<Vocabulary::Token>& all = tokenizer.vocabulary().tokens;
  for (const TokenId token : HONE_TRY(prompt_tokens(tokenizer, text, arguments)))
    console.print("{} {}\n", token, hone::quoted(all[static_cast<size_t>(token)].text));
  return {};
}

Status cmd_generate(const Arguments& arguments, Console& console) {
  HONE_TRY(given_devices(arguments));
  if (arguments.given("prompts")) return generate_lines(arguments, console);
  if (arguments.given("apart")) return usage_error("--apart is for the texts of --prompts");
  const std::string text = HONE_TRY(given_prompt(arguments));
  GenerationOptions options = HONE_TRY(generation_options(arguments));
  LanguageSource read = HONE_TRY(read_language(arguments.text("MODEL")));
  const std::vector<TokenId> prompt = HONE_TRY(prompt_tokens(read.tokenizer, text, arguments));
  const int64_t context =
      context_for(std::ssize(prompt) + options.max_tokens, read.config, arguments);
  const std::unique_ptr<LanguageModel> model =
      HONE_TRY(load_language_model(std::move(read), context, arguments, console));

  const std::unique_ptr<Drafter> drafter = HONE_TRY(drafter_for(*model, arguments, console));
  options.drafter = drafter.get();

  HONE_TRY(model->prepare(std::ssize(prompt)));
  if (arguments.given("profile")) model->start_profile();
  const Console::Keeping keeping(console);
  options.cancel = &console.cancel();
  options.on_text = [&](std::string_view part) {
    console.write(part);
    (void)console.flush().ok();
  };
  const Generation made = HONE_TRY(generate(*model, prompt, options));
  console.write("\n");
  note_generation(made, *model, console);
  note_chat_template(model->tokenizer(), arguments, console);
  if (arguments.given("profile")) HONE_TRY(print_step_profile(*model, console));
  if (arguments.given("log-probabilities"))
    HONE_TRY(write_text(arguments.text("log-probabilities"), log_probability_lines(made, *model),
                        console));
  return made.end == GenerationEnd::cancelled ? console.cancel().check() : Status();
}

Status cmd_evaluate(const Arguments& arguments, Console& console) {
  if (!arguments.given("text")) return usage_error("--text says which text is scored");
  const std::string text = HONE_TRY(language_text_at(arguments.text("text")));
  LanguageSource read = HONE_TRY(read_language(arguments.text("MODEL")));
  const std::vector<TokenId> tokens = read.tokenizer.prompt(text);
  const int64_t window = arguments.integer("window");
  const int64_t context = std::min(window, read.config.context);
  const std::unique_ptr<LanguageModel> model =
      HONE_TRY(load_language_model(std::move(read), context, arguments, console));
  const std::unique_ptr<Progress> progress = console.progress();
  const Perplexity found = HONE_TRY(perplexity(*model, tokens, window, *progress));
  console.print("perplexity {:.4f} of {} tokens in {} windows of {}\n", found.value, found.scored,
                found.windows, window);
  return {};
}

}  // namespace hone::cli

#include <unistd.h>

#include <cstdio>

#include "base/text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/interruption.h"
#include "cli/language.h"
#include "language/conversation.h"

namespace hone::cli {
namespace {

constexpr int64_t kUsualContext = 4096;  // tokens, where the model has room for more
constexpr size_t kMostLineBytes = size_t{1} << 24;

// The next line of the standard input, without its end; nothing: there is none.
Result<std::optional<std::string>> next_line() {
  std::string line;
  for (int c = std::getc(stdin); c != EOF; c = std::getc(stdin)) {
    if (c == '\n') return std::optional(line);
    line += static_cast<char>(c);
    if (line.size() > kMostLineBytes)
      return over_limit("a line has more than {}", format_bytes(kMostLineBytes));
  }
  return line.empty() ? std::optional<std::string>() : std::optional(line);
}

class Talk {
 public:
  Talk(LanguageModel& model, Conversation conversation, GenerationOptions options, Console& console)
      : model_(model),
        conversation_(std::move(conversation)),
        options_(std::move(options)),
        console_(console) {
    options_.on_text = [&](std::string_view part) {
      console_.write(part);
      (void)console_.flush().ok();
    };
  }

  void begin(std::optional<std::string> system) {
    messages_.clear();
    if (system) messages_.push_back({"system", *std::move(system)});
  }

  Status answer(std::string line) {
    messages_.push_back({"user", std::move(line)});
    // The answer has at least a part of the context.
    const int64_t context = model_.context();
    const int64_t room = context - std::min(options_.max_tokens, context / 4);
    Conversation::Fitting fitting = HONE_TRY(conversation_.fitting(messages_, room));
    if (fitting.dropped > 0)
      console_.note("the {} oldest messages are left out: the context has room for {} tokens",
                    fitting.dropped, context);
    const Console::Keeping keeping(console_);
    const Interruption::Part part(console_);
    const Face before = model_.face();
    Face face = before;
    face.cancel = options_.cancel = &part.cancel();
    model_.set_face(face);
    Result<Generation> made = generate(model_, fitting.tokens, options_);
    model_.set_face(before);
    console_.write("\n");
    HONE_TRY(console_.flush());
    const Generation done = HONE_TRY(std::move(made));
    messages_.push_back({"assistant", done.text});
    if (done.end != GenerationEnd::model && done.end != GenerationEnd::stop)
      console_.note("the end: {}", name(done.end));
    ++answers_;
    tokens_ += std::ssize(done.tokens);
    seconds_ += done.decode_seconds;
    return {};
  }

  void note_all() const {
    if (answers_ == 0) return;
    console_.note("{} answers, {} tokens in {}; {} of weights and caches", answers_, tokens_,
                  format_seconds(seconds_), format_bytes(model_.memory()));
  }

 private:
  LanguageModel& model_;
  const Conversation conversation_;
  GenerationOptions options_;
  Console& console_;
  std::vector<ChatMessage> messages_;
  int64_t answers_ = 0;
  int64_t tokens_ = 0;
  double seconds_ = 0;
};

}  // namespace

Status cmd_chat(const Arguments& arguments, Console& console) {
  GenerationOptions options = {.max_tokens = arguments.integer("max-tokens"),
                               .sampling = HONE_TRY(sampling_options(arguments)),
                               .drops_start = true,
                               .stops = arguments.list("stop")};
  LanguageSource read = HONE_TRY(read_language(arguments.text("MODEL")));
  // Before the weights are read.
  (void)HONE_TRY(Conversation::make(read.tokenizer));
  const int64_t context = context_for(kUsualContext, read.config, arguments);
  const std::unique_ptr<LanguageModel> model =
      HONE_TRY(load_language_model(std::move(read), context, arguments, console));
  Talk talk(*model, HONE_TRY(Conversation::make(model->tokenizer())), std::move(options), console);
  std::optional<std::string> system;
  if (arguments.given("system")) system = arguments.text("system");
  talk.begin(system);
  HONE_TRY(model->prepare(2));
  const bool is_terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
  for (;;) {
    HONE_TRY(console.cancel().check());
    if (is_terminal) console.write("> ");
    HONE_TRY(console.flush());
    const std::optional<std::string> line = HONE_TRY(next_line());
    if (!line || trim(*line) == "/exit") break;
    if (trim(*line).empty()) continue;
    if (trim(*line) == "/new")
      talk.begin(system);
    else
      HONE_TRY(talk.answer(*line));
  }
  talk.note_all();
  return {};
}

}  // namespace hone::cli

#include "language/conversation.h"

namespace hone {

Result<Conversation> Conversation::make(const Tokenizer& tokenizer) {
  const std::string& text = tokenizer.vocabulary().chat_template;
  if (text.empty())
    return bad_input("the model has no chat template, so it may not be made for conversations")
        .with_hint("hone generate goes on with a text as it is");
  return Conversation(HONE_TRY(ChatTemplate::parse(text)), tokenizer);
}

ChatTemplate::Variables Conversation::variables() const {
  const Vocabulary& vocabulary = tokenizer_->vocabulary();
  const auto text_of = [&](const std::optional<TokenId>& token) {
    return token ? vocabulary.tokens[static_cast<size_t>(*token)].text : std::string();
  };
  return {.begin = text_of(vocabulary.begin), .end = text_of(vocabulary.end)};
}

Result<std::vector<TokenId>> Conversation::tokens(std::span<const ChatMessage> messages) const {
  return tokenizer_->conversation(HONE_TRY(template_.write(messages, variables())));
}

Result<std::vector<TokenId>> Conversation::tokens_of_json(std::string_view messages,
                                                          std::string_view more) const {
  ChatTemplate::Variables all = variables();
  all.json = more;
  return tokenizer_->conversation(HONE_TRY(template_.write_json(messages, all)));
}

Result<Conversation::Fitting> Conversation::fitting(std::vector<ChatMessage> messages,
                                                    int64_t most) const {
  Fitting made;
  const size_t kept = !messages.empty() && messages[0].role == "system" ? 1 : 0;
  for (;;) {
    made.tokens = HONE_TRY(tokens(messages));
    if (std::ssize(made.tokens) <= most || messages.size() <= kept + 1) return made;
    // A question goes with its answer.
    do {
      messages.erase(messages.begin() + static_cast<ptrdiff_t>(kept));
      ++made.dropped;
    } while (messages.size() > kept + 1 && messages[kept].role != "user");
  }
}

}  // namespace hone

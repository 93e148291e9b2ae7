#pragma once

#include <span>
#include <vector>

#include "language/chat/chat_template.h"
#include "language/tokenizer.h"

namespace hone {

// How a model reads a conversation: by the chat template of its file. The tokenizer outlives it.
class Conversation {
 public:
  // Refused: a model without a template.
  static Result<Conversation> make(const Tokenizer& tokenizer);

  // Up to where the answer of the model begins.
  Result<std::vector<TokenId>> tokens(std::span<const ChatMessage> messages) const;
  // Messages as a list in JSON; `variables`: an object with what the template knows besides, or "".
  Result<std::vector<TokenId>> tokens_of_json(std::string_view messages,
                                              std::string_view variables) const;
  // The same for at most `most` tokens: messages behind those of the system are left out, the
  // oldest first, down to the last one. Says how many.
  struct Fitting {
    std::vector<TokenId> tokens;
    int64_t dropped = 0;
  };
  Result<Fitting> fitting(std::vector<ChatMessage> messages, int64_t most) const;

 private:
  Conversation(ChatTemplate made, const Tokenizer& tokenizer)
      : template_(std::move(made)), tokenizer_(&tokenizer) {}
  ChatTemplate::Variables variables() const;

  ChatTemplate template_;
  const Tokenizer* tokenizer_;
};

}  // namespace hone

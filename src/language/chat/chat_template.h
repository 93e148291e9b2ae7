#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "language/chat/marked_text.h"

namespace hone {

struct TemplateNode;

struct ChatMessage {
  std::string role;  // system, user, assistant, tool, or what the template knows besides
  std::string content;
};

// The chat template of a model: a program in Jinja that writes a conversation as the model was
// trained to read it. It may come from anywhere: what it does is bounded.
class ChatTemplate {
 public:
  // Steps, bytes and items, weighed; about three million steps.
  static constexpr int64_t kMostWork = int64_t{1} << 28;

  // Refused: parts of Jinja that hone does not know, with their line.
  static Result<ChatTemplate> parse(std::string_view text);
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  struct Variables {
    bool asks_for_answer = true;  // ends where the answer of the model begins
    std::string begin = {};       // the texts of the tokens that begin and end a text
    std::string end = {};
    std::string json = {};  // an object with further variables, such as "tools"
  };
  // Texts of messages are marked, but for the names of well-known roles.
  Result<MarkedText> write(std::span<const ChatMessage> messages, const Variables& variables,
                           int64_t work = kMostWork) const;
  // The same with messages as a list in JSON, which may have more members than a role and content.
  Result<MarkedText> write_json(std::string_view messages, const Variables& variables,
                                int64_t work = kMostWork) const;

 private:
  explicit ChatTemplate(std::unique_ptr<TemplateNode> tree);
  std::unique_ptr<TemplateNode> tree_;
};

}  // namespace hone

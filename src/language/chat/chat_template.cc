#include "language/chat/chat_template.h"

#include <algorithm>

#include "language/chat/template_run.h"

namespace hone {
namespace {

constexpr std::string_view kRoles[] = {"system", "user", "assistant", "tool"};

bool is_known_role(std::string_view role) {
  return std::ranges::find(kRoles, role) != std::end(kRoles);
}

Result<TemplateValue> value_of(const ChatMessage& message) {
  return TemplateValue::of_dict(
      {{"role", TemplateValue::of_text(message.role, !is_known_role(message.role))},
       {"content", TemplateValue::of_text(message.content, true)}});
}

// Messages of JSON: well-known roles are not marked.
Result<TemplateValue> with_plain_role(const TemplateValue& message) {
  if (message.dict() == nullptr)
    return bad_input("a message is {}, not an object with a role and content", message.kind());
  TemplateValue::Dict fields = *message.dict();
  const TemplateValue* const role = field_of(fields, "role");
  if (role == nullptr || role->text() == nullptr) return bad_input("a message has no role");
  if (is_known_role(role->text()->bytes()))
    set_field(fields, "role", TemplateValue::of_text(role->text()->bytes()));
  return TemplateValue::of_dict(std::move(fields));
}

Result<MarkedText> write_messages(const TemplateNode& tree, TemplateValue messages,
                                  const ChatTemplate::Variables& variables, int64_t work) {
  TemplateValue::Dict names = {{"messages", std::move(messages)},
                               {"add_generation_prompt", variables.asks_for_answer},
                               {"bos_token", TemplateValue::of_text(variables.begin)},
                               {"eos_token", TemplateValue::of_text(variables.end)}};
  if (!variables.json.empty()) {
    Result<TemplateValue> more = template_value_of_json(variables.json);
    if (!more.ok()) return std::move(more).error().within("variables of the chat template");
    if (more->dict() == nullptr)
      return bad_input("the variables of the chat template are {}, not an object", more->kind());
    for (const auto& [name, value] : *more->dict()) set_field(names, name, value);
  }
  Result<MarkedText> written = run_template(tree, names, work);
  if (!written.ok()) return std::move(written).error().within("chat template");
  return written;
}

}  // namespace

ChatTemplate::ChatTemplate(std::unique_ptr<TemplateNode> tree) : tree_(std::move(tree)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::parse(std::string_view text) {
  Result<TemplateNodePtr> tree = parse_template(text);
  if (!tree.ok()) return std::move(tree).error().within("chat template");
  return ChatTemplate(*std::move(tree));
}

Result<MarkedText> ChatTemplate::write(std::span<const ChatMessage> messages,
                                       const Variables& variables, int64_t work) const {
  TemplateValue::List items;
  for (const ChatMessage& message : messages) items.push_back(HONE_TRY(value_of(message)));
  return write_messages(*tree_,
                        HONE_TRY(TemplateValue::of_list(std::move(items))), variables, work);
}

Result<MarkedText> ChatTemplate::write_json(std::string_view messages, const Variables& variables,
                                            int64_t work) const {
  Result<TemplateValue> read = template_value_of_json(messages);
  if (!read.ok()) return std::move(read).error().within("messages");
  if (read->list() == nullptr) return bad_input("the messages are {}, not a list", read->kind());
  TemplateValue::List items;
  for (const TemplateValue& one : *read->list()) items.push_back(HONE_TRY(with_plain_role(one)));
  return write_messages(*tree_,
                        HONE_TRY(TemplateValue::of_list(std::move(items))), variables, work);
}

}  // namespace hone

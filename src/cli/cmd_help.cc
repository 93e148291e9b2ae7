#include "base/text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/error_classes.h"
#include "cli/help.h"

namespace hone::cli {

Status cmd_help(const Arguments& arguments, Console& console) {
  const TitleStyle title = [&](std::string_view text) { return console.styled(Style::bold, text); };
  const std::string topic = join(arguments.list("COMMAND"), " ");
  if (arguments.given("errors")) {
    console.write(arguments.given("markdown") ? errors_markdown() : errors_text());
  } else if (arguments.given("markdown")) {
    console.write(markdown_help());
  } else if (topic.empty()) {
    console.write(general_help(title));
  } else if (find_command(topic) != nullptr || is_group(topic)) {
    const Command* command = find_command(topic);
    if (command != nullptr) console.write(command_help(*command, title));
    std::string_view separator = command != nullptr ? "\n" : "";
    for (const Command& member : commands()) {
      if (!member.name.starts_with(topic + " ")) continue;
      console.print("{}{}\n\n{}", separator, title(fmt::format("hone {}", member.name)),
                    command_help(member, title));
      separator = "\n";
    }
  } else {
    return unknown_command(topic);
  }
  return {};
}

Status cmd_version(const Arguments&, Console& console) {
  console.print("hone {}\n", HONE_VERSION);
  return {};
}

Status cmd_man(const Arguments&, Console& console) {
  console.write(man_page(HONE_VERSION));
  return {};
}

Status cmd_completions(const Arguments& arguments, Console& console) {
  console.write(completions(arguments.text("SHELL")));
  return {};
}

}  // namespace hone::cli

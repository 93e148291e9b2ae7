#include "front/hlo/read_program.h"

#include <algorithm>

#include "base/text.h"
#include "front/hlo/hlo_text.h"
#include "front/hlo/reader.h"
#include "front/hlo/stablehlo_text.h"

namespace hone::hlo {
namespace {

// Behind blanks, comments and aliases (#loc = ...).
std::string_view behind_comments(std::string_view text) {
  while (!text.empty()) {
    if (text.starts_with("//") || (text[0] == '#' && text.substr(0, 64).find('=') != text.npos))
      text.remove_prefix(std::min(text.find('\n'), text.size()));
    else if (std::string_view(" \t\r\n").find(text[0]) != std::string_view::npos)
      text.remove_prefix(1);
    else
      break;
  }
  return text;
}

// Null: there are several, or none.
const Function* only_public(const Module& module) {
  const Function* found = nullptr;
  for (const Function& one : module.functions) {
    if (one.is_private) continue;
    if (found != nullptr) return nullptr;
    found = &one;
  }
  return found;
}

}  // namespace

bool begins_like_stablehlo(std::string_view text) {
  text = behind_comments(text);
  for (const std::string_view word : {"module", "func.func"}) {
    std::string_view rest = text;
    if (consume_prefix(rest, word) && !rest.empty() &&
        std::string_view(" \t\r\n@{").find(rest[0]) != std::string_view::npos)
      return true;
  }
  return false;
}

bool begins_like_bytecode(std::string_view text) { return text.starts_with("ML\xEFR"); }

Program read_program(std::string_view text, std::string_view where) {
  Program program;
  program.where = where;
  if (begins_like_bytecode(text))
    throw Refusal{unsupported("this is the bytecode of MLIR, not its text")
                      .at(std::string(where))
                      .with_hint("print it: stablehlo-translate --deserialize FILE, or in JAX "
                                 "jax.jit(f).lower(*arguments).as_text()")};
  program.source = std::make_shared<const std::string>(text);
  begins_like_hlo_text(text.substr(0, 4096)) ? read_hlo_text(program) : read_stablehlo(program);
  std::erase_if(program.modules, [](const Module& one) { return one.functions.empty(); });
  if (program.modules.empty())
    throw Refusal{bad_input("there is no function").at(std::string(where))};
  return program;
}

const Function& entry_of(const Program& program, const Module& module) {
  if (module.entry < module.functions.size()) return module.functions[module.entry];
  const auto main = module.by_name.find("main");
  if (main != module.by_name.end()) return module.functions[main->second];
  if (const Function* only = only_public(module)) return *only;
  std::vector<std::string> names;
  for (const Function& one : module.functions)
    if (names.size() < 4) names.push_back(fmt::format("'{}'", excerpt(one.name)));
  throw Refusal{bad_input("no function is 'main', and several may be meant: {}{}",
                          join(names, ", "), module.functions.size() > 4 ? ", ..." : "")
                    .at(program.place(module.functions.front().offset))
                    .with_hint("call one of them 'main'")};
}

}  // namespace hone::hlo

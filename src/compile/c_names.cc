#include "compile/c_names.h"

#include <algorithm>

#include "base/text.h"

namespace hone {

namespace {

constexpr size_t kMostLetters = 200;

// Keywords of C23 and C++23, and macros that headers or compilers define.
constexpr std::string_view kReserved[] = {
    "alignas",   "alignof",      "and",           "and_eq",       "asm",
    "auto",      "bitand",       "bitor",         "bool",         "break",
    "case",      "catch",        "char",          "char16_t",     "char32_t",
    "char8_t",   "class",        "co_await",      "co_return",    "co_yield",
    "compl",     "concept",      "const",         "const_cast",   "consteval",
    "constexpr", "constinit",    "continue",      "decltype",     "default",
    "delete",    "do",           "double",        "dynamic_cast", "else",
    "enum",      "errno",        "explicit",      "export",       "extern",
    "false",     "float",        "for",           "friend",       "goto",
    "if",        "inline",       "int",           "linux",        "long",
    "mutable",   "namespace",    "new",           "noexcept",     "not",
    "not_eq",    "nullptr",      "operator",      "or",           "or_eq",
    "private",   "protected",    "public",        "register",     "reinterpret_cast",
    "requires",  "restrict",     "return",        "short",        "signed",
    "sizeof",    "static",       "static_assert", "static_cast",  "stderr",
    "stdin",     "stdout",       "struct",        "switch",       "template",
    "this",      "thread_local", "throw",         "true",         "try",
    "typedef",   "typeid",       "typename",      "typeof",       "typeof_unqual",
    "union",     "unix",         "unsigned",      "using",        "virtual",
    "void",      "volatile",     "wchar_t",       "while",        "xor",
    "xor_eq",    "NULL"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

std::string c_name(std::string_view text) {
  std::string name;
  for (char c : text.substr(0, kMostLetters)) {
    const bool stays = is_letter(c) || is_digit(c);
    // A name that begins with an underscore, or has two in a row, belongs to the compiler.
    if (stays || (!name.empty() && name.back() != '_')) name += stays ? c : '_';
  }
  if (name.empty() || is_digit(name[0])) name.insert(0, "v");
  if (std::ranges::find(kReserved, name) != std::end(kReserved)) name += '_';
  return name;
}

std::string upper_case(std::string_view text) {
  std::string upper(text);
  for (char& c : upper)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return upper;
}

std::string CNames::add(std::string_view text) {
  const std::string name = c_name(text);
  std::string unique = name;
  for (int i = 2; !taken_.insert(upper_case(unique)).second; ++i)
    unique = fmt::format("{}_{}", name, i);
  return unique;
}

std::string c_comment(std::string_view text) {
  std::string comment = escape(text);
  for (size_t at = 0; (at = comment.find("*/", at)) != std::string::npos; at += 3)
    comment.insert(at + 1, " ");
  for (size_t at = 0; (at = comment.find("/*", at)) != std::string::npos; at += 3)
    comment.insert(at + 1, " ");
  // "??/" is a backslash to some compilers.
  for (size_t at = 0; (at = comment.find("??", at)) != std::string::npos; at += 3)
    comment.insert(at + 1, " ");
  return comment;
}

}  // namespace hone

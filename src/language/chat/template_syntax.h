#pragma once

#include <memory>
#include <string>
#include <vector>

#include "language/chat/template_value.h"

namespace hone {

// A template as a tree. `parts` are named here in order; "body" stands for any number of
// statements.
enum class Syntax : uint8_t {
  // Statements
  text,     // value
  print,    // expression
  branch,   // condition, block; condition, block; ...; the last block may lack a condition
  loop,     // target, iterated, block, block for nothing or null, condition or null
  assign,   // target, expression
  capture,  // target, block, filters or null: its parts[0] is null, and means the text
  macro,    // block; named: parameters, with defaults or null
  leave,    // break
  next,     // continue
  block,    // body
  // Expressions
  constant,  // value
  name,      // name
  captured,  // the text of the block of `capture`
  list,      // body
  tuple,     // body
  dict,      // key, value, key, value...
  member,    // object; name
  item,      // object, index
  slice,     // object, begin or null, end or null, step or null
  call,      // function, arguments...; named
  filter,    // value, arguments...; name, named
  test,      // value, arguments...; name
  unary,     // operand; name: "not", "-", "+"
  binary,    // left, right; name
  join,      // body: the texts one after another
  either,    // body: or
  all,       // body: and
  compare,   // left, right, right...; names
  choose     // value, condition, other or null
};

struct TemplateNode {
  Syntax kind = Syntax::block;
  int line = 0;
  int depth = 1;  // of the tree below
  std::string name = {};
  TemplateValue value = {};
  std::vector<std::unique_ptr<TemplateNode>> parts = {};
  std::vector<std::pair<std::string, std::unique_ptr<TemplateNode>>> named = {};
  std::vector<std::string> names = {};
};
using TemplateNodePtr = std::unique_ptr<TemplateNode>;

// Refused: other texts than templates, nesting deeper than kDeepestTemplate, and parts of Jinja
// that hone does not know.
inline constexpr int kDeepestTemplate = 120;
Result<TemplateNodePtr> parse_template(std::string_view text);

// Counts a level of recursion while it lives; whoever opens one checks the count.
class TemplateLevel {
 public:
  explicit TemplateLevel(int& depth) : depth_(++depth) {}
  ~TemplateLevel() { --depth_; }
  TemplateLevel(const TemplateLevel&) = delete;

 private:
  int& depth_;
};

}  // namespace hone

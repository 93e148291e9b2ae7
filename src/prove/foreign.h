#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "prove/taso_rules.h"
#include "rules/rule.h"

// Rules of other systems. They have no types: "(matmul 0 ?a ?b)" is of any sizes that fit. To be
// verified they are given ranks and sizes, as general as their ops allow.

namespace hone {

// An op on other terms of its side, or a variable.
struct ForeignTerm {
  std::string op;         // in the words of Tensat; "": a variable
  std::string name = {};  // of a variable
  std::vector<int64_t> parameters = {};
  std::vector<size_t> operands = {};  // terms before this one
};

struct ForeignSide {
  std::vector<ForeignTerm> terms = {};
  std::vector<size_t> results = {};
};

struct ForeignRule {
  std::string name;
  ForeignSide left = {}, right = {};
};

// One rule a line: "(ewadd ?x ?y) => (ewadd ?y ?x)"; of several results "a, b => c, d". In `pairs`
// each two lines are one rule with two results, as Tensat writes them. `#` begins a comment. Errors
// have their place as "file:line:column".
Result<std::vector<ForeignRule>> parse_foreign_rules(std::string_view text, std::string_view file,
                                                     bool pairs = false);

// In the same words. An error: an operator refers to what does not stand before it.
Result<std::vector<ForeignRule>> foreign_rules(std::span<const TasoRule> rules);

struct TypedRule {
  Rule rule;
  std::string assumed = "";  // a guard that is part of its sizes: "where 2 groups have equal parts"
};
// The rule with types. Unsupported: it has an op that hone has no counterpart of, or that needs
// sizes that the rule does not tell. Bad input: no sizes fit, or the left side does not tell the
// right one.
Result<TypedRule> typed_rule(const ForeignRule& rule);

// The rule as a line, without its sizes. Unsupported: an op has no word there, or the rule has a
// guard, which the format cannot say.
Result<std::string> foreign_text(const Rule& rule);

}  // namespace hone

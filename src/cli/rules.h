#pragma once

#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/console.h"
#include "rules/rule.h"

// The commands about rules share these.

namespace hone::cli {

Result<std::vector<Rule>> load_rules(const std::string& path);
// NAME of FILE. An error suggests the name that is closest.
Result<Rule> named_rule(const Arguments& arguments);

// Rule::within, as "%a, %b".
std::string within_text(const Rule& rule);
// Nodes beside inputs.
size_t nodes_of(const Graph& graph);

Status cmd_rules_explain(const Arguments& arguments, Console& console);

}  // namespace hone::cli

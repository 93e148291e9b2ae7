#pragma once

#include <string>
#include <vector>

#include "rules/rule.h"

namespace hone {

// The rules of the folder rules/, file by file.
std::vector<Rule> committed_rules();

// A layer of two products with a skip, of whose rows one is wanted: inputs and body of a graph.
struct GraphText {
  std::string inputs, body;
  Graph graph() const;
};
GraphText one_row_wanted(int64_t rows, int64_t width, int64_t hidden);

}  // namespace hone

#pragma once

#include <string>
#include <vector>

#include "rules/rule.h"

namespace hone {

// The rules of the folder rules/, file by file.
std::vector<Rule> committed_rules();

// Proved for all sizes, by a certificate that the checker takes.
void expect_proved(const Rule& rule);
// The answer of the checker to a certificate of these steps.
Status checked(const Rule& rule, std::vector<std::string> steps);

// A layer of two products with a skip, of whose rows one is wanted: inputs and body of a graph.
struct GraphText {
  std::string inputs, body;
  Graph graph() const;
};
GraphText one_row_wanted(int64_t rows, int64_t width, int64_t hidden);

}  // namespace hone

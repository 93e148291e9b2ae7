#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/reference/evaluate.h"
#include "tests/ir/op_testing.h"
#include "tests/ir/text_testing.h"

namespace hone::tested {

inline std::vector<Tensor> tensors(std::initializer_list<std::string_view> texts) {
  std::vector<Tensor> all;
  for (std::string_view text : texts) all.push_back(tensor_of(text));
  return all;
}

// Evaluates a graph written as text; the first difference from what is wanted, or the error.
inline std::string run(std::string_view graph, std::initializer_list<std::string_view> inputs,
                       std::initializer_list<std::string_view> wanted,
                       const EvalOptions& options = {}, double tolerance = 0) {
  Result<std::vector<Tensor>> results = evaluate(parse_ok(graph), tensors(inputs), options);
  if (!results.ok()) return results.error().to_string();
  if (results->size() != wanted.size()) return fmt::format("{} results", results->size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    std::string wrong = difference((*results)[i], tensor_of(wanted.begin()[i]), tolerance);
    if (!wrong.empty()) return fmt::format("result {}{}", i, wrong);
  }
  return "";
}

// The same on one device per row of inputs.
using Texts = std::vector<std::string>;
inline std::string run_spmd(std::string_view graph, const std::vector<Texts>& inputs,
                            const std::vector<Texts>& wanted) {
  std::vector<std::vector<Tensor>> rows;
  for (const Texts& texts : inputs) {
    std::vector<Tensor>& row = rows.emplace_back();
    for (const std::string& text : texts) row.push_back(tensor_of(text));
  }
  Result<std::vector<std::vector<Tensor>>> results = evaluate_spmd(parse_ok(graph), rows);
  if (!results.ok()) return results.error().to_string();
  if (results->size() != wanted.size()) return fmt::format("{} devices", results->size());
  for (size_t d = 0; d < wanted.size(); ++d) {
    for (size_t i = 0; i < wanted[d].size(); ++i) {
      std::string wrong = difference((*results)[d][i], tensor_of(wanted[d][i]));
      if (!wrong.empty()) return fmt::format("device {} result {}{}", d, i, wrong);
    }
  }
  return "";
}

}  // namespace hone::tested

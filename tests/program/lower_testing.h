#pragma once

#include <gtest/gtest.h>

#include "ir/text.h"
#include "plan/prepare.h"
#include "program/lower/lower.h"

namespace hone {

inline Target two_cores() {
  Target target;
  target.name = "test";
  target.cores = 2;
  return target;
}

inline Graph prepared(const Graph& source) {
  Result<Graph> graph = prepare(source);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return graph.ok() ? *graph : Graph();
}
inline Graph prepared(std::string_view text) {
  Result<Graph> graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return graph.ok() ? prepared(*graph) : Graph();
}

// By the reference, each node rounded to its type.
std::vector<Tensor> evaluated(const Graph& graph, const std::vector<Tensor>& inputs);
void expect_same(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected);

// Lowers, checks the text, and runs in the order of the list, in another one, and written out: the
// results are those of the reference.
void check_lowered(const Graph& graph, const Plan& plan, const std::vector<Tensor>& inputs);

}  // namespace hone

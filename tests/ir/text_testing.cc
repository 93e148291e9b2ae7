#include "tests/ir/text_testing.h"

#include <gtest/gtest.h>

namespace hone {

Graph parse_ok(std::string_view text) {
  Result<Graph> graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string() << "\n" << text;
  if (!graph.ok()) return Graph();
  Status status = verify(*graph);
  EXPECT_TRUE(status.ok()) << status.error().to_string() << "\n" << text;
  return std::move(graph).value();
}

void expect_canonical(std::string_view text) {
  Graph graph = parse_ok(text);
  EXPECT_EQ(print(graph), text);
  expect_identical(parse_ok(print(graph)), graph);
}

void expect_identical(const Graph& actual, const Graph& wanted) {
  EXPECT_EQ(actual.name(), wanted.name());
  ASSERT_EQ(actual.node_count(), wanted.node_count());
  ASSERT_EQ(actual.value_count(), wanted.value_count());
  for (NodeId n : wanted.nodes()) {
    EXPECT_EQ(actual.op(n), wanted.op(n)) << wanted.describe(n);
    EXPECT_TRUE(std::ranges::equal(actual.operands(n), wanted.operands(n))) << wanted.describe(n);
    EXPECT_EQ(actual.result_types(n), wanted.result_types(n)) << wanted.describe(n);
    for (ValueId v : wanted.results(n)) EXPECT_EQ(actual.name(v), wanted.name(v));
    if (wanted.opcode(n) == Opcode::constant)
      EXPECT_TRUE(actual.constant(n).same_bytes(wanted.constant(n))) << wanted.describe(n);
    ASSERT_EQ(actual.regions(n).size(), wanted.regions(n).size());
    for (size_t i = 0; i < wanted.regions(n).size(); ++i)
      expect_identical(*actual.regions(n)[i], *wanted.regions(n)[i]);
  }
  EXPECT_TRUE(std::ranges::equal(actual.inputs(), wanted.inputs()));
  EXPECT_TRUE(std::ranges::equal(actual.outputs(), wanted.outputs()));
  EXPECT_TRUE(std::ranges::equal(actual.donations(), wanted.donations()));
}

std::string parse_error(std::string_view text) {
  Result<Graph> graph = parse_graph(text);
  if (graph.ok()) return "no error";
  const Error& error = graph.error();
  std::string_view where = error.where();
  EXPECT_TRUE(where.starts_with("<text>:")) << error.to_string();
  where.remove_prefix(std::min<size_t>(where.size(), 7));
  return fmt::format("{}: {}{}{}", where, error.what(), error.hint().empty() ? "" : "; ",
                     error.hint());
}

}  // namespace hone

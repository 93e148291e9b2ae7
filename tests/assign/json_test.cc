#include "assign/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/gzip.h"
#include "tests/assign/random_problem.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;
using testing::ElementsAre;

constexpr std::string_view kProblem = R"({"note": {"x": [1.5, null, true, "\u00e9\""]}, "problem": {
  "edges": {"costs": [[30, 40], [0, 1000000000000000000], [0, 1000000000000000000]],
            "nodes": [[0, 1], [1, 0], [1, 2]]},
  "usage_limit": 50, "name": "small \"one\"",
  "nodes": {"intervals": [[30, 70], [40, 80], [9, 9]],
            "costs": [[15], [55, 65], [7]], "usages": [[10], [25, 20], [1]]}}})";

void expect_bad(std::string_view json, std::string_view words) {
  EXPECT_THAT(parse_assign_json(json, "p.json"), refuses(ErrorCode::bad_input, std::string(words)))
      << json;
}

// The problem with a piece of its text replaced.
std::string with(std::string_view from, std::string_view to) {
  std::string json(kProblem);
  const size_t at = json.find(from);
  EXPECT_NE(at, json.npos) << from;
  return json.replace(at, from.size(), to);
}

TEST(AssignJson, IsReadInAnyOrder) {
  const AssignProblem problem = parse_assign_json(kProblem, "p.json").value();
  EXPECT_EQ(problem.name, "small \"one\"");
  EXPECT_EQ(problem.usage_limit, 50);
  ASSERT_EQ(problem.nodes.size(), 3U);
  EXPECT_EQ(problem.nodes[1].begin, 40);
  EXPECT_EQ(problem.nodes[1].end, 80);
  EXPECT_THAT(problem.nodes[1].costs, ElementsAre(55, 65));
  EXPECT_THAT(problem.nodes[1].usages, ElementsAre(25, 20));
  EXPECT_FALSE(problem.nodes[2].is_ever_alive());
  ASSERT_EQ(problem.edges.size(), 3U);
  EXPECT_EQ(problem.edges[1].table, problem.edges[2].table);  // equal ones are stored once
  EXPECT_EQ(problem.tables.size(), 2U);
  EXPECT_TRUE(check(problem).ok());
}

TEST(AssignJson, IsWrittenAsItWasRead) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Rng rng(seed);
    const AssignProblem problem = tested::random_assign({}, rng);
    const std::string json = print_assign_json(problem);
    const AssignProblem again = parse_assign_json(gzip(json), "again").value();
    EXPECT_EQ(print_assign_json(again), json);
    EXPECT_TRUE(check(again).ok());
  }
}

TEST(AssignJson, ErrorsNameThePlace) {
  expect_bad("", "p.json:1:1 ... end of the file");
  expect_bad("{}", "p.json ... problem");
  expect_bad(with("}}}", "}}} 5"), "p.json:6:80 ... 5");
  expect_bad(with("[55, 65]", "[55, 6.5]"), "p.json:6:34 ... whole number");
  expect_bad(with("[55, 65]", "[55, 1e18]"), "p.json:6:34 ... whole number");
  expect_bad(with("[55, 65]", "[55, -1]"), "p.json:6:34 ... -1 ... negative");
  expect_bad(with("[55, 65]", "[55, 99999999999999999999]"), "p.json:6:34 ... 64 bits");
  expect_bad(with("[55, 65]", "[55, 65"), "p.json:6:38");
  expect_bad(with("[55, 65]", "[]"), "p.json:6:29 ... node 1 ... option");
  expect_bad(with("[25, 20]", "[25]"), "p.json:6:62 ... node 1 ... 2 options ... 1 usages");
  expect_bad(with("[9, 9]", "[9]"), "p.json:5:49");
  expect_bad(with(", [9, 9]", ""), "2 intervals ... 3");
  expect_bad(with("[9, 9]", "[50, 10]"), "p.json:5:47 ... node 2 ... from 50 up to 10");
  expect_bad(with("[30, 40]", "[30]"), "p.json:2:23 ... edge 0 ... 1 costs ... 1 x 2");
  expect_bad(with("[1, 2]]", "[1, 3]]"), "edge 2 ... node 3 ... 3");
  expect_bad(with("[1, 2]]", "[1, 1]]"), "edge 2 ... node 1 ... itself");
  expect_bad(with(", [1, 2]]", "]"), "2 pairs ... 3");
  expect_bad(with("\"name\"", "\"usage_limit\""), "p.json:4:22 ... usage_limit ... twice");
  expect_bad(with("\"costs\": [[15]", "\"cost\": [[15]"), "costs");
  expect_bad(with("[1.5, null", "[1.5, nil"), "p.json:1:22 ... nil");
  expect_bad(with("small", "sm\nall"), "control");
  expect_bad(std::string(200, '['), "p.json");
  expect_bad("{\"x\": " + std::string(200, '['), "brackets");
}

TEST(AssignJson, DamagedGzipIsRefused) {
  std::string bytes = gzip(kProblem);
  EXPECT_TRUE(parse_assign_json(bytes, "p.json.gz").ok());
  EXPECT_THAT(parse_assign_json(bytes.substr(0, 40), "p.json.gz"),
              refuses(ErrorCode::bad_input, "p.json.gz ... gzip ... too early"));
  bytes[30] = static_cast<char>(~bytes[30]);
  EXPECT_THAT(parse_assign_json(bytes, "p.json.gz"), refuses(ErrorCode::bad_input, "p.json.gz"));
}

TEST(AssignmentText, IsTheLastLine) {
  EXPECT_THAT(parse_assignment("cost 445\n[0, 0, 2, 1, 0]\n\n", "s").value(),
              ElementsAre(0, 0, 2, 1, 0));
  EXPECT_EQ(print_assignment({0, 0, 2}), "[0, 0, 2]\n");
  EXPECT_THAT(parse_assignment("[]", "s").value(), ElementsAre());
  EXPECT_THAT(parse_assignment("x\n[0, -1]", "s"), refuses(ErrorCode::bad_input, "s:2:5 ... -1"));
  EXPECT_THAT(parse_assignment("[0] 1", "s"), refuses(ErrorCode::bad_input, "s:1:5"));
  EXPECT_THAT(parse_assignment("\n\n", "s"), refuses(ErrorCode::bad_input, "s:"));
  EXPECT_THAT(parse_assignment("[70000]", "s"), refuses(ErrorCode::bad_input, "70000"));
}

TEST(AssignProblem, IsChecked) {
  AssignProblem problem = parse_assign_json(kProblem, "p.json").value();
  const auto expect = [&](const auto& change, std::string_view words) {
    AssignProblem changed = problem;
    change(changed);
    EXPECT_THAT(check(changed), refuses(ErrorCode::bad_input, std::string(words)));
  };
  expect([](AssignProblem& p) { p.nodes[1].costs.pop_back(); }, "node 1 ... 1 costs ... 2 usages");
  expect([](AssignProblem& p) { p.nodes[1].costs = {}; }, "node 1 ... option");
  expect([](AssignProblem& p) { p.nodes[2].costs[0] = -4; }, "node 2 ... -4");
  expect([](AssignProblem& p) { p.nodes[2].usages[0] = -4; }, "node 2 ... -4");
  expect([](AssignProblem& p) { p.edges[1].first = 7; }, "edge 1 ... 7");
  expect([](AssignProblem& p) { p.edges[1].table = 7; }, "edge 1 ... 7");
  expect([](AssignProblem& p) { p.edges[1].first = 0; }, "edge 1 ... 0 ... itself");
  expect([](AssignProblem& p) { p.tables[0] = {1}; }, "edge 0 ... 1 costs");
  expect([](AssignProblem& p) { p.tables[0][0] = -1; }, "negative");
  expect([](AssignProblem& p) { p.usage_limit = -1; }, "-1");
}

}  // namespace
}  // namespace hone::HONE_FILE

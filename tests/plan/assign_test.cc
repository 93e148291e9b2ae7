#include "plan/assign.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.h"
#include "rewrite/prepare.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::ElementsAre;
using testing::HasSubstr;

Graph graph(std::string_view name, std::string_view op) {
  return parse_graph(fmt::format("graph @{}(%x: f32[4]) {{ %y = {} %x return %y }}", name, op))
      .value();
}

// Four of which two have the same hash, two the same name, and two both.
class AssignPlans : public testing::Test {
 protected:
  const Graph a_ = graph("a", "exp"), b_ = graph("b", "exp"), c_ = graph("c", "neg"),
              again_ = graph("c", "neg");
  const std::vector<const Graph*> graphs_ = {&a_, &b_, &c_, &again_};

  static std::string plan(const Graph& of, std::string_view name) {
    return fmt::format("plan @{} hash 0x{:016x} {{}}\n", name,
                       hash_without_weights(prepare(of).value()));
  }
  // The line of each graph's plan; -1: none.
  std::vector<int> lines(const std::string& text) {
    const std::vector<PlacedPlan> plans = parse_plans(text, "p").value();
    const std::vector<const PlacedPlan*> of_graph = assign_plans(plans, graphs_).value();
    std::vector<int> lines;
    for (const PlacedPlan* each : of_graph)
      lines.push_back(each == nullptr ? -1 : std::stoi(each->place.substr(2)));
    return lines;
  }
  std::string error(const std::string& text) {
    const std::vector<PlacedPlan> plans = parse_plans(text, "p").value();
    return assign_plans(plans, graphs_).error().to_string();
  }
};

TEST_F(AssignPlans, ByHashThenByName) {
  EXPECT_THAT(lines(plan(a_, "a") + plan(b_, "b") + plan(c_, "c") + plan(c_, "c")),
              ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(lines(plan(b_, "b") + plan(a_, "a")), ElementsAre(2, 1, -1, -1));
  EXPECT_THAT(lines(plan(a_, "other")), ElementsAre(1, -1, -1, -1));
  EXPECT_THAT(lines("plan @b {} plan @c {}"), ElementsAre(-1, 1, 1, -1));
}

TEST_F(AssignPlans, WhatFitsBestIsFoundFirst) {
  EXPECT_THAT(lines(plan(a_, "other") + plan(a_, "a")), ElementsAre(2, 1, -1, -1));
  EXPECT_THAT(lines("plan @c {}\n" + plan(c_, "c")), ElementsAre(-1, -1, 2, 1));
}

TEST_F(AssignPlans, RefusesThoseOfNoGraph) {
  EXPECT_THAT(error("\nplan @d {}"), says("plan '@d' ... p:2 ... segment ... 'a'"));
  EXPECT_THAT(error("plan @c hash 0x0000000000000007 {}"),
              says("segment 'c' ... hash, 0x0000000000000007 ... p:1"));
}

TEST_F(AssignPlans, RefusesTwoOfOneGraph) {
  EXPECT_THAT(error("plan @a {}\nplan @a {}"),
              HasSubstr("segment 'a' has two plans (p:2)\nhint: the other is at p:1"));
  EXPECT_THAT(error(plan(a_, "a") + plan(a_, "a") + plan(a_, "a")),
              HasSubstr("has two plans (p:3)"));
}

TEST_F(AssignPlans, OneOfOneGraphMayHaveAnyName) {
  const Graph* const one[] = {&a_};
  const std::vector<PlacedPlan> named = parse_plans("plan @other {}").value();
  EXPECT_THAT(assign_plans(named, one).value(), ElementsAre(&named[0]));
  const std::vector<PlacedPlan> wrong = parse_plans(plan(c_, "a"), "p").value();
  EXPECT_THAT(assign_plans(wrong, one).error().to_string(), says("another graph ... hash"));
}

}  // namespace
}  // namespace hone::HONE_FILE

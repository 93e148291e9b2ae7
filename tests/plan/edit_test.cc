#include "plan/edit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.h"
#include "plan/plan_space.h"
#include "plan/random_plan.h"
#include "rewrite/prepare.h"
#include "tests/base/says_testing.h"
#include "tests/plan/plan_testing.h"
#include "zoo/random/random_graph.h"
#include "zoo/random/random_joins.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;

const Target& target() {
  static const Target target = parse_target(kSampleTarget, "t").value();
  return target;
}

std::unique_ptr<PlanEditor> open(const Graph& graph, const Plan& plan) {
  return PlanEditor::open(graph, plan, target()).value();
}

// The text of a plan, apart from the numbers of steps and copies: by names.
using Facts = std::map<std::string, std::string>;
Facts facts_of(const FrameEditor& frame) {
  const PlannedGraph& planned = frame.planned();
  const GraphView graph = frame.view();
  Facts facts;
  const auto names = [&](const auto& values) {
    std::string text;
    for (ValueId v : values) text += fmt::format(" {}", graph.name(v));
    return text;
  };
  const auto step_label = [&](uint32_t s) { return label(graph, planned.steps[s]); };
  for (uint32_t s = 0; s < planned.steps.size(); ++s) {
    const Step& step = planned.steps[s];
    std::string text =
        fmt::format("kernel {} reads{} writes{} in place {} hash {:x}", step.is_kernel,
                    names(step.reads), names(step.writes), step.in_place, frame.kernel(s).hash);
    for (NodeId n : step.nodes) text += fmt::format(" node {}", step_name(graph, n));
    std::set<std::string> more;
    for (const Donor& d : step.donors)
      more.insert(fmt::format(" {}->{}", graph.name(d.input), graph.name(d.output)));
    for (uint32_t other : step.after) more.insert(" after " + step_label(other));
    for (const std::string& one : more) text += one;
    facts["step " + step_label(s)] = text;
  }
  for (uint32_t i = 0; i < graph.value_count(); ++i) {
    if (graph.is_copy(ValueId{i}) && frame.users().of(ValueId{i}).empty()) continue;
    const NodeId concat = planned.concat[i];
    facts[fmt::format("value {}", graph.name(ValueId{i}))] =
        fmt::format("home {} base {} version {} concat {} layout {} said {} free {} offset {}",
                    static_cast<int>(planned.home[i]), graph.name(planned.base[i]),
                    graph.name(planned.version[i]),
                    concat == NodeId{} ? "" : step_name(graph, concat), print(planned.layout[i]),
                    bool{planned.said_layout[i]}, bool{planned.free_layout[i]}, planned.offset[i]);
  }
  std::string order;
  for (uint32_t s : planned.order) order += " " + step_label(s);
  facts["order"] = order;
  return facts;
}

// All that there is, numbers too.
struct State {
  PlannedGraph planned;
  std::vector<KernelKey> kernels;
  Plan plan;
  bool operator==(const State&) const = default;
};
State state_of(const PlanEditor& plan) {
  State state{plan.main().planned(), {}, plan.to_plan()};
  for (uint32_t s = 0; s < state.planned.steps.size(); ++s)
    state.kernels.push_back(plan.main().kernel(s));
  return state;
}

// The plan as its text says, found anew.
void expect_same_as_text(const Graph& graph, const PlanEditor& plan) {
  const Plan text = plan.to_plan();
  const Status good = check(text, graph, target());
  ASSERT_TRUE(good.ok()) << good.error().to_string() << print(graph) << print(text);
  const std::unique_ptr<PlanEditor> anew = open(graph, text);
  EXPECT_EQ(facts_of(plan.main()), facts_of(anew->main())) << print(graph) << print(text);
  EXPECT_EQ(anew->to_plan(), text);
}

void expect_kernel_hashes(const FrameEditor& frame) {
  for (uint32_t s = 0; s < frame.planned().steps.size(); ++s)
    if (frame.planned().steps[s].is_kernel)
      EXPECT_EQ(frame.kernel(s).hash, kernel_hash(frame.body(s)));
}

bool has_views_in_layouts(const PlannedGraph& planned) {
  for (uint32_t i = 0; i < planned.base.size(); ++i)
    if (planned.base[i] != ValueId{i} && !planned.layout[i].is_row_major()) return true;
  return false;
}

// Some open edits of the kind, and what the plan is then. Counts what was accepted.
void edit_at_random(const Graph& graph, PlanEditor& plan, Rng& rng, int edits,
                    std::map<EditKind, int>& accepted, int& views_in_layouts) {
  for (int i = 0; i < edits; ++i) {
    const EditKind kind = rng.pick(kEditKinds);
    const std::vector<OpenEdit> open = PlanSpace(plan.main()).edits(kind);
    if (open.empty()) continue;
    const OpenEdit edit = rng.pick(open);
    const Plan before = plan.to_plan();
    const Result<Undo> done = apply(plan.main(), edit, rng);
    SCOPED_TRACE(fmt::format("edit {} of kind {} of {}, {}", i, static_cast<int>(kind),
                             edit.subject, edit.other));
    if (done.ok()) {
      ++accepted[kind];
      views_in_layouts += has_views_in_layouts(plan.main().planned()) ? 1 : 0;
      expect_same_as_text(graph, plan);
    } else {
      EXPECT_FALSE(done.error().what().empty());
      EXPECT_EQ(plan.to_plan(), before);
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Edit, AcceptedEditsGiveThePlanOfTheirText) {
  std::map<EditKind, int> accepted;
  int views_in_layouts = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const RandomGraphOptions options = {
        .seed = seed,
        .first = seed % 3 == 0 ? std::optional(Opcode::dynamic_update) : std::nullopt};
    const Graph graph = prepare(seed % 4 == 1 ? random_joins(seed) : random_graph(options)).value();
    Rng rng(seed);
    Plan start;
    if (seed % 2 == 0) start = random_plan(graph, target(), seed);
    const std::unique_ptr<PlanEditor> plan = open(graph, start);
    expect_same_as_text(graph, *plan);
    plan->main().clear_offsets();
    if (seed % 4 == 0) ASSERT_TRUE(plan->main().set_order({}).ok());
    edit_at_random(graph, *plan, rng, 30, accepted, views_in_layouts);
    expect_kernel_hashes(plan->main());
    if (testing::Test::HasFailure()) return;
  }
  for (EditKind kind : kEditKinds) EXPECT_GE(accepted[kind], 5) << static_cast<int>(kind);
  fmt::print("edits with views that are not row-major: {}\n", views_in_layouts);
  EXPECT_GE(views_in_layouts, 50);
}

// ---- Refusals -----------------------------------------------------------------------------------

constexpr std::string_view kChain =
    R"(graph @g(%x: f32[4, 8], %p: bool[]) -> (f32[4, 8], f32[4, 8]) {
  %a = exp %x
  %b = sort %a {axis = 0}
  %c = add %a, %b
  %d = neg %c
  %r = reshape %d {dims = [8, 4]}
  %e = transpose %r {permutation = [1, 0]}
  %f = exp %e
  return %f, %c
})";

class EditChain : public testing::Test {
 protected:
  EditChain() : graph_(parse_graph(kChain).value()), plan_(open(graph_, {})) {}

  ValueId value(std::string_view name) const {
    for (uint32_t i = 0; i < frame().view().value_count(); ++i)
      if (frame().view().name(ValueId{i}) == name) return ValueId{i};
    return {};
  }
  NodeId node(std::string_view name) const { return frame().view().producer(value(name)); }
  uint32_t step(std::string_view name) const { return frame().planned().step_of[node(name).index]; }
  FrameEditor& frame() const { return plan_->main(); }
  static std::string text(const Result<Undo>& edit) {
    return edit.ok() ? "" : edit.error().to_string();
  }

  Graph graph_;
  std::unique_ptr<PlanEditor> plan_;
};

TEST_F(EditChain, AKernelDoesNotReadItsOwnResultAsAView) {
  const Graph graph = parse_graph(R"(graph @g(%x: f32[4, 8]) -> f32[8, 8] {
    %a = exp %x
    %b = neg %x
    %c = concat %a, %b {axis = 0}
    %d = exp %c
    return %d
  })")
                          .value();
  const Plan plan = plan_of("fuse @k0 = {%a} fuse @k1 = {%b} fuse @k2 = {%d} view %c = yes");
  for (uint32_t part : {0U, 1U}) {
    const std::unique_ptr<PlanEditor> editor = open(graph, plan);
    const Result<Undo> join = editor->main().join(part, 2);
    EXPECT_FALSE(join.ok());
    EXPECT_EQ(editor->to_plan(), plan);
  }
  const Graph same = parse_graph(R"(graph @g(%x: f32[4, 8]) -> f32[4, 8] {
    %a = exp %x
    %b = bitcast %a {dtype = i32}
    %c = bitcast %b {dtype = f32}
    %d = neg %c
    return %d
  })")
                         .value();
  const std::unique_ptr<PlanEditor> editor =
      open(same, plan_of("fuse @k0 = {%a} fuse @k1 = {%d} view %b = yes view %c = yes"));
  EXPECT_THAT(text(editor->main().join(0, 1)), says("reads"));
}

TEST_F(EditChain, LayoutsOfFreeValues) {
  const Layout columns = parse_layout("[1, 0]").value();
  EXPECT_EQ(text(frame().set_layout(value("a"), columns)), "");
  EXPECT_THAT(text(frame().set_layout(value("x"), columns)),
              says("input ... row-major ... layout %x"));
  EXPECT_THAT(text(frame().set_layout(value("c"), columns)),
              says("output ... row-major ... layout %c"));
  EXPECT_THAT(text(frame().set_layout(value("a"), parse_layout("[1]").value())),
              HasSubstr("(layout %a)"));
  EXPECT_THAT(text(frame().join(step("a"), step("b"))), says("kernel of its own"));
  EXPECT_EQ(print(plan_->to_plan()).find("fuse"), std::string::npos);
}

TEST_F(EditChain, GroupsThatWaitForThemselvesAreRefused) {
  EXPECT_THAT(text(frame().join(step("a"), step("c"))),
              says("node '%c' (add) ... node '%b' (sort) ... group"));
  ASSERT_EQ(text(frame().join(step("c"), step("d"))), "");
  EXPECT_EQ(frame().planned().steps[step("c")].nodes.size(), 2U);
  EXPECT_EQ(step("c"), step("d"));
  ASSERT_EQ(text(frame().split(step("c"), {node("d")})), "");
  EXPECT_NE(step("c"), step("d"));
  EXPECT_THAT(text(frame().split(step("c"), {node("c")})), HasSubstr("but not all"));
}

TEST_F(EditChain, WhatHasNoMemoryHasNoLayout) {
  ASSERT_EQ(text(frame().set_layout(value("e"), parse_layout("[1, 0]").value())), "");
  EXPECT_THAT(text(frame().join(step("e"), step("f"))), says("kernel ... layout %e"));
  ASSERT_EQ(text(frame().set_layout(value("e"), std::nullopt)), "");
  EXPECT_EQ(text(frame().join(step("e"), step("f"))), "");
}

TEST_F(EditChain, Views) {
  ASSERT_EQ(text(frame().set_layout(value("d"), parse_layout("[1, 0]").value())), "");
  EXPECT_THAT(text(frame().set_view(node("r"), Said::yes)),
              says("%r ... view ... row-major ... layout %d"));
  ASSERT_EQ(text(frame().set_layout(value("d"), std::nullopt)), "");
  ASSERT_EQ(text(frame().set_view(node("r"), Said::yes)), "");
  EXPECT_EQ(frame().planned().base[value("r").index], value("d"));
  EXPECT_THAT(text(frame().set_view(node("e"), Said::yes)), HasSubstr("memory of its own"));
  ASSERT_EQ(text(frame().set_view(node("r"), Said::no)), "");
  EXPECT_EQ(frame().planned().base[value("r").index], value("r"));
}

TEST_F(EditChain, Copies) {
  const Undo start = plan_->now();
  ASSERT_EQ(text(frame().add_copy("x.last", value("x"), {node("a")})), "");
  EXPECT_EQ(frame().planned().graph->value_count(), graph_.value_count());
  EXPECT_EQ(text(frame().set_layout(value("x.last"), parse_layout("[1, 0]").value())), "");
  EXPECT_THAT(text(frame().join(step("x.last"), step("a"))),
              says("memory ... kernel ... layout %x.last"));
  EXPECT_THAT(text(frame().add_copy("y", value("x"), {node("a")})),
              HasSubstr("another copy of '%x' (copy %y)"));
  EXPECT_THAT(text(frame().add_copy("y", value("x.last"), {node("a")})),
              says("'%x.last' ... copy ... copy %y"));
  EXPECT_THAT(text(frame().add_copy("y", value("x"), {node("b")})),
              HasSubstr("'%b' does not read '%x' (copy %y)"));
  EXPECT_THAT(text(frame().add_copy("c", value("x"), {node("a")})), says("name ... copy %c"));
  EXPECT_THAT(print(plan_->to_plan()), HasSubstr("copy %x.last = %x for [%a]"));
  expect_same_as_text(graph_, *plan_);
  ASSERT_EQ(text(frame().remove_copy(value("x.last"))), "");
  EXPECT_TRUE(plan_->to_plan().copy.empty());
  plan_->undo(start);
  EXPECT_EQ(plan_->to_plan(), Plan());
}

TEST(Edit, ACopyLiesInTheConcatThatReadsIt) {
  const Graph graph = parse_graph(R"(graph @g(%x: f32[2, 8]) -> (f32[4, 8], f32[2, 8]) {
  %a = exp %x
  %b = neg %x
  %c = concat %a, %b {axis = 0}
  %d = add %a, %b
  return %c, %d
})")
                          .value();
  const std::unique_ptr<PlanEditor> plan = open(graph, {});
  FrameEditor& frame = plan->main();
  const NodeId concat{3};
  const ValueId a = graph.operands(concat)[0], result = graph.result(concat);
  ASSERT_EQ(graph.opcode(concat), Opcode::concat);
  ASSERT_TRUE(frame.set_view(concat, Said::yes).ok());
  const Undo start = plan->now();
  ASSERT_TRUE(frame.add_copy("copy", a, {concat}).ok());
  const ValueId copy{static_cast<uint32_t>(graph.value_count())};
  EXPECT_EQ(frame.planned().base[copy.index], result);
  EXPECT_EQ(frame.planned().base[a.index], a);
  expect_same_as_text(graph, *plan);
  ASSERT_TRUE(frame.remove_copy(copy).ok());
  EXPECT_EQ(frame.planned().base[a.index], result);
  expect_same_as_text(graph, *plan);
  plan->undo(start);
  expect_same_as_text(graph, *plan);
}

// A value that lies in other memory takes its layout on, and keeps it when it leaves.
TEST(Edit, ViewsInLayouts) {
  const Graph graph = parse_graph(R"(graph @g(%x: f32[1, 8, 4]) -> (f32[1, 24, 4], f32[1, 8, 4]) {
  %a = exp %x
  %b = neg %x
  %c = concat %a, %b {axis = 1}
  %d = sin %x
  %e = concat %c, %d {axis = 1}
  %s = slice %c {start = [0, 4, 0], limit = [1, 12, 4]}
  %f = cos %e
  %g = exp %s
  return %f, %g
})")
                          .value();
  const std::unique_ptr<PlanEditor> plan = open(graph, {});
  FrameEditor& frame = plan->main();
  const auto value = [&](std::string_view name) {
    uint32_t i = 0;
    while (graph.name(ValueId{i}) != name) ++i;
    return ValueId{i};
  };
  const auto node = [&](std::string_view name) { return graph.producer(value(name)); };
  const auto layout_of = [&](std::string_view name) {
    return print(frame.planned().layout[value(name).index]);
  };
  const auto expect_edit = [&](const Result<Undo>& done) {
    ASSERT_TRUE(done.ok()) << done.error().to_string();
    expect_same_as_text(graph, *plan);
    expect_kernel_hashes(frame);
  };
  const auto text = [](const Result<Undo>& done) { return done.error().to_string(); };
  const Layout blocks = parse_layout("[0, 1/4, 2, 1%4]").value();
  for (std::string_view name : {"a", "b", "c"}) expect_edit(frame.set_layout(value(name), blocks));
  const Undo apart = plan->now();
  const State state = state_of(*plan);
  expect_edit(frame.set_view(node("c"), Said::yes));
  EXPECT_EQ(plan->to_plan().layout.size(), 1U);
  EXPECT_EQ(layout_of("a"), print(blocks));
  expect_edit(frame.set_view(node("s"), Said::yes));
  EXPECT_EQ(layout_of("s"), print(blocks));
  EXPECT_THAT(text(frame.set_layout(value("a"), blocks)), HasSubstr("has its layout (layout %a)"));
  EXPECT_THAT(text(frame.set_layout(value("c"), parse_layout("[0, 1/8, 2, 1%8]").value())),
              says("4 ... dim 1 ... block of 8 ... view %s"));
  expect_edit(frame.set_layout(value("c"), parse_layout("[1, 0, 2]").value()));
  EXPECT_EQ(layout_of("b"), "[1, 0, 2]");
  EXPECT_EQ(layout_of("s"), "[1, 0, 2]");
  // All of %c is part of %e then, which is row-major.
  expect_edit(frame.set_view(node("e"), Said::yes));
  EXPECT_EQ(frame.planned().base[value("a").index], value("e"));
  EXPECT_EQ(layout_of("s"), "[0, 1, 2]");
  expect_edit(frame.set_layout(value("e"), blocks));
  EXPECT_EQ(layout_of("s"), print(blocks));
  EXPECT_THAT(text(frame.set_layout(value("e"), parse_layout("[0, 2, 1]").value())),
              says("side by side"));
  // And parts of it again.
  expect_edit(frame.set_view(node("e"), Said::no));
  EXPECT_EQ(layout_of("d"), print(blocks));
  EXPECT_EQ(frame.planned().base[value("a").index], value("c"));
  expect_edit(frame.set_view(node("c"), Said::nothing));
  for (std::string_view name : {"a", "b", "c", "d", "s"}) EXPECT_EQ(layout_of(name), print(blocks));
  EXPECT_EQ(plan->to_plan().layout.size(), 5U);
  plan->undo(apart);
  EXPECT_EQ(state_of(*plan), state);
}

TEST_F(EditChain, Orders) {
  for (std::string_view name : {"a", "b", "c", "d", "r", "e", "f"})
    ASSERT_EQ(text(frame().form(step(name))), "");
  EXPECT_THAT(text(frame().form(step("a"))), HasSubstr("it is decided already"));
  EXPECT_THAT(text(frame().set_order({step("b"), step("a")})), HasSubstr("which it reads (order)"));
  EXPECT_THAT(text(frame().set_order({step("b"), step("b")})), says("twice ... order"));
  EXPECT_EQ(text(frame().set_order({step("a"), step("f")})), "");
  EXPECT_THAT(text(frame().set_order({step("f"), step("a")})), HasSubstr("(order)"));
}

TEST_F(EditChain, SchedulesAndThreads) {
  EXPECT_THAT(text(plan_->set_threads(0)), HasSubstr("0 is outside of 1..8"));
  ASSERT_EQ(text(plan_->set_threads(3)), "");
  EXPECT_EQ(plan_->to_plan().threads, 3);
  const uint64_t kernel = frame().kernel(step("d")).hash;
  ASSERT_EQ(text(plan_->set_schedule(frame(), step("d"), plain_nest(2))), "");
  EXPECT_NE(plan_->schedule(kernel), nullptr);
  EXPECT_NE(text(plan_->set_schedule(frame(), step("d"), plain_nest(3))), "");
  // It was that of a kernel that is there no more.
  const Undo before = plan_->now();
  ASSERT_EQ(text(frame().set_layout(value("d"), parse_layout("[1, 0]").value())), "");
  EXPECT_EQ(plan_->schedule(kernel), nullptr);
  plan_->undo(before);
  EXPECT_NE(plan_->schedule(kernel), nullptr);
}

TEST(Edit, UndoLeavesThePlanAsItWas) {
  int undone = 0;
  std::map<EditKind, int> accepted;
  for (uint64_t seed = 0; undone < 1000; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph =
        prepare(seed % 4 == 1 ? random_joins(seed) : random_graph({.seed = seed})).value();
    Rng rng(seed);
    const std::unique_ptr<PlanEditor> plan = open(graph, random_plan(graph, target(), seed));
    plan->main().clear_offsets();
    std::vector<std::pair<Undo, State>> states;
    for (int i = 0; i < 30; ++i) {
      const std::vector<OpenEdit> open = PlanSpace(plan->main()).edits();
      if (open.empty()) break;
      State before = state_of(*plan);
      const Result<Undo> done = apply(plan->main(), rng.pick(open), rng);
      if (!done.ok()) ASSERT_EQ(state_of(*plan), before);
      if (done.ok()) states.emplace_back(*done, std::move(before));
    }
    while (!states.empty()) {
      plan->undo(states.back().first);
      ASSERT_EQ(state_of(*plan), states.back().second) << undone;
      states.pop_back();
      ++undone;
    }
  }
}

}  // namespace
}  // namespace hone::HONE_FILE

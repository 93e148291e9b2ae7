#include "cost/plan_cost.h"

#include <gtest/gtest.h>

#include "cost/analytic.h"
#include "cost/program_price.h"
#include "ir/text.h"
#include "plan/plan_space.h"
#include "plan/random_plan.h"
#include "planner/planner.h"
#include "planner/schedules.h"
#include "program/lower/lower.h"
#include "rewrite/prepare.h"
#include "tests/base/share_testing.h"
#include "tests/program/tasks_testing.h"
#include "tests/target/target_testing.h"
#include "zoo/random/random_graph.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

const Target& target() {
  static const Target target = parse_target(kSampleTarget, "t").value();
  return target;
}
const Cost& cost() {
  static const AnalyticCost cost(target());
  return cost;
}

// A plan that is edited and priced. Counts the schedules that are chosen.
struct Priced {
  Priced(const Graph& graph, const Plan& plan)
      : editor(PlanEditor::open(graph, plan, target()).value()),
        cost(*editor, HONE_FILE::cost(), store,
             [this](const std::shared_ptr<const KernelFacts>& facts, int64_t threads) {
               ++chosen;
               return choose(facts, threads);
             }) {}

  static Result<PricedSchedule> choose(const std::shared_ptr<const KernelFacts>& facts,
                                       int64_t threads) {
    ScheduleChooser chooser(target(), HONE_FILE::cost(), threads);
    return PricedSchedule(*HONE_TRY(chooser.choose(facts)));
  }
  double seconds() { return cost.seconds().value(); }

  int chosen = 0;
  std::unique_ptr<PlanEditor> editor;
  KernelStore store;
  PlanCost cost;
};

double full_price(const Graph& graph, const Plan& plan) {
  const Program program = lower(graph, plan, target()).value();
  return price(program, cost()).value().total();
}

TEST(PlanCost, IsThePriceOfTheProgram) {
  for (uint64_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = prepare(random_graph({.seed = seed})).value();
    if (tested::has_tasks_of_its_own(graph)) continue;
    const Plan plan = random_plan(graph, target(), seed);
    EXPECT_EQ(Priced(graph, plan).seconds(), full_price(graph, plan));
  }
}

TEST(PlanCost, IsThePriceOfControlFlow) {
  for (Opcode first : {Opcode::if_, Opcode::while_, Opcode::scan, Opcode::dynamic_update}) {
    for (uint64_t seed = 0; seed < 15; ++seed) {
      SCOPED_TRACE(fmt::format("{} {}", name(first), seed));
      const Graph graph = prepare(random_graph({.seed = seed, .first = first})).value();
      if (tested::has_tasks_of_its_own(graph)) continue;
      const Plan plan = random_plan(graph, target(), seed);
      EXPECT_EQ(Priced(graph, plan).seconds(), full_price(graph, plan));
    }
  }
}

TEST(PlanCost, IsThePriceOfDefaultPlansOfTheZoo) {
  uint64_t number = 0;
  for (const ZooEntry& model : zoo_entries()) {
    if (!tested::in_share(number++, 4)) continue;
    SCOPED_TRACE(model.name);
    const Graph graph =
        prepare(build_zoo_model(model.name, {.size = ZooSize::tiny}).value()).value();
    const Plan plan = complete(graph, {}, target()).value();
    EXPECT_EQ(Priced(graph, plan).seconds(), full_price(graph, plan));
  }
}

// Counts the commands that are priced: each task begins one at least.
class CountedCost : public AnalyticCost {
 public:
  using AnalyticCost::AnalyticCost;
  double command() const override {
    ++commands;
    return AnalyticCost::command();
  }
  mutable int commands = 0;
};

TEST(PlanCost, PricesWhatAnEditTouchesAndNoMore) {
  for (const int length : {20, 200}) {
    std::string text = "graph @g(%v0: f32[64]) -> f32[64] {\n";
    for (int i = 1; i <= length; ++i) text += fmt::format("%v{} = exp %v{}\n", i, i - 1);
    const Graph graph = parse_graph(text + fmt::format("return %v{}\n}}", length)).value();
    const auto editor = PlanEditor::open(graph, Plan(), target()).value();
    const CountedCost counted(target());
    KernelStore store;
    PlanCost cost(*editor, counted, store, Priced::choose);
    const double before = cost.seconds().value();
    EXPECT_EQ(counted.commands, length);
    const Undo undo = editor->main().join(3, 4).value();
    EXPECT_LT(cost.seconds().value(), before);
    EXPECT_LE(counted.commands, length + 6) << "the joined step, and that which took a number";
    counted.commands = 0;
    editor->undo(undo);
    EXPECT_EQ(cost.seconds().value(), before);
    EXPECT_LE(counted.commands, 6);
  }
}

TEST(PlanCost, FollowsEditsAndUndos) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = prepare(random_graph({.seed = seed})).value();
    Rng rng(seed);
    Priced priced(graph, seed % 2 == 0 ? random_plan(graph, target(), seed) : Plan());
    priced.editor->main().clear_offsets();
    std::vector<std::pair<Undo, double>> prices;
    for (int i = 0; i < 20; ++i) {
      const double before = priced.seconds();
      const std::vector<OpenEdit> open = PlanSpace(priced.editor->main()).edits();
      if (open.empty()) break;
      const Result<Undo> done = apply(priced.editor->main(), rng.pick(open), rng);
      if (done.ok()) prices.emplace_back(*done, before);
      if (i % 4 == 0)
        EXPECT_EQ(priced.seconds(), Priced(graph, priced.editor->to_plan()).seconds());
    }
    for (; !prices.empty(); prices.pop_back()) {
      priced.editor->undo(prices.back().first);
      EXPECT_EQ(priced.seconds(), prices.back().second);
    }
  }
}

TEST(PlanCost, ForgetsStepsThatWentBeforeTheThreadsChanged) {
  const Graph graph = parse_graph(R"(graph @g(%x: f32[8, 16]) -> f32[8, 16] {
    %a = exp %x
    %b = neg %a
    %c = tanh %b
    %d = abs %c
    return %d
  })")
                          .value();
  Priced priced(graph, Plan());
  priced.seconds();
  ASSERT_TRUE(priced.editor->main().join(0, 1).ok());
  ASSERT_TRUE(priced.editor->set_threads(1).ok());
  EXPECT_EQ(priced.seconds(), Priced(graph, priced.editor->to_plan()).seconds());
}

// A join takes the first group's number away, and the last step, a command, has it until the undo.
TEST(PlanCost, PricesACommandThatHadAnotherNumber) {
  const Graph graph = prepare(parse_graph(R"(graph @g(%x: f32[8], %z: f32[8]) -> (f32[8], f32[8]) {
    %a = exp %x
    %b = neg %a
    %c = reduce_scatter %z {kind = min, axis = 0, group_size = 1}
    return %b, %c
  })")
                                  .value())
                          .value();
  Plan apart;
  apart.graph = graph.name();
  apart.fuse = {{"k0", {"a"}}, {"k1", {"b"}}};  // the command is the last step
  Priced plan(graph, apart);
  const double before = plan.seconds();
  const Undo undo = plan.editor->main().join(0, 1).value();
  EXPECT_LT(plan.seconds(), before);
  plan.editor->undo(undo);
  EXPECT_EQ(plan.seconds(), before);
}

TEST(PlanCost, AsksOnceForEachKernelThatALayoutChanges) {
  const Graph graph = prepare(parse_graph(R"(graph @g(%x: f32[8, 16]) -> f32[8, 16] {
    %a = exp %x
    %b = sort %a {axis = 0}
    %c = neg %b
    %d = exp %c
    return %d
  })")
                                  .value())
                          .value();
  Priced priced(graph, {});
  const double before = priced.seconds();
  const int all = priced.chosen;
  FrameEditor& main = priced.editor->main();
  ValueId v;
  for (uint32_t i = 0; i < graph.value_count(); ++i)
    if (graph.name(ValueId{i}) == "b") v = ValueId{i};
  const Undo undo = main.set_layout(v, parse_layout("[1, 0]").value()).value();
  const double changed = priced.seconds();
  EXPECT_EQ(priced.chosen, all + 2);  // what writes it, and what reads it
  priced.editor->undo(undo);
  EXPECT_EQ(priced.seconds(), before);
  ASSERT_TRUE(main.set_layout(v, parse_layout("[1, 0]").value()).ok());
  EXPECT_EQ(priced.seconds(), changed);
  EXPECT_EQ(priced.chosen, all + 2);
}

TEST(PlanCost, ThreadsAndSchedulesChangeThePrice) {
  const Graph graph = prepare(parse_graph(R"(graph @g(%x: f32[512, 512]) -> f32[512, 512] {
    %a = exp %x
    return %a
  })")
                                  .value())
                          .value();
  Priced priced(graph, {});
  const double before = priced.seconds();
  const Undo threads = priced.editor->set_threads(1).value();
  EXPECT_GT(priced.seconds(), before);
  priced.editor->undo(threads);
  EXPECT_EQ(priced.seconds(), before);
  const Undo schedule = priced.editor->set_schedule(priced.editor->main(), 0, Schedule()).value();
  EXPECT_GT(priced.seconds(), before);
  priced.editor->undo(schedule);
  EXPECT_EQ(priced.seconds(), before);
  EXPECT_FALSE(priced.editor->set_threads(0).ok());
}

}  // namespace
}  // namespace hone::HONE_FILE

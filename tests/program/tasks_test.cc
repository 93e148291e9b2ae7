#include "program/tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "ir/text.h"
#include "plan/random_plan.h"
#include "planner/planner.h"
#include "program/lower/lower.h"
#include "rewrite/prepare.h"
#include "tests/base/share_testing.h"
#include "tests/program/tasks_testing.h"
#include "tests/target/target_testing.h"
#include "zoo/random/random_graph.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

using testing::ElementsAre;

const Target& target() {
  static const Target target = parse_target(kSampleTarget, "t").value();
  return target;
}

// All that must have ended before a task.
std::vector<std::set<uint32_t>> before(const std::vector<Task>& tasks) {
  std::vector<std::set<uint32_t>> all(tasks.size());
  for (size_t i = 0; i < tasks.size(); ++i)
    for (uint32_t one : tasks[i].after) {
      all[i].insert(one);
      all[i].insert(all[one].begin(), all[one].end());
    }
  return all;
}

class Comparison {
 public:
  Comparison(const Tasks& plan, const Tasks& program, const Program& kernels)
      : plan_(plan), program_(program) {
    for (const program::Kernel& kernel : kernels.kernels) known_.insert(task_kernel(kernel));
  }

  void run() { compare(plan_.lists.size() - 1, program_.lists.size() - 1); }

 private:
  void compare(size_t a, size_t b) {
    const std::vector<Task>& one = plan_.lists[a].tasks;
    const std::vector<Task>& other = program_.lists[b].tasks;
    ASSERT_EQ(one.size(), other.size());
    const std::vector<std::set<uint32_t>> known = before(other);
    for (size_t i = 0; i < one.size(); ++i) {
      SCOPED_TRACE(fmt::format("task {}, {} and {}", i, one[i].name, other[i].name));
      compare(one[i], other[i]);
      // A program waits for memory that is used again, too.
      for (uint32_t needed : one[i].after) EXPECT_TRUE(known[i].contains(needed)) << needed;
    }
  }

  void compare(const Task& one, const Task& other) {
    EXPECT_EQ(one.resource, other.resource);
    EXPECT_EQ(one.commands, other.commands);
    EXPECT_EQ(one.copies, other.copies);
    EXPECT_EQ(one.moved, other.moved);
    EXPECT_EQ(one.is_branch, other.is_branch);
    ASSERT_EQ(one.kernels.size(), other.kernels.size());
    // Kernels of the same text are one in a program.
    for (size_t k = 0; k < one.kernels.size(); ++k)
      if (known_.contains(one.kernels[k])) EXPECT_EQ(one.kernels[k], other.kernels[k]);
    compare_lists(one.lists, other.lists);
    ASSERT_EQ(one.rounds.has_value(), other.rounds.has_value());
    if (!one.rounds) return;
    EXPECT_EQ(one.rounds->trips, other.rounds->trips);
    EXPECT_EQ(one.rounds->copies, other.rounds->copies);
    compare_lists(one.rounds->lists, other.rounds->lists);
  }

  void compare_lists(const std::vector<size_t>& one, const std::vector<size_t>& other) {
    ASSERT_EQ(one.size(), other.size());
    for (size_t i = 0; i < one.size(); ++i) compare(one[i], other[i]);
  }

  const Tasks& plan_;
  const Tasks& program_;
  std::set<uint64_t> known_;
};

void expect_same_tasks(const Graph& graph, const Plan& plan) {
  const Program program = lower(graph, plan, target()).value();
  const auto editor = PlanEditor::open(graph, plan, target()).value();
  Comparison(tasks_of(*editor), tasks_of(program), program).run();
}

TEST(Tasks, OfRandomPlansAreThoseOfThePrograms) {
  for (uint64_t seed = 0; seed < 80; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = prepare(random_graph({.seed = seed})).value();
    if (!tested::has_tasks_of_its_own(graph))
      expect_same_tasks(graph, random_plan(graph, target(), seed));
  }
  for (Opcode first : {Opcode::if_, Opcode::while_, Opcode::scan, Opcode::dynamic_update})
    for (uint64_t seed = 0; seed < 10; ++seed) {
      SCOPED_TRACE(fmt::format("{} {}", name(first), seed));
      const Graph graph = prepare(random_graph({.seed = seed, .first = first})).value();
      if (!tested::has_tasks_of_its_own(graph))
        expect_same_tasks(graph, random_plan(graph, target(), seed));
    }
}

TEST(Tasks, OfTheZooAreThoseOfThePrograms) {
  uint64_t number = 0;
  for (const ZooEntry& model : zoo_entries()) {
    if (!tested::in_share(number++, 8)) continue;
    SCOPED_TRACE(model.name);
    const Graph graph =
        prepare(build_zoo_model(model.name, {.size = ZooSize::tiny}).value()).value();
    expect_same_tasks(graph, complete(graph, {}, target()).value());
  }
}

TEST(Tasks, SayWhatTheyOccupyAndNeed) {
  const Graph graph = parse_graph(R"(
    graph @g(%x: f32[8], %p: f32[2], %at: i32[], %c: f32[8] donate 0) -> (f32[8], f32[8], f32[8]) {
      %u = dynamic_update %c, %p, %at
      %a = exp %x
      %f = scan %a, %p {carried = 1} body (%s: f32[8], %r: f32[]) {
        %b = broadcast %r {dims = [8], map = []}
        %n = sort %s {axis = 0}
        %m = add %n, %b
        return %m
      }
      return %u, %f, %x
    })")
                          .value();
  const Plan plan = parse_plan("plan @g { in_place %u = yes }").value();
  const auto editor = PlanEditor::open(graph, plan, target()).value();
  const Tasks tasks = tasks_of(*editor);
  ASSERT_EQ(tasks.lists.size(), 2u);
  EXPECT_EQ(tasks.lists[0].name, "f.body");
  const std::vector<Task>& all = tasks.lists[1].tasks;
  std::vector<std::string> names;
  for (const Task& task : all) names.push_back(task.name);
  EXPECT_THAT(names, ElementsAre("u", "a", "f", "u", "x.output"));
  EXPECT_EQ(all[0].resource, Resource::host);  // a copy, if the caller keeps %c
  EXPECT_EQ(all[1].resource, Resource::cores);
  EXPECT_EQ(all[2].resource, Resource::host);
  EXPECT_EQ(all[4].resource, Resource::memory);
  EXPECT_THAT(all[4].copies, ElementsAre(Dim(32)));
  EXPECT_THAT(all[2].after, ElementsAre(1u));
  EXPECT_THAT(all[3].after, ElementsAre(0u));
  ASSERT_TRUE(all[2].rounds.has_value());
  EXPECT_EQ(all[2].rounds->trips, Dim(2));
  EXPECT_THAT(all[2].rounds->lists, ElementsAre(0u));
  // An update counts all of its operands; a copy is read and written.
  EXPECT_EQ(all[1].moved, Dim(64));
  EXPECT_EQ(all[3].moved, Dim(32 + 8 + 4 + 32));
  EXPECT_EQ(all[4].moved, Dim(64));

  std::vector<std::string> run;
  for (const Task* task : in_order(tasks)) run.push_back(task->name);
  EXPECT_THAT(run, ElementsAre("u", "a", "f", "b", "n", "m", "u", "x.output"));
}

TEST(Tasks, SayHowOftenARunLaunchesAKernel) {
  const Graph graph = parse_graph(R"(
    graph @g(%x: f32[8], %p: bool[]) {
      %a = exp %x
      %f, %q = scan %a, %p {carried = 2, length = [3]} body (%s: f32[8], %r: bool[]) {
        %i = if %r, %s then (%u: f32[8]) { %b = exp %u return %b }
          else (%u: f32[8]) { %n = sort %u {axis = 0} return %n }
        return %i, %r
      }
      return %f
    })")
                          .value();
  const auto editor = PlanEditor::open(graph, Plan(), target()).value();
  const Tasks tasks = tasks_of(*editor);
  std::vector<double> counts;
  for (const auto& [kernel, count] : launches_of(tasks)) counts.push_back(count);
  EXPECT_THAT(counts, testing::UnorderedElementsAre(4, 3));  // %a and %b are equal kernels
}

}  // namespace
}  // namespace hone::HONE_FILE

#include "timeline/task_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/text.h"
#include "planner/planner.h"
#include "program/arena_layout.h"
#include "program/lower/lower.h"
#include "program/tiles/calling.h"
#include "rewrite/prepare.h"
#include "tests/base/says_testing.h"
#include "tests/timeline/collective_systems.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

using tested::preset_of;
using tested::refuses;
using Seconds = std::vector<std::optional<double>>;

// ---- Tasks -------------------------------------------------------------------------------------

TEST(TaskJobs, TakeTheQueueInTheirOrder) {
  const TaskList list = {"g", {{.name = "a"}, {.name = "b", .after = {0}}, {.name = "c"}}};
  SystemJobs jobs(preset_of("ring:2"));
  const uint32_t begin = jobs.compute(0, 1, {});
  const TaskJobs made = add_tasks(jobs, 1, list, Seconds{1, 2, 4}, std::vector{begin});
  const Timeline timeline = Timeline::open(jobs.jobs()).value();
  EXPECT_EQ(timeline.start(made.tasks[0]), ticks_of(1));
  EXPECT_EQ(timeline.start(made.tasks[1]), ticks_of(2));
  EXPECT_EQ(timeline.start(made.tasks[2]), ticks_of(4));
  EXPECT_EQ(timeline.end(made.end), ticks_of(8));
  EXPECT_EQ(jobs.name_of(made.tasks[1]), "b");
}

TEST(TaskJobs, GoOnWhileOneWaitsForMore) {
  const TaskList list = {"g",
                         {{.name = "a"},
                          {.name = "sum", .after = {0}},
                          {.name = "b"},
                          {.name = "c", .after = {1, 2}}}};
  SystemJobs jobs(preset_of("ring:2"));
  const TaskJobs made = add_tasks(jobs, 0, list, Seconds{1, std::nullopt, 2, 4});
  jobs.wait(made.tasks[1], jobs.compute(1, 5, {made.tasks[0]}));
  const Timeline timeline = Timeline::open(jobs.jobs()).value();
  EXPECT_EQ(timeline.end(made.tasks[2]), ticks_of(3));
  EXPECT_EQ(timeline.end(made.tasks[1]), ticks_of(6));
  EXPECT_EQ(timeline.end(made.end), ticks_of(10));
}

TEST(TaskJobs, OfAnEmptyListEndWhereTheyBegin) {
  SystemJobs jobs(preset_of("ring:2"));
  const uint32_t begin = jobs.compute(0, 3, {});
  const TaskJobs made = add_tasks(jobs, 0, {"g", {}}, Seconds{}, std::vector{begin});
  EXPECT_EQ(Timeline::open(jobs.jobs()).value().end(made.end), ticks_of(3));
}

// ---- Memory ------------------------------------------------------------------------------------

Program lowered(const Graph& source) {
  const Target target = parse_target(kSampleTarget, "t").value();
  const Graph graph = prepare(source).value();
  return lower(graph, complete(graph, {}, target).value(), target).value();
}

// The judge adds up what is alive at each command. One queue runs them in their order.
int64_t most_held(const Program& program) {
  const program::Frame& frame = *program.main;
  const program::ArenaLayout layout(program);
  const auto lives = program::lifetimes(frame);
  int64_t most = 0;
  for (program::CommandId c = 0; c < frame.commands.size(); ++c) {
    int64_t sum = 0, own = 0;
    for (size_t b = 0; b < frame.buffers.size(); ++b) {
      const program::Buffer& buffer = frame.buffers[b];
      const bool is_temporary = buffer.role == program::Role::temporary;
      const bool is_held = is_temporary ? lives[b].first <= c && c <= lives[b].last
                                        : buffer.role != program::Role::view;
      if (is_held) sum += bytes_of(buffer.type).value();
    }
    if (const auto* launch = std::get_if<program::Launch>(&frame.commands[c].kind))
      own = program::shared_bytes(program.kernels[launch->kernel].tiles).value();
    for (const program::FrameRef& inner : program::frames_of(frame.commands[c]))
      for (const Dim& bytes : layout.bytes(*inner)) own = std::max(own, bytes.value());
    most = std::max(most, sum + own);
  }
  return most;
}

TEST(HeldBuffers, HaveThePeakOfTheProgram) {
  for (std::string_view model : {"mlp", "squeezenet", "lstm"}) {
    SCOPED_TRACE(model);
    const Program program = lowered(build_zoo_model(model, {.size = ZooSize::tiny}).value());
    const Tasks tasks = tasks_of(program);
    SystemJobs jobs(preset_of("ring:2"));
    const Seconds seconds(tasks.lists.back().tasks.size(), 1e-3);
    const TaskJobs made = add_tasks(jobs, 1, tasks.lists.back(), seconds);
    const Timeline timeline = Timeline::open(jobs.jobs()).value();
    const auto buffers = held_buffers(program, 1, made.tasks).value();
    const auto held = held_memory(timeline, buffers, 2).value();
    EXPECT_EQ(held[0].peak, 0);
    EXPECT_EQ(held[1].peak, most_held(program));
  }
}

TEST(HeldBuffers, AreOfSizesThatAreNumbers) {
  const Program program = lowered(
      parse_graph("graph @g(%x: f32[N]) -> f32[N] where N in 1..64 { %y = exp %x return %y }")
          .value());
  const std::vector<uint32_t> commands(program.main->commands.size());
  EXPECT_THAT(held_buffers(program, 0, commands), refuses(ErrorCode::unsupported, "'x' ... N"));
}

}  // namespace
}  // namespace hone::HONE_FILE

#include "timeline/task_jobs.h"

#include <gtest/gtest.h>

#include "tests/timeline/collective_systems.h"
#include "timeline/timeline.h"

namespace hone::HONE_FILE {
namespace {

using tested::preset_of;
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

}  // namespace
}  // namespace hone::HONE_FILE

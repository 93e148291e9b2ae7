#include "base/team.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

std::shared_ptr<Team> team_of(int64_t threads, int64_t spin_us = 50) {
  return Team::create({.threads = threads, .spin = std::chrono::microseconds(spin_us)}).value();
}

struct Part {
  int64_t begin = 0;
  int64_t end = 0;
  int runs = 0;
};

TEST(Team, PartsAreContiguousAndOfEqualSizeUpToOne) {
  for (int64_t threads : {1, 2, 3, 5}) {
    const std::shared_ptr<Team> team = team_of(threads);
    EXPECT_EQ(team->threads(), threads);
    for (int64_t trips : {0, 1, 2, 3, 4, 7, 100}) {
      std::array<Part, 8> parts = {};
      team->run(trips, 4, [&](int64_t begin, int64_t end, int64_t part) noexcept {
        Part& slot = parts[static_cast<size_t>(part)];
        slot = {begin, end, slot.runs + 1};
      });
      const int64_t count = std::min<int64_t>({threads, trips, 4});
      int64_t next = 0;
      for (int64_t i = 0; i < count; ++i) {
        const Part& part = parts[static_cast<size_t>(i)];
        EXPECT_EQ(part.runs, 1) << threads << " threads, " << trips << " trips, part " << i;
        EXPECT_EQ(part.begin, next);
        EXPECT_GE(part.end - part.begin, trips / count);
        EXPECT_LE(part.end - part.begin, trips / count + 1);
        next = part.end;
      }
      EXPECT_EQ(next, trips);
      for (size_t i = static_cast<size_t>(count); i < parts.size(); ++i)
        EXPECT_EQ(parts[i].runs, 0);
    }
  }
}

// Adds up what plain writes of all parts left behind, job after job: what a job wrote is seen after
// it, by its caller and by the next job.
void run_jobs(Team& team, int jobs, std::chrono::microseconds pause = {}) {
  std::array<int64_t, 16> sums = {};
  for (int job = 0; job < jobs; ++job) {
    team.run(1000, team.threads(), [&](int64_t begin, int64_t end, int64_t part) noexcept {
      for (int64_t i = begin; i < end; ++i) sums[static_cast<size_t>(part)] += i;
    });
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
  }
  int64_t total = 0;
  for (int64_t sum : sums) total += sum;
  EXPECT_EQ(total, jobs * (999 * 1000 / 2));
}

TEST(Team, EveryTripRunsOnceWhateverTheSpinning) {
  for (int64_t spin_us : {0, 5, 1000}) {
    run_jobs(*team_of(2, spin_us), 3000);
    run_jobs(*team_of(4, spin_us), 300);
  }
}

TEST(Team, WorkersThatSleepWakeUp) {
  run_jobs(*team_of(3, 0), 200, std::chrono::microseconds(100));
  run_jobs(*team_of(3, 20), 200, std::chrono::microseconds(20));
}

// Both parts wait for each other, so both threads take part; with the workers asleep first.
TEST(Team, WorkersTakePart) {
  for (int64_t spin_us : {0, 100}) {
    const std::shared_ptr<Team> team = team_of(2, spin_us);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic<int> inside = 0;
    std::array<std::thread::id, 2> threads;
    team->run(2, 2, [&](int64_t begin, int64_t, int64_t) noexcept {
      threads[static_cast<size_t>(begin)] = std::this_thread::get_id();
      inside.fetch_add(1);
      while (inside.load() < 2) std::this_thread::yield();
    });
    EXPECT_NE(threads[0], threads[1]);
  }
}

TEST(Team, ManyCallersShareIt) {
  const std::shared_ptr<Team> team = team_of(3, 10);
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) callers.emplace_back([&] { run_jobs(*team, 2000); });
  for (std::thread& caller : callers) caller.join();
}

TEST(Team, AJobInsideOfAJobRunsAlone) {
  const std::shared_ptr<Team> team = team_of(2);
  std::array<int, 2> inner_parts = {};
  team->run(2, 2, [&](int64_t begin, int64_t end, int64_t) noexcept {
    for (int64_t i = begin; i < end; ++i) {
      team->run(10, 2, [&](int64_t from, int64_t to, int64_t) noexcept {
        if (from == 0 && to == 10) ++inner_parts[static_cast<size_t>(i)];
      });
    }
  });
  EXPECT_EQ(inner_parts, (std::array<int, 2>{1, 1}));
}

TEST(Team, ComesAndGoes) {
  for (int i = 0; i < 50; ++i) run_jobs(*team_of(3, i % 2 == 0 ? 0 : 100), i % 3);
}

TEST(Team, OptionsAreChecked) {
  EXPECT_THAT(Team::create({.threads = 0}).error().what(), says("0 threads ... 1 to 1024"));
  EXPECT_FALSE(Team::create({.threads = 5000}).ok());
  EXPECT_FALSE(Team::create({.threads = 1, .spin = std::chrono::microseconds(-1)}).ok());
}

}  // namespace
}  // namespace hone::HONE_FILE

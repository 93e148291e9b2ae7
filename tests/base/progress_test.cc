#include "base/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

#include "base/late_progress.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

// A reporter with a clock that the test moves and an output that it reads.
struct Desk {
  double now = 100;
  std::string out;
  std::unique_ptr<Progress> progress;

  explicit Desk(ProgressMode mode, bool is_terminal = false)
      : progress(make_progress({.mode = mode,
                                .is_terminal = is_terminal,
                                .write = [this](std::string_view text) { out += text; },
                                .clock = [this] { return now; }})) {}

  std::string take() { return std::exchange(out, ""); }
};

TEST(Progress, BarShowsPartAndEta) {
  EXPECT_EQ(progress_bar({"trials", 214, 400, 287.5}),
            "[##########..........] 214/400 trials  eta 4m10s");
  EXPECT_EQ(progress_bar({"trials", 0, 400, 3}), "[....................] 0/400 trials  3 s");
  EXPECT_EQ(progress_bar({"trials", 500, 400, 3}),
            "[####################] 500/400 trials  eta 0 s");
  EXPECT_EQ(progress_bar({"trials", 30, 0, 10}), "30 trials  3/s");
}

// The first step may take long.
TEST(Progress, TheBarMovesWithinAStep) {
  std::mutex mutex;
  std::string out;
  const auto write = [&](std::string_view text) {
    std::lock_guard lock(mutex);
    out += text;
  };
  const std::unique_ptr<Progress> progress =
      make_progress({.is_terminal = true, .write = write, .clock = {}});
  progress->start(2, "kernels");
  const auto moved = [&] {
    std::lock_guard lock(mutex);
    return out.find("0/2 kernels  ") != std::string::npos;
  };
  for (int i = 0; i < 600 && !moved(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(moved());
  progress->finish();
  EXPECT_THAT(out, testing::HasSubstr("stopped at 0/2 kernels"));
}

TEST(Progress, OfShortWorkSaysNothing) {
  Desk desk(ProgressMode::plain);
  {
    LateProgress late(desk.progress.get());
    late.start(3, "kernels");
    late.advance(3);
  }
  EXPECT_EQ(desk.take(), "");
  LateProgress never(nullptr);
  never.start(1, "kernels");
  never.advance(1);
}

TEST(Progress, OfLongWorkComesLate) {
  Desk desk(ProgressMode::plain);
  LateProgress late(desk.progress.get());
  late.start(3, "kernels");
  late.advance(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(2100));
  late.advance(1);
  late.finish("");
  EXPECT_THAT(desk.take(), testing::HasSubstr("stopped at 2/3 kernels"));
}

TEST(Progress, PlainLinesAreRateLimited) {
  Desk desk(ProgressMode::plain, true);
  desk.progress->start(400, "trials");
  for (int i = 0; i < 100; ++i) {
    desk.now += 0.02;
    desk.progress->advance();
  }
  EXPECT_EQ(desk.take(), "");
  desk.now = 110;
  desk.progress->advance();
  EXPECT_EQ(desk.take(), "101/400 trials, 10.1/s, eta 29.6 s\n");
  desk.progress->advance(299);
  desk.progress->finish();
  EXPECT_EQ(desk.take(), "400 trials in 10.0 s\n");
}

TEST(Progress, TheBarIsRedrawnAndReplacedAtTheEnd) {
  Desk desk(ProgressMode::automatic, true);
  desk.progress->start(4, "kernels");
  EXPECT_EQ(desk.take(), "\r\x1b[K[....................] 0/4 kernels");
  desk.now += 1;
  desk.progress->advance();
  EXPECT_EQ(desk.take(), "\r\x1b[K[#####...............] 1/4 kernels  eta 3.00 s");
  desk.progress->note("k0: 12.3 ms");
  EXPECT_EQ(desk.take(),
            "\r\x1b[Kk0: 12.3 ms\n\r\x1b[K[#####...............] 1/4 kernels  eta 3.00 s");
  desk.progress->advance(3);
  desk.progress->finish();
  EXPECT_EQ(desk.take(), "\r\x1b[K4 kernels in 1.00 s\n");
}

TEST(Progress, WhatIsUnderWayIsBesideTheCount) {
  Desk bar(ProgressMode::automatic, true);
  bar.progress->start(4, "seconds");
  bar.take();
  bar.now += 1;
  bar.progress->now("best 1.02x, kernel 1 of 3");
  EXPECT_EQ(bar.take(),
            "\r\x1b[K[....................] 0/4 seconds  eta 3.00 s  best 1.02x, kernel 1 of 3");
  Desk plain(ProgressMode::plain);
  plain.progress->start(4, "seconds");
  plain.progress->now("the default plan");
  plain.progress->now("kernel 1 of 3");
  EXPECT_EQ(plain.take(), "");
  plain.now += 6;
  plain.progress->advance(2);
  EXPECT_EQ(plain.take(), "2/4 seconds, 0.3/s, eta 0 s: kernel 1 of 3\n");
  plain.progress->start(4, "kernels");
  plain.now += 6;
  plain.progress->advance(2);
  EXPECT_EQ(plain.take(), "stopped at 2/4 seconds after 6.00 s\n2/4 kernels, 0.3/s, eta 6.00 s\n");
  Desk json(ProgressMode::json);
  json.progress->start(4, "seconds");
  json.progress->now("kernel 1 of 3");
  json.take();
  json.progress->finish();
  EXPECT_THAT(json.take(), testing::HasSubstr(R"("now":"kernel 1 of 3")"));
}

TEST(Progress, AutomaticWithoutATerminalIsPlain) {
  Desk desk(ProgressMode::automatic, false);
  desk.progress->start(4, "kernels");
  desk.progress->note("k0: 12.3 ms");
  EXPECT_EQ(desk.take(), "k0: 12.3 ms\n");
}

TEST(Progress, WorkThatEndsEarlyCountsAsStopped) {
  Desk desk(ProgressMode::plain);
  desk.progress->start(400, "trials");
  desk.progress->advance(214);
  desk.now += 230;
  desk.progress.reset();
  EXPECT_EQ(desk.take(), "stopped at 214/400 trials after 3m50s\n");
}

TEST(Progress, ARemarkIsSaidAtTheEnd) {
  for (const ProgressMode mode : {ProgressMode::plain, ProgressMode::automatic}) {
    Desk desk(mode, true);
    desk.progress->start(3, "kernels");
    desk.now += 1;
    desk.progress->advance(3);
    desk.take();
    desk.progress->finish("all from the cache");
    EXPECT_EQ(desk.take(), fmt::format("{}3 kernels, all from the cache, in 1.00 s\n",
                                       mode == ProgressMode::plain ? "" : "\r\x1b[K"));
    desk.progress->start(3, "kernels");
    desk.now += 1;
    desk.progress->advance(2);
    desk.take();
    desk.progress->finish("1 from the cache");
    EXPECT_THAT(desk.take(),
                testing::HasSubstr("stopped at 2/3 kernels, 1 from the cache, after 1.00 s\n"));
  }
  Desk desk(ProgressMode::json);
  desk.progress->start(1, "kernels");
  desk.take();
  desk.progress->advance();
  desk.progress->finish("all from the cache");
  EXPECT_THAT(desk.take(), testing::HasSubstr(R"("remark":"all from the cache"})"));
}

// Whoever has a budget says seldom how much of it has passed.
TEST(Progress, OfABudgetWhatIsLeftGoesDown) {
  double last = 180;
  for (double elapsed = 0; elapsed < 200; elapsed += 0.5) {
    const ProgressState state = {"seconds", elapsed < 60 ? 0 : 60, 180, elapsed};
    EXPECT_LE(state.eta(), last) << elapsed;
    EXPECT_GE(state.eta(), 0) << elapsed;
    last = state.eta();
  }
  EXPECT_EQ((ProgressState{"seconds", 60, 180, 100}).eta(), 80);
}

TEST(Progress, JsonIsOneObjectPerLine) {
  Desk desk(ProgressMode::json);
  desk.progress->start(4, "kernels");
  desk.now += 2;
  desk.progress->advance();
  desk.progress->note("a \"b\"\xff");
  desk.progress->finish();
  EXPECT_EQ(desk.take(),
            R"({"event":"start","label":"kernels","done":0,"elapsed_s":0.0,"per_second":0.0,)"
            R"("total":4})"
            "\n"
            R"({"event":"progress","label":"kernels","done":1,"elapsed_s":2.0,"per_second":0.5,)"
            R"("total":4,"eta_s":6.0})"
            "\n"
            R"({"event":"note","text":"a \"b\")"
            "\xef\xbf\xbd"
            R"("})"
            "\n"
            R"({"event":"finish","label":"kernels","done":1,"elapsed_s":2.0,"per_second":0.5,)"
            R"("total":4,"eta_s":6.0})"
            "\n");
}

TEST(Progress, NoneAndUnstartedSayNothing) {
  Desk none(ProgressMode::none, true);
  none.progress->start(4, "kernels");
  none.progress->note("text");
  none.progress->finish();
  EXPECT_EQ(none.take(), "");
  Desk unstarted(ProgressMode::plain);
  unstarted.progress->finish();
  unstarted.progress.reset();
  EXPECT_EQ(unstarted.take(), "");
  no_progress().start(1, "x");
}

TEST(Progress, AdvancesOfSeveralThreadsAddUp) {
  std::string out;
  std::unique_ptr<Progress> progress =
      make_progress({.mode = ProgressMode::automatic,
                     .is_terminal = true,
                     .write = [&](std::string_view text) { out = text; },
                     .clock = nullptr});
  progress->start(40000, "steps");
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] {
      for (int step = 0; step < 10000; ++step) progress->advance();
    });
  }
  for (std::thread& worker : workers) worker.join();
  progress->finish();
  EXPECT_EQ(out.substr(0, 19), "\r\x1b[K40000 steps in ");
}

TEST(Progress, UnknownModesAreUsageErrors) {
  EXPECT_EQ(parse_progress_mode("auto").value(), ProgressMode::automatic);
  const Result<ProgressMode> mode = parse_progress_mode("fancy");
  EXPECT_EQ(mode.error().code(), ErrorCode::usage);
  EXPECT_THAT(mode.error().what(), says("'fancy' ... auto, plain, json, none"));
}

TEST(CancelToken, IsSetOnceAndBecomesAnError) {
  CancelToken token;
  EXPECT_TRUE(token.check().ok());
  std::thread([&] { token.cancel(); }).join();
  EXPECT_TRUE(token.cancelled());
  EXPECT_EQ(token.check().error().code(), ErrorCode::interrupted);
}

}  // namespace
}  // namespace hone::HONE_FILE

#include "timeline/held_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;
using tested::says;
using testing::ElementsAre;
using testing::Pair;

// Jobs of a second each, one after another, but for those that take no time.
Timeline chain(std::vector<double> seconds) {
  Jobs jobs = {1, {}, {}};
  for (uint32_t i = 0; i < seconds.size(); ++i) {
    Job job = {.queue = 0, .seconds = seconds[i]};
    if (i > 0) job.after = {i - 1};
    jobs.jobs.push_back(job);
  }
  return Timeline::open(jobs).value();
}

TEST(HeldMemory, IsFromTheMakerToTheLastUser) {
  const Timeline timeline = chain({1, 1, 1});
  const std::vector<HeldBuffer> buffers = {
      {0, 100}, {0, 10, 0, {1}}, {0, 20, 1, {2}}, {1, 7, 2, {}}, {0, 5, HeldBuffer::kNoJob, {0}}};
  const std::vector<HeldMemory> held = held_memory(timeline, buffers, 2).value();
  ASSERT_EQ(held.size(), 2);
  EXPECT_EQ(held[0].peak, 130);
  EXPECT_EQ(held[0].at, ticks_of(1));
  EXPECT_THAT(held[0].buffers, ElementsAre(0, 1, 2));
  EXPECT_THAT(held[0].curve, ElementsAre(Pair(0, 115), Pair(ticks_of(1), 130),
                                         Pair(ticks_of(2), 120), Pair(ticks_of(3), 0)));
  EXPECT_THAT(held[1].curve, ElementsAre(Pair(ticks_of(2), 7), Pair(ticks_of(3), 0)));
}

TEST(HeldMemory, EndsBeforeTheNextBegins) {
  const std::vector<HeldBuffer> buffers = {{0, 10, 0, {0}}, {0, 10, 1, {1}}};
  EXPECT_EQ(held_memory(chain({1, 1}), buffers, 1).value()[0].peak, 10);
}

TEST(HeldMemory, OfAMomentCountsForThePeak) {
  const std::vector<HeldBuffer> buffers = {{0, 10, 0, {2}}, {0, 50, 1, {1}}};
  const HeldMemory held = held_memory(chain({1, 0, 1}), buffers, 1).value()[0];
  EXPECT_EQ(held.peak, 60);
  EXPECT_EQ(held.at, ticks_of(1));
  EXPECT_THAT(held.curve, ElementsAre(Pair(0, 10), Pair(ticks_of(2), 0)));
}

TEST(HeldMemory, RefusesBuffersThatMakeNoSense) {
  const Timeline timeline = chain({1});
  const auto held = [&](const HeldBuffer& buffer) {
    return held_memory(timeline, std::vector{buffer, buffer}, 1);
  };
  EXPECT_THAT(held({1, 1}), says("buffer 0 ... device 1 of 1"));
  EXPECT_THAT(held({0, -1}), says("buffer 0 ... -1 bytes"));
  EXPECT_THAT(held({0, 1, 1}), says("buffer 0 ... job 1 of 1"));
  EXPECT_THAT(held({0, 1, 0, {3}}), says("buffer 0 ... job 3 of 1"));
  EXPECT_THAT(held({0, INT64_MAX}), refuses(ErrorCode::limit, "device 0"));
}

// The judge looks at each tick at which something changes, and adds up all that is held there.
TEST(HeldMemory, HasTheSumsOfAllBuffersAtEachTick) {
  Rng rng(3);
  for (int i = 0; i < 300; ++i) {
    std::vector<double> seconds;
    for (int64_t jobs = rng.between(1, 8); jobs > 0; --jobs)
      seconds.push_back(rng.chance(0.2) ? 0 : static_cast<double>(rng.between(1, 3)));
    const Timeline timeline = chain(seconds);
    std::vector<HeldBuffer> buffers;
    for (int64_t left = rng.between(0, 10); left > 0; --left) {
      HeldBuffer buffer = {0, rng.between(0, 100)};
      const uint32_t maker = static_cast<uint32_t>(rng.below(seconds.size()));
      if (rng.chance(0.8)) buffer.maker = maker;
      for (int64_t users = rng.between(0, 2); users > 0; --users)
        buffer.users.push_back(static_cast<uint32_t>(rng.below(seconds.size())));
      buffers.push_back(buffer);
    }
    const HeldMemory held = held_memory(timeline, buffers, 1).value()[0];
    const auto life = [&](const HeldBuffer& buffer) {
      Ticks begin = 0, end = buffer.users.empty() ? timeline.end() : 0;
      if (buffer.maker != HeldBuffer::kNoJob) {
        begin = timeline.start(buffer.maker);
        end = std::max(end, timeline.end(buffer.maker));
      }
      for (uint32_t user : buffer.users) end = std::max(end, timeline.end(user));
      return std::pair(begin, std::max(begin, end));
    };
    int64_t peak = 0;
    for (double tick = 0; tick <= 24; ++tick) {
      const Ticks at = ticks_of(tick);
      int64_t stays = 0, moment = 0;
      for (const HeldBuffer& buffer : buffers) {
        const auto [begin, end] = life(buffer);
        stays += begin <= at && at < end ? buffer.bytes : 0;
        moment += begin == at && at == end ? buffer.bytes : 0;
      }
      peak = std::max(peak, stays + moment);
      int64_t curve = 0;
      for (const auto& [from, bytes] : held.curve)
        if (from <= at) curve = bytes;
      ASSERT_EQ(curve, stays) << "case " << i << " at " << tick;
    }
    ASSERT_EQ(held.peak, peak) << "case " << i;
    int64_t sum = 0;
    for (uint32_t buffer : held.buffers) sum += buffers[buffer].bytes;
    ASSERT_EQ(sum, peak);
  }
}

}  // namespace
}  // namespace hone::HONE_FILE

#include "base/thread_pool.h"

#include "base/error.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <vector>

namespace hone::HONE_FILE {
namespace {

TEST(ThreadPool, VisitsEveryIndexOnce) {
  ThreadPool pool(4);
  for (int64_t grain : {0, 1, 3, 64, 5000}) {
    std::vector<std::atomic<int>> visits(1000);
    pool.parallel_for(0, 1000, grain, [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) visits[i].fetch_add(1);
    });
    for (const std::atomic<int>& count : visits) ASSERT_EQ(count, 1) << grain;
  }
}

TEST(ThreadPool, PiecesDependOnTheGrainAlone) {
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    std::mutex mutex;
    std::set<std::pair<int64_t, int64_t>> pieces;
    pool.parallel_for(-3, 7, 4, [&](int64_t from, int64_t to) {
      std::lock_guard lock(mutex);
      pieces.emplace(from, to);
    });
    EXPECT_EQ(pieces, (std::set<std::pair<int64_t, int64_t>>{{-3, 1}, {1, 5}, {5, 7}}));
  }
}

TEST(ThreadPool, AnEmptyRangeCallsNothing) {
  ThreadPool pool(2);
  pool.parallel_for(5, 5, 1, [](int64_t, int64_t) { FAIL(); });
  pool.parallel_for(5, 4, 0, [](int64_t, int64_t) { FAIL(); });
}

TEST(ThreadPool, TheFirstExceptionReachesTheCaller) {
  for (int threads : {1, 4}) {
    ThreadPool pool(threads);
    std::atomic<int> calls = 0;
    try {
      pool.parallel_for(0, 1000000, 1, [&](int64_t from, int64_t) {
        calls.fetch_add(1);
        if (from == 10) throw std::runtime_error("ten");
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "ten");
    }
    EXPECT_LT(calls, 1000000);
    // The pool works as before.
    std::atomic<int64_t> sum = 0;
    pool.parallel_for(0, 100, 1, [&](int64_t from, int64_t) { sum += from; });
    EXPECT_EQ(sum, 4950);
  }
}

TEST(ThreadPool, NestedLoopsRunOnTheSameThread) {
  ThreadPool pool(4);
  std::atomic<int64_t> sum = 0;
  pool.parallel_for(0, 50, 1, [&](int64_t, int64_t) {
    const std::thread::id outer = std::this_thread::get_id();
    pool.parallel_for(0, 20, 3, [&](int64_t from, int64_t to) {
      EXPECT_EQ(std::this_thread::get_id(), outer);
      sum += to - from;
    });
  });
  EXPECT_EQ(sum, 1000);
}

TEST(ThreadPool, SeveralThreadsMayShareIt) {
  ThreadPool pool(3);
  std::vector<int64_t> sums(4);
  std::vector<std::thread> callers;
  for (int64_t& total : sums) {
    callers.emplace_back([&pool, &total] {
      for (int round = 0; round < 300; ++round) {
        std::atomic<int64_t> sum = 0;
        pool.parallel_for(0, 64, 1, [&](int64_t from, int64_t) { sum += from; });
        total += sum;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (int64_t total : sums) EXPECT_EQ(total, 300 * 2016);
}

TEST(ThreadPool, ShortLoopsNeitherHangNorOutliveTheirBody) {
  ThreadPool pool(4);
  for (int64_t round = 0; round < 3000; ++round) {
    int64_t slots[3] = {};
    pool.parallel_for(0, 3, 1, [&](int64_t from, int64_t) { slots[from] = round; });
    ASSERT_EQ(slots[0] + slots[1] + slots[2], 3 * round);
  }
}

TEST(ThreadPool, TakesPartItselfAndHasAtLeastOneThread) {
  EXPECT_EQ(ThreadPool(3).threads(), 3);
  EXPECT_GE(default_pool().threads(), 1);
  EXPECT_THROW(ThreadPool(0), InternalError);
}

}  // namespace
}  // namespace hone::HONE_FILE

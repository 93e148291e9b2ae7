#include "base/forked.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>

#include "base/sanitizers.h"

namespace hone::HONE_FILE {
namespace {

struct Told {
  std::vector<std::vector<std::string>> messages;
  std::vector<ForkEnd> ends;
};

Told run(const std::vector<ForkedWork>& works, const ForkLimits& limits = {}) {
  Told told;
  told.messages.resize(works.size());
  told.ends = run_forked(works, limits, [&](size_t i, std::string_view message) {
                told.messages[i].emplace_back(message);
              }).value();
  return told;
}

TEST(Forked, PassesMessagesOnInOrder) {
  const std::string large(3 << 20, 'x');
  const Told told = run({[&](const Tell& tell) {
                           tell("one");
                           tell("");
                           tell(large);
                         },
                         [](const Tell& tell) { tell("other"); }});
  EXPECT_EQ(told.messages[0], (std::vector<std::string>{"one", "", large}));
  EXPECT_EQ(told.messages[1], std::vector<std::string>{"other"});
  EXPECT_TRUE(told.ends[0].is_done() && told.ends[1].is_done());
}

TEST(Forked, ACrashKeepsWhatWasToldBefore) {
  const Told told = run({[](const Tell& tell) {
    tell("before");
    std::abort();
  }});
  EXPECT_EQ(told.messages[0], std::vector<std::string>{"before"});
  EXPECT_EQ(told.ends[0].signal, SIGABRT);
  EXPECT_FALSE(told.ends[0].is_done());
}

TEST(Forked, SilenceEndsACopyAndTheOtherGoesOn) {
  const auto nap = [] { std::this_thread::sleep_for(std::chrono::milliseconds(150)); };
  const Told told = run({[](const Tell& tell) {
                           tell("hangs");
                           for (;;) pause();
                         },
                         [&](const Tell& tell) {
                           for (int i = 0; i < 4; ++i) {
                             nap();
                             tell("works");
                           }
                         }},
                        {.silence_seconds = 0.4});
  EXPECT_TRUE(told.ends[0].timed_out);
  EXPECT_FALSE(told.ends[1].timed_out);
  EXPECT_EQ(told.messages[1].size(), 4U);
}

TEST(Forked, ExceptionsAndMemoryHaveTheirEnds) {
  const Told told =
      run({[](const Tell&) { throw 1; }, [](const Tell&) { throw std::bad_alloc(); }});
  EXPECT_TRUE(told.ends[0].threw);
  EXPECT_TRUE(told.ends[1].no_memory);
}

TEST(Forked, MemoryBeyondTheLimitIsRefused) {
  if (kUnderAsan) GTEST_SKIP() << "AddressSanitizer reserves more memory than any limit";
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "ThreadSanitizer ends a process that gets no memory";
#endif
  const Told told = run({[](const Tell& tell) {
                          std::vector<char> small(10 << 20);
                          tell("small");
                          std::vector<char> large(400 << 20);
                          tell(large.data());
                        }},
                        {.memory_bytes = 100 << 20});
  EXPECT_EQ(told.messages[0], std::vector<std::string>{"small"});
  EXPECT_TRUE(told.ends[0].no_memory);
}

TEST(Forked, ACancelledRunLeavesNothingBehind) {
  CancelToken cancel;
  pid_t child = 0;
  const ForkedWork work = [](const Tell& tell) {
    tell(std::to_string(getpid()));
    for (;;) pause();
  };
  const auto ends = run_forked(
      {&work, 1}, {},
      [&](size_t, std::string_view message) {
        child = std::stoi(std::string(message));
        cancel.cancel();
      },
      &cancel);
  ASSERT_FALSE(ends.ok());
  EXPECT_EQ(ends.error().code(), ErrorCode::interrupted);
  EXPECT_NE(kill(child, 0), 0);
}

}  // namespace
}  // namespace hone::HONE_FILE

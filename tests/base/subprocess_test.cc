#include "base/subprocess.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <thread>
#include <vector>

// Sanitizers reserve more address space than any limit.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HONE_UNDER_ASAN 1
#endif
#endif

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;

ProcessResult shell(const std::string& script, const ProcessLimits& limits = {}) {
  const Result<ProcessResult> result = run_process("/bin/sh", {"-c", script}, limits);
  EXPECT_TRUE(result.ok()) << result.error().to_string();
  return result.ok() ? *result : ProcessResult();
}

TEST(Subprocess, GivesStreamsAndTheExitCode) {
  const ProcessResult result = shell("echo said; echo told >&2; exit 7");
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_EQ(result.signal, 0);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.out, "said\n");
  EXPECT_EQ(result.err, "told\n");
  EXPECT_GT(result.seconds, 0);
  EXPECT_GT(result.max_rss, 0);
}

TEST(Subprocess, PassesArgumentsAsTheyAre) {
  const Result<ProcessResult> result =
      run_process("/bin/sh", {"-c", "printf '%s|' \"$@\"", "sh", "a b", "", "*'\""});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->out, "a b||*'\"|");
}

TEST(Subprocess, ReadsNothing) { EXPECT_EQ(shell("cat; echo end").out, "end\n"); }

TEST(Subprocess, TellsTheSignal) {
  const ProcessResult result = shell("kill -SEGV $$");
  EXPECT_EQ(result.signal, SIGSEGV);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(signal_name(result.signal), "SIGSEGV");
  EXPECT_EQ(signal_name(4000), "signal 4000");
}

TEST(Subprocess, RefusesWhatIsNoProgram) {
  const Result<ProcessResult> result = run_process("/no/such/program", {});
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().what(), HasSubstr("/no/such/program: No such file"));
}

TEST(Subprocess, StopsAtTheWallLimit) {
  const ProcessResult result = shell("echo begun; sleep 100", {.wall_seconds = 0.2});
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.signal, SIGKILL);
  EXPECT_EQ(result.out, "begun\n");
  EXPECT_GE(result.seconds, 0.2);
}

TEST(Subprocess, StopsAtTheCpuLimit) {
  const ProcessResult result =
      shell("while :; do :; done", {.wall_seconds = 100, .cpu_seconds = 0.5});
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.signal, SIGXCPU);
}

TEST(Subprocess, LimitsMemory) {
#ifdef HONE_UNDER_ASAN
  GTEST_SKIP() << "the limit is not for sanitized programs";
#endif
  // dd allocates its buffer at once.
  static constexpr char kTake[] = "exec dd if=/dev/zero of=/dev/null bs=256M count=1";
  EXPECT_EQ(shell(kTake).exit_code, 0);
  const ProcessResult result = shell(kTake, {.memory_bytes = int64_t{64} << 20});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("memory"));
}

TEST(Subprocess, KeepsTheFirstPartOfLongStreams) {
  const ProcessResult result =
      shell("head -c 3000000 /dev/zero; head -c 1000 /dev/zero >&2", {.output_bytes = 1000});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out.size(), 1000);
  EXPECT_EQ(result.err.size(), 1000);
  EXPECT_TRUE(result.output_cut);
}

TEST(Subprocess, EndsWhatTheProgramLeftBehind) {
  // The one left behind holds the streams open; nobody waits for it.
  const ProcessResult result = shell("sleep 100 & echo $!", {.wall_seconds = 50});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_FALSE(result.timed_out);
  const int left = std::stoi(result.out);
  const std::string gone = fmt::format(
      "for i in $(seq 100); do kill -0 {0} 2>/dev/null || exit 0; "
      "grep -q 'State:.Z' /proc/{0}/status && exit 0; sleep 0.05; done; exit 1",
      left);
  EXPECT_EQ(shell(gone).exit_code, 0);
}

TEST(Subprocess, StopsWhenCancelled) {
  CancelToken token;
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    token.cancel();
  });
  const Result<ProcessResult> result = run_process("/bin/sleep", {"100"}, {}, &token);
  later.join();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::interrupted);
}

TEST(Subprocess, RunsFromManyThreads) {
  std::vector<std::thread> threads;
  std::vector<std::string> said(8);
  for (size_t i = 0; i < said.size(); ++i)
    threads.emplace_back([&, i] { said[i] = shell(fmt::format("echo {}", i)).out; });
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < said.size(); ++i) EXPECT_EQ(said[i], fmt::format("{}\n", i));
}

}  // namespace
}  // namespace hone::HONE_FILE

#include "cli/signal_guard.h"

#include "base/file.h"
#include "base/team.h"
#include "base/thread_pool.h"
#include "cli/console.h"
#include "cli/no_memory.h"
#include "tests/base/says_testing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <limits>
#include <new>
#include <thread>

namespace hone::cli::HONE_FILE {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

// Runs a body in a process of its own, under the guard.
class SignalGuardTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!SignalGuard::kWorks) GTEST_SKIP() << "the sanitizer has these signals";
  }
  // The status as waitpid tells it.
  int run(const std::function<void(Console&)>& body, const fs::path& where) {
    const std::string said = folder() / "err";
    const pid_t child = ::fork();
    if (child == 0) {
      const rlimit no_core = {0, 0};
      ::setrlimit(RLIMIT_CORE, &no_core);
      (void)!std::freopen(said.c_str(), "w", stderr);
      Console console(Console::Options{});
      const std::vector<std::string> words = {"run", "it's", "m.hone"};
      {
        const SignalGuard guard(words, console, where);
        body(console);
      }
      std::raise(SIGSEGV);  // nobody looks at that any more
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    said_ = *read_file(said, 1 << 20);
    return status;
  }
  int run(const std::function<void(Console&)>& body) { return run(body, folder()); }
  // The text of a file of the only reproducer.
  std::string saved(std::string_view name) const {
    const std::vector<fs::path> all = reproducers();
    EXPECT_EQ(all.size(), 1u);
    if (all.empty()) return "";
    EXPECT_THAT(said_, HasSubstr(all[0].string()));
    const Result<std::string> text = read_file(all[0] / name, 1 << 20);
    return text.ok() ? *text : text.error().what();
  }
  std::vector<fs::path> reproducers() const {
    std::vector<fs::path> all;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder()))
      if (entry.path().filename().string().starts_with("hone-crash-")) all.push_back(entry.path());
    return all;
  }
  const fs::path& folder() const { return folder_->path(); }

  Result<TempDir> folder_ = TempDir::create(testing::TempDir());
  std::string said_;
};

bool exits_as_a_fault(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 6; }

TEST_F(SignalGuardTest, SavesWhatBelongsToTheReport) {
  const auto body = [](Console& console) {
    console.keep_for_report("given.plan", "plan @g {\n}\n");
    console.set_exhibit([] { return "graph @g() -> () {}\n"; });
    std::raise(SIGFPE);
  };
  EXPECT_TRUE(exits_as_a_fault(run(body)));
  EXPECT_THAT(said_, HasSubstr("hone: error: ended by SIGFPE\nhint: this is a fault of hone"));
  EXPECT_EQ(saved("command.sh"), "hone run 'it'\\''s' m.hone\n");
  EXPECT_EQ(saved("graph.hone"), "graph @g() -> () {}\n");
  EXPECT_EQ(saved("given.plan"), "plan @g {\n}\n");
  EXPECT_THAT(saved("report.txt"), HasSubstr("\n\nended by SIGFPE\n"));
  EXPECT_TRUE(exits_as_a_fault(run(body)));
  EXPECT_EQ(reproducers().size(), 1u);  // the same fault again
}

TEST_F(SignalGuardTest, WhatIsLargeIsLeftOut) {
  EXPECT_TRUE(exits_as_a_fault(run([](Console& console) {
    console.set_exhibit([]() -> std::string { ::_exit(0); }, /*is_small=*/false);
    std::abort();
  })));
  EXPECT_THAT(saved("report.txt"), HasSubstr("SIGABRT"));
  EXPECT_FALSE(fs::exists(reproducers().at(0) / "graph.hone"));
}

// std::filesystem frees parts of a path twice, or reads freed ones, while it unwinds from that.
TEST_F(SignalGuardTest, AFaultAfterMemoryEndedIsALimit) {
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT}) {
    const int status = run([&](Console&) {
      expect_no_memory();
      volatile size_t most = std::numeric_limits<ptrdiff_t>::max();
      try {
        ::operator delete(::operator new(most));
      } catch (const std::bad_alloc&) {
      }
      std::raise(signal);
    });
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 5);
    EXPECT_THAT(said_, HasSubstr("out of memory"));
    EXPECT_TRUE(reproducers().empty());
  }
}

int overflow(volatile const int* outer) {
  volatile int here[1000];
  here[0] = *outer;
  if (here[0] == 0) return 0;
  return overflow(here) + here[0];
}

TEST_F(SignalGuardTest, HandlesAStackThatOverflows) {
  EXPECT_TRUE(exits_as_a_fault(run([](Console&) {
    const int one = 1;
    overflow(&one);
  })));
  EXPECT_THAT(saved("report.txt"), HasSubstr("SIGSEGV"));
}

// Workers of pools compile, those of teams run what was compiled.
TEST_F(SignalGuardTest, HandlesAStackThatOverflowsInAWorker) {
  const auto fail_in_worker = [caller = std::this_thread::get_id()] {
    while (std::this_thread::get_id() == caller) ::pause();
    const int one = 1;
    overflow(&one);
  };
  EXPECT_TRUE(exits_as_a_fault(run([&](Console&) {
    ThreadPool(2).parallel_for(0, 2, 1, [&](int64_t, int64_t) { fail_in_worker(); });
  })));
  EXPECT_THAT(saved("report.txt"), HasSubstr("SIGSEGV"));
  fs::remove_all(reproducers().at(0));
  EXPECT_TRUE(exits_as_a_fault(run([&](Console&) {
    Team::create({.threads = 2}).value()->run(2, 2, [&](int64_t, int64_t, int64_t) noexcept {
      fail_in_worker();
    });
  })));
  EXPECT_THAT(saved("report.txt"), HasSubstr("SIGSEGV"));
}

TEST_F(SignalGuardTest, ManyThreadsMayFailAtOnce) {
  EXPECT_TRUE(exits_as_a_fault(run([](Console&) {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) threads.emplace_back([] { std::raise(SIGSEGV); });
  })));
  EXPECT_THAT(saved("report.txt"), HasSubstr("SIGSEGV\n"));
}

TEST_F(SignalGuardTest, GoesElsewhereIfTheFolderTakesNoFiles) {
  ::setenv("TMPDIR", folder().c_str(), 1);
  EXPECT_TRUE(exits_as_a_fault(run([](Console&) { std::raise(SIGILL); }, "/proc")));
  ::unsetenv("TMPDIR");
  EXPECT_THAT(saved("report.txt"), HasSubstr("folder: /proc\n"));
}

// A link in place of the folder or of a file leads to what is somebody else's.
TEST_F(SignalGuardTest, FollowsNoLinks) {
  const auto body = [](Console&) { std::raise(SIGBUS); };
  run(body);
  const fs::path made = reproducers().at(0);
  fs::remove(made / "report.txt");
  fs::create_symlink(folder() / "target", made / "report.txt");
  ::setenv("TMPDIR", "/proc", 1);
  EXPECT_TRUE(exits_as_a_fault(run(body)));
  EXPECT_FALSE(fs::exists(folder() / "target"));
  fs::rename(made, folder() / "moved");
  fs::create_directory(folder() / "empty");
  fs::create_symlink(folder() / "empty", made);
  EXPECT_TRUE(exits_as_a_fault(run(body)));
  ::unsetenv("TMPDIR");
  EXPECT_THAT(said_, tested::says("hone: error: ended by SIGBUS ... file was cut"));
  EXPECT_TRUE(fs::is_empty(folder() / "empty"));
}

TEST_F(SignalGuardTest, ItEndsWithItsScope) {
  const int status = run([](Console& console) { console.set_exhibit([] { return "x"; }); });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
  EXPECT_THAT(reproducers(), IsEmpty());
}

}  // namespace
}  // namespace hone::cli::HONE_FILE

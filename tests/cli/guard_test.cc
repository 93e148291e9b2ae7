#include "cli/guard.h"

#include "base/file.h"
#include "cli/console.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <limits>
#include <new>

namespace hone::cli::HONE_FILE {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

// Runs a body under the guard, with the console in files.
class Guard : public testing::Test {
 protected:
  int run(const std::function<Status()>& body) {
    std::FILE* out = std::fopen((folder() / "out").c_str(), "w");
    std::FILE* err = std::fopen((folder() / "err").c_str(), "w");
    int code = 0;
    {
      Console console({.out = out, .err = err});
      console.set_exhibit([] { return "graph @g() -> () {}\n"; });
      console.keep_for_report("given.plan", "plan @g {\n}\n");
      code = guarded(words_, console, folder(), body);
    }
    std::fclose(out);
    std::fclose(err);
    said_ = *read_file(folder() / "err", 1 << 20);
    return code;
  }
  const fs::path& folder() const { return folder_->path(); }

  std::vector<std::string> words_ = {"run", "it's", "m.hone"};
  Result<TempDir> folder_ = TempDir::create(testing::TempDir());
  std::string said_;
};

TEST_F(Guard, SuccessIsZero) {
  EXPECT_EQ(run([] { return Status(); }), 0);
  EXPECT_EQ(said_, "");
}

TEST_F(Guard, ErrorsArePrintedAndGiveTheirCode) {
  EXPECT_EQ(run([]() -> Status {
              return unsupported("no such thing").at("m.hone:3").with_hint("try another");
            }),
            4);
  EXPECT_EQ(said_, "hone: error: no such thing (m.hone:3)\nhint: try another\n");
}

TEST_F(Guard, OutOfMemoryIsALimit) {
  EXPECT_EQ(run([]() -> Status { throw std::bad_alloc(); }), 5);
  EXPECT_THAT(said_, HasSubstr("out of memory"));
}

TEST_F(Guard, OutOfMemoryIsALimitWhereNothingUnwinds) {
  const std::function<void()> fail = [] { throw std::bad_alloc(); };
  const auto no_way_out = [&]() noexcept { fail(); };
  EXPECT_EXIT(run([&]() -> Status {
                no_way_out();
                return {};
              }),
              testing::ExitedWithCode(5), "out of memory");
}

// std::filesystem ends the process so.
TEST_F(Guard, OutOfMemoryIsALimitWhereTheExceptionIsGone) {
  EXPECT_EXIT(run([]() -> Status {
                volatile size_t most = std::numeric_limits<ptrdiff_t>::max();
                try {
                  ::operator delete(::operator new(most));
                } catch (const std::bad_alloc&) {
                }
                std::terminate();
              }),
              testing::ExitedWithCode(5), "out of memory");
}

TEST_F(Guard, AFaultLeavesAReproducer) {
  const auto body = []() -> Status {
    HONE_CHECK(1 + 1 == 3, "arithmetic {}", 42);
    return {};
  };
  EXPECT_EQ(run(body), 6);
  EXPECT_THAT(said_, HasSubstr("arithmetic 42"));
  std::vector<fs::path> crashes;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder()))
    if (entry.path().filename().string().starts_with("hone-crash-"))
      crashes.push_back(entry.path());
  ASSERT_EQ(crashes.size(), 1u);
  EXPECT_THAT(said_, HasSubstr(crashes[0].string()));
  EXPECT_EQ(*read_file(crashes[0] / "command.sh", 1 << 20), "hone run 'it'\\''s' m.hone\n");
  EXPECT_EQ(*read_file(crashes[0] / "graph.hone", 1 << 20), "graph @g() -> () {}\n");
  EXPECT_EQ(*read_file(crashes[0] / "given.plan", 1 << 20), "plan @g {\n}\n");
  EXPECT_THAT(*read_file(crashes[0] / "report.txt", 1 << 20), HasSubstr("arithmetic 42"));

  // The same fault again goes to the same folder.
  EXPECT_EQ(run(body), 6);
  EXPECT_THAT(said_, HasSubstr(crashes[0].string()));
}

TEST_F(Guard, AFaultThatIsAnErrorLeavesAReproducer) {
  EXPECT_EQ(run([]() -> Status { return fault("no code").at("kernel 'k0'"); }), 6);
  EXPECT_THAT(said_, HasSubstr("hone: error: no code (kernel 'k0')"));
  EXPECT_THAT(said_, HasSubstr("hone-crash-"));
}

TEST_F(Guard, CancelledWorkIsInterrupted) {
  EXPECT_EQ(run([]() -> Status {
              CancelToken token;
              token.cancel();
              return token.check();
            }),
            130);
}

TEST(ShellQuoted, QuotesWhatAShellWouldRead) {
  EXPECT_EQ(shell_quoted("a-b_c.d/e=1,2:@%+"), "a-b_c.d/e=1,2:@%+");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("a b"), "'a b'");
  EXPECT_EQ(shell_quoted("$(rm)"), "'$(rm)'");
}

}  // namespace
}  // namespace hone::cli::HONE_FILE

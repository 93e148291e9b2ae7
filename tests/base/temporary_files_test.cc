#include "base/temporary_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>

#include "base/file.h"

// The files that killed processes leave beside the files that they write.

namespace hone::HONE_FILE {
namespace {

namespace fs = std::filesystem;

class TemporaryFiles : public testing::Test {
 protected:
  fs::path put(const std::string& name, std::chrono::seconds age = {}) const {
    const fs::path path = folder() / name;
    std::ofstream(path) << "half of it";
    fs::last_write_time(path, fs::file_time_type::clock::now() - age);
    return path;
  }
  const fs::path& folder() const { return folder_.path(); }
  void sweep() const { detail::sweep_folder_now(folder()); }

 private:
  TempDir folder_ = TempDir::create(testing::TempDir()).value();
};

// The number of a process that has ended.
int dead_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return child;
}

TEST_F(TemporaryFiles, OfDeadProcessesAreRemoved) {
  const std::string name = "a.npz" + detail::temporary_suffix(dead_process());
  // Libraries that write into such a file have others beside it.
  const std::string names[] = {name, name + ".Ab1Cd2", name + "-wal", name + "-journal"};
  for (const std::string& each : names) put(each);
  sweep();
  for (const std::string& each : names) EXPECT_FALSE(fs::exists(folder() / each)) << each;
}

TEST_F(TemporaryFiles, OfLivingProcessesStay) {
  const fs::path own = put("a" + detail::temporary_suffix(::getpid()));
  const fs::path others = put("a" + detail::temporary_suffix(::getppid()));
  sweep();
  EXPECT_TRUE(fs::exists(own));
  EXPECT_TRUE(fs::exists(others));
}

// A number is used again: what is older than the process that has it now is another one's.
TEST_F(TemporaryFiles, OfEarlierProcessesOfTheSameNumberAreRemoved) {
  const fs::path old =
      put("a" + detail::temporary_suffix(::getpid()), std::chrono::hours(24 * 365));
  sweep();
  EXPECT_FALSE(fs::exists(old));
}

TEST_F(TemporaryFiles, OnlyThoseOfTheExactFormAreRemoved) {
  const int dead = dead_process();
  const std::string suffix = detail::temporary_suffix(dead);
  const std::string dead_text = fmt::format("{}", dead);
  for (const std::string& name :
       {std::string("a"), std::string("a.tmp-"), "a.tmp-" + dead_text, "a.tmp-" + dead_text + "-x",
        "a" + suffix + "x", "a" + suffix + ".txt", "a" + suffix + "-", suffix,
        "a.tmp--" + dead_text + "-1", std::string("a.tmp-99999999999999999999-1"),
        "a" + suffix + ".Ab1Cd2x"})
    put(name, std::chrono::hours(24 * 365));
  const auto count = [&] { return std::distance(fs::directory_iterator(folder()), {}); };
  const auto before = count();
  sweep();
  EXPECT_EQ(count(), before);
}

// Nothing is known of processes elsewhere, so only what is old counts as left behind.
TEST_F(TemporaryFiles, OfOtherPlacesAreRemovedOnceTheyAreOld) {
  const int dead = dead_process();
  const std::string elsewhere = fmt::format("a.tmp-{}-00000001-0", dead);
  const std::string older_version = fmt::format("a.tmp-{}-0", dead);
  put(elsewhere);
  put(older_version);
  sweep();
  EXPECT_TRUE(fs::exists(folder() / elsewhere));
  EXPECT_TRUE(fs::exists(folder() / older_version));
  put(elsewhere, std::chrono::hours(25));
  put(older_version, std::chrono::hours(25));
  sweep();
  EXPECT_FALSE(fs::exists(folder() / elsewhere));
  EXPECT_FALSE(fs::exists(folder() / older_version));
}

TEST_F(TemporaryFiles, NothingButFilesOfThisUserIsRemoved) {
  const int dead = dead_process();
  const fs::path link = folder() / ("link" + detail::temporary_suffix(dead));
  const fs::path directory = folder() / ("folder" + detail::temporary_suffix(dead));
  fs::create_symlink("nowhere", link);
  fs::create_directory(directory);
  const fs::path others = put("other" + detail::temporary_suffix(dead));
  const bool is_given = ::chown(others.c_str(), 65534, 65534) == 0;  // only root may
  sweep();
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_TRUE(fs::exists(directory));
  EXPECT_EQ(fs::exists(others), is_given);
}

TEST_F(TemporaryFiles, AreRemovedByTheNextWriterIntoTheFolder) {
  const fs::path left = put("a" + detail::temporary_suffix(dead_process()));
  ASSERT_TRUE(write_file_atomic(folder() / "b", "new").ok());
  EXPECT_FALSE(fs::exists(left));
}

TEST_F(TemporaryFiles, AreAllGoneIfTheProcessGivesUp) {
  const fs::path path = temporary_name(folder() / "a"), done = temporary_name(folder() / "done");
  for (const fs::path& each : {path, done, fs::path(path.native() + ".Ab1Cd2")})
    std::ofstream(each) << "half";
  ASSERT_TRUE(publish_file(done, folder() / "done").ok());
  put("other");
  discard_all_files();
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder()), {}), 2);  // done and other
}

TEST_F(TemporaryFiles, TellWhetherAFileCanBeWritten) {
  EXPECT_TRUE(check_can_write(folder() / "new").ok());
  EXPECT_TRUE(check_can_write("/dev/null").ok());
  EXPECT_TRUE(fs::is_empty(folder()));
  const std::string missing = (folder() / "none" / "a").native();
  EXPECT_EQ(check_can_write(missing).error().what(),
            fmt::format("cannot write '{}': No such file or directory", missing));
  EXPECT_THAT(check_can_write(folder()).error().what(), testing::HasSubstr("it is a folder"));
  EXPECT_FALSE(check_can_write("").ok());
}

// Errors name the file that was asked for.
TEST_F(TemporaryFiles, AreNotNamedByErrors) {
  const std::string missing = (folder() / "none" / "a").native();
  EXPECT_EQ(write_file_atomic(missing, "x").error().what(),
            fmt::format("cannot write '{}': No such file or directory", missing));
  EXPECT_EQ(publish_file(temporary_name(missing), missing).error().what(),
            fmt::format("cannot write '{}': No such file or directory", missing));
}

}  // namespace
}  // namespace hone::HONE_FILE

#include "base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>
#include <vector>

#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  fs::path put(const fs::path& name, std::string_view content) {
    const fs::path path = dir.path() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(dir.path()), {}));
  }

  TempDir dir = TempDir::create(testing::TempDir()).value();
};

TEST_F(FileTest, ReadsTheWholeFileUpToTheLimit) {
  const fs::path path = put("a", std::string("x\0y", 3));
  EXPECT_EQ(read_file(path, 3).value(), std::string("x\0y", 3));
  EXPECT_EQ(read_file(put("empty", ""), 0).value(), "");
  const Result<std::string> longer = read_file(path, 2);
  EXPECT_EQ(longer.error().code(), ErrorCode::limit);
  EXPECT_THAT(longer.error().what(), says(fmt::format("'{}' ... 3 bytes ... 2", path.native())));
}

TEST_F(FileTest, PipesCountTheirBytesWhileReading) {
  const fs::path path = dir.path() / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const std::string content(20000, 'p');
  std::thread writer([&] { std::ofstream(path) << content; });
  EXPECT_EQ(read_file(path, 20000).value(), content);
  writer.join();
}

TEST_F(FileTest, ReadErrorsNameTheFile) {
  const fs::path path = dir.path() / "none";
  EXPECT_EQ(read_file(path, 1).error().what(),
            fmt::format("cannot read '{}': No such file or directory", path.native()));
  EXPECT_EQ(read_file(dir.path(), 1 << 20).error().what(),
            fmt::format("cannot read '{}': Is a directory", dir.path().native()));
}

TEST_F(FileTest, AtomicWriteJoinsPieces) {
  const std::string_view pieces[] = {"one", "", "two"};
  ASSERT_TRUE(write_file_atomic(dir.path() / "a", pieces).ok());
  EXPECT_EQ(read_file(dir.path() / "a", 9).value(), "onetwo");
}

TEST_F(FileTest, AtomicWriteReplacesAndLeavesNothingElse) {
  const fs::path path = dir.path() / "a";
  ASSERT_TRUE(write_file_atomic(path, "one").ok());
  ASSERT_TRUE(write_file_atomic(path, "two").ok());
  EXPECT_EQ(read_file(path, 10).value(), "two");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, AtomicWriteReplacesALinkNotItsTarget) {
  const fs::path target = put("target", "old");
  const fs::path link = dir.path() / "link";
  fs::create_symlink("target", link);
  ASSERT_TRUE(write_file_atomic(link, "new").ok());
  EXPECT_EQ(read_file(target, 10).value(), "old");
  EXPECT_EQ(read_file(link, 10).value(), "new");
  EXPECT_FALSE(fs::is_symlink(link));
}

TEST_F(FileTest, PipesAndDevicesAreWrittenNotReplaced) {
  const fs::path pipe = dir.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const FileDescriptor end(::open(pipe.c_str(), O_RDWR));
  ASSERT_TRUE(write_file_atomic(pipe, "new").ok());
  char read[8] = {};
  EXPECT_EQ(::read(end.get(), read, sizeof read), 3);
  EXPECT_STREQ(read, "new");
  const fs::path made = put("made", "x");
  EXPECT_THAT(publish_file(made, pipe).error().what(), testing::HasSubstr("not a regular file"));
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_FALSE(fs::exists(made));
}

TEST_F(FileTest, AFailedAtomicWriteKeepsTheOldContent) {
  fs::create_directory(dir.path() / "folder");
  EXPECT_EQ(write_file_atomic(dir.path() / "folder", "x").error().what(),
            fmt::format("cannot write '{}/folder': it is a folder", dir.path().native()));
  EXPECT_THAT(write_file_atomic(".", "x").error().what(), says("'.' ... folder"));
  EXPECT_FALSE(write_file_atomic(dir.path() / "no" / "a", "x").ok());
  EXPECT_FALSE(write_file_atomic("", "x").ok());
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, WhatIsFullIsALimit) {
  const Status full = write_file_atomic("/dev/full", "x");
  EXPECT_EQ(full.error().code(), ErrorCode::limit);
  EXPECT_EQ(full.error().what(), "cannot write '/dev/full': No space left on device");

  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit short_files = {4096, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &short_files), 0);
  const Status too_long = write_file_atomic(dir.path() / "a", std::string(5000, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(too_long.error().code(), ErrorCode::limit);
  EXPECT_EQ(entries(), 0u);
}

TEST_F(FileTest, MakesFoldersThatAreNotThereYet) {
  const fs::path folder = dir.path() / "a" / "b";
  ASSERT_TRUE(make_folders(folder).ok());
  EXPECT_TRUE(fs::is_directory(folder));
  EXPECT_TRUE(make_folders(folder).ok());
  const fs::path file = put("file", "");
  const Status failed = make_folders(file / "c");
  EXPECT_EQ(failed.error().code(), ErrorCode::bad_input);
  EXPECT_EQ(failed.error().what(),
            fmt::format("cannot make the folder '{}/c': Not a directory", file.native()));
}

TEST_F(FileTest, ReadersOfAnAtomicWriteSeeOneOfTheContents) {
  const fs::path path = dir.path() / "a";
  const std::string contents[2] = {std::string(100000, 'a'), std::string(50000, 'b')};
  ASSERT_TRUE(write_file_atomic(path, contents[0]).ok());
  std::thread writer([&] {
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(write_file_atomic(path, contents[i % 2]).ok());
  });
  for (int i = 0; i < 100; ++i) {
    const std::string seen = read_file(path, 1 << 20).value();
    EXPECT_TRUE(seen == contents[0] || seen == contents[1]) << seen.size();
  }
  writer.join();
}

TEST_F(FileTest, MapsRegularFilesOnly) {
  EXPECT_EQ(MappedFile::open(put("a", "text")).value().text(), "text");
  EXPECT_TRUE(MappedFile::open(put("empty", "")).value().bytes().empty());
  EXPECT_THAT(MappedFile::open(dir.path()).error().what(),
              says(fmt::format("'{}' ... folder", dir.path().native())));
  const fs::path pipe = dir.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(MappedFile::open(pipe).error().what(),
              says(fmt::format("'{}' ... regular file", pipe.native())));
}

// Whatever a file that Git LFS has not fetched should be, its reader is told what it is.
TEST_F(FileTest, APointerOfGitLfsIsNamedAsWhatItIs) {
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\n"
      "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
      "size 13631488\n";
  const Error error = MappedFile::open(put("model.onnx", pointer)).error();
  EXPECT_EQ(error.code(), ErrorCode::bad_input);
  EXPECT_THAT(error.what(), testing::HasSubstr("model.onnx' is a Git LFS pointer"));
  EXPECT_THAT(error.what(), testing::HasSubstr("13"));
  EXPECT_THAT(error.hint(), testing::HasSubstr("git lfs pull"));
  // Text that goes on after such a line is something else.
  EXPECT_TRUE(MappedFile::open(put("notes", pointer + std::string(1024, ' '))).ok());
  EXPECT_THAT(MappedFile::open(put("cut", pointer.substr(0, 43))).error().what(),
              testing::HasSubstr("Git LFS pointer: the file that"));
}

TEST_F(FileTest, AMappingMovesWithItsOwner) {
  MappedFile first = MappedFile::open(put("a", "one")).value();
  MappedFile second = std::move(first);
  EXPECT_TRUE(first.bytes().empty());  // NOLINT: what moving leaves is promised.
  EXPECT_EQ(second.text(), "one");
  second = MappedFile::open(put("b", "two")).value();
  EXPECT_EQ(second.text(), "two");
}

TEST_F(FileTest, TempDirsVanishWithTheirContent) {
  fs::path path;
  {
    const TempDir inner = TempDir::create(dir.path()).value();
    path = inner.path();
    put(path / "deep" / "file", "x");
    EXPECT_TRUE(fs::exists(path / "deep" / "file"));
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_FALSE(TempDir::create(dir.path() / "none").ok());
}

}  // namespace
}  // namespace hone::HONE_FILE

#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

namespace fs = std::filesystem;

using Open = Result<FileDescriptor> (*)(const fs::path&, std::string_view);

// Both ways to open keep the same promises: by the kernel, and component by component.
class OpenContained : public testing::TestWithParam<Open> {
 protected:
  OpenContained() {
    fs::create_directories(root / "sub" / "deep");
    std::ofstream(root / "sub" / "deep" / "weights.bin") << "inside";
    std::ofstream(top.path() / "secret") << "outside";
  }

  Result<MappedFile> map(std::string_view path) {
    const FileDescriptor file = HONE_TRY(GetParam()(root, path));
    return MappedFile::map(file, path);
  }
  std::string error(std::string_view path) { return map(path).error().what(); }

  TempDir top = TempDir::create(testing::TempDir()).value();
  fs::path root = top.path() / "model";
};

TEST_P(OpenContained, OpensFilesBelowTheRoot) {
  EXPECT_EQ(map("sub/deep/weights.bin").value().text(), "inside");
  EXPECT_EQ(map("./sub//deep/./weights.bin").value().text(), "inside");
}

TEST_P(OpenContained, TheRootItselfMayBeALink) {
  fs::create_directory_symlink(root, top.path() / "alias");
  root = top.path() / "alias";
  EXPECT_EQ(map("sub/deep/weights.bin").value().text(), "inside");
}

TEST_P(OpenContained, RefusesPathsThatMayLeave) {
  EXPECT_EQ(error("../secret"), "path \"../secret\" is refused: \"..\" may leave the folder");
  EXPECT_EQ(error("sub/../../secret"),
            "path \"sub/../../secret\" is refused: \"..\" may leave the folder");
  EXPECT_EQ(error("sub/.."), "path \"sub/..\" is refused: \"..\" may leave the folder");
  EXPECT_EQ(error("/etc/hostname"), "path \"/etc/hostname\" is refused: it is absolute");
}

TEST_P(OpenContained, RefusesPathsWithoutAFileName) {
  EXPECT_EQ(error(""), "path \"\" is refused: it is empty");
  EXPECT_EQ(error("."), "path \".\" is refused: it names a folder");
  EXPECT_EQ(error("sub/"), "path \"sub/\" is refused: it names a folder");
  EXPECT_THAT(error("sub"), says("\"sub\" ... regular file"));
  EXPECT_EQ(error(std::string_view("a\0b", 3)), "path \"a\\x00b\" is refused: it has a zero byte");
}

TEST_P(OpenContained, RefusesSymbolicLinksInAnyComponent) {
  fs::create_symlink(top.path() / "secret", root / "out");
  EXPECT_EQ(error("out"), "path \"out\" is refused: \"out\" is a symbolic link");
  fs::create_symlink("sub/deep/weights.bin", root / "in");
  EXPECT_EQ(error("in"), "path \"in\" is refused: \"in\" is a symbolic link");
  fs::create_directory_symlink(top.path(), root / "sub" / "up");
  EXPECT_EQ(error("sub/up/secret"), "path \"sub/up/secret\" is refused: \"up\" is a symbolic link");
}

TEST_P(OpenContained, RefusesHardLinks) {
  fs::create_hard_link(top.path() / "secret", root / "hard");
  EXPECT_THAT(error("hard"), says("\"hard\" ... 2 hard links"));
}

TEST_P(OpenContained, RefusesPipesWithoutWaiting) {
  ASSERT_EQ(::mkfifo((root / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(error("pipe"), says("\"pipe\" ... regular file"));
}

TEST_P(OpenContained, SaysWhatIsMissing) {
  EXPECT_EQ(error("sub/none.bin"), "cannot open \"sub/none.bin\": No such file or directory");
  EXPECT_EQ(error("sub/deep/weights.bin/x"),
            "cannot open \"sub/deep/weights.bin/x\": Not a directory");
  root = top.path() / "none";
  EXPECT_EQ(error("a"),
            fmt::format("cannot open the folder '{}': No such file or directory", root.native()));
}

INSTANTIATE_TEST_SUITE_P(ByKernel, OpenContained, testing::Values(&open_contained));
INSTANTIATE_TEST_SUITE_P(ByWalk, OpenContained,
                         testing::Values(&detail::open_component_by_component));

TEST(MapContained, ChecksAndMaps) {
  const TempDir dir = TempDir::create(testing::TempDir()).value();
  std::ofstream(dir.path() / "a") << "text";
  EXPECT_EQ(map_contained(dir.path(), "a").value().text(), "text");
  EXPECT_FALSE(map_contained(dir.path(), "../a").ok());
}

}  // namespace
}  // namespace hone::HONE_FILE

#include <gmock/gmock.h>

#include <filesystem>

#include "base/file.h"
#include "tests/base/says_testing.h"
#include "tests/cli/gpu_fixture.h"

// Machine code of GPUs in compiled files.

namespace hone::cli::HONE_FILE {
namespace {

using tested::refuses;
using tested::says;
using testing::HasSubstr;
using testing::Not;

constexpr char kModel[] = "zoo:mlp,size=tiny";

class GpuCubins : public GpuFixture {
 protected:
  std::string path(const char* name) const { return folder_.path() / name; }

  Status compile(std::vector<std::string> more) {
    std::vector<std::string> words = {"compile", kModel, "--cache", "none", "-o", path("m.honec")};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  // Runs of the driver's compiler that a run of the file takes.
  int64_t links_of_a_run() {
    const int64_t before = cuda_.counts().links;
    const Status good =
        run({"run", path("m.honec"), "--device", "cuda", "--cache", "none", "--progress", "none"});
    EXPECT_TRUE(good.ok()) << good.error().to_string();
    return cuda_.counts().links - before;
  }
  // A stand-in for NVIDIA's assembler.
  void use_assembler(std::string_view script) {
    ASSERT_TRUE(write_file_atomic(path("ptxas"), script).ok());
    std::filesystem::permissions(path("ptxas"), std::filesystem::perms::owner_all);
    ::setenv("HONE_PTXAS", path("ptxas").c_str(), 1);
  }

  const TempDir folder_ = TempDir::create(std::filesystem::temp_directory_path()).value();
};

TEST_F(GpuCubins, AreMadeByTheDriverAndCompiledNoMore) {
  const std::vector<std::string> same = {"run", kModel, "--target", "sm_90", "--cache", "none"};
  cuda_.reset({});
  ASSERT_TRUE(add_kernels(same).ok());
  ASSERT_TRUE(compile({"--device", "cuda"}).ok()) << said_;
  EXPECT_EQ(links_of_a_run(), 0);
  ASSERT_TRUE(run({"inspect", path("m.honec")}).ok());
  EXPECT_THAT(said_, says("version 10 of the format...machine code...kernels for sm_90, by CUDA "
                          "12.4"));
  // An older driver, or another GPU, takes the PTX.
  cuda_.reset({.version = 12020});
  ASSERT_TRUE(add_kernels(same).ok());
  EXPECT_GT(links_of_a_run(), 0);
  cuda_.reset({.capability = 89});
  ASSERT_TRUE(add_kernels({"run", kModel, "--target", "sm_80", "--cache", "none"}).ok());
  EXPECT_GT(links_of_a_run(), 0);
  // Without either the file has PTX alone.
  ASSERT_TRUE(compile({"--target", "sm_90"}).ok());
  ASSERT_TRUE(run({"inspect", path("m.honec")}).ok());
  EXPECT_THAT(said_, HasSubstr("version 8 of the format"));
  EXPECT_THAT(said_, Not(HasSubstr("machine code")));
}

TEST_F(GpuCubins, AreMadeByTheAssembler) {
  use_assembler(R"(#!/bin/sh
if [ "$1" = --version ]; then echo "Cuda compilation tools, release 12.9, V12.9.86"; exit 0; fi
grep -q "\.entry" "$2" && printf '\177ELF code for %-64s' "$1" > "$4"
)");
  ASSERT_TRUE(compile({"--target", "sm_90"}).ok()) << said_;
  ASSERT_TRUE(run({"inspect", path("m.honec")}).ok());
  EXPECT_THAT(said_, says("kernels for sm_80, by CUDA 12.9...kernels for sm_90, by CUDA 12.9"));
  ASSERT_TRUE(run({"inspect", path("m.honec"), "--format", "json"}).ok());
  EXPECT_THAT(said_, says("\"cuda\": 12090"));

  // The file is written without what it refuses.
  use_assembler("#!/bin/sh\n[ \"$1\" = --version ] && echo 'release 12.9' || exit 1\n");
  ASSERT_TRUE(compile({"--target", "sm_90"}).ok()) << said_;
  EXPECT_THAT(said_, says("no machine code of GPUs...ptxas refuses a kernel for"));
  use_assembler("#!/bin/sh\necho 'what?'\n");
  ASSERT_TRUE(compile({"--target", "sm_90"}).ok()) << said_;
  EXPECT_THAT(said_, says("does not say its version"));
}

TEST_F(GpuCubins, AFileMayBeForGpusAlone) {
  ASSERT_TRUE(compile({"--target", "sm_90"}).ok()) << said_;
  const auto whole = std::filesystem::file_size(path("m.honec"));
  ASSERT_TRUE(compile({"--target", "sm_90", "--isa", "none"}).ok()) << said_;
  EXPECT_LT(std::filesystem::file_size(path("m.honec")), whole);
  EXPECT_THAT(run({"run", path("m.honec")}), refuses(ErrorCode::unsupported, "GPUs...CPU"));
  cuda_.reset({});
  ASSERT_TRUE(add_kernels({"run", kModel, "--target", "sm_90", "--cache", "none"}).ok());
  EXPECT_GT(links_of_a_run(), 0);
  EXPECT_THAT(compile({"--isa", "none"}), refuses(ErrorCode::usage, "no GPU is named...sm_90"));
  EXPECT_THAT(run({"compile", kModel, "--isa", "none", "--emit", "plan"}),
              refuses(ErrorCode::usage, "--isa none is for files"));
}

}  // namespace
}  // namespace hone::cli::HONE_FILE

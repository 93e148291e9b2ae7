#include "tests/runtime/compile.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/file.h"
#include "base/subprocess.h"
#include "base/text.h"

namespace hone::tested {

namespace {

std::string compile_now(std::string_view source, std::string_view options) {
  const TempDir folder = TempDir::create(std::filesystem::temp_directory_path()).value();
  const std::string in = folder.path() / "source.cc";
  const std::string out = folder.path() / "object.o";
  EXPECT_TRUE(write_file_atomic(in, source).ok());
  const char* compiler = std::getenv("CXX");
  // As hone's own code generator: the small code model, position independent, no unwinding.
  const std::string command = fmt::format(
      "{} -std=c++20 -O2 -fPIC -fno-exceptions -fno-asynchronous-unwind-tables -w {} -c {} -o {}",
      compiler != nullptr ? compiler : "clang++-19", options, in, out);
  const Result<ProcessResult> done = run_process("/bin/sh", {"-c", command});
  EXPECT_TRUE(done.ok() && done->exit_code == 0) << (done.ok() ? done->err : "");
  return read_file(out, int64_t{1} << 24).value();
}

}  // namespace

std::shared_ptr<const std::string> compile(std::string_view source, std::string_view options) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const std::string>> known;
  const std::string key = fmt::format("{}\n{}", options, source);
  std::lock_guard lock(mutex);
  std::shared_ptr<const std::string>& object = known[key];
  if (!object) object = std::make_shared<const std::string>(compile_now(source, options));
  return object;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace hone::tested

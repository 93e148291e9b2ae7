#include "tests/shard/shardy_testing.h"

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/subprocess.h"
#include "base/text.h"

namespace hone::tested {
namespace {

std::optional<TempDir> unpacked() {
  const std::filesystem::path archive =
      std::filesystem::path(HONE_TEST_DIR) / "../../shared/data/shardy/tests.tar.xz";
  if (!std::filesystem::exists(archive)) return std::nullopt;
  TempDir folder = TempDir::create(testing::TempDir()).value();
  const ProcessResult unpacked =
      run_process("/bin/sh", {"-c", "cd \"$0\" && cmake -E tar xf \"$1\"", folder.path().native(),
                              archive.native()})
          .value();
  if (unpacked.exit_code != 0) return std::nullopt;
  return folder;
}

std::vector<ShardyCase> cases_of(const std::filesystem::path& file) {
  const std::string text = read_file(file, 1 << 22).value();
  std::vector<ShardyCase> cases;
  std::string meshes, program;
  std::vector<std::string> comments;
  bool is_inside = false;
  for (const std::string_view line : split_lines(text)) {
    const std::string_view plain = trim(line);
    if (plain == "// -----") {
      meshes.clear();
      comments.clear();
    } else if (plain.starts_with("//")) {
      comments.emplace_back(trim(plain.substr(2)));
    } else if (line.starts_with("sdy.mesh")) {
      meshes += fmt::format("{}\n", line);
    } else if (line.starts_with("func.func")) {
      is_inside = true;
      program = fmt::format("{}\n", line);
    } else if (is_inside) {
      program += fmt::format("{}\n", line);
    }
    if (!is_inside || line != "}") continue;
    is_inside = false;
    const size_t name = program.find('@') + 1;
    cases.push_back({.name = program.substr(name, program.find('(') - name),
                     .program = fmt::format("module {{\n{}{}}}\n", meshes, program),
                     .expected = std::move(comments)});
    comments.clear();
  }
  return cases;
}

}  // namespace

std::optional<std::vector<ShardyCase>> shardy_cases(std::string_view file) {
  const std::optional<TempDir> folder = unpacked();
  if (!folder) return std::nullopt;
  return cases_of(folder->path() / "propagation" / file);
}

std::optional<std::vector<ShardyCase>> shardy_programs() {
  const std::optional<TempDir> folder = unpacked();
  if (!folder) return std::nullopt;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder->path()))
    if (entry.path().native().find("/executable_") != std::string::npos &&
        entry.path().extension() == ".mlir")
      files.push_back(entry.path());
  std::ranges::sort(files);
  std::vector<ShardyCase> all;
  for (const std::filesystem::path& file : files)
    for (ShardyCase& one : cases_of(file)) {
      one.name = fmt::format("{}.{}", file.stem().native(), one.name);
      all.push_back(std::move(one));
    }
  return all;
}

}  // namespace hone::tested

#include "tests/shard/shardy_testing.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/subprocess.h"
#include "base/text.h"

namespace hone::tested {
namespace {

std::optional<std::string> unpacked_text(std::string_view file) {
  const std::filesystem::path archive =
      std::filesystem::path(HONE_TEST_DIR) / "../../shared/data/shardy/tests.tar.xz";
  if (!std::filesystem::exists(archive)) return std::nullopt;
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const ProcessResult unpacked =
      run_process("/bin/sh", {"-c", "cd \"$0\" && cmake -E tar xf \"$1\"", folder.path().native(),
                              archive.native()})
          .value();
  if (unpacked.exit_code != 0) return std::nullopt;
  return read_file(folder.path() / "propagation" / file, 1 << 22).value();
}

}  // namespace

std::optional<std::vector<ShardyCase>> shardy_cases(std::string_view file) {
  const std::optional<std::string> text = unpacked_text(file);
  if (!text) return std::nullopt;
  std::vector<ShardyCase> cases;
  std::string meshes, program;
  std::vector<std::string> comments;
  bool is_inside = false;
  for (const std::string_view line : split_lines(*text)) {
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

}  // namespace hone::tested

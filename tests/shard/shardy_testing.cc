#include "tests/shard/shardy_testing.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

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

// A function of a file, and what stands before it and in it.
struct ShardyFunction {
  std::string name, text;
  std::vector<std::string> comments;
};

// The function, private, and all that it calls.
void append_called(const std::string& text, const std::vector<ShardyFunction>& all,
                   std::set<std::string>& taken, std::string& program) {
  for (const ShardyFunction& other : all) {
    const bool is_called = text.find(fmt::format("call @{}(", other.name)) != text.npos;
    if (!is_called || !taken.insert(other.name).second) continue;
    std::string own = other.text;
    if (const size_t at = own.find('@'); own.find("private") > at) own.insert(at, "private ");
    program += own;
    append_called(other.text, all, taken, program);
  }
}

// The functions between two marks are a module.
void append_cases(const std::string& meshes, const std::vector<ShardyFunction>& module,
                  std::vector<ShardyCase>& cases) {
  for (const ShardyFunction& one : module) {
    std::set<std::string> taken = {one.name};
    std::string program = one.text;
    if (const size_t at = program.find("private "); at < program.find('@')) program.erase(at, 8);
    append_called(one.text, module, taken, program);
    cases.push_back({.name = one.name,
                     .program = fmt::format("module {{\n{}{}}}\n", meshes, program),
                     .expected = one.comments});
  }
}

std::vector<ShardyCase> cases_of(const std::filesystem::path& file) {
  const std::string text = read_file(file, 1 << 22).value();
  std::vector<ShardyCase> cases;
  std::vector<ShardyFunction> module;
  std::string meshes;
  std::vector<std::string> comments;
  bool is_inside = false;
  for (const std::string_view line : split_lines(text)) {
    const std::string_view plain = trim(line);
    if (plain == "// -----") {
      append_cases(meshes, module, cases);
      meshes.clear();
      module.clear();
      comments.clear();
    } else if (plain.starts_with("//")) {
      comments.emplace_back(trim(plain.substr(2)));
    } else if (line.starts_with("sdy.mesh")) {
      meshes += fmt::format("{}\n", line);
    } else if (line.starts_with("func.func")) {
      is_inside = true;
      const size_t name = line.find('@') + 1;
      module.push_back({.name = std::string(line.substr(name, line.find('(') - name)),
                        .text = fmt::format("{}\n", line),
                        .comments = {}});
    } else if (is_inside) {
      module.back().text += fmt::format("{}\n", line);
    }
    if (!is_inside || line != "}") continue;
    is_inside = false;
    module.back().comments = std::move(comments);
    comments.clear();
  }
  append_cases(meshes, module, cases);
  return cases;
}

}  // namespace

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

std::optional<std::vector<ShardyCase>> shardy_cases(std::string_view file) {
  const std::optional<TempDir> folder = unpacked();
  if (!folder) return std::nullopt;
  std::vector<ShardyCase> cases = cases_of(folder->path() / "propagation" / file);
  std::map<std::string, int> seen;
  for (ShardyCase& one : cases)
    if (const int number = ++seen[one.name]; number > 1) one.name += fmt::format(".{}", number);
  return cases;
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

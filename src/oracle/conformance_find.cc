#include <algorithm>

#include "base/file.h"
#include "front/hlo/checks.h"
#include "oracle/conformance.h"
#include "oracle/conformance_data.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 32;

// "cases/node/" is called "node", and "." by what it stands for.
std::string last_part(const fs::path& folder) {
  std::error_code failed;
  const fs::path whole = fs::canonical(folder, failed);
  return (failed ? folder : whole).filename().string();
}

// "add.mlir", or "add.mlir/2:main" where a file has several.
void add_programs(const fs::path& file, const std::string& set, const std::string& name,
                  std::vector<ConformanceCase>& cases) {
  const std::vector<std::string> programs = checked_programs(file);
  if (programs.empty()) return;
  const std::string disabled = reason_not_to_run(file);
  for (const std::string& program : programs)
    cases.push_back({set, programs.size() == 1 ? name : fmt::format("{}/{}", name, program), file,
                     program, disabled});
}

Status add_cases(const fs::path& root, std::vector<ConformanceCase>& cases) {
  std::error_code failed;
  const fs::file_status status = fs::status(root, failed);
  if (fs::is_regular_file(status)) {
    const size_t before = cases.size();
    add_programs(root, root.filename().string(), root.filename().string(), cases);
    if (cases.size() != before) return {};
  }
  if (!fs::is_directory(status))
    return bad_input("{} {}", root.string(),
                     fs::exists(status) ? "is not a folder" : "does not exist");
  const std::string set = last_part(root);
  if (is_conformance_case(root)) cases.push_back({set, set, root});

  std::vector<ConformanceCase> found;
  constexpr fs::directory_options kOptions = fs::directory_options::skip_permission_denied;
  fs::recursive_directory_iterator entries(root, kOptions, failed);
  for (; !failed && entries != fs::recursive_directory_iterator(); entries.increment(failed)) {
    if (entries->is_symlink(failed)) continue;
    const std::string name = entries->path().lexically_relative(root).generic_string();
    if (entries->is_regular_file(failed)) add_programs(entries->path(), set, name, found);
    if (!entries->is_directory(failed)) continue;
    if (entries.depth() >= kMaxDepth) entries.disable_recursion_pending();
    if (!is_conformance_case(entries->path())) continue;
    found.push_back({set, name, entries->path()});
  }
  if (failed) return os_error("search", root.native(), failed.value());
  std::sort(found.begin(), found.end(),
            [](const ConformanceCase& a, const ConformanceCase& b) { return a.name < b.name; });
  cases.insert(cases.end(), found.begin(), found.end());
  return {};
}

}  // namespace

Result<std::vector<ConformanceCase>> find_conformance_cases(std::span<const fs::path> folders) {
  std::vector<ConformanceCase> cases;
  for (const fs::path& folder : folders) HONE_TRY(add_cases(folder, cases));
  return cases;
}

}  // namespace hone

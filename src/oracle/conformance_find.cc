#include <algorithm>

#include "base/file.h"
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

Status add_cases(const fs::path& root, std::vector<ConformanceCase>& cases) {
  std::error_code failed;
  const fs::file_status status = fs::status(root, failed);
  if (!fs::is_directory(status))
    return bad_input("{} {}", root.string(),
                     fs::exists(status) ? "is not a folder" : "does not exist");
  const std::string set = last_part(root);
  if (is_conformance_case(root)) cases.push_back({set, set, root});

  std::vector<ConformanceCase> found;
  constexpr fs::directory_options kOptions = fs::directory_options::skip_permission_denied;
  fs::recursive_directory_iterator entries(root, kOptions, failed);
  for (; !failed && entries != fs::recursive_directory_iterator(); entries.increment(failed)) {
    if (entries->is_symlink(failed) || !entries->is_directory(failed)) continue;
    if (entries.depth() >= kMaxDepth) entries.disable_recursion_pending();
    if (!is_conformance_case(entries->path())) continue;
    found.push_back(
        {set, entries->path().lexically_relative(root).generic_string(), entries->path()});
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

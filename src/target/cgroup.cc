#include "target/cgroup.h"

#include "base/file.h"
#include "base/text.h"

#include <algorithm>
#include <functional>
#include <vector>

#include <unistd.h>

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxFile = 4096;

std::vector<std::string> words_of(const fs::path& file) {
  std::vector<std::string> words;
  const Result<std::string> text = read_file(file, kMaxFile);
  if (text.ok())
    for (std::string_view word : split_words(*text)) words.emplace_back(word);
  return words;
}

// Calls `visit` with the folder of the process's group, for both versions and for mounts under
// either name, and with those above. A container may see its group as the root: then that is it.
void for_each_group(std::string_view membership, const fs::path& root, std::string_view controller,
                    const std::function<void(const fs::path&)>& visit) {
  for (std::string_view line : split_lines(membership)) {
    const std::vector<std::string_view> parts = split(line, ':');
    if (parts.size() < 3) continue;
    const std::vector<std::string_view> controllers = split(parts[1], ',');
    const bool unified = parts[1].empty();
    if (!unified &&
        std::find(controllers.begin(), controllers.end(), controller) == controllers.end())
      continue;
    std::vector<fs::path> mounts;
    if (unified)
      mounts = {root, root / "unified"};
    else
      mounts = {root / controller, root / parts[1]};
    for (const fs::path& mount : mounts)
      for (fs::path group = fs::path(parts[2]).relative_path();; group = group.parent_path()) {
        visit(mount / group);
        if (group.empty()) break;
      }
  }
}

template <class T>
void lower(std::optional<T>& least, T value) {
  least = least ? std::min(*least, value) : value;
}

}  // namespace

std::optional<double> cgroup_cpus(std::string_view membership, const fs::path& root) {
  std::optional<double> least;
  const auto limit = [&](const std::string& quota, const std::string& period) {
    const Result<int64_t> used = parse_int(quota), of = parse_int(period);  // "max" and -1: none
    if (used.ok() && of.ok() && *used > 0 && *of > 0)
      lower(least, static_cast<double>(*used) / static_cast<double>(*of));
  };
  for_each_group(membership, root, "cpu", [&](const fs::path& group) {
    if (const auto words = words_of(group / "cpu.max"); words.size() == 2)
      limit(words[0], words[1]);
    const auto quota = words_of(group / "cpu.cfs_quota_us");
    const auto period = words_of(group / "cpu.cfs_period_us");
    if (quota.size() == 1 && period.size() == 1) limit(quota[0], period[0]);
  });
  return least;
}

std::optional<int64_t> cgroup_memory(std::string_view membership, const fs::path& root) {
  // Version 1 says "no limit" with the greatest multiple of a page.
  constexpr int64_t kNone = int64_t{1} << 60;
  std::optional<int64_t> least;
  for_each_group(membership, root, "memory", [&](const fs::path& group) {
    for (const char* file : {"memory.max", "memory.limit_in_bytes"})
      if (const auto words = words_of(group / file); words.size() == 1)
        if (const Result<int64_t> bytes = parse_int(words[0]);
            bytes.ok() && *bytes > 0 && *bytes < kNone)
          lower(least, *bytes);
  });
  return least;
}

int64_t usable_memory() {
  const int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  const int64_t machine = pages > 0 && page > 0 ? pages * page : INT64_MAX;
  const Result<std::string> groups = read_file("/proc/self/cgroup", 1 << 16);
  return std::min(machine,
                  cgroup_memory(groups.ok() ? *groups : "", "/sys/fs/cgroup").value_or(machine));
}

}  // namespace hone

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

// The limits that the control groups of Linux (version 1 and 2) set for a process: those of its
// group and of each group above. `membership` is the content of /proc/self/cgroup, `root` is
// /sys/fs/cgroup.

namespace hone {

// Cores' worth of time; none: no limit.
std::optional<double> cgroup_cpus(std::string_view membership, const std::filesystem::path& root);
// Bytes; none: no limit.
std::optional<int64_t> cgroup_memory(std::string_view membership,
                                     const std::filesystem::path& root);

// Bytes of memory that this process may have: those of the machine, or of its control group.
int64_t usable_memory();

}  // namespace hone

#pragma once

#include <string>
#include <string_view>

#include "place/problem.h"

// Graphs to split over accelerators and host cores, and their splits, as public files of JSON:
// docs/formats/placement.md.

namespace hone {

inline constexpr size_t kMaxPartitionBytes = size_t{1} << 28;

// The targets of such a problem.
inline constexpr std::string_view kAccelerator = "accelerator";
inline constexpr std::string_view kHost = "host";

// Times are milliseconds. Accelerators come first, then host cores. Each accelerator has a link to
// the first host core, which has the rate that sizes and costs of edges say; between cores
// everything is free. `file` is for error texts, which name nodes and edges by their positions.
Result<PlaceProblem> parse_partition_json(std::string_view text, std::string_view file);

// Inverse of it. Unsupported for what the format cannot say.
Result<std::string> print_partition_json(const PlaceProblem& problem);

// The nodes of each device, in the order in which they stand in `order`, which has all.
std::string print_split(const PlaceProblem& problem, const DevicePlacement& placement,
                        std::span<const uint32_t> order, std::span<const double> loads);
// Its devices are taken in their order: `fpgas`, then `cpus` are those of the target "host". The
// node that stands first on a device has the highest priority.
Result<DevicePlacement> parse_split(std::string_view text, std::string_view file,
                                    const PlaceProblem& problem);

}  // namespace hone

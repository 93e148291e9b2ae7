#pragma once

#include <string>
#include <string_view>

#include "place/problem.h"

// Graphs of tasks as a public format of text: docs/formats/placement.md.

namespace hone {

inline constexpr size_t kMaxTaskText = size_t{1} << 28;  // bytes

// Equal devices, as the authors of the format have them: each does 1e13 of work in a second. It has
// a link to each other one, which carries 1e13 bytes a second for each message.
Result<System> task_system(int64_t devices);

// A task takes its work divided by the peak of f32 of the device's cores. Its communication is the
// bytes that it sends. Ids are the numbers of the format; tasks that only have data are left out.
// `file` is for error texts, "file:line".
Result<PlaceProblem> parse_task_text(std::string_view text, std::string_view file,
                                     const System& system);

// Inverse of it, where the problem has such devices. Unsupported for what the format cannot say.
Result<std::string> print_task_text(const PlaceProblem& problem);

}  // namespace hone

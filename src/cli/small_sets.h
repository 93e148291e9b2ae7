#pragma once

#include <span>
#include <string>

#include "tune/build_data_set.h"

namespace hone {
struct LayoutCollector;
}  // namespace hone

// `hone dataset build --small`: data of all sorts that a price is asked about, of this machine.

namespace hone::cli {

class Console;

inline constexpr double kSmallSeconds = 1200;
inline constexpr int64_t kSmallSchedules = 24, kSmallGraphs = 12;
inline constexpr size_t kSmallPlans = 24;

// Several sets below the folder, 2 MB in all, which share the seconds of the options. All of them
// begin with the first `given` programs. A second call goes on.
Status build_small_sets(const std::string& folder, const BuildOptions& options,
                        std::span<const NamedProgram> programs, size_t given,
                        LayoutCollector& layouts, const Target& target, Console& console);

}  // namespace hone::cli

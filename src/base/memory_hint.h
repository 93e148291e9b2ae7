#pragma once

#include <string_view>

namespace hone {

// The hint of an error that says that a run would take more memory than it may. A face that lets
// its user choose the bound puts the name of that choice in its place.
inline constexpr std::string_view kMemoryHint =
    "try a smaller size or batch, or give the run more memory";

}  // namespace hone

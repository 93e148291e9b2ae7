#pragma once

#include <string_view>

namespace hone {

// The command of a worker that has nothing to do, for those who list what devices wait for.
inline constexpr std::string_view kAwaitsRequest = "waits for a request";

}  // namespace hone

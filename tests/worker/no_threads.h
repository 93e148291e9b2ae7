#pragma once

#include <functional>
#include <string>

namespace hone::tested {

// Calls the work where the system gives no further thread, in a copy of this process, and returns
// what it says. A copy that ends otherwise says how.
std::string without_threads(const std::function<std::string()>& work);

}  // namespace hone::tested

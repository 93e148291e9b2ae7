#pragma once

#include <string>
#include <string_view>

namespace hone::cli {

// A word as a shell takes it, in quotes if need be.
std::string shell_word(std::string_view word);

}  // namespace hone::cli

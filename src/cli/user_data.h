#pragma once

#include <filesystem>
#include <optional>

namespace hone::cli {

// $XDG_DATA_HOME/hone, or ~/.local/share/hone; none: neither XDG_DATA_HOME nor HOME is set. As the
// XDG base directory specification says, a relative path counts as not set.
std::optional<std::filesystem::path> user_data_folder();

}  // namespace hone::cli

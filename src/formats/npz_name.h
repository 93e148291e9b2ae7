#pragma once

#include <string_view>

#include "base/error.h"

namespace hone {

// True if a tensor of an .npz file may be called so.
Status check_npz_name(std::string_view name);

}  // namespace hone

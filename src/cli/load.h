#pragma once

namespace hone::cli {

// The mean of the last minute; negative: not known.
double machine_load();

}  // namespace hone::cli

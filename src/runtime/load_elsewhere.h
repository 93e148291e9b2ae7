#pragma once

#include <memory>

#include "base/rng.h"
#include "runtime/executable.h"

namespace hone {

inline constexpr int64_t kMostCopied = int64_t{1} << 30;

// Loads an image once more, at another place. The places of code, constants and arenas decide up to
// a tenth of a run's time, so whoever compares two executables compares several loads of each. It
// is like Executable::load(), with copies of the constants if they have at most `most_copied`
// bytes.
Result<std::shared_ptr<const Executable>> load_elsewhere(const Image& image, Rng& rng,
                                                         const LoadOptions& options,
                                                         int64_t most_copied = kMostCopied);

}  // namespace hone

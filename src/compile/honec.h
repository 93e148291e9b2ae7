#pragma once

#include <deque>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "runtime/image.h"

// Compiled models as files: writing them. runtime/honec.h reads them.

namespace hone {

// What of a model goes into its file: code for one choice of sizes and one level of instructions.
struct HonecProgram {
  const Image* image = nullptr;
  std::string plan = {};  // as text, for people
};

// Of all kernels of the image.
Instructions needs_of(const Image& image);

// The bytes of a file, in pieces that follow one another. The pieces of weights are those of the
// images, which outlive it.
struct HonecBytes {
  std::deque<std::string> made;
  std::vector<std::string_view> pieces;

  std::string joined() const;
};

// Of programs for the same sizes the best is the first. Names of inputs and outputs are those of
// the first image; all others have the same element types and ranks. `version` is that of hone.
// Unsupported if branches and loops lie deeper in one another than the format has.
Result<HonecBytes> honec_bytes(std::span<const HonecProgram> programs, std::string_view version);

// Written at once or not at all (write_file_atomic).
Status write_honec(const std::filesystem::path& path, std::span<const HonecProgram> programs,
                   std::string_view version);

}  // namespace hone

#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/instructions.h"
#include "program/program.h"
#include "runtime/image.h"
#include "runtime/open_image.h"

namespace hone {

// Machine code of a kernel.
struct KernelCode {
  std::shared_ptr<const std::string> object;  // an ELF relocatable
  std::vector<std::string> phases;            // the functions' names, in order
  Instructions needs = {};
};

inline constexpr int64_t kMaxImageCommands = int64_t{1} << 20;
inline constexpr int64_t kMaxImageBytes = int64_t{1} << 48;  // of the arena

// Writes a program out as an image for one set of sizes: every buffer gets its place, and every
// frame is written out where it runs. `code` has one entry per kernel. The bindings make all
// symbols numbers.
Result<Image> instantiate(const Program& program, const Bindings& bindings,
                          std::span<const KernelCode> code);
// The same for all sizes at once: its numbers are expressions of the program's symbols.
Result<OpenImage> instantiate_open(const Program& program, std::span<const KernelCode> code);

}  // namespace hone

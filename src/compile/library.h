#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "compile/honec.h"
#include "tensor/tensor.h"

// A model as a library of C, compiled ahead of time: programs that link it know nothing of hone.

namespace hone {

// The sources from which a C compiler makes the library. Its functions are those of the header,
// NAME_run and others; every other name begins with NAME__ and is not seen outside of the library.
struct LibrarySources {
  std::string name;
  std::string header;                // NAME.h: C and C++
  std::string source;                // C as gcc and clang take it; includes the header
  std::vector<std::string> objects;  // ELF relocatables: the kernels
  std::vector<Tensor> weights;       // one after another, each at the next multiple of kAlignment

  static constexpr int64_t kAlignment = 64;
  // The source of `weights` in assembly, from a file that has their bytes.
  std::string weights_source(std::string_view file) const;
};

// The sources for programs of several levels of instructions, the best first, with the same inputs
// and outputs. A run computes on the thread that calls it, whatever threads the programs are for.
// `name` is one of C (c_names.h). Unsupported if there are 2 GB or more: the code reaches no
// further.
Result<LibrarySources> library_sources(std::span<const HonecProgram> programs,
                                       std::string_view name, std::string_view version);

}  // namespace hone

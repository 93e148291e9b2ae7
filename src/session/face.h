#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/progress.h"

// The things that a session needs from the face that calls it. All of it may be left out.

namespace hone {

// The words that the user of the face writes to choose something: errors, hints and notices say it.
struct Labels {
  std::string_view size = "size";              // for a number in place of an open size: "--dim"
  std::string_view choices = "";               // for several: "--sizes"; empty: it has no choice
  std::string_view shape = "shape";            // for the shape of an input: "--shape"
  std::string_view threads = "threads";        // for how many work on a kernel: "--threads"
  std::string_view isa = "isa";                // for the instructions that may be used: "--isa"
  std::string_view flush = "flush_denormals";  // for products that take denormal numbers for 0
  std::string_view compile = "compile";        // to compile without running: "'hone compile'"
  std::string_view memory = "";                // for memory_limit in MiB; empty: it has no choice
};

struct Face {
  Labels labels = {};
  // Gets a line for each choice that the session made for the user: "random input x, seed 1".
  std::function<void(std::string_view)> notice = {};
  Progress* progress = nullptr;
  const CancelToken* cancel = nullptr;
  std::optional<int64_t> memory_limit = {};  // bytes that a run may take (memory.h)

  void note(std::string_view line) const {
    if (notice) notice(line);
  }
};

}  // namespace hone

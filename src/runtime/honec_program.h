#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/instructions.h"
#include "runtime/honec_cursor.h"
#include "runtime/image.h"

// The program of a compiled model, as its section has it. What it says is checked as far as it can
// be told from the bytes; Executable::load checks the rest.

namespace hone::honec {

// What a program begins with.
struct Head {
  Instructions needs;
  int64_t threads = 1;
  int64_t arena_bytes = 0;
  std::string plan;
  std::vector<Type> inputs;
  std::vector<Type> outputs;
};
Result<Head> read_head(Cursor& in);

// Element type and dims.
Result<Type> read_type(Cursor& in);

// All of it, into an image that has the ports, of the head's types. Weights are asked for by their
// index.
Status read_program(Cursor& in, std::span<const std::shared_ptr<const std::string>> objects,
                    const std::function<Result<Tensor>(uint32_t, Type)>& weight, Image& image);

}  // namespace hone::honec

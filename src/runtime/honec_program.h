#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/instructions.h"
#include "runtime/cuda/gpu_kernel.h"
#include "runtime/honec_cursor.h"
#include "runtime/open_image.h"

// The program of a compiled model, as its section has it. Its content is checked as far as it can
// be told from the bytes; Executable::load checks the rest.

namespace hone::honec {

using Symbols = std::vector<Symbol>;

// The beginning of a program. Sizes may be expressions of its symbols.
struct Head {
  uint32_t unit = 0;
  Instructions needs;
  int64_t threads = 1;
  std::string plan;
  std::string prices;
  bool flushes_denormals = false;
  Symbols symbols;  // none: all sizes are numbers
  std::vector<Type> inputs;
  std::vector<Type> outputs;
  std::vector<Dim> arena;
  int64_t capability = 0;  // of the least GPU that runs it; 0: it is for a CPU
};
enum class ProgramFor : uint8_t { cpu, gpu, exact_gpu };
Result<Head> read_head(Cursor& in, ProgramFor device);

Result<Symbols> read_symbols(Cursor& in);
// Element type and dims, which may be expressions.
Result<Type> read_type(Cursor& in, const Symbols& symbols = {});

// All of it, into an image that has the ports, of the head's types. Without symbols its numbers are
// numbers. Objects and weights are asked for by their index.
struct ProgramParts {
  int64_t objects = 0;
  std::function<std::shared_ptr<const std::string>(size_t)> object;
  std::function<Result<Tensor>(uint32_t, Type)> weight;
};
struct ProgramContent {
  OpenImage open;
  std::vector<GpuKernel> gpu = {};  // of a program for a GPU: by kernel, as a GpuImage has them
};
Status read_program(Cursor& in, const ProgramParts& parts, ProgramFor device,
                    ProgramContent& content);

}  // namespace hone::honec

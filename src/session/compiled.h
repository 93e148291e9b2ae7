#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/honec.h"
#include "session/inputs.h"

// Compiled models, .honec, as a user names them.

namespace hone {

// A file, and inputs for it.
struct CompiledModel {
  HonecFile file;
  RunInputs inputs;
  std::shared_ptr<const Executable> executable;
  size_t program = 0;  // of the file: what runs
};

struct CompiledOptions {
  std::optional<int64_t> threads = {};  // HonecOptions
  bool verifies = false;                // reads all weights before
};

// Loaded and ready to run. What is not given is random, of this seed.
Result<CompiledModel> load_compiled(const std::string& path, Given given, int64_t seed,
                                    const CompiledOptions& options = {}, const Face& face = {});

std::vector<std::string> output_names(const HonecFile& file);
// "avx512 with avx512_vnni, avx512_bf16".
std::string instructions_text(const Instructions& instructions);

// For a command that needs a model as it was before it was compiled.
Error is_compiled(std::string_view name);

}  // namespace hone

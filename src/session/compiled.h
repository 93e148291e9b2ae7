#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/loaded_model.h"
#include "session/inputs.h"
#include "session/source.h"

// Compiled models, .honec, as a user names them.

namespace hone {

// A file, and inputs for it.
struct CompiledModel {
  HonecFile file;
  RunInputs inputs;
  std::shared_ptr<const Runnable> runnable;  // of one graph: for the sizes of the inputs
  Instructions machine = {};                 // that it may use
  size_t sizes = 0;                          // of the file: what it was asked for
  size_t program = 0;                        // of the file: what runs; of segments the first
  HonecOptions loading = {};                 // how that was loaded

  const HonecFile::Program& chosen() const { return file.programs()[program]; }
  // True if the file has code for sizes that inputs say.
  bool is_open() const;
  // The ports of the sizes that it was asked for. If it is for several devices, of all together.
  std::span<const image::Port> input_ports() const;
  std::span<const image::Port> output_ports() const;
};

struct CompiledOptions {
  std::optional<int64_t> threads = {};  // HonecOptions
  std::optional<Isa> isa = {};          // use no more of the machine than this
  bool verifies = false;                // reads all weights before
  // HonecOptions
  std::shared_ptr<const CudaDevice> device = nullptr;
  CubinStore cubins = {};
};

// A file beside the model that it was made of.
struct CompiledOrigin {
  CompiledModel compiled;
  Source source;
};

// Loaded and ready to run, for the sizes that what is given has, otherwise the first of the file.
// Inputs that are not given are random, of this seed.
Result<CompiledModel> load_compiled(const std::string& path, Given given, int64_t seed,
                                    const CompiledOptions& options = {}, const Face& face = {});

// A file and inputs for it, for who runs it on another machine: it is not loaded, and `runnable` is
// null. Where it runs, it may turn out that the machine lacks instructions.
Result<CompiledModel> open_compiled(const std::string& path, Given given, int64_t seed,
                                    const Face& face = {});

// The same as load_compiled with the model, whose open sizes are those of the file. Inputs are for
// the reference, too. An error if inputs or outputs of the two differ.
Result<CompiledOrigin> load_origin(const std::string& path, const std::string& model, Given given,
                                   int64_t seed, const CompiledOptions& options = {},
                                   const Face& face = {});

// Gives up its memory; loads it once more, from a copy of its file: code and weights lie at other
// places then.
void unload(CompiledModel& model);
Status load_elsewhere(CompiledModel& model);

std::vector<std::string> output_names(const HonecFile& file);
// "avx512 with avx512_vnni, avx512_bf16".
std::string instructions_text(const Instructions& instructions);
// The same of a program; for a GPU: "sm_90, beside a CPU with avx512".
std::string needs_text(const HonecFile::Program& program);

// For a command that needs a model as it was before it was compiled.
Error is_compiled(std::string_view name);

}  // namespace hone

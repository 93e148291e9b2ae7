#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/progress.h"
#include "base/team.h"
#include "runtime/image.h"
#include "runtime/object_code.h"
#include "runtime/script.h"
#include "tensor/tensor.h"

namespace hone {

struct LoadOptions {
  std::shared_ptr<Team> team = nullptr;  // null: one of its own, of the image's threads
  std::span<const Import> imports = default_imports();
  // What the machine has; not given: this one. Code that needs more is refused.
  std::optional<Instructions> machine = std::nullopt;
  // Bytes of arenas and scratch of all runs at once. A run that would need more fails.
  int64_t memory_limit = INT64_MAX;
};

// What a launch or a copy of an image took, all its runs together; those in loops have several. On
// one thread it is CPU time, which other processes do not lengthen.
struct CommandTime {
  std::string command;  // its name in the image
  std::string kernel;   // empty: a copy
  int64_t runs = 0;
  double seconds = 0;
  double least = 0;  // seconds of its fastest run
};
using Profile = std::vector<CommandTime>;  // in the image's order

struct RunOptions {
  // Looked at between commands and between trips of loops, not inside of a kernel.
  const CancelToken* cancel = nullptr;
  // Runs add to it. It is empty or has served runs of the same image, and serves one run at a time.
  Profile* profile = nullptr;
};

// A compiled model in memory. May be run by any number of threads at once: each run has an arena
// and scratch of its own. They are made when a run finds none that is free, and kept: memory grows
// to what most runs at once need. Other runs allocate nothing.
//
// Kernels run with the floating-point environment of the thread they are on: the caller's for its
// part, the default for the team's workers. Nothing here changes it; denormals are kept by default.
class Executable {
 public:
  // Checks the image (script.h). Constants are used where they are, or copied once if they are not
  // aligned to kBufferAlignment.
  static Result<std::shared_ptr<const Executable>> load(const Image& image,
                                                        const LoadOptions& options = {});
  ~Executable();  // not while it runs

  std::span<const image::Port> inputs() const { return inputs_; }
  std::span<const image::Port> outputs() const { return outputs_; }
  // By output: the input in whose memory it may lie.
  std::span<const std::optional<uint32_t>> donors() const { return script_.donors; }

  // Errors: tensors that do not fit, no memory (ErrorCode::limit), cancelled.
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs,
                                  const RunOptions& options = {}) const;
  // The same with inputs that the caller gives up: outputs lie in their donors where nobody else
  // has these. After an error the inputs' contents are undefined.
  Result<std::vector<Tensor>> run_donating(std::vector<Tensor> inputs,
                                           const RunOptions& options = {}) const;
  // Reads and writes the caller's memory, of the ports' sizes, aligned to their elements. Outputs
  // overlap nothing else, but that one may be all of the input that is its donor: what changes in
  // place is not copied then. After an error their contents are undefined.
  Status run(std::span<const void* const> inputs, std::span<void* const> outputs,
             const RunOptions& options = {}) const;

 private:
  struct Frame;
  struct Extent;
  class Lease;

  Executable() = default;
  Status set_up(const Image& image, const LoadOptions& options);
  Status lay_out_frame();
  Result<std::unique_ptr<Frame>> make_frame() const;
  void* address(const Frame& frame, const Script::Pointer& pointer) const;
  Status check_types(std::span<const Tensor> inputs) const;
  // Outputs that are there are used, the others made.
  Result<std::vector<Tensor>> run_to_tensors(std::span<const void* const> inputs,
                                             std::vector<Tensor> outputs,
                                             const RunOptions& options) const;
  Status check_overlaps(Frame& frame) const;
  Error overlap(const Extent& a, const Extent& b) const;
  Status prepare(Profile& profile) const;
  Status execute(Frame& frame, const RunOptions& options) const;
  void launch(const Frame& frame, const Script::Instruction& instruction) const;

  std::string place_;  // for errors: "image 'mlp'"
  std::vector<image::Port> inputs_;
  std::vector<image::Port> outputs_;
  std::vector<Tensor> constants_;  // aligned
  Script script_;
  std::vector<uint32_t> bound_;      // pointers into inputs and outputs that do not move
  std::vector<uint32_t> half_used_;  // outputs whose last byte holds one element of two
  int64_t threads_ = 1;
  std::shared_ptr<Team> team_;

  int64_t scratch_offset_ = 0;  // in a frame's memory; the arena is at 0
  int64_t scratch_stride_ = 0;  // between those of threads
  int64_t frame_bytes_ = 0;
  int64_t memory_limit_ = 0;

  mutable std::mutex mutex_;  // guards what follows
  mutable std::vector<std::unique_ptr<Frame>> free_;
  mutable int64_t frames_ = 0;  // made
};

}  // namespace hone

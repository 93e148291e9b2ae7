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
#include "base/span.h"
#include "base/team.h"
#include "runtime/image.h"
#include "runtime/object_code.h"
#include "tensor/tensor.h"

namespace hone {

struct Script;

struct LoadOptions {
  std::shared_ptr<Team> team = nullptr;  // null: it makes one with the image's threads
  std::span<const Import> imports = default_imports();
  // The instructions of the machine; none: of this one. Code that needs more is refused.
  std::optional<Instructions> machine = std::nullopt;
  // Bytes of arenas and scratch of all runs at once. A run that would need more fails.
  int64_t memory_limit = INT64_MAX;
};

// The time of a launch or a copy of an image, over all its runs; in a loop it runs several times.
// On one thread it is CPU time, which other processes do not lengthen.
struct CommandTime {
  std::string command;  // its name in the image
  std::string kernel;   // empty: a copy
  int64_t runs = 0;
  double seconds = 0;
  double least = 0;  // seconds of its fastest run
};
using Profile = std::vector<CommandTime>;  // in the image's order

// When launches and copies ran, in the order of their ends, as far as there is room.
struct RunTrace {
  // The work of a thread for a command; for a launch on several threads, one for each that had a
  // part.
  struct Entry {
    uint32_t program;  // RunTrace::program at that time
    uint32_t command;  // an index of the run's profile
    Span span;
  };
  size_t most = 100'000;  // entries
  uint32_t program = 0;   // of runs to come: whoever traces several executables tells them apart
  std::vector<Entry> entries = {};
  int64_t lost = 0;  // entries without room

  void add(uint32_t command, const Span& span);
};

struct RunOptions {
  // Looked at between commands and between trips of loops; a kernel runs to its end.
  const CancelToken* cancel = nullptr;
  // Runs add to it. It must be empty or come from runs of the same image; one run at a time.
  Profile* profile = nullptr;
  // Runs that have a profile add to it; one run at a time.
  RunTrace* trace = nullptr;
  // Kernels read denormal numbers as 0 and write 0 for them: many processors compute with them a
  // hundred times as slowly.
  bool flush_denormals = false;
};

// Refuses an image that is malformed, or in which a command could reach beyond the memory that it
// names. Nothing of it runs. Executable::load() checks this, too.
Status check_image(const Image& image, std::span<const Import> imports = default_imports());

// A compiled graph in memory. Any number of threads may run it at once: each run has a frame, with
// an arena and scratch of its own. A run that finds no free frame makes one, which is kept; so
// memory grows to what the largest number of runs at once needed. Other runs allocate nothing but
// tensors for their outputs, and those lie in the memory of earlier outputs that nobody holds.
//
// Kernels run with the floating-point environment of the thread they are on: the caller's for its
// part, the default for the team's workers. RunOptions::flush_denormals and an image that says so
// change it, while a kernel runs.
class Executable {
 public:
  // Checks the image. Constants are used where they are, or copied once if they are not
  // aligned to kBufferAlignment.
  static Result<std::shared_ptr<const Executable>> load(const Image& image,
                                                        const LoadOptions& options = {});
  ~Executable();  // not while it runs

  std::span<const image::Port> inputs() const { return inputs_; }
  std::span<const image::Port> outputs() const { return outputs_; }
  int64_t threads() const { return threads_; }  // that work on a kernel
  // Indexed by output: its donor, the input in whose memory it may lie.
  std::span<const std::optional<uint32_t>> donors() const;

  // Errors: tensors that do not fit, no memory (ErrorCode::limit), cancelled.
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs,
                                  const RunOptions& options = {}) const;
  // The same with inputs that the caller gives up: an output lies in its donor if no other handle
  // holds the donor. After an error the contents of the inputs are undefined.
  Result<std::vector<Tensor>> run_donating(std::vector<Tensor> inputs,
                                           const RunOptions& options = {}) const;
  // Reads and writes the caller's memory, of the ports' sizes, aligned to their elements. An output
  // may be all of its donor: then nothing is copied for it. Outputs overlap no other memory. After
  // an error their contents are undefined.
  Status run(std::span<const void* const> inputs, std::span<void* const> outputs,
             const RunOptions& options = {}) const;

 private:
  struct Frame;
  struct Extent;
  class Lease;
  class Run;

  Executable();
  Status set_up(const Image& image, const LoadOptions& options);
  Status lay_out_frame();
  Result<std::unique_ptr<Frame>> make_frame() const;
  Status check_types(std::span<const Tensor> inputs) const;
  // Uses the given outputs, and makes those that are missing.
  Result<std::vector<Tensor>> run_to_tensors(std::span<const void* const> inputs,
                                             std::vector<Tensor> outputs,
                                             const RunOptions& options) const;
  Status check_overlaps(Frame& frame) const;
  Error overlap(const Extent& a, const Extent& b) const;
  Status prepare(Profile& profile) const;

  std::string place_;  // for errors: "image 'mlp'"
  std::vector<image::Port> inputs_;
  std::vector<image::Port> outputs_;
  std::vector<Tensor> constants_;  // aligned
  std::unique_ptr<const Script> script_;
  std::vector<uint32_t> bound_;        // pointers into inputs and outputs that do not move
  std::vector<uint32_t> partly_used_;  // outputs whose last byte has unused bits
  // The memory of a run's outputs, for those of the next run.
  std::shared_ptr<MemoryPool> output_memory_;
  int64_t threads_ = 1;
  bool flushes_denormals_ = false;
  std::shared_ptr<Team> team_;

  int64_t scratch_offset_ = 0;  // in a frame's memory; the arena is at 0
  int64_t scratch_stride_ = 0;  // from one thread's scratch to the next
  int64_t frame_bytes_ = 0;
  int64_t memory_limit_ = 0;

  mutable std::mutex mutex_;  // guards what follows
  mutable std::vector<std::unique_ptr<Frame>> free_;
  mutable int64_t frames_ = 0;  // made
};

}  // namespace hone

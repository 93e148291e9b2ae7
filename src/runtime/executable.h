#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/team.h"
#include "runtime/image.h"
#include "runtime/object_code.h"
#include "runtime/runnable.h"
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
class Executable final : public Runnable {
 public:
  // Checks the image. Constants are used where they are, or copied once if they are not
  // aligned to kBufferAlignment.
  static Result<std::shared_ptr<const Executable>> load(const Image& image,
                                                        const LoadOptions& options = {});
  ~Executable() override;  // not while it runs

  std::span<const image::Port> inputs() const override { return inputs_; }
  std::span<const image::Port> outputs() const override { return outputs_; }
  int64_t threads() const override { return threads_; }
  const Executable* single() const override { return this; }
  std::span<const Tensor> constants() const { return constants_; }  // as they lie in memory
  // Gives up the memory of frames that no run has. The next run makes one anew.
  void give_up_frames() const;
  // Indexed by output: its donor, the input in whose memory it may lie.
  std::span<const std::optional<uint32_t>> donors() const;

  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs, const RunOptions& options = {},
                                  std::vector<UnitTimes>* times = nullptr) const override;
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
  Status run_here(std::span<const void* const> inputs, std::span<void* const> outputs,
                  const RunOptions& options) const;
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

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/team.h"
#include "kernel/kernel_body.h"
#include "program/program.h"
#include "runtime/executable.h"
#include "runtime/memory.h"

// A kernel alone: built by a schedule, as code, and ready to be launched on operands of its own.

namespace hone {

// A schedule of a body, built but not compiled.
struct KernelCandidate {
  Schedule schedule;
  program::Kernel kernel;
  uint64_t code = 0;  // equal: the same machine code
};
// The schedule is one that check_schedule() accepts.
Result<KernelCandidate> candidate_of(const std::shared_ptr<const KernelBody>& body,
                                     const Schedule& schedule, const Target& target);

// A program that launches the candidate once. Inputs of it that a copy brings come first: what
// operands that it changes hold before.
Program launch_of(const KernelCandidate& candidate, int64_t threads);

// The candidate's object code, compiled in this process.
Result<std::string> object_of(const KernelCandidate& candidate, const Target& target);

// Random operands of a body, as a kernel by the schedule reads them. In place the first is what the
// result holds before.
struct Operands {
  std::vector<Tensor> inputs;
  std::vector<Type> outputs;  // as they are stored
  int64_t bytes() const;
};
Result<Operands> random_operands(const KernelBody& body, const Schedule& schedule, uint64_t seed);
// Empty, or how the results of a candidate differ from those of another one.
std::string result_difference(std::span<const Tensor> actual, std::span<const Tensor> expected);

// Memory for the operands of launches: each lies somewhere else within a page, as buffers of an
// arena do. The place decides up to half of a kernel's time, so several are measured.
class OperandPlace {
 public:
  static Result<OperandPlace> make(const Operands& operands, uint64_t seed);
  std::span<const void* const> inputs() const { return inputs_; }
  std::span<void* const> outputs() const { return outputs_; }
  // Drops what the flagged inputs have in caches.
  void evict(const std::vector<bool>& inputs) const;

 private:
  Memory memory_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  std::vector<int64_t> input_bytes_;
};

// Code that launches the candidate some times in a row on the operands of a place.
class KernelLaunches {
 public:
  static Result<KernelLaunches> load(const KernelCandidate& candidate, std::string object,
                                     const Target& target, const std::shared_ptr<Team>& team);
  // How often a run launches; makes the code ready again.
  Status repeat(int64_t launches);
  int64_t launches() const { return launches_; }
  Status run(const OperandPlace& place) const;
  // Seconds of a launch: of CPU time on one thread, which other processes do not lengthen.
  Result<double> seconds(const OperandPlace& place) const;

 private:
  Image image_;  // launches once
  LoadOptions load_;
  std::shared_ptr<const Executable> executable_;
  int64_t launches_ = 1;
};

}  // namespace hone

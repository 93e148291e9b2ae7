#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tensor/dtype.h"
#include "transport/combine_elements.h"
#include "transport/steps.h"
#include "transport/transport.h"

// Runs the steps of one device over any transport.

namespace hone {

// The memory of a device. Input and output may be the same for an all_reduce and a broadcast.
struct StepMemory {
  DType dtype = DType::f32;
  std::span<const std::byte> input;
  std::span<std::byte> output;
  std::span<std::byte> scratch;
  Combine combine = Combine::sum;  // what the steps `add` do
};

// Rooms of a program in bytes. Error: the type shares bytes among elements.
Result<int64_t> bytes_of(int64_t elements, DType dtype);

class StepRun {
 public:
  // The program has passed check_steps_of(), as those of step_programs() do. It, the transport, the
  // memory and the name of the command outlive the run. Error: a room is too small, or the type
  // cannot be combined.
  static Result<StepRun> begin(const DeviceProgram& program, Transport& transport,
                               const StepMemory& memory, std::string_view command);

  // Goes as far as it can without waiting; true: to the end.
  Result<bool> advance();
  // Goes to the end. If it fails, it ends the run of all devices, and waits until nobody uses the
  // memory any more.
  Status finish();
  // Ends the run of all devices for this reason, and waits until nobody uses the memory any more.
  // Returns the reason.
  Status give_up(const Error& reason);

  const DeviceStep& at() const { return program_->steps[next_]; }  // the step that comes next

 private:
  StepRun(const DeviceProgram& program, Transport& transport, const StepMemory& memory,
          std::string_view command);
  Status begin_transfer(const DeviceStep& step);
  void compute(const DeviceStep& step) const;
  std::span<const std::byte> read(const StepPart& part) const;
  std::span<std::byte> write(const StepPart& part) const;

  const DeviceProgram* program_;
  Transport* transport_;
  StepMemory memory_;
  std::string_view command_;
  int64_t element_bytes_;
  size_t next_ = 0;
  std::vector<Ticket> tickets_;
};

// All steps of one device, with scratch of its own.
Status run_steps(const DeviceProgram& program, Transport& transport, DType dtype,
                 std::span<const std::byte> input, std::span<std::byte> output,
                 std::string_view command);

}  // namespace hone

#pragma once

#include <optional>
#include <span>
#include <vector>

#include "program/program.h"

namespace hone {

struct ProgramRunOptions {
  // Commands that do not wait for each other run in an order drawn from this seed; none: as listed.
  std::optional<uint64_t> order_seed = {};
  int64_t max_iterations = int64_t{1} << 20;  // of one while loop
  int64_t max_bytes = int64_t{1} << 32;       // of all buffers
  // Where the program runs, if it is for several devices. All of them run it, each in a thread of
  // its own; the first that fails ends the runs of all.
  DevicePlace place = {};
};

// Runs a verified program of static sizes, with the interpreter for its kernels. All temporaries
// lie where the program says, in memory that holds garbage at first, so a wrong offset, view or
// dependency gives a wrong result.
Result<std::vector<Tensor>> run(const Program& program, std::span<const Tensor> inputs,
                                const ProgramRunOptions& options = {});

}  // namespace hone

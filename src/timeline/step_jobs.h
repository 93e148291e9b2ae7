#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "target/target.h"
#include "timeline/system_jobs.h"
#include "transport/steps.h"

// The jobs of steps: collectives and other exchanges of messages (transport/steps.h).
//
// A message leaves when its send and its receive have begun, as over emulated links. Messages of a
// channel come in their order. Copies and additions are jobs on the queue of their device.

namespace hone {

// The seconds of a device for each byte that a copy or an addition writes.
struct StepRates {
  double copy = 0;
  double add = 0;
};
// One core reads and writes memory.
StepRates step_rates(const Target& target);

struct StepJobOptions {
  int64_t element_bytes = 4;
  std::vector<StepRates> rates = {};  // of each device; none: copies and additions take no time
  // A send is complete at once; else when its message has come.
  bool buffers = true;
};

// Adds the jobs of the programs, which together pass check_steps(). Program i begins after the jobs
// begins[i]; none: at once. Gives the job of each program with which it ends. Bad input for a
// device that the System does not have.
Result<std::vector<uint32_t>> add_steps(SystemJobs& jobs, std::span<const DeviceProgram> programs,
                                        const StepJobOptions& options,
                                        std::span<const std::vector<uint32_t>> begins = {});

}  // namespace hone

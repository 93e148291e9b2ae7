#pragma once

#include <cstdint>
#include <vector>

#include "program/device_programs.h"
#include "program/program.h"
#include "transport/steps.h"

// Programs that several devices run together: each device the same one, or one of its own.

namespace hone {

// True if the program exchanges data with other devices.
bool exchanges_data(const Program& program);
// True if this number of devices can run it. An error names the command and the number that it is
// for.
Status check_devices(const Program& program, int32_t devices);
Status check_devices(const DevicePrograms& programs, int32_t devices);

// The messages of each device, from the first command to the last. The programs are verified and of
// static sizes. Each device carries out those of its collectives as late as
// it may.
Result<std::vector<DeviceProgram>> steps_of(const DevicePrograms& programs, int32_t devices);

// Proves, before a run, that the devices do not wait for each other for ever, on any transport and
// at any timing (check_steps.h), of programs as above. An error names two commands that wait for
// each other, or one without a partner.
Status check_no_deadlock(const Program& program, int32_t devices);
Status check_no_deadlock(const DevicePrograms& programs, int32_t devices);

}  // namespace hone

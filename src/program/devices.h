#pragma once

#include <cstdint>

#include "program/program.h"

// Programs that several devices run together, each device the same one.

namespace hone {

// True if the program exchanges data with other devices.
bool exchanges_data(const Program& program);
// True if this number of devices can run it. An error names the command and the number that it is
// for.
Status check_devices(const Program& program, int32_t devices);

// Proves, before a run, that the devices do not wait for each other for ever, on any transport and
// at any timing (check_steps.h). Each device carries out the messages of its collectives as late as
// it may. The program is verified and of static sizes. An error names the commands.
Status check_no_deadlock(const Program& program, int32_t devices);

}  // namespace hone

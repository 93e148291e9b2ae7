#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "base/error.h"
#include "transport/steps.h"

namespace hone {

// Proves, before a run, that the programs of a group of devices fit together at any timing and on
// any transport, whether or not it buffers:
//   * Steps stay in their rooms. Each ticket begins once and is waited for once. Nothing touches
//     the memory of a transfer that is open.
//   * The n-th send of a channel has an n-th receive, of the same size.
//   * No devices wait for each other. No receive takes from anybody, and nothing depends on when a
//     message comes. So if one run without any buffer ends, all runs end, with the same results.
// An error names the steps: two of those that wait for each other. If `command_of` is there, it
// gives the command that a step of a program belongs to, which errors name in place of the step.
using CommandOfStep = std::function<std::string(size_t program, size_t step)>;
Status check_steps(std::span<const DeviceProgram> programs,
                   const CommandOfStep& command_of = nullptr);

// The part of it that concerns one device: rooms, tickets and open transfers.
Status check_steps_of(const DeviceProgram& program);

}  // namespace hone

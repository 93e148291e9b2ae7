#pragma once

#include <string>
#include <vector>

#include "cli/arguments.h"
#include "session/program_text.h"

// Texts of programs of devices, which `hone run` and `hone check` take in place of a model.

namespace hone::cli {

class Console;
struct Processes;

// True if MODEL is one.
bool names_programs(const Arguments& arguments);

// MODEL on the devices that it is for, with their inputs. All is proved that can be proved before a
// run. Options that say how to plan a model are refused.
struct GivenPrograms {
  DevicePrograms programs;
  int32_t devices = 1;
  std::string proofs;
  RunInputs inputs;
  std::vector<std::string> outputs;  // their names

  // Compiled, on all devices.
  Result<std::shared_ptr<const Runnable>> code(const Processes& processes,
                                               const Arguments& arguments, Console& console) const;
};
Result<GivenPrograms> given_programs(const Processes& processes, const Arguments& arguments,
                                     Console& console);

}  // namespace hone::cli

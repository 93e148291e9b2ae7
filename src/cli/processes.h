#pragma once

#include <functional>
#include <memory>

#include "cli/arguments.h"
#include "session/devices.h"
#include "transport/mpi_transport.h"
#include "worker/crew.h"

// The processes that --transport and --hosts name: their devices divide the batch.

namespace hone::cli {

class Console;

struct Processes {
  std::shared_ptr<Crew> crew;     // null: all devices are in this process
  int64_t devices = 0;            // of all of them
  int64_t devices_here = 0;       // that share the cores of this machine; 0: none
  int64_t threads_elsewhere = 1;  // of each device, if none is here
};

// Does the work of a command on these processes. A rank other than the first does none of it: it
// serves until the first one is done. A process that is lost ends the work of all of them.
Status with_processes(const Arguments& arguments, Console& console,
                      const std::function<Status(const Processes&)>& work);

// MPI, if mpirun has started this process and others. `hint` is a command line that does.
Result<std::shared_ptr<Mpi>> started_mpi(std::string_view hint);

}  // namespace hone::cli

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/progress.h"
#include "base/span.h"
#include "runtime/image.h"
#include "tensor/tensor.h"
#include "transport/spmd.h"

namespace hone {

class Executable;

// The time of a launch or a copy of an image, over all its runs; in a loop it runs several times.
// On one thread it is CPU time, which other processes do not lengthen.
struct CommandTime {
  std::string command;  // its name in the image
  std::string kernel;   // empty: a copy
  int64_t runs = 0;
  double seconds = 0;
  double least = 0;  // seconds of its fastest run
};
using Profile = std::vector<CommandTime>;  // in the image's order

// The time of the code of a unit for inputs of these types, over several runs. A model is one unit,
// or has several of them in its segments.
struct UnitTimes {
  uint32_t unit = 0;
  std::vector<Type> inputs = {};
  int64_t runs = 0;
  Profile times = {};
};

// When launches and copies ran, in the order of their ends, as far as there is room.
struct RunTrace {
  // The work of a thread for a command; for a launch on several threads, one for each that had a
  // part.
  struct Entry {
    uint32_t program;  // RunTrace::program at that time
    uint32_t command;  // an index of the run's profile
    Span span;
  };
  size_t most = 100'000;  // entries
  uint32_t program = 0;   // of runs to come: whoever traces several executables tells them apart
  std::vector<Entry> entries = {};
  int64_t lost = 0;  // entries without room

  void add(uint32_t command, const Span& span);
};

struct RunOptions {
  // Looked at between commands and between trips of loops; a kernel runs to its end.
  const CancelToken* cancel = nullptr;
  // Runs add to it. It must be empty or come from runs of the same image; one run at a time.
  Profile* profile = nullptr;
  // Runs that have a profile add to it; one run at a time.
  RunTrace* trace = nullptr;
  // Kernels read denormal numbers as 0 and write 0 for them: many processors compute with them a
  // hundred times as slowly.
  bool flush_denormals = false;
  // Where the model runs, if it is for several devices. All of them run it, each in a thread of its
  // own; they meet in its collectives, and the first that fails ends the runs of all.
  DevicePlace place = {};
};

// A model that is ready to run. There are four: a compiled graph (Executable), a graph whose batch
// devices divide (compile/batch_model.h), a model that makes code as it runs (NativeModel), and a
// compiled file (LoadedModel). Any number of threads may run one at once.
class Runnable {
 public:
  virtual ~Runnable() = default;

  // Sizes that a run chooses have symbols; so have sizes of outputs that data gives.
  virtual std::span<const image::Port> inputs() const = 0;
  virtual std::span<const image::Port> outputs() const = 0;
  virtual int64_t threads() const = 0;  // that work on a kernel

  // Errors: tensors that do not fit, no memory (ErrorCode::limit), cancelled. With `times`, the run
  // adds to them in place of the options' profile; the program of a trace is their index. One run
  // at a time has the same times.
  virtual Result<std::vector<Tensor>> run(std::span<const Tensor> inputs,
                                          const RunOptions& options = {},
                                          std::vector<UnitTimes>* times = nullptr) const = 0;

  // The code, if it is one graph for one choice of sizes: it also runs in memory of the caller, and
  // on inputs that the caller gives up. Else null.
  virtual const Executable* single() const = 0;
};

std::vector<Type> types_of(std::span<const Tensor> tensors);

// The options of a run of a unit's code that adds to the unit's times.
RunOptions timed(RunOptions options, std::vector<UnitTimes>& times, uint32_t unit,
                 std::vector<Type> inputs);

}  // namespace hone

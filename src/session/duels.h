#pragma once

#include <functional>
#include <string>

#include "measure/duel.h"
#include "session/source.h"

// A model against a rival: both run in turns.

namespace hone {

// A model that runs in this process. `leave` gives up its memory, `place` loads it once more, at
// another place (DuelSide); it does not run there yet.
struct DuelRuns {
  std::function<Status()> run;
  std::function<void()> leave;
  std::function<Status()> place;
};

// Single runs, or blocks of runs that are short. Where the options do not say how many, there are
// rounds enough for an interval. The runs of the warm-up come before.
Result<Duel> duel_of_runs(const MeasureOptions& options, const CancelToken& cancel,
                          const DuelRuns& a, const DuelRuns& b);

// A model that runs in this process, for ONNX Runtime to be held against.
struct RuntimeRival {
  std::string model;  // as the user named it: a file of ONNX is read as it is
  const Model& graphs;
  const Bindings& sizes;
  const std::vector<Tensor>& inputs;
  int64_t threads = 1;
};
struct RuntimeDuel {
  std::string name;  // of the rival, with its version
  Duel times;        // the rival's are b
};
// Errors: ONNX Runtime is not there, or cannot run the model.
Result<RuntimeDuel> duel_with_onnx_runtime(const RuntimeRival& of, const MeasureOptions& options,
                                           const CancelToken& cancel, const DuelRuns& runs);

}  // namespace hone

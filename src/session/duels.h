#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/duel.h"
#include "session/rivals.h"
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

// A model that runs in this process, for rivals to be held against.
struct RivalsOf {
  std::string model;  // as the user named it: a file of ONNX is read as it is
  const Model& graphs;
  const Bindings& sizes;
  const std::vector<Tensor>& inputs;
  int64_t threads = 1;
  // Its outputs, for those of the rivals to be compared with. Null: they are not.
  std::function<Result<std::vector<Tensor>>()> outputs = {};
};
struct RivalDuel {
  std::string name;                       // of the rival, with its version
  Duel times;                             // the rival's are b
  std::optional<double> difference = {};  // the largest, in parts of an output's largest number
};
struct RivalDuels {
  std::vector<RivalDuel> duels;      // the fastest rival is the first
  std::vector<std::string> missing;  // "PyTorch: python3 does not have it": those without a duel
};
// All in turns: in each round the model and each rival have a block. A single rival that is not
// there, or cannot run the model, is an error. One of several is named in `missing`.
Result<RivalDuels> duel_with_rivals(const RivalsOf& of, std::span<const Rival> rivals,
                                    const RivalHosts& hosts, const MeasureOptions& options,
                                    const CancelToken& cancel, const DuelRuns& runs);

}  // namespace hone

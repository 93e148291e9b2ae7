#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "compile/native_model.h"
#include "cost/cost.h"
#include "plan/planned_kernels.h"
#include "runtime/loaded_model.h"

// Where a compiled model's time goes, by the names of its layers.

namespace hone {

// The layers of a model by the values that they make (ImportOptions::layers).
using LayerNames = std::map<std::string, std::string, std::less<>>;

// The layers of a kernel, each once, that of its contraction first. Empty: the model has no names
// there.
std::vector<std::string> layers_of(const PlannedKernel& kernel, const LayerNames& layers);
// "conv1 +2", or what the kernel has in place of a layer.
std::string kernel_label(std::span<const std::string> layers, const std::string& kernel);

// A launch of the plan, or all copies together. Figures are of one run.
struct StepTime {
  // The layers that it computes: the one of its contraction first. Empty: the model has no names
  // there.
  std::vector<std::string> layers;
  std::string command;        // in the plan: "k3"
  std::string kernel;         // of its ops: "conv_broadcast_add"; empty: copies
  std::string computes = {};  // the same for people: "conv 3x3, add"; empty: nothing else is known
  std::string after = {};     // the last layer before it, if it has none: "conv1"
  std::string writes;         // the type of its first result
  std::string algorithm;
  std::string schedule;   // its key in the plan
  double launches = 0;    // in loops more than one
  double seconds = 0;     // the fastest run of the command counts
  double priced = -1;     // by the Cost; negative: not a kernel of the plan
  double operations = 0;  // as it is carried out (kernel_work.h)
  double bytes = 0;       // that a kernel moves (Task::moved)
  double rate = 0;        // operations per second
  double peak = 0;  // the most that the units which it uses do on the plan's threads; 0: unknown
  double part_of_peak = 0;

  // Where it is in the model, and what it computes: "conv1 +2: conv 3x3, add, max", "after conv1:
  // transpose".
  std::string label() const;
};

struct SegmentProfile {
  std::string name;
  std::string sizes;  // "N = 4", of its symbols
  double runs = 0;    // in a run of the model
  double seconds = 0;
  std::vector<StepTime> steps;  // the slowest first
};

// `times` are of `runs` runs of the prepared graph, for these sizes, under the complete plan.
Result<SegmentProfile> profile_of(std::span<const CommandTime> times, int64_t runs,
                                  const Graph& graph, const Plan& plan, const Target& target,
                                  const Cost& cost, const LayerNames& layers = {},
                                  const Bindings& sizes = {});
// The profile of `runs` runs of a compiled model, of which only the commands are known: a segment
// for each unit and its sizes, the slowest first.
Result<std::vector<SegmentProfile>> profile_of(std::span<const UnitTimes> times, int64_t runs,
                                               const HonecFile& file);
// The profile of `runs` runs of a model that keeps the sources of its code: a segment for each
// graph and its sizes, the slowest first.
Result<std::vector<SegmentProfile>> profile_of(std::span<const UnitTimes> times, int64_t runs,
                                               const NativeModel& model, const Target& target,
                                               const LayerNames& layers = {});

// At most 100 columns wide: the `most` slowest steps of the only segment, or a table of the
// segments and those of the slowest few.
std::string profile_text(std::span<const SegmentProfile> profile, size_t most);
std::string profile_json(std::span<const SegmentProfile> profile);

}  // namespace hone

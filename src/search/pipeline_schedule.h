#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "target/system.h"

// The order in which devices of a pipeline work, and when and in what memory they do.

namespace hone {

enum class PipelineSchedule : uint8_t {
  gpipe,        // all micro-batches forward, then all backward
  one_forward,  // 1F1B: a device goes backward as soon as it can
  interleaved,  // 1F1B of devices that have several stages each
};
inline constexpr PipelineSchedule kPipelineSchedules[] = {
    PipelineSchedule::gpipe, PipelineSchedule::one_forward, PipelineSchedule::interleaved};
std::string_view name(PipelineSchedule schedule);
std::optional<PipelineSchedule> schedule_from_name(std::string_view text);

// A stage's work for a micro-batch.
struct PipelineTask {
  enum class Kind : uint8_t { forward, backward };
  Kind kind = Kind::forward;
  int32_t stage = 0;
  int32_t batch = 0;
  bool operator==(const PipelineTask&) const = default;
};

// `devices_of` has the devices of each stage, which compute its tasks together. Without a way back
// there are forward tasks alone, in the order of the micro-batches.
struct PipelineShape {
  std::vector<std::vector<int32_t>> devices_of = {};
  int32_t micro_batches = 1;
  bool has_backward = true;

  int32_t stages() const { return static_cast<int32_t>(devices_of.size()); }
};

// The tasks of each device, by device. Interleaved stages lie around the devices: stage i is on
// device i modulo their number, and micro-batches divide by that number; else it is unsupported.
Result<std::vector<std::vector<PipelineTask>>> pipeline_orders(const PipelineShape& shape,
                                                               PipelineSchedule schedule,
                                                               int32_t devices);

// The work of a stage for a micro-batch, and the memory that it keeps.
struct StageFacts {
  double forward = 0;            // seconds
  double backward = 0;           //
  double update = 0;             // once in a step
  double received_forward = 0;   // bytes of each device, from the stage before
  double received_backward = 0;  // and from the next stage
  int64_t kept = 0;              // bytes of each device from the way forward to the way back
  int64_t held = 0;              // and of weights and of what the optimizer keeps
};

struct PipelineTimes {
  double seconds = 0;                // of a step
  std::vector<double> busy = {};     // by device
  std::vector<int64_t> memory = {};  // by device: the most that it holds
  // The share of time in which devices do nothing.
  double idle() const;
};

// Simulated by the timeline of the system, whose first devices they are.
Result<PipelineTimes> simulate_pipeline(const PipelineShape& shape, PipelineSchedule schedule,
                                        std::span<const StageFacts> stages, const System& system);

}  // namespace hone

#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "target/system.h"

// A chain of layers as stages of a pipeline: by dynamic programming, after Alpa (Zheng et al.,
// 2022).

namespace hone {

// Layers [first, end) on a number of devices, which divide their values in one of the ways that
// are known (StageWay).
struct LayerStage {
  int first = 0;
  int end = 0;
  int devices = 1;
  int way = 0;
  bool operator==(const LayerStage&) const = default;
};

// The time and the memory of a stage whose devices divide its values in one way.
struct StageWay {
  double seconds = 0;  // of a micro-batch, forward and back, and its message before
  int64_t held = 0;    // bytes of a device all the time
  int64_t kept = 0;    // and from the way forward to the way back
};

// The ways of each interval of layers on each number of devices, the fastest first; none: such a
// stage there is not. The limit is of a device that keeps some micro-batches at once.
struct StageTable {
  int layers = 0;
  std::map<std::tuple<int, int, int>, std::vector<StageWay>> ways = {};  // by first, end, devices
  int64_t memory = 0;                                                    // 0: no limit

  const StageWay& way(const LayerStage& stage) const {
    return ways.at({stage.first, stage.end, stage.devices})[static_cast<size_t>(stage.way)];
  }
  // `behind` stages follow. The first one of four keeps four micro-batches, if there are as many.
  bool fits(const LayerStage& stage, int behind, int micro_batches) const {
    const StageWay& one = way(stage);
    return memory == 0 || one.held + std::min(behind + 1, micro_batches) * one.kept <= memory;
  }
};

struct StageChoice {
  std::vector<LayerStage> stages = {};
  double seconds = 0;
};

// The time of a step: the first micro-batch passes all stages, and the others follow at the pace of
// the slowest one.
double step_seconds(const StageTable& table, const std::vector<LayerStage>& stages,
                    int micro_batches);

// The stages of the least time for each number of stages that the layers and the devices permit, by
// that number. `stages` > 0: for this number alone.
enum class StageDevices : uint8_t { all, some };  // that have a stage
std::vector<StageChoice> best_stages(const StageTable& table, int devices, int micro_batches,
                                     int stages = 0, StageDevices use = StageDevices::all);

// The devices of each stage, one behind the other.
std::vector<std::vector<int32_t>> devices_in_order(const std::vector<LayerStage>& stages);
// The same, but each stage lies within one group of neighbours (Level) if a group can hold it.
// Other stages begin at a multiple of the number of their devices. Large stages choose first. The
// list is empty if some stage finds no devices.
std::vector<std::vector<int32_t>> devices_in_groups(const std::vector<LayerStage>& stages,
                                                    const System& system);

// Items as layers of about equal time, at most this number, so that the layers receive few bytes:
// the end of each layer. `received(i, k)` says the bytes that items i to k-1 receive from items
// before. There is at least one item, and one layer.
std::vector<int> clustered(const std::vector<double>& seconds,
                           const std::vector<std::vector<double>>& received, int layers);

}  // namespace hone

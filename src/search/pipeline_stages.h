#pragma once

#include <cstdint>
#include <vector>

// A chain of layers as stages of a pipeline: by dynamic programming, after Alpa (Zheng et al.,
// 2022).

namespace hone {

// The layers of a model, and their times for one micro-batch, forward and backward together.
struct LayerChain {
  std::vector<double> seconds = {};   // of each layer, on one device
  std::vector<double> crossing = {};  // of messages over the border before each layer; first: 0
  // To add up the gradients of a stage that has several devices, once in a step: by layer, for each
  // device more.
  std::vector<double> sharing = {};
};

// Layers [first, end) on a number of devices, which take turns with the micro-batches.
struct LayerStage {
  int first = 0;
  int end = 0;
  int devices = 1;
  bool operator==(const LayerStage&) const = default;
};

struct StageChoice {
  std::vector<LayerStage> stages = {};
  double seconds = 0;
};

// The time of a step: the first micro-batch passes all stages, and the others follow at the pace of
// the slowest one.
double step_seconds(const LayerChain& chain, const std::vector<LayerStage>& stages,
                    int micro_batches);

// The stages of the least time for each number of stages that the layers and the devices permit, by
// that number. All devices have a stage, and a stage has a power of two of them. `stages` > 0: for
// this number alone.
std::vector<StageChoice> best_stages(const LayerChain& chain, int devices, int micro_batches,
                                     int stages = 0);

// Items as layers of about equal time, at most this number, so that the layers receive few bytes:
// the end of each layer. `received(i, k)` says the bytes that items i to k-1 receive from items
// before. There is at least one item, and one layer.
std::vector<int> clustered(const std::vector<double>& seconds,
                           const std::vector<std::vector<double>>& received, int layers);

}  // namespace hone

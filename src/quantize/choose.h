#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "quantize/difference.h"
#include "quantize/rewrite.h"

// Chooses a level for each layer of a model: the least time within an error that is measured.

namespace hone::quantize {

struct QuantizeOptions {
  std::vector<Precision> levels = {};  // that a layer may have, beside f32
  bool only_faster = false;            // of these, those that take less time than f32
  double error = 1e-2;                 // most Difference::error of the whole
  std::optional<double> drop = {};     // most Answers::drop() of the whole
  std::vector<std::string> keep = {};  // names of layers that stay f32; a * at the end is any rest
  int64_t group = 32;                  // weights that share a scale, where a level has groups
  int64_t trials = 0;                  // of other choices, after the greedy one
  uint64_t seed = 0;                   // of the trials
  Progress* progress = nullptr;
  const CancelToken* cancel = nullptr;
};

// A whole run. Labels are integers, one per row of the first output of two dims.
struct Batch {
  std::vector<Tensor> inputs;
  std::optional<Tensor> labels = {};
};
struct Batches {
  std::vector<Batch> calibration;
  std::vector<Batch> unseen;  // for the check at the end
};

// Runs graphs, and says how long they take.
using RunGraph = std::function<Result<std::vector<Tensor>>(std::span<const Tensor>)>;
struct QuantizeMachine {
  std::function<Result<RunGraph>(const Graph&)> compile;
  std::function<Result<double>(const Graph&)> seconds;
};

struct LayerReport {
  std::string name;
  Precision level = Precision::f32;
  double error = 0;  // of the whole, if only this layer has its level
  double seconds_f32 = 0, seconds = 0;
  int64_t bytes_f32 = 0, bytes = 0;  // of its weights
  std::string why = "";              // it stays f32
  bool is_smoothed = false, is_corrected = false;
};
// Why the layer stays, or what was done to its error: "smoothed, corrected".
std::string remark(const LayerReport& report);

// Choices that no other one beats in both.
struct FrontPoint {
  double cost = 0;   // seconds of all layers by price; bytes of their weights, if not only_faster
  double error = 0;  // on the calibration arrays
  bool is_taken = false;
};

struct QuantizeResult {
  std::vector<LayerChoice> choices;  // by layer
  std::vector<LayerReport> reports;  // by layer
  std::vector<FrontPoint> front;     // from the cheapest
  Graph graph;                       // quantized()
  Difference calibration, unseen;    // of the whole
};

// The graph is static, and batches have its inputs. The error code is mismatch if no layer may
// change within the error; the message says what the best would be.
Result<QuantizeResult> choose_levels(const Graph& graph, const QuantizeOptions& options,
                                     const Batches& batches, const QuantizeMachine& machine);

}  // namespace hone::quantize

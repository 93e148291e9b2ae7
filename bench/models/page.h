#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "target/target.h"

namespace hone::bench {

// A model under hone and under ONNX Runtime, on as many threads.
struct ModelRow {
  std::string name;
  int64_t threads = 1;
  double hone = 0, rival = 0;  // seconds of a run
  double difference = 0;       // of outputs, in parts of the largest number
  bool is_quantized = false;   // to bytes

  double ratio() const { return rival / hone; }
};

// Of rows of fp32 on so many threads that take `shortest` seconds at least; 0 without any.
double mean_ratio(const std::vector<ModelRow>& rows, int64_t threads, double shortest);

// docs/performance-zoo.md: a table of all models, those that hone loses included.
Status write_page(const std::filesystem::path& path, const std::vector<ModelRow>& rows,
                  const Target& target, double shortest);

}  // namespace hone::bench

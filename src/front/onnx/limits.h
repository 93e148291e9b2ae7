#pragma once

#include <cstdint>

namespace hone {

// The limits of an ONNX file. Each error names the limit.
struct OnnxLimits {
  int64_t nesting = 64;                        // of graphs, functions and messages
  int64_t nodes = 1'000'000;                   // functions and subgraphs inlined
  int64_t name_bytes = int64_t{1} << 20;       // of one string
  int64_t message_bytes = int64_t{256} << 20;  // of all messages, but the data of large tensors
  int64_t tensor_bytes = int64_t{16} << 30;    // that all tensors together claim
};

}  // namespace hone

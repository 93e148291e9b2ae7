#include "io/onnx/onnx.h"

#include <cstdint>

// Bytes as a model: an error, or a model that verifies (the import checks that itself).
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hone::OnnxImport options;
  options.limits.nodes = 5000;
  options.limits.tensor_bytes = int64_t{1} << 28;
  (void)hone::parse_onnx(std::as_bytes(std::span(data, size)), "fuzz", "/nowhere", options);
  return 0;
}

#include "front/onnx/onnx.h"

#include <cstdint>

#include "tests/fuzz/onnx_seeds.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

// Bytes are changed in what was a model once: others do not get far.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  constexpr size_t kNoModel = 16;
  constexpr unsigned int kFreshOnceIn = 256;
  if (size < kNoModel || seed % kFreshOnceIn == 0) {
    const onnx::ModelProto model = hone::fuzz::seed_model(seed / kFreshOnceIn);
    if (const size_t fresh = hone::fuzz::write_model(model, data, max_size)) size = fresh;
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

// Bytes as a model: an error, or a model that verifies (the import checks that itself).
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hone::ImportOptions options;
  options.limits.nodes = 5000;
  options.limits.tensor_bytes = int64_t{1} << 28;
  (void)hone::parse_onnx(std::as_bytes(std::span(data, size)), "fuzz", "/nowhere", options);
  return 0;
}

#include "front/onnx/onnx.h"

#include <cstdint>

#include "tests/fuzz/onnx_seeds.h"
#include "tests/fuzz/target.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace hone::HONE_FILE {

// Bytes are changed in what was a model once: others do not get far.
static size_t mutate(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  constexpr size_t kNoModel = 16;
  constexpr unsigned int kFreshOnceIn = 256;
  if (size < kNoModel || seed % kFreshOnceIn == 0) {
    const onnx::ModelProto model = hone::fuzz::seed_model(seed / kFreshOnceIn);
    if (const size_t fresh = hone::fuzz::write_model(model, data, max_size)) size = fresh;
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

// Bytes as a model: an error, or a model that verifies (the import checks that itself).
HONE_FUZZ(onnx, mutate) {
  hone::ImportOptions options;
  options.limits.nodes = 5000;
  options.limits.tensor_bytes = int64_t{1} << 28;
  (void)hone::parse_onnx(std::as_bytes(std::span(data, size)), "fuzz", "/nowhere", options);
}

}  // namespace hone::HONE_FILE

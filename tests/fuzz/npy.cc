#include "formats/npy.h"

#include <cstdint>

// Reading a .npy file never crashes, and what it reads can be read by element.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hone::Result<hone::Tensor> tensor = hone::parse_npy(std::as_bytes(std::span(data, size)), "fuzz");
  if (tensor.ok() && tensor->elements() > 0) (void)tensor->real_at(tensor->elements() - 1);
  return 0;
}

#include "formats/safetensors.h"

#include <cstdint>

// Reading a safetensors file never crashes, and what it reads can be read by element.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hone::Result<hone::Safetensors> content =
      hone::parse_safetensors(std::as_bytes(std::span(data, size)), "fuzz");
  if (!content.ok()) return 0;
  for (const auto& [name, tensor] : content->tensors)
    if (tensor.elements() > 0) (void)tensor.real_at(tensor.elements() - 1);
  return 0;
}

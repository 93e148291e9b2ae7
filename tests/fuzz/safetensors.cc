#include "formats/safetensors.h"
#include "tests/fuzz/target.h"

#include <cstdint>

namespace hone::HONE_FILE {

// Reading a safetensors file never crashes, and what it reads can be read by element.
HONE_FUZZ(safetensors) {
  hone::Result<hone::Safetensors> content =
      hone::parse_safetensors(std::as_bytes(std::span(data, size)), "fuzz");
  if (!content.ok()) return;
  for (const auto& [name, tensor] : content->tensors)
    if (tensor.elements() > 0) (void)tensor.real_at(tensor.elements() - 1);
}

}  // namespace hone::HONE_FILE

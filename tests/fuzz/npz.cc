#include "formats/npz.h"

#include <cstdint>

// Reading an archive never crashes, nor reads a member outside of it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::span<const std::byte> file = std::as_bytes(std::span(data, size));
  std::shared_ptr<const void> owner(data, [](const void*) {});
  for (const std::shared_ptr<const void>& keep : {owner, std::shared_ptr<const void>()}) {
    hone::Result<std::vector<hone::NamedTensor>> tensors = hone::parse_npz(file, "fuzz", keep);
    if (!tensors.ok()) continue;
    for (const hone::NamedTensor& named : *tensors) (void)named.tensor.content_hash();
  }
  return 0;
}

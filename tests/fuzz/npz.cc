#include "formats/npz.h"
#include "tests/fuzz/target.h"

#include <cstdint>

namespace hone::HONE_FILE {

// Reading an archive never crashes, nor reads a member outside of it.
HONE_FUZZ(npz) {
  std::span<const std::byte> file = std::as_bytes(std::span(data, size));
  std::shared_ptr<const void> owner(data, [](const void*) {});
  for (const std::shared_ptr<const void>& keep : {owner, std::shared_ptr<const void>()}) {
    hone::Result<std::vector<hone::NamedTensor>> tensors = hone::parse_npz(file, "fuzz", keep);
    if (!tensors.ok()) continue;
    for (const hone::NamedTensor& named : *tensors) (void)named.tensor.content_hash();
  }
}

}  // namespace hone::HONE_FILE

#include "formats/npy.h"
#include "tests/fuzz/target.h"

#include <cstdint>

namespace hone::HONE_FILE {

// Reading a .npy file never crashes, and what it reads can be read by element.
HONE_FUZZ(npy) {
  hone::Result<hone::Tensor> tensor = hone::parse_npy(std::as_bytes(std::span(data, size)), "fuzz");
  if (tensor.ok() && tensor->elements() > 0) (void)tensor->real_at(tensor->elements() - 1);
}

}  // namespace hone::HONE_FILE

#include "runtime/object_code.h"

#include <cstdint>

// Loading machine code never crashes, whatever the bytes are. Nothing of it is run.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)hone::ObjectCode::load(std::as_bytes(std::span(data, size)));
  return 0;
}

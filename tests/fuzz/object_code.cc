#include "runtime/object_code.h"
#include "tests/fuzz/target.h"

#include <cstdint>

namespace hone::HONE_FILE {

// Loading machine code never crashes, whatever the bytes are. Nothing of it is run.
HONE_FUZZ(object_code) { (void)hone::ObjectCode::load(std::as_bytes(std::span(data, size))); }

}  // namespace hone::HONE_FILE

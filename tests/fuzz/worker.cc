#include "tests/fuzz/target.h"
#include "tests/worker/hostile_talk.h"

namespace hone::HONE_FILE {

// A caller, or a worker, may say anything: no crash, no hang, no more memory than is allowed.
HONE_FUZZ(worker) {
  if (size == 0) return;
  const auto all = std::as_bytes(std::span(data, size)).subspan(1);
  const std::vector<std::byte> bytes(all.begin(), all.end());
  switch (data[0] % 3) {
    case 0: tested::meet_hostile_caller(bytes); break;
    case 1: tested::meet_hostile_tensors(bytes); break;
    default: tested::meet_hostile_worker(bytes); break;
  }
}

}  // namespace hone::HONE_FILE

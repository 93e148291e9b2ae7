#include "tests/fuzz/target.h"
#include "tests/transport/hostile_peer.h"

namespace hone::HONE_FILE {

// A peer may send any bytes: no crash, no hang, no more memory than a few messages.

HONE_FUZZ(transport) {
  if (size == 0) return;
  const auto bytes = std::as_bytes(std::span(data, size));
  hone::tested::meet_hostile_peer(
      hone::tested::hostile_stream(bytes.subspan(1), (data[0] & 1) != 0));
}

}  // namespace hone::HONE_FILE

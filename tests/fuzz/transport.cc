#include "tests/transport/hostile_peer.h"

// A peer may send any bytes: no crash, no hang, no more memory than a few messages.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size));
  hone::tested::meet_hostile_peer(
      hone::tested::hostile_stream(bytes.subspan(1), (data[0] & 1) != 0));
  return 0;
}

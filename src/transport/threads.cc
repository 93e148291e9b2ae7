#include "transport/threads.h"

namespace hone {

Result<std::unique_ptr<Transport>> make_thread_transport(int32_t devices,
                                                         const ExchangeOptions& options) {
  if (devices < 1 || devices > Transport::kMaxDevices)
    return bad_input("{} devices; there are 1 to {}", devices, Transport::kMaxDevices);
  return std::unique_ptr<Transport>(std::make_unique<Exchange>(devices, options));
}

}  // namespace hone

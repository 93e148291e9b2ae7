#pragma once

#include <cstdint>
#include <memory>

#include "transport/exchange.h"

// All devices are threads of this process. The bytes are copied once, by the thread that comes
// second.

namespace hone {

// Error: no device, or more than Transport::kMaxDevices.
Result<std::unique_ptr<Transport>> make_thread_transport(int32_t devices,
                                                         const ExchangeOptions& options = {});

}  // namespace hone

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/cuda/device.h"

namespace hone {

// Moves bytes whose addresses are of memory of the machine or of one of these GPUs, as a transport
// does (ExchangeOptions::move). They have come when it returns. From GPU to GPU the driver moves
// them: without a stop, if one of them reaches memory of the other. If it refuses, they cross
// memory of the machine. Any number of threads may move at a time.
std::function<Status(std::byte* to, const std::byte* from, size_t bytes)> moves_among(
    std::vector<std::shared_ptr<const CudaDevice>> gpus);

}  // namespace hone

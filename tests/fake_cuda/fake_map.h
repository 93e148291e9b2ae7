#pragma once

#include <optional>
#include <string>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/gpu_kernel.h"

namespace hone::fake {

// A tensor map as the fake driver writes it into the bytes that the caller has for it.
struct FakeMap {
  static constexpr uint32_t kMark = 0x7e6d4ab1;
  static constexpr unsigned kMostDims = 5;

  uint32_t mark = kMark;
  int type = 0;
  cuda::Address address = 0;
  uint32_t rank = 0;
  // The last dim of the buffer is the first one here. A stride is of the dim after it.
  uint32_t dims[kMostDims] = {};
  uint64_t strides[kMostDims - 1] = {};
  uint32_t box[kMostDims] = {};
};
static_assert(sizeof(FakeMap) <= kMapBytes);

// The reason for which a driver refuses to make such a map; "": it does not.
std::string fault_of_map(const FakeMap& map);
// Says how the parameter of a launch differs from the map that its kernel was made for, of a buffer
// at this address; "" if it does not.
std::string fault_of_parameter(const void* parameter, const GpuMap& made_for,
                               cuda::Address address);

}  // namespace hone::fake

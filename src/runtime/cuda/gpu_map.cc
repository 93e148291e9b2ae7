#include "runtime/cuda/gpu_map.h"

#include <algorithm>
#include <optional>

#include "base/checked_math.h"

namespace hone {

namespace {

// Limits of the driver.
constexpr size_t kMostDims = 5;
constexpr int64_t kMostOfBox = 256;                    // elements along a dim
constexpr int64_t kMostOfDim = int64_t{1} << 31;       // coordinates are of 32 bits, with a sign
constexpr int64_t kMostBytes = int64_t{1} << 40;       // strides are smaller
constexpr int64_t kRowBytes = 128, kStrideBytes = 16;  // of a box; what strides are multiples of

std::optional<int> driver_type(DType dtype) {
  switch (dtype) {
    case DType::f16: return cuda::kMapF16;
    case DType::bf16: return cuda::kMapBf16;
    case DType::f32: return cuda::kMapF32;
    default: return std::nullopt;
  }
}

int64_t element_bytes(const GpuMap& map) { return bits(map.dtype) / 8; }

}  // namespace

Status check_map(const GpuMap& map, int64_t buffers) {
  if (map.buffer < 0 || map.buffer >= buffers)
    return bad_input("a map is of buffer {}, of {}", map.buffer, buffers);
  if (!driver_type(map.dtype)) return bad_input("there are no maps of {}", name(map.dtype));
  const size_t rank = map.dims.size();
  if (rank < 1 || rank > kMostDims || map.box.size() != rank)
    return bad_input("a map of {} dims has boxes of {}; it has at most {}", rank, map.box.size(),
                     kMostDims);
  int64_t bytes = element_bytes(map);
  for (size_t i = rank; i-- > 0;) {
    if (map.dims[i] < 1 || map.dims[i] >= kMostOfDim || map.box[i] < 1 || map.box[i] > kMostOfBox)
      return bad_input("a map of {} elements has boxes of {} along dim {}", map.dims[i], map.box[i],
                       i);
    const std::optional<int64_t> all = checked_mul(bytes, map.dims[i]);
    if (!all || *all >= kMostBytes) return over_limit("a map is of too many elements");
    bytes = *all;
    if (i > 0 && bytes % kStrideBytes != 0)
      return bad_input("a map steps by {} bytes along dim {}, not by a multiple of {}", bytes,
                       i - 1, kStrideBytes);
  }
  if (map.box.back() * element_bytes(map) != kRowBytes)
    return bad_input("a row of a box has {} bytes, not {}", map.box.back() * element_bytes(map),
                     kRowBytes);
  return {};
}

int64_t bytes_of(const GpuMap& map) {
  int64_t bytes = element_bytes(map);
  for (int64_t extent : map.dims) bytes *= extent;
  return bytes;
}

Result<MapParameter> map_parameter(const CudaDevice& device, const GpuMap& map,
                                   cuda::Address address) {
  // The driver names the last dim first, and no stride of it.
  const size_t rank = map.dims.size();
  std::array<uint64_t, kMostDims> dims = {}, strides = {};
  std::array<uint32_t, kMostDims> box = {}, steps = {};
  auto stride = static_cast<uint64_t>(element_bytes(map));
  for (size_t i = 0; i < rank; ++i) {
    dims[i] = static_cast<uint64_t>(map.dims[rank - 1 - i]);
    box[i] = static_cast<uint32_t>(map.box[rank - 1 - i]);
    steps[i] = 1;
    strides[i] = stride *= dims[i];
  }
  MapParameter made;
  HONE_TRY(device.check(
      device.call().cuTensorMapEncodeTiled(
          made.bytes.data(), driver_type(map.dtype).value(), static_cast<unsigned>(rank),
          reinterpret_cast<void*>(address), dims.data(), strides.data(), box.data(), steps.data(),
          cuda::kNotInterleaved, cuda::kSwizzle128, cuda::kPromote128, cuda::kFillZeros),
      "made a tensor map"));
  return made;
}

}  // namespace hone

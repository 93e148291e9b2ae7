#include "tests/fake_cuda/fake_map.h"

#include <fmt/format.h>

#include <cstring>

namespace hone::fake {

namespace {

struct MapType {
  DType dtype;
  int type;
  uint64_t bytes;
};
constexpr MapType kMapTypes[] = {{DType::f16, cuda::kMapF16, 2},
                                 {DType::bf16, cuda::kMapBf16, 2},
                                 {DType::f32, cuda::kMapF32, 4}};

const MapType* map_type(int type) {
  for (const MapType& one : kMapTypes)
    if (one.type == type) return &one;
  return nullptr;
}

}  // namespace

std::string fault_of_map(const FakeMap& map) {
  const MapType* const type = map_type(map.type);
  if (type == nullptr) return "a map of a type that the fake does not have";
  if (map.rank < 1 || map.rank > FakeMap::kMostDims) return "a map of too many dims";
  if (map.address == 0 || map.address % 16 != 0) return "a map of memory that is not aligned";
  uint64_t stride = type->bytes;
  for (uint32_t i = 0; i < map.rank; ++i) {
    if (map.dims[i] == 0 || map.box[i] == 0 || map.box[i] > 256) return "a map with a wrong box";
    stride *= map.dims[i];
    if (i + 1 == map.rank) break;
    if (map.strides[i] % 16 != 0 || map.strides[i] < stride) return "a map with a wrong stride";
    stride = map.strides[i];
  }
  return map.box[0] * type->bytes > 128 ? "a map whose boxes have too long rows" : "";
}

std::string fault_of_parameter(const void* parameter, const GpuMap& made_for,
                               cuda::Address address) {
  FakeMap map;
  std::memcpy(&map, parameter, sizeof map);
  if (map.mark != FakeMap::kMark) return "a kernel gets something else than a map";
  if (map.address != address)
    return fmt::format("a map of buffer {} is of other memory: stale, or of another buffer",
                       made_for.buffer);
  const size_t rank = made_for.dims.size();
  const MapType* const type = map_type(map.type);
  if (type == nullptr || type->dtype != made_for.dtype || map.rank != rank)
    return "a map is of another type";
  uint64_t stride = type->bytes;
  for (size_t i = 0; i < rank; ++i) {
    const size_t dim = rank - 1 - i;
    if (map.dims[i] != static_cast<uint64_t>(made_for.dims[dim]))
      return fmt::format("a map has {} elements along dim {}, not {}", map.dims[i], dim,
                         made_for.dims[dim]);
    if (map.box[i] != static_cast<uint64_t>(made_for.box[dim]))
      return fmt::format("a map has boxes of {} elements along dim {}, not {}", map.box[i], dim,
                         made_for.box[dim]);
    stride *= map.dims[i];
    if (i + 1 < rank && map.strides[i] != stride) return "a map has another stride";
  }
  return "";
}

}  // namespace hone::fake

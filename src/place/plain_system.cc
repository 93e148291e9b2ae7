#include "place/plain_system.h"

#include <algorithm>

namespace hone {

Target plain_target(std::string_view name, int64_t memory, double operations) {
  Target target;
  target.name = name;
  target.caches = {{32 << 10, 1, 1e9}};
  target.memory_bytes = std::clamp(memory, int64_t{1}, kMaxTargetBytes);
  target.memory_one_core = target.memory_all_cores = 1e9;
  target.peak(DType::f32) = target.peak(DType::f64) = operations;
  return target;
}

Links star_links(std::string name, double bytes_per_second) {
  Links links;
  links.name = std::move(name);
  links.shape = Shape::star;
  links.over = kAllDevices;
  links.bytes_per_second = bytes_per_second;
  return links;
}

Links cable_links(std::string name, int64_t from, int64_t to, double bytes_per_second) {
  Links links;
  links.name = std::move(name);
  links.shape = Shape::cable;
  links.from = from;
  links.to = to;
  links.bytes_per_second = bytes_per_second;
  return links;
}

}  // namespace hone

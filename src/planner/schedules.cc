#include "planner/schedules.h"

#include <numeric>

namespace hone {
namespace {

// Bytes of a vector register.
int64_t vector_bytes(const Target& target) {
  switch (target.isa) {
    case Isa::v2: return 16;
    case Isa::avx2: return 32;
    case Isa::avx512: return 64;
  }
  return 16;
}

// Work below this is not worth waking threads for.
constexpr double kMinParallelPoints = 4096;

std::vector<Schedule> candidates(const KernelBody& body, const Target& target, int64_t threads) {
  const KernelSpace space = space_of(body);
  Schedule nest;
  nest.algorithm = Algorithm::nest;
  nest.order.resize(static_cast<size_t>(space.parallel));
  std::iota(nest.order.begin(), nest.order.end(), 0);
  double points = 1;
  for (const IterDim& dim : space.dims) points *= static_cast<double>(dim.extent.range().high);
  if (threads > 1 && points >= kMinParallelPoints && space.parallel > 0) nest.threads = 1;
  std::vector<Schedule> list;
  if (space.parallel > 0) {
    const int inner = space.parallel - 1;
    const Type type = body.graph.type(body.graph.outputs()[0]);
    int64_t lanes = vector_bytes(target) / std::max(1, bits(type.dtype()) / 8);
    while (lanes > space.dims[static_cast<size_t>(inner)].extent.range().high) lanes /= 2;
    for (Schedule with_lanes = nest; lanes > 1; lanes = 0) {
      with_lanes.lanes = {{inner, lanes}};
      list.push_back(with_lanes);
      with_lanes.threads = 0;
      list.push_back(with_lanes);
    }
  }
  list.push_back(nest);
  nest.threads = 0;
  list.push_back(nest);
  list.push_back({});
  return list;
}

}  // namespace

Schedule choose_schedule(const KernelBody& body, const Target& target, int64_t threads) {
  for (const Schedule& schedule : candidates(body, target, threads))
    if (check_schedule(body, schedule, target).ok()) return schedule;
  HONE_CHECK(false, "no schedule fits a kernel of {} nodes", body.graph.node_count());
  return {};
}

}  // namespace hone

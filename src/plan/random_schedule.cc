#include <algorithm>
#include <numeric>

#include "plan/random_plan.h"
#include "plan/schedule_facts.h"

namespace hone {
namespace {

constexpr int kMaxTries = 16;

class ScheduleDraw {
 public:
  ScheduleDraw(const KernelSpace& space, Rng& rng) : space_(space), rng_(rng) {}

  Schedule nest() {
    Schedule schedule = loops(Algorithm::nest);
    if (rng_.chance(0.4)) schedule.row = static_cast<int>(rng_.between(0, space_.parallel));
    return schedule;
  }

  // Tiles of the results' dims, blocks of whole tiles, and one block of the reduction.
  Schedule gemm() {
    Schedule schedule = loops(Algorithm::gemm);
    const auto is_reduced = [&](const Tile& tile) { return tile.dim >= space_.parallel; };
    std::erase_if(schedule.lanes, is_reduced);
    std::erase_if(schedule.unroll, is_reduced);
    for (int dim = 0; dim < space_.parallel; ++dim)
      if (rng_.chance(0.5))
        schedule.block.push_back({dim, register_tile(schedule, dim) * rng_.between(1, 4)});
    if (dims() > space_.parallel && rng_.chance(0.5)) {
      const int dim = static_cast<int>(rng_.between(space_.parallel, dims() - 1));
      schedule.block.push_back({dim, size(dim, 64)});
    }
    schedule.pack_lhs = packing();
    schedule.pack_rhs = packing();
    return schedule;
  }

  // The simplest one.
  Schedule plain() {
    Schedule schedule;
    schedule.algorithm = Algorithm::nest;
    schedule.order.resize(static_cast<size_t>(space_.parallel));
    std::iota(schedule.order.begin(), schedule.order.end(), 0);
    return schedule;
  }

 private:
  int dims() const { return static_cast<int>(space_.dims.size()); }

  int64_t size(int dim, int64_t most) {
    const int64_t extent = space_.dims[static_cast<size_t>(dim)].extent.range().high;
    return rng_.between(1, std::clamp<int64_t>(extent, 1, most));
  }

  Schedule loops(Algorithm algorithm) {
    Schedule schedule = plain();
    schedule.algorithm = algorithm;
    if (rng_.chance(0.5)) rng_.shuffle(schedule.order);
    if (rng_.chance(0.6)) schedule.threads = static_cast<int>(rng_.between(0, space_.parallel));
    if (dims() == 0) return schedule;
    if (rng_.chance(0.6)) schedule.lanes = {{dim(), int64_t{1} << rng_.between(1, 6)}};
    for (int64_t i = rng_.between(-1, 2); i > 0; --i)
      if (const int d = dim();
          std::ranges::find(schedule.unroll, d, &Tile::dim) == schedule.unroll.end())
        schedule.unroll.push_back({d, size(d, 8)});
    return schedule;
  }

  Packing packing() {
    constexpr Packing kAll[] = {Packing::no, Packing::panels, Packing::window};
    return kAll[rng_.below(std::size(kAll))];
  }

  int dim() { return static_cast<int>(rng_.between(0, dims() - 1)); }

  const KernelSpace& space_;
  Rng& rng_;
};

}  // namespace

Schedule random_schedule(const KernelBody& body, const Target& target, Rng& rng) {
  const ScheduleFacts facts(body);
  ScheduleDraw draw(facts.space, rng);
  for (int i = 0; i < kMaxTries; ++i) {
    const uint64_t kind = rng.below(8);
    const Schedule schedule = kind == 0 ? Schedule{} : kind < 3 ? draw.gemm() : draw.nest();
    if (check_schedule(body, facts, schedule, target).ok()) return schedule;
  }
  const Schedule plain = draw.plain();
  return check_schedule(body, facts, plain, target).ok() ? plain : Schedule{};
}

}  // namespace hone

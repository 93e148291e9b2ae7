#include "kernel/random_schedule.h"

#include <algorithm>

#include "kernel/schedule_facts.h"
#include "kernel/stages.h"

namespace hone {
namespace {

constexpr int kMaxTries = 16;
constexpr int64_t kMaxKept = 3;  // values, that are drawn without need

class ScheduleDraw {
 public:
  ScheduleDraw(const KernelSpace& space, Rng& rng) : space_(space), rng_(rng) {}

  Schedule nest() {
    Schedule schedule = loops();
    NestFields& own = schedule.own.emplace<NestFields>();
    if (rng_.chance(0.4)) own.row = static_cast<int>(rng_.between(0, space_.parallel));
    return schedule;
  }

  // Tiles of the results' dims, blocks of whole tiles, and one block of the reduction.
  Schedule gemm() {
    Schedule schedule = loops();
    GemmFields own;
    const auto is_reduced = [&](const Tile& tile) { return tile.dim >= space_.parallel; };
    std::erase_if(schedule.lanes, is_reduced);
    std::erase_if(schedule.unroll, is_reduced);
    for (int dim = 0; dim < space_.parallel; ++dim)
      if (rng_.chance(0.5))
        own.block.push_back(
            {dim, register_tile(schedule, dim) * rng_.between(1, rng_.chance(0.4) ? 48 : 4)});
    if (dims() > space_.parallel && rng_.chance(0.5)) {
      const int dim = static_cast<int>(rng_.between(space_.parallel, dims() - 1));
      own.block.push_back({dim, size(dim, 64)});
    }
    own.pack_lhs = packing();
    own.pack_rhs = packing();
    schedule.own = std::move(own);
    return schedule;
  }

 private:
  int dims() const { return static_cast<int>(space_.dims.size()); }

  int64_t size(int dim, int64_t most) {
    const int64_t extent = space_.dims[static_cast<size_t>(dim)].extent.range().high;
    return rng_.between(1, std::clamp<int64_t>(extent, 1, most));
  }

  Schedule loops() {
    Schedule schedule = plain_nest(space_.parallel);
    if (rng_.chance(0.5)) rng_.shuffle(schedule.order);
    if (rng_.chance(0.6)) schedule.threads = static_cast<int>(rng_.between(0, space_.parallel));
    if (dims() == 0) return schedule;
    if (rng_.chance(0.6)) schedule.lanes = {{dim(), int64_t{1} << rng_.between(1, 6)}};
    for (int64_t i = rng_.between(-1, 2); i > 0; --i)
      if (const int d = dim();
          std::ranges::find(schedule.unroll, d, &Tile::dim) == schedule.unroll.end())
        schedule.unroll.push_back({d, rng_.chance(0.1) ? rng_.between(1, 64) : size(d, 8)});
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

// Of a stage; the simplest nest, if it comes to nothing else.
Schedule random_stage(const KernelBody& body, const Target& target, Rng& rng) {
  const ScheduleFacts facts(body);
  ScheduleDraw draw(facts.space, rng);
  for (int i = 0; i < kMaxTries; ++i) {
    Schedule schedule = rng.chance(0.5) ? draw.gemm() : draw.nest();
    schedule.threads = 0;
    if (check_schedule(body, facts, schedule, target).ok()) return schedule;
  }
  return plain_nest(facts.space.parallel);
}

// Nodes that some chain of the body may keep, ascending.
std::vector<int64_t> random_keep(const KernelBody& body, std::vector<int64_t> keep, Rng& rng) {
  const int64_t nodes = std::ssize(computing_nodes(body.graph));
  if (keep.empty() || rng.chance(0.3))
    for (int64_t i = rng.between(1, kMaxKept); i > 0; --i)
      keep.push_back(rng.between(0, nodes - 1));
  std::ranges::sort(keep);
  keep.erase(std::unique(keep.begin(), keep.end()), keep.end());
  return keep;
}

// It may not fit the body.
Schedule random_chain(const KernelBody& body, const Target& target, Rng& rng) {
  const Result<Schedule> simplest = simplest_chain(body);
  Schedule chain = simplest.ok() ? *simplest : Schedule{.own = ChainFields()};
  ChainFields& own = chain.get<ChainFields>();
  own.keep = random_keep(body, std::move(own.keep), rng);
  if (!simplest.ok())
    for (int dim = 0; dim < body.graph.type(body.graph.outputs()[0]).rank(); ++dim)
      chain.order.push_back(dim);
  rng.shuffle(chain.order);
  std::erase_if(chain.order, [&](int) { return rng.chance(0.3); });
  own.block.clear();
  for (int dim : chain.order) own.block.push_back({dim, rng.between(1, 8)});
  chain.threads = static_cast<int>(rng.between(0, std::ssize(chain.order)));
  own.stages.clear();
  const Result<std::vector<Stage>> stages = stages_of(body, chain);
  if (!stages.ok()) return chain;
  for (const Stage& stage : *stages) own.stages.push_back(random_stage(stage.body, target, rng));
  return chain;
}

}  // namespace

Schedule random_schedule(const KernelBody& body, const Target& target, Rng& rng) {
  const ScheduleFacts facts(body);
  const bool has_several = facts.nodes.size() > 1;
  ScheduleDraw draw(facts.space, rng);
  for (int i = 0; i < kMaxTries; ++i) {
    const uint64_t kind = rng.below(8);
    const Schedule schedule = kind == 0                  ? Schedule{}
                              : kind < 3                 ? draw.gemm()
                              : kind == 3 && has_several ? random_chain(body, target, rng)
                                                         : draw.nest();
    if (check_schedule(body, facts, schedule, target).ok()) return schedule;
  }
  const Schedule plain = plain_nest(facts.space.parallel);
  if (check_schedule(body, facts, plain, target).ok()) return plain;
  const Result<Schedule> chain = simplest_chain(body);
  return chain.ok() ? *chain : Schedule{};
}

}  // namespace hone

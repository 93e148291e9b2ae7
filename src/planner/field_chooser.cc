#include "planner/field_chooser.h"

#include <cmath>
#include <ranges>
#include <utility>

#include "ir/op_facts.h"
#include "kernel/algorithms/gemm.h"
#include "kernel/algorithms/loops.h"

namespace hone {
namespace {

constexpr int64_t kMostRun = 16;  // neighbours in a block that is transposed

}  // namespace

void FieldChooser::consider_all(std::span<const Schedule> schedules) {
  std::vector<double> seconds(schedules.size());
  price_.price(schedules, least_, seconds);
  for (size_t i = 0; i < schedules.size(); ++i) keep(schedules[i], seconds[i]);
}

void FieldChooser::keep(const Schedule& schedule, double seconds) {
  if (!(seconds < least_) || !check_schedule(body_, facts_, schedule, target_).ok()) return;
  best_ = schedule;
  least_ = seconds;
}

bool FieldChooser::computes_weights() const {
  if (!facts_.contraction.ok()) return false;
  const NodeId maker = body_.graph.producer(body_.graph.operands(space_.anchor)[1]);
  return is_dot(body_.graph.opcode(space_.anchor)) && !is_parameter(body_.graph.opcode(maker));
}

void FieldChooser::set(std::vector<Tile>& tiles, int dim, int64_t count) {
  std::erase_if(tiles, [&](const Tile& tile) { return tile.dim == dim; });
  if (count > 1) tiles.push_back({dim, count});
  std::ranges::sort(tiles, {}, &Tile::dim);
}

Schedule FieldChooser::whole_blocks(Schedule schedule) const {
  auto* own = schedule.if_is<GemmFields>();
  if (own == nullptr) return schedule;
  for (Tile& block : own->block) {
    if (block.dim >= space_.parallel) continue;
    const int64_t points = register_tile(schedule, block.dim);
    block.count = (block.count + points - 1) / points * points;
  }
  return schedule;
}

void FieldChooser::try_lanes(const std::vector<int>& candidates) {
  const Schedule start = *best_;
  std::vector<Schedule> tried;
  for (int dim : candidates) {
    for (int64_t count : usual_lanes(site_, dim)) {
      Schedule next = start;
      next.lanes = {{dim, count}};
      set(next.unroll, dim, 1);
      tried.push_back(whole_blocks(next));
      if (!on_.inner_lanes) continue;
      std::erase(next.order, dim);
      if (dim < space_.parallel) next.order.push_back(dim);
      tried.push_back(whole_blocks(next));
    }
  }
  consider_all(tried);
}

void FieldChooser::try_unroll(const std::vector<int>& candidates) {
  if (!on_.unroll) return;
  for (int dim : candidates) {
    const Schedule start = *best_;
    std::vector<Schedule> tried;
    for (int64_t count : usual_unroll(site_, dim)) {
      Schedule next = start;
      set(next.unroll, dim, count);
      tried.push_back(whole_blocks(next));
      next.unroll.clear();
      set(next.unroll, dim, count);
      tried.push_back(whole_blocks(next));
    }
    consider_all(tried);
  }
}

void FieldChooser::try_transposed() {
  if (!on_.transposed_blocks || !best_) return;
  std::vector<std::vector<Tile>> seen;
  for (const KernelFacts::Array& array : facts_.arrays) {
    const std::vector<Tile> run = run_of(array);
    if (run.empty() || std::ranges::find(seen, run) != seen.end()) continue;
    seen.push_back(run);
    const Schedule start = *best_;
    for (int dim = 0; dim < space_.parallel; ++dim) {
      if (extent(dim) < kLeastRun || std::ranges::count(run, dim, &Tile::dim) > 0) continue;
      for (int64_t count : usual_lanes(site_, dim)) {
        Schedule next = start;
        next.lanes = {{dim, count}};
        next.unroll = run;
        consider(whole_blocks(next));
      }
    }
  }
}

std::vector<Tile> FieldChooser::run_of(const KernelFacts::Array& array) const {
  std::vector<Tile> run;
  if (array.element != 4 || array.guards != 0) return run;
  int64_t points = 1;
  for (int dim = 0; dim < space_.parallel;) {
    const bool is_next =
        extent(dim) > 1 && std::ranges::count(run, dim, &Tile::dim) == 0 &&
        std::abs(array.stride[static_cast<size_t>(dim)]) == static_cast<double>(points) &&
        points < kMostRun;
    if (!is_next) {
      ++dim;
      continue;
    }
    const int64_t count = std::min(extent(dim), kMostRun / points);
    run.push_back({dim, count});
    points *= count;
    if (count < extent(dim)) break;
    dim = 0;
  }
  if (points < kLeastRun) run.clear();
  std::ranges::sort(run, {}, &Tile::dim);
  return run;
}

void FieldChooser::try_threads(bool keeps_row) {
  if (threads_ < 2) return;
  const Schedule start = *best_;
  for (int count = 0; count <= most_threads(); ++count) {
    Schedule next = start;
    next.threads = count;
    if (auto* own = next.if_is<NestFields>(); own != nullptr && own->row > 0 && !keeps_row)
      own->row = std::max(own->row, count);
    consider(next);
  }
}

void FieldChooser::try_block(int dim) {
  std::vector<Schedule> tried;
  for (int64_t points : usual_blocks(site_, *best_, dim)) {
    Schedule next = *best_;
    set(next.get<GemmFields>().block, dim, points);
    tried.push_back(std::move(next));
  }
  consider_all(tried);
}

void FieldChooser::try_divided_blocks() {
  if (threads_ < 2 || !on_.cache_blocks) return;
  const Schedule start = *best_;
  std::vector<Schedule> tried;
  for (int count = 1; count <= most_threads(); ++count)
    for (int at = 0; at < count; ++at) {
      const int dim = start.order[static_cast<size_t>(at)];
      if (site_.is_open(dim) || extent(dim) == 1) continue;
      for (int64_t each : {1, 2, 4}) {
        Schedule next = start;
        next.threads = count;
        const int64_t blocks = threads_ * each;
        const int64_t tile = register_tile(start, dim);
        set(next.get<GemmFields>().block, dim, (extent(dim) + blocks - 1) / blocks);
        tried.push_back(whole_blocks(next));
        // The rest that whole tiles leave comes behind the blocks.
        const int64_t whole = extent(dim) / blocks / tile * tile;
        if (whole > 0 && whole * blocks < extent(dim)) {
          set(next.get<GemmFields>().block, dim, whole);
          tried.push_back(std::move(next));
        }
      }
    }
  consider_all(tried);
}

}  // namespace hone

#pragma once

#include <optional>

#include "kernel/facts.h"
#include "kernel/schedule_space.h"
#include "tests/program/random_kernels.h"

// Schedules whose products are split, for tests.

namespace hone {

// A machine with a matrix unit.
inline Target matrix_target() {
  Target target;
  target.isa = Isa::avx512;
  target.extensions = {Extension::amx_bf16};
  target.caches = {{.bytes = 1 << 24}};
  return target;
}

// Or none, if what is drawn does not fit the body.
inline std::optional<Schedule> random_split(const KernelBody& body, const Target& target,
                                            Rng& rng) {
  const KernelSpace space = space_of(body);
  if (space.parallel < 2) return std::nullopt;
  Schedule schedule = plain_nest(space.parallel);
  rng.shuffle(schedule.order);
  std::vector<int> dims = schedule.order;
  rng.shuffle(dims);
  const auto tile = [&](int dim, int64_t count) {
    if (count > 1) schedule.unroll.push_back({dim, count});
  };
  schedule.lanes = {{dims[0], 16}};
  const int64_t vectors = rng.between(1, 2), rows = 16 * rng.between(1, 2);
  tile(std::min(dims[0], dims[1]), dims[0] < dims[1] ? vectors : rows);
  tile(std::max(dims[0], dims[1]), dims[0] < dims[1] ? rows : vectors);
  schedule.own = GemmFields{
      .pack_lhs = Packing::panels, .pack_rhs = Packing::panels, .products = Products::split};
  std::vector<Tile>& block = schedule.get<GemmFields>().block;
  for (int dim = 0; dim < static_cast<int>(space.dims.size()); ++dim) {
    if (!rng.chance(0.4)) continue;
    const int64_t points = dim < space.parallel ? register_tile(schedule, dim) : 8;
    block.push_back({dim, points * rng.between(1, 3)});
  }
  schedule.threads = static_cast<int>(rng.between(0, space.parallel));
  if (!check_schedule(body, schedule, target).ok()) return std::nullopt;
  return schedule;
}

inline Graph product_of(int64_t rows, int64_t depth, int64_t columns) {
  Builder b;
  const Value x = b.parameter("x", DType::f32, {rows, depth});
  const Value w = b.parameter("w", DType::f32, {depth, columns});
  const Attrs contract = {{"lhs_contract", Ints{1}}, {"rhs_contract", Ints{0}}};
  return b.finish({b.op(Opcode::dot, {x, w}, contract)}).value();
}

}  // namespace hone

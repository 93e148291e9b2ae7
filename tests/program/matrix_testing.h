#pragma once

#include <optional>

#include "kernel/facts.h"
#include "kernel/schedule_space.h"
#include "tests/program/random_kernels.h"
#include "tests/program/words_testing.h"

// Products on a matrix unit, for tests.

namespace hone {

// A machine with a matrix unit for all numbers.
inline Target matrix_target() {
  Target target;
  target.isa = Isa::avx512;
  target.extensions = {Extension::amx_bf16, Extension::amx_int8};
  target.caches = {{.bytes = 1 << 24}};
  return target;
}

inline bool has_all_matrix_units(const Target& target) {
  return target.extensions.contains(Extension::amx_bf16) &&
         target.extensions.contains(Extension::amx_int8);
}

// Rows along one or two dims. Or none, if what is drawn does not fit the body.
inline std::optional<Schedule> random_matrix(const KernelBody& body, const Target& target,
                                             Rng& rng) {
  const KernelSpace space = space_of(body);
  if (space.parallel < 2) return std::nullopt;
  Schedule schedule = plain_nest(space.parallel);
  rng.shuffle(schedule.order);
  std::vector<int> dims = schedule.order;
  rng.shuffle(dims);
  schedule.lanes = {{dims[0], 16}};
  const auto tile = [&](int dim, int64_t count) {
    if (count > 1) schedule.unroll.push_back({dim, count});
  };
  tile(dims[0], rng.between(1, 2));
  const bool has_two = dims.size() > 2 && rng.chance(0.3);
  tile(dims[1], has_two           ? rng.between(1, 8)
                : rng.chance(0.6) ? 16 * rng.between(1, 2)
                                  : rng.between(1, 32));
  if (has_two) tile(dims[2], rng.between(2, 4));
  std::ranges::sort(schedule.unroll, {}, &Tile::dim);
  schedule.own = GemmFields{
      .pack_lhs = Packing::panels, .pack_rhs = Packing::panels, .products = Products::matrix};
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

// A body of the numbers that a unit takes; u8: of bytes. Or none, as above.
inline std::optional<WordsCase> random_matrix_case(DType numbers, const Target& target, Rng& rng) {
  WordsCase drawn = random_contraction(numbers, rng);
  for (int i = 0; i < 20; ++i)
    if (std::optional<Schedule> schedule = random_matrix(drawn.body, target, rng)) {
      drawn.schedule = *std::move(schedule);
      return drawn;
    }
  return std::nullopt;
}
inline constexpr DType kMatrixNumbers[] = {DType::u8, DType::bf16, DType::f16, DType::f32};

// In how many units of rounding results may differ: sums are taken in another order, and products
// of small parts are left out.
inline double matrix_slack(DType numbers) { return numbers == DType::f32 ? 16 : 2; }

inline Graph product_of(DType dtype, int64_t rows, int64_t depth, int64_t columns,
                        int64_t parts = 3) {
  Builder b;
  const Value x = b.parameter("x", dtype, {rows, depth});
  const Value w = b.parameter("w", dtype, {depth, columns});
  const Attrs contract = {
      {"lhs_contract", Ints{1}}, {"rhs_contract", Ints{0}}, {"flush", true}, {"parts", parts}};
  return b.finish({b.op(Opcode::dot, {x, w}, contract)}).value();
}

// 'parts' of dots whose numbers are reals; it matters to f32 alone.
inline constexpr std::pair<DType, int64_t> kPartsOfNumbers[] = {
    {DType::f32, 3}, {DType::f32, 2}, {DType::f16, 3}, {DType::bf16, 3}};

// Numbers that need care, as a column times a row.
inline WordsCase product_of_specials(DType dtype, int64_t parts, Rng& rng) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double most = dtype == DType::f16 ? 6e4 : 3e38;
  const std::vector<double> numbers = {0,    1,         -1.5,           inf,       -inf,
                                       nan,  most,      -most,          1.0000001, 1e-20,
                                       0.25, 1.0009765, 0.999511718750, 6.1e-5,    6e-8};
  const auto count = static_cast<int64_t>(numbers.size());
  WordsCase drawn = {body_of_all(product_of(dtype, count, 1, count, parts)), {}, {}};
  std::optional<Schedule> schedule;
  while (!schedule) schedule = random_matrix(drawn.body, matrix_target(), rng);
  drawn.schedule = *schedule;
  drawn.inputs = {Tensor::from_reals(Type::get(dtype, {count, 1}), numbers),
                  Tensor::from_reals(Type::get(dtype, {1, count}), numbers)};
  return drawn;
}

}  // namespace hone

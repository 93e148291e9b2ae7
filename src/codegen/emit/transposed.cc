#include <algorithm>
#include <bit>

#include "base/planted.h"
#include "codegen/emit/emitter.h"

// Lanes that lie apart, where points side by side in registers are neighbours in memory: vectors go
// along the neighbours, and blocks of them are transposed in registers. So 16 x 16 numbers take 16
// accesses and 64 shuffles, not 256 accesses.

namespace hone::code {

using namespace tile;

namespace {

// Neighbours that are worth a vector: fewer are reached lane by lane.
constexpr int64_t kLeastRun = 4;

}  // namespace

// A block is as large as a register, or as the lanes are, if they are fewer.
int64_t Emitter::block_of_lanes() const { return std::min(machine_.vector_bytes / 4, lanes()); }

std::optional<std::vector<Emitter::Run>> Emitter::runs_apart(BufferId buffer,
                                                             const std::vector<IndexExpr>& index,
                                                             const std::vector<Guard>& guards,
                                                             LoopSet loops) {
  if (bits(dtype(buffer)) != 32 || lanes() < kLeastRun ||
      !std::has_single_bit(static_cast<uint64_t>(lanes())))
    return std::nullopt;
  std::vector<Run> runs;
  std::vector<std::pair<int64_t, size_t>> trips;  // how far from the first one
  std::optional<IndexExpr> first;
  bool is_apart = true;
  open_.each(loops, [&](const Trips& at) {
    if (!is_apart) return;
    const Place here_place = place(buffer, index, guards, at);
    is_apart = !here_place.condition && !here_place.is_masked() && here_place.stride &&
               std::abs(*here_place.stride) > kNearVectors;
    if (!is_apart) return;
    const IndexExpr offset = bounds_.simplified(here(here_place.offset, at, 0));
    is_apart = variance_.of(offset) == 0;  // otherwise data decides
    if (!is_apart) return;
    if (!first) {
      first = offset;
      runs.push_back({.stride = *here_place.stride});
    }
    const std::optional<Dim> distance = bounds_.simplified(offset - *first).as_constant();
    is_apart = here_place.stride == runs[0].stride && distance && distance->is_static();
    if (is_apart) trips.emplace_back(distance->value(), trips.size());
  });
  if (!is_apart || static_cast<int64_t>(trips.size()) < kLeastRun) return std::nullopt;
  const int64_t stride = runs[0].stride;
  runs.clear();
  std::ranges::sort(trips);
  for (const auto& [distance, trip] : trips) {
    const bool goes_on =
        !runs.empty() && static_cast<int64_t>(runs.back().trips.size()) < block_of_lanes() &&
        distance == runs.back().distance + static_cast<int64_t>(runs.back().trips.size());
    if (!goes_on) runs.push_back({.first = *first, .stride = stride, .distance = distance});
    runs.back().trips.push_back(trip);
  }
  // Runs that overlap do not count.
  if (static_cast<int64_t>(trips.size()) < kLeastRun * static_cast<int64_t>(runs.size()))
    return std::nullopt;
  return runs;
}

// The columns of a block, whose side is 4, 8 or 16: within each four lanes first, then fours as
// wholes. Each step is one instruction for each row.
llvm::SmallVector<Value> Emitter::transposed(llvm::SmallVector<Value> rows) {
  const auto count = static_cast<int64_t>(rows.size());
  const auto type = rows[0].getType();
  const auto shuffled = [&](Value a, Value b, const auto& from) -> Value {
    llvm::SmallVector<int32_t> lanes;
    for (int64_t lane = 0; lane < count; ++lane) lanes.push_back(static_cast<int32_t>(from(lane)));
    const Value result = b_.create<mlir::LLVM::ShuffleVectorOp>(a, b, lanes);
    HONE_CHECK(result.getType() == type, "a shuffle changed the type");
    return result;
  };
  // In each four lanes, the low or high two of both: a0 b0 a1 b1. Then pairs of them: a0 a1 b0 b1.
  for (int64_t pair = 1; pair <= 2; ++pair) {
    llvm::SmallVector<Value> next(rows.size());
    for (int64_t i = 0; i < count; ++i) {
      if ((i & pair) != 0) continue;
      const Value a = rows[static_cast<size_t>(i)], b = rows[static_cast<size_t>(i + pair)];
      for (int64_t high = 0; high < 2; ++high)
        next[static_cast<size_t>(i + high * pair)] = shuffled(a, b, [&](int64_t lane) {
          const int64_t four = lane / 4 * 4, in_four = lane % 4;
          const int64_t of_b = pair == 1 ? in_four % 2 : in_four / 2;
          const int64_t at = pair == 1 ? in_four / 2 : in_four % 2;
          return of_b * count + four + 2 * high + at;
        });
    }
    rows = std::move(next);
  }
  // Now rows 4g, 4g + 2, 4g + 1, 4g + 3 have columns 0, 1, 2, 3 of each four lanes.
  for (int64_t i = 0; i < count; i += 4)
    std::swap(rows[static_cast<size_t>(i + 1)], rows[static_cast<size_t>(i + 2)]);
  // The fours themselves, for each of the four columns: even ones of two rows, odd ones.
  llvm::SmallVector<Value> columns(rows.size());
  for (int64_t column = 0; column < 4; ++column) {
    llvm::SmallVector<Value> groups;
    for (int64_t i = column; i < count; i += 4) groups.push_back(rows[static_cast<size_t>(i)]);
    const auto half = groups.size() / 2;
    for (size_t step = 1; step < groups.size(); step *= 2) {
      llvm::SmallVector<Value> next(groups.size());
      for (size_t i = 0; i < half; ++i)
        for (int64_t odd = 0; odd < 2; ++odd)
          next[i + static_cast<size_t>(odd) * half] =
              shuffled(groups[2 * i], groups[2 * i + 1], [&](int64_t lane) {
                const int64_t in_half = lane % (count / 2);
                return lane / (count / 2) * count + 8 * (in_half / 4) + 4 * odd + in_half % 4;
              });
      groups = std::move(next);
    }
    for (size_t g = 0; g < groups.size(); ++g)
      columns[4 * g + static_cast<size_t>(column)] = groups[g];
  }
  return columns;
}

// The neighbours of a lane: the first `count` of a vector.
Value Emitter::load_run(BufferId buffer, Value offset, int64_t count, int64_t block) {
  const mlir::Type element = numbers_.memory_type(dtype(buffer));
  const auto type = mlir::VectorType::get({block}, element);
  const Value from = pointer(buffer, offset);
  if (count == block) return b_.create<mlir::LLVM::LoadOp>(type, from, 4);
  const Value nothing = code_.constant(b_.getZeroAttr(element), type);
  return b_.create<mlir::LLVM::MaskedLoadOp>(type, from, front(count, block), nothing, 4);
}

Value Emitter::front(int64_t count, int64_t block) {
  llvm::SmallVector<bool> is_there;
  for (int64_t i = 0; i < block; ++i) is_there.push_back(i < count);
  return b_.create<mlir::arith::ConstantOp>(mlir::DenseElementsAttr::get(
      mlir::VectorType::get({block}, b_.getI1Type()), llvm::ArrayRef<bool>(is_there)));
}

IndexExpr Emitter::place_of_lane(const Run& run, int64_t lane) const {
  return run.first + IndexExpr(run.distance + lane * run.stride);
}

std::optional<Grid> Emitter::load_transposed(const Load& s, LoopSet loops) {
  const std::optional<std::vector<Run>> runs = runs_apart(s.buffer, s.index, s.guards, loops);
  if (!runs || s.otherwise) return std::nullopt;
  const int64_t block = block_of_lanes();
  size_t trips = 0;
  for (const Run& run : *runs) trips += run.trips.size();
  Grid grid{loops};
  grid.values.resize(trips);
  for (const Run& run : *runs) {
    std::vector<llvm::SmallVector<Value>> parts(run.trips.size());  // by trip
    for (int64_t lane = 0; lane < lanes(); lane += block) {
      llvm::SmallVector<Value> rows;
      for (int64_t i = 0; i < block; ++i)
        rows.push_back(load_run(s.buffer, index(place_of_lane(run, lane + i), {}),
                                static_cast<int64_t>(run.trips.size()), block));
      const llvm::SmallVector<Value> columns = transposed(std::move(rows));
      for (size_t i = 0; i < parts.size(); ++i) parts[i].push_back(columns[i]);
    }
    for (size_t i = 0; i < parts.size(); ++i)
      grid.values[HONE_PLANT(transposed_trip, run.trips[i], run.trips[parts.size() - 1 - i])] =
          numbers_.from_memory(dtype(s.buffer), code_.joined(parts[i]));
  }
  return grid;
}

bool Emitter::store_transposed(const Store& s, LoopSet loops) {
  const std::optional<std::vector<Run>> runs = runs_apart(s.buffer, s.index, s.guards, loops);
  if (!runs) return false;
  llvm::SmallVector<Value> values;
  open_.each(loops, [&](const Trips& trips) {
    values.push_back(numbers_.to_memory(dtype(s.buffer), at(s.value, trips, loops)));
  });
  const int64_t block = block_of_lanes();
  const auto type = mlir::VectorType::get({block}, Instructions::element(values[0]));
  for (const Run& run : *runs) {
    const auto count = static_cast<int64_t>(run.trips.size());
    for (int64_t lane = 0; lane < lanes(); lane += block) {
      llvm::SmallVector<Value> rows;
      for (size_t trip : run.trips) rows.push_back(code_.slice(values[trip], lane, block));
      while (static_cast<int64_t>(rows.size()) < block)
        rows.push_back(b_.create<mlir::LLVM::PoisonOp>(type));
      const llvm::SmallVector<Value> columns = transposed(std::move(rows));
      for (int64_t i = 0; i < block; ++i) {
        const Value column = columns[static_cast<size_t>(i)];
        const Value to = pointer(s.buffer, index(place_of_lane(run, lane + i), {}));
        if (count == block)
          b_.create<mlir::LLVM::StoreOp>(column, to, 4);
        else
          b_.create<mlir::LLVM::MaskedStoreOp>(column, to, front(count, block), 4);
      }
    }
  }
  return true;
}

}  // namespace hone::code

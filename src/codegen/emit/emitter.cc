#include "codegen/emit/emitter.h"

#include "base/planted.h"

#include <utility>

namespace hone::code {

using namespace tile;

Emitter::Emitter(mlir::ImplicitLocOpBuilder& builder, const TileProgram& program,
                 const Machine& machine, Surroundings around)
    : program_(program),
      machine_(machine),
      bounds_(program),
      variance_(program),
      b_(builder),
      code_(builder),
      numbers_(code_, machine),
      around_(std::move(around)),
      scalars_(program.scalars.size()),
      indices_(program.indices.size()) {
  for (size_t i = 0; i < program.indices.size(); ++i)
    themselves_.push_back(IndexExpr::iter(static_cast<int>(i)));
}

void Emitter::phase(const Loop& phase) {
  place_scratch();
  maps_ = box_maps(phase);
  const Product* product = first_product(phase);
  if (product != nullptr) begin_products(*product);
  if (phase.exec == Exec::threads || phase.exec == Exec::blocks)
    divided(phase);
  else
    emit(phase);
  if (product != nullptr) end_products();
}

// ---- Statements ---------------------------------------------------------------------------------

void Emitter::emit(const Block& body) {
  for (const Statement& statement : body)
    std::visit([&](const auto& s) { emit(s); }, statement.kind);
}

Grid Emitter::grid(LoopSet loops, const std::function<Value(const Trips&)>& make) {
  Grid result{loops};
  open_.each(loops, [&](const Trips& trips) { result.values.push_back(make(trips)); });
  return result;
}

Value Emitter::at(Scalar scalar, const Trips& trips, LoopSet loops) {
  const Grid& grid = scalars_[scalar];
  const Value value = open_.at(grid, trips);
  const LoopSet lanes_loop = open_.lanes_loop();
  const bool wants_vector = (loops & lanes_loop) != 0, is_vector = (grid.loops & lanes_loop) != 0;
  return wants_vector && !is_vector ? code_.splat(value, lanes()) : value;
}

void Emitter::emit(const Number& s) {
  define(s.result, {0, {numbers_.number(program_.scalars[s.result], s.value)}});
}

void Emitter::emit(const Position& s) {
  const DType dtype = program_.scalars[s.result];
  define(s.result, grid(variance_.scalars[s.result], [&](const Trips& trips) {
           const Value position = index(here(s.value, trips), trips);
           const Op cast = Op::get(Opcode::cast, {{"dtype", dtype}});
           const DType from[] = {DType::i64};
           const Value number[] = {position};
           const Value result = numbers_.compute(cast, from, dtype, number);
           const bool is_vector = (variance_.scalars[s.result] & open_.lanes_loop()) != 0;
           return is_vector ? as_vector(result) : result;
         }));
}

void Emitter::emit(const Compute& s) {
  std::vector<DType> types;
  for (Scalar operand : s.operands) types.push_back(program_.scalars[operand]);
  const LoopSet loops = variance_.scalars[s.result];
  define(s.result, grid(loops, [&](const Trips& trips) {
           std::vector<Value> operands;
           for (Scalar operand : s.operands) operands.push_back(at(operand, trips, loops));
           return numbers_.compute(s.op, types, program_.scalars[s.result], operands);
         }));
}

void Emitter::emit(const Fma& s) {
  const LoopSet loops = variance_.scalars[s.result];
  define(s.result, grid(loops, [&](const Trips& trips) {
           return numbers_.fma(program_.scalars[s.result], at(s.a, trips, loops),
                               at(s.b, trips, loops), at(s.c, trips, loops));
         }));
}

// Too large a u64 is the highest index, as too large a number of any type.
void Emitter::emit(const Choose& s) {
  const auto position = static_cast<size_t>(s.index);
  const TileIndex& bounds = program_.indices[position];
  const DType dtype = program_.scalars[s.value];
  indices_[position] = grid(variance_.indices[position], [&](const Trips& trips) {
    Value value = at(s.value, trips, variance_.indices[position]);
    value = code_.resized(value, code_.i(64), is_signed(dtype));
    Value low = dim(bounds.low), high = dim(bounds.high - HONE_PLANT(choose_high, 1, 0));
    if (Instructions::is_vector(value)) low = as_vector(low), high = as_vector(high);
    if (dtype == DType::u64)
      value = code_.select(code_.compare(Ints::slt, value, code_.integer(0, value)), high, value);
    value = code_.select(code_.compare(Ints::slt, value, low), low, value);
    return code_.select(code_.compare(Ints::sgt, value, high), high, value);
  });
}

// ---- Loops --------------------------------------------------------------------------------------

void Emitter::emit(const Loop& s) {
  if (s.exec == Exec::unroll || s.exec == Exec::lanes)
    lockstep(s);
  else if (s.exec == Exec::threads)
    threads_of_block(s);
  else
    sequential(s);
}

// All threads or blocks loops of the phase as one range, the innermost fastest.
void Emitter::divided(const Loop& phase) {
  const Value step = around_.step ? around_.step : code_.integer(code_.i(64), 1);
  auto loop = b_.create<mlir::scf::ForOp>(around_.begin, around_.end, step);
  mlir::OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(loop.getBody());
  std::vector<const Loop*> nest = {&phase};
  while (nest.back()->body.size() == 1) {
    const Loop* inner = std::get_if<Loop>(&nest.back()->body[0].kind);
    if (inner == nullptr || inner->exec != phase.exec) break;
    nest.push_back(inner);
  }
  Value rest = loop.getInductionVar();
  for (size_t i = nest.size(); i-- > 0;) {
    const auto position = static_cast<size_t>(nest[i]->index);
    Value trip = rest;
    if (i > 0) {
      const Value extent = dim(program_.indices[position].high);
      trip = b_.create<mlir::arith::RemUIOp>(rest, extent);
      rest = b_.create<mlir::arith::DivUIOp>(rest, extent);
    }
    indices_[position] = {0, {trip}};
  }
  emit(nest.back()->body);
  // The next trip writes to the memory of the block.
  if (phase.exec == Exec::blocks) {
    end_barriers(phase);
    emit(Barrier());
  }
}

void Emitter::flatten(Scalar scalar, LoopSet loops, llvm::SmallVectorImpl<Value>& list) {
  open_.each(loops, [&](const Trips& trips) { list.push_back(at(scalar, trips, loops)); });
}

Grid Emitter::unflatten(LoopSet loops, ValueRange list, size_t& next) {
  return grid(loops, [&](const Trips&) { return list[next++]; });
}

// The bounds of a span are the same for all that runs side by side (check_lockstep).
std::pair<Value, Value> Emitter::trips_of(const TileIndex& counter) {
  const Value none = code_.integer(code_.i(64), 0), all = dim(counter.high);
  if (!counter.span) return {none, all};
  const auto& [first, end] = *counter.span;
  Value from = index(first, {}), to = index(end, {});
  if (!provably_le(0, bounds_.of(first).low)) from = b_.create<mlir::arith::MaxSIOp>(from, none);
  if (!provably_le(bounds_.of(end).high, counter.high))
    to = b_.create<mlir::arith::MinSIOp>(to, all);
  return {from, to};
}

void Emitter::sequential(const Loop& s) {
  const auto position = static_cast<size_t>(s.index);
  llvm::SmallVector<Value> initial;
  for (const Carry& carry : s.carried)
    flatten(carry.initial, variance_.scalars[carry.inside], initial);
  const auto [first, end] = trips_of(program_.indices[position]);
  auto loop = b_.create<mlir::scf::ForOp>(first, end, code_.integer(code_.i(64), 1), initial);
  size_t next = 0;
  for (const Carry& carry : s.carried)
    define(carry.inside,
           unflatten(variance_.scalars[carry.inside], loop.getRegionIterArgs(), next));
  indices_[position] = {0, {loop.getInductionVar()}};
  {
    mlir::OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(loop.getBody());
    emit(s.body);
    llvm::SmallVector<Value> carried;
    for (const Carry& carry : s.carried)
      flatten(carry.next, variance_.scalars[carry.inside], carried);
    if (!carried.empty()) b_.create<mlir::scf::YieldOp>(carried);
  }
  next = 0;
  for (const Carry& carry : s.carried)
    define(carry.result, unflatten(variance_.scalars[carry.inside], loop.getResults(), next));
}

// Each trip carries a value of its own: the first from the initial one on, the others from what
// changes nothing. At the end they are combined.
void Emitter::lockstep(const Loop& s) {
  const int64_t extent = program_.indices[static_cast<size_t>(s.index)].high.value();
  if (extent == 0) {
    for (const Carry& carry : s.carried) define(carry.result, scalars_[carry.initial]);
    return;
  }
  const bool is_lanes = s.exec == Exec::lanes;
  open_.push({s.index, extent, is_lanes});
  const size_t depth = open_.open().size() - 1;
  const LoopSet self = open_.innermost();
  for (const Carry& carry : s.carried) {
    const DType dtype = program_.scalars[carry.inside];
    const LoopSet loops = variance_.scalars[carry.inside];
    const Value nothing = numbers_.identity(dtype, *carry.combine);
    define(carry.inside, grid(loops, [&](const Trips& trips) -> Value {
             if (is_lanes)
               return code_.with_lane(code_.splat(nothing, extent), at(carry.initial, trips, 0), 0);
             if (HONE_PLANT(unroll_start, trips[depth] == 0, true))
               return at(carry.initial, trips, loops);
             return (loops & open_.lanes_loop()) != 0 ? as_vector(nothing) : nothing;
           }));
  }
  emit(s.body);
  for (const Carry& carry : s.carried) {
    const DType dtype = program_.scalars[carry.inside];
    const Op combine = Op::get(*carry.combine);
    const DType types[] = {dtype, dtype};
    const LoopSet loops = variance_.scalars[carry.inside];
    define(carry.result, grid(loops & ~self, [&](const Trips& trips) {
             if (is_lanes)
               return combine_lanes(dtype, *carry.combine, at(carry.next, trips, loops));
             Trips trip = trips;
             Value all = at(carry.next, trip, loops);
             for (trip[depth] = 1; trip[depth] < HONE_PLANT(unroll_end, extent, extent - 1);
                  ++trip[depth]) {
               const Value both[] = {all, at(carry.next, trip, loops)};
               all = numbers_.compute(combine, types, dtype, both);
             }
             return all;
           }));
  }
  open_.pop();
}

// Combines halves, where there are any.
Value Emitter::combine_lanes(DType dtype, Opcode combine, Value vector) {
  const Op op = Op::get(combine);
  const DType types[] = {dtype, dtype};
  int64_t count = mlir::cast<mlir::VectorType>(vector.getType()).getNumElements();
  while (count > 1 && count % 2 == 0) {
    llvm::SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < count / 2; ++lane) {
      low.push_back(lane);
      high.push_back(lane + HONE_PLANT(lanes_halves, count / 2, 0));
    }
    const Value halves[] = {b_.create<mlir::vector::ShuffleOp>(vector, vector, low),
                            b_.create<mlir::vector::ShuffleOp>(vector, vector, high)};
    vector = numbers_.compute(op, types, dtype, halves);
    count /= 2;
  }
  Value all = code_.lane(vector, 0);
  for (int64_t lane = 1; lane < count; ++lane) {
    const Value both[] = {all, code_.lane(vector, lane)};
    all = numbers_.compute(op, types, dtype, both);
  }
  return all;
}

}  // namespace hone::code

#include <algorithm>
#include <numeric>

#include "ir/derivatives/rules.h"
#include "ir/ops/checks.h"

namespace hone {

namespace {

std::vector<Value> dot_tangent(const TangentCall& call) {
  Value left, right;
  if (call.tangent(0))
    left = call.builder.ops(call.op, std::vector{call.tangent(0), call.operand(1)})[0];
  if (call.tangent(1))
    right = call.builder.ops(call.op, std::vector{call.operand(0), call.tangent(1)})[0];
  return {sum_of(left, right)};
}

Ints counted(int64_t begin, size_t count) {
  Ints list(count);
  std::iota(list.begin(), list.end(), begin);
  return list;
}

// The dims of an operand that are neither paired nor summed.
Ints free_dims(const Ints& batch, const Ints& contract, int rank) {
  Ints dims;
  for (int64_t i = 0; i < rank; ++i)
    if (!contains(batch, i) && !contains(contract, i)) dims.push_back(i);
  return dims;
}

// One operand of the dot, seen from the side that is differentiated.
struct Side {
  const Ints& batch;
  const Ints& contract;
  int rank;

  Ints free() const { return free_dims(batch, contract, rank); }
};

// The cotangent of the operand on side `to`, from that of the result and the other operand. The
// cotangent's dims are the batch dims, then what is free of lhs, then what is free of rhs.
Value back_to(const TransposeCall& call, const Side& to, const Side& other, Value other_value,
              bool is_left) {
  Value ct = call.cotangent();
  const Ints mine = to.free(), theirs = other.free();
  const int64_t batches = static_cast<int64_t>(to.batch.size());
  const int64_t lhs_free = static_cast<int64_t>(is_left ? mine.size() : theirs.size());
  const int64_t their_place = is_left ? batches + lhs_free : batches;
  Value sum = dot_general(ct, cast(other_value, ct.dtype()), counted(0, to.batch.size()),
                          other.batch, counted(their_place, theirs.size()), theirs);
  // The dims of the sum: batch, my free dims, then the contracted dims in the other's order.
  Ints place(static_cast<size_t>(to.rank));  // per operand dim: where it is in the sum
  int64_t next = 0;
  for (int64_t dim : to.batch) place[static_cast<size_t>(dim)] = next++;
  for (int64_t dim : mine) place[static_cast<size_t>(dim)] = next++;
  Ints order(other.contract.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](int64_t i) { return other.contract[static_cast<size_t>(i)]; });
  for (int64_t i : order) place[static_cast<size_t>(to.contract[static_cast<size_t>(i)])] = next++;
  return cast(transpose(sum, place), call.type(is_left ? 0 : 1).dtype());
}

std::vector<Value> dot_back(const TransposeCall& call) {
  if (call.linear[0] && call.linear[1]) return not_linear(call);
  const Side lhs = {call.op.ints("lhs_batch"), call.op.ints("lhs_contract"), call.type(0).rank()};
  const Side rhs = {call.op.ints("rhs_batch"), call.op.ints("rhs_contract"), call.type(1).rank()};
  return {call.linear[0] ? back_to(call, lhs, rhs, call.operands[1], true) : Value(),
          call.linear[1] ? back_to(call, rhs, lhs, call.operands[0], false) : Value()};
}

}  // namespace

const Derivative derivative_dot = {.tangent = dot_tangent, .transpose = dot_back};

}  // namespace hone

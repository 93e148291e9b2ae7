#include "ir/composites/expansion.h"
#include "ir/derivatives/rules.h"

// Segments. The elements that a sum of segments took from rows go back by a gather of rows, and the
// other way round: nothing is scattered.

namespace hone {
namespace {

// The segment of each row: -1 in front of the first. It is the number of offsets up to the row.
Value segments_by(Value offsets, Dim rows) {
  Builder& b = offsets.builder();
  if (offsets.dtype() == DType::u64) offsets = minimum(offsets, 0x1p62);
  const Value ends = minimum(maximum(cast(offsets, DType::i64), 0), size_value(b, rows));
  const Value marks =
      b.op(Opcode::scatter,
           {b.full(DType::i64, {rows + 1}, 0), ends, b.full(DType::i64, offsets.dims(), 1)},
           {{"window_dims", Ints{}},
            {"inserted_dims", Ints{0}},
            {"index_map", Ints{0}},
            {"index_vector_dim", int64_t{1}},
            {"combine", std::string("add")}});
  return slice(cumulative("sum", marks, 0), 0, 0, rows) - 1;
}

Value segments_of(std::span<const Value> operands, Dim rows) {
  const Value given = operand_or_none(operands, 2);
  return given ? given : segments_by(operands[1], rows);
}

// The mean of the tangents of the rows that are equally far out.
std::vector<Value> extreme_row_tangent(const TangentCall& call) {
  Builder& b = call.builder;
  const Value x = call.operand(0), offsets = call.operand(1);
  const Value segments = segments_of(call.operands, x.dim(0));
  const Value is_extreme = compare("eq", x, gather_rows(call.result(), segments, offsets));
  const Value sum = segment_reduce(
      "sum", select(is_extreme, call.tangent(0), zeros_of(b, x.type())), offsets, segments);
  const Value count = segment_reduce("sum", cast(is_extreme, x.dtype()), offsets, segments);
  return {sum / maximum(count, 1)};
}

std::vector<Value> segment_reduce_tangent(const TangentCall& call) {
  return call.op.word("kind") == "sum" ? linear_tangents(call) : extreme_row_tangent(call);
}

std::vector<Value> segment_reduce_back(const TransposeCall& call) {
  if (call.op.word("kind") != "sum") return not_linear(call);
  std::vector<Value> cotangents(call.types.size());
  const Value segments = segments_of(call.operands, call.type(0).dim(0));
  cotangents[0] = gather_rows(call.cotangent(), segments, call.operands[1]);
  return cotangents;
}

std::vector<Value> gather_rows_back(const TransposeCall& call) {
  const Value order = operand_or_none(call.operands, 3), rows = call.cotangent();
  std::vector<Value> cotangents(call.types.size());
  cotangents[0] = order ? segment_reduce("sum", rows_at(rows, order), call.operands[2])
                        : segment_reduce("sum", rows, call.operands[2], call.operands[1]);
  return cotangents;
}

}  // namespace

Value rows_at(Value x, Value indices) {
  if (provably_le(1, x.dim(0))) return take(x, indices);
  Dims row = x.dims();
  row[0] = 1;
  return take(concat({x, x.builder().full(x.dtype(), row, 0)}, 0), indices);
}

const Derivative derivative_segment_reduce = {.tangent = segment_reduce_tangent,
                                              .transpose = segment_reduce_back};
const Derivative derivative_gather_rows = {.transpose = gather_rows_back};

}  // namespace hone

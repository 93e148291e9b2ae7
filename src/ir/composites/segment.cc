#include "ir/composites/expansion.h"
#include "ir/derivatives/rules.h"

// Rows at indices, with what leads back from rows to indices.

namespace hone {
namespace {

std::vector<Value> expand_gather_rows(Builder& b, Op, std::span<const Value> in) {
  Value x = in[0], indices = in[1], order = operand_or_none(in, 3);
  if (!need_rank_at_least(b, "x", x, 1) || !need_rank(b, "indices", indices, 1) ||
      !need_integer(b, "indices", indices))
    return {};
  if (!need_integer(b, "offsets", in[2]) ||
      !need_type(b, "offsets", in[2], in[2].dtype(), {x.dim(0) + 1}))
    return {};
  if (order && (!need_integer(b, "order", order) ||
                !need_type(b, "order", order, order.dtype(), indices.dims())))
    return {};
  // A number that does not fit into i64 is out of range anyway.
  if (indices.dtype() == DType::u64) indices = minimum(indices, 0x1p62);
  Value inside = compare("lt", cast(indices, DType::i64), size_value(b, x.dim(0)));
  if (is_signed(indices.dtype())) inside = binary(Opcode::and_, inside, compare("ge", indices, 0));
  for (int i = 1; i < x.rank(); ++i) inside = unsqueeze(inside, i);
  return {select(inside, rows_at(x, indices), b.scalar(x.dtype(), 0))};
}

}  // namespace

extern const OpDef op_def_gather_rows;
const OpDef op_def_gather_rows = {
    .opcode = Opcode::gather_rows,
    .summary = "rows of x at indices, and 0 where an index is out of range",
    .semantics =
        "Row e of the result is x[indices[e]]. order lists the places of the indices, those of the "
        "smallest index first: those of index i stand from offsets[i] up to offsets[i + 1]. "
        "Without "
        "order the indices are sorted themselves. Only derivatives read order and offsets: they "
        "sum "
        "what comes back to a row, and scatter nothing.",
    .operands = "x, indices, offsets, order?",
    .dtypes = kNumber,
    .traits = {.moves_data = true},
    .expand = expand_gather_rows,
    .derivative = &derivative_gather_rows};

}  // namespace hone

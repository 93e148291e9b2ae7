#include <numeric>

#include "ir/derivatives/rules.h"
#include "ir/ops/checks.h"
#include "ir/ops/indexed_dims.h"

// Ops that find elements by indices. The element that a gather read from a place goes back to it by
// a scatter that adds, and the other way round.

namespace hone {

namespace {

std::span<const Value> starts_of(const TransposeCall& call, size_t first) {
  return call.operands.subspan(first);
}

Value window_at(Value x, std::span<const Value> starts, const Dims& sizes) {
  std::vector<Value> operands = {x};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return x.builder().op(Opcode::dynamic_slice, operands, {{"sizes", sizes}});
}

Value with_window(Value x, Value window, std::span<const Value> starts) {
  std::vector<Value> operands = {x, window};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return x.builder().op(Opcode::dynamic_update, operands);
}

std::vector<Value> dynamic_slice_back(const TransposeCall& call) {
  std::vector<Value> cotangents(call.types.size());
  cotangents[0] =
      with_window(zeros_of(call.builder, call.type(0)), call.cotangent(), starts_of(call, 1));
  return cotangents;
}

std::vector<Value> dynamic_update_back(const TransposeCall& call) {
  std::vector<Value> cotangents(call.types.size());
  if (call.linear[0])
    cotangents[0] =
        with_window(call.cotangent(), zeros_of(call.builder, call.type(1)), starts_of(call, 2));
  if (call.linear[1])
    cotangents[1] = window_at(call.cotangent(), starts_of(call, 2), dims_of(call.type(1)));
  return cotangents;
}

// ---- gather, scatter ----------------------------------------------------------------------------

// The indices as i64. A u64 that i64 does not have is far out of range, and stays so.
Value wide_indices(Value indices) {
  if (indices.dtype() == DType::u64) indices = minimum(indices, 0x1p62);
  return cast(indices, DType::i64);
}

// One number per component of an index, in the shape of the indices.
Value per_component(Value indices, int64_t vector_dim, const Dims& numbers) {
  Builder& b = indices.builder();
  if (vector_dim == indices.rank() || numbers.size() == 1)
    return broadcast_to(size_value(b, numbers[0]), indices.dims());
  std::vector<Value> parts;
  for (Dim number : numbers) parts.push_back(reshape(size_value(b, number), {1}));
  return broadcast(concat(parts, 0), indices.dims(), {vector_dim});
}

Attrs indexed_attrs(Op op, std::string_view window, std::string_view from_window,
                    std::string_view left_out, std::string_view from_left_out) {
  return {{window, op.ints(from_window)},
          {left_out, op.ints(from_left_out)},
          {"operand_batch_dims", op.ints("operand_batch_dims")},
          {"index_batch_dims", op.ints("index_batch_dims")},
          {"index_map", op.ints("index_map")},
          {"index_vector_dim", op.integer("index_vector_dim")}};
}

// A gather clamps its indices, a scatter drops what is out of range: the scatter gets clamped ones.
std::vector<Value> gather_back(const TransposeCall& call) {
  Builder& b = call.builder;
  const Ints& index_map = call.op.ints("index_map");
  Value indices = wide_indices(call.operands[1]);
  if (!index_map.empty()) {
    Dims last;
    for (int64_t axis : index_map)
      last.push_back(call.type(0).dim(static_cast<int>(axis)) -
                     call.op.dims("sizes")[static_cast<size_t>(axis)]);
    indices = minimum(maximum(indices, 0),
                      per_component(indices, call.op.integer("index_vector_dim"), last));
  }
  Attrs attrs =
      indexed_attrs(call.op, "window_dims", "offset_dims", "inserted_dims", "collapsed_dims");
  attrs.emplace_back("combine", std::string("add"));
  return {b.op(Opcode::scatter, {zeros_of(b, call.type(0)), indices, call.cotangent()}, attrs),
          Value()};
}

// The part that each update gets from `x` at its place; zero for those that the scatter drops. A
// margin of a window around x holds the zeros, so that a clamped index finds them.
Value gathered_updates(Op op, Value x, Value indices, Type updates) {
  Builder& b = x.builder();
  const IndexedDims dims(op, op.ints("window_dims"), op.ints("inserted_dims"), x.type(),
                         indices.type());
  const int64_t vector_dim = op.integer("index_vector_dim");
  Dims margin(static_cast<size_t>(x.rank()), 0), sizes, shift, last;
  for (int i = 0; i < x.rank(); ++i) sizes.push_back(dims.window_size(i, updates));
  for (int64_t axis : dims.index_map) {
    const size_t at = static_cast<size_t>(axis);
    margin[at] = sizes[at];
    shift.push_back(sizes[at]);
    last.push_back(x.dim(static_cast<int>(axis)) + sizes[at]);
  }
  Value wide = wide_indices(indices);
  if (!dims.index_map.empty()) {
    // Clamped to [-window, size] before the shift, which therefore does not overflow.
    Value by = per_component(wide, vector_dim, shift);
    Value top = per_component(wide, vector_dim, last) - by;
    wide = minimum(maximum(wide, -by), top) + by;
  }
  Value padded =
      b.op(Opcode::pad, {x, b.scalar(x.dtype(), 0)}, {{"low", margin}, {"high", margin}});
  Attrs attrs = indexed_attrs(op, "offset_dims", "window_dims", "collapsed_dims", "inserted_dims");
  attrs.emplace_back("sizes", sizes);
  return b.op(Opcode::gather, {padded, wide}, attrs);
}

std::vector<Value> scatter_tangent(const TangentCall& call) {
  const std::string& combine = call.op.word("combine");
  if (combine == "add") return linear_tangents(call);
  call.builder.fail(unsupported("a scatter that combines by '{}' has no derivative", combine)
                        .with_hint("scatters that add or replace have one"));
  return {call.operand(0)};
}

std::vector<Value> scatter_back(const TransposeCall& call) {
  if (call.op.word("combine") != "add") return not_linear(call);
  return {call.linear[0] ? call.cotangent() : Value(), Value(),
          call.linear[2]
              ? gathered_updates(call.op, call.cotangent(), call.operands[1], call.type(2))
              : Value()};
}

// A scatter that replaces, by the number of the update that stays at each place.
std::vector<Value> spell_scatter(Builder& b, Op op, std::span<const Value> in) {
  if (op.word("combine") != "replace") return {};
  Value x = in[0], updates = in[2];
  Dim count = updates.type().elements();
  Value numbers = reshape(iota(b, DType::i64, {count}, 0), updates.dims());
  Value none = b.full(DType::i64, x.dims(), -1);
  Value winner = b.ops(op, std::vector{none, in[1], numbers})[0];
  // A row more, so that an empty list of updates can be looked at.
  Value list = concat({reshape(updates, {count}), b.full(x.dtype(), {1}, 0)}, 0);
  return {select(compare("lt", winner, 0), x, take(list, maximum(winner, 0)))};
}

}  // namespace

const Derivative derivative_dynamic_slice = {.transpose = dynamic_slice_back};
const Derivative derivative_dynamic_update = {.transpose = dynamic_update_back};
const Derivative derivative_gather = {.transpose = gather_back};
const Derivative derivative_scatter = {
    .tangent = scatter_tangent, .transpose = scatter_back, .spelling = spell_scatter};

}  // namespace hone

#include "ir/derivatives/rules.h"

namespace hone {

namespace {

// result[.., i, ..] = x[.., index[.., i, ..], ..]
Value take_along(Value x, Value index, int64_t axis) {
  Ints others;
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis) others.push_back(i);
  return x.builder().op(Opcode::gather, {x, index},
                        {{"offset_dims", Ints{}},
                         {"collapsed_dims", Ints{axis}},
                         {"operand_batch_dims", others},
                         {"index_batch_dims", others},
                         {"index_map", Ints{axis}},
                         {"index_vector_dim", int64_t{x.rank()}},
                         {"sizes", Dims(static_cast<size_t>(x.rank()), 1)}});
}

// The order is found apart, from keys that count as constants; then everything follows it.
std::vector<Value> spell_sort(Builder& b, Op op, std::span<const Value> in) {
  if (op.integer("first") == 0 && in[0].type().elements().is(0)) return {in.begin(), in.end()};
  const int64_t axis = op.integer("axis"), keys = op.integer("keys");
  std::vector<Value> sorted;
  for (int64_t k = 0; k < keys; ++k) {
    Value key = in[static_cast<size_t>(k)];
    const bool can_change = is_differentiable(key.type());
    sorted.push_back(can_change ? b.op(Opcode::stop_gradient, {key}) : key);
  }
  sorted.push_back(iota(b, DType::i64, in[0].dims(), static_cast<int>(axis)));
  Value order = b.ops(op, sorted)[static_cast<size_t>(keys)];
  std::vector<Value> results;
  for (Value x : in) results.push_back(take_along(x, order, axis));
  return results;
}

}  // namespace

const Derivative derivative_sort = {.spelling = spell_sort};

}  // namespace hone

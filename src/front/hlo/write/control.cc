#include "front/hlo/write/emit.h"
#include "ir/functional.h"

// Branches and loops. A region of StableHLO sees the values around it, so the branches of an `if`
// take no parameters; HLO gets them as computations of what they read.

namespace hone::hlo {

Ids write_if(Emit& e) {
  GraphToProgram& w = e.writer();
  const Ids arguments(e.all().begin() + 1, e.all().end());
  std::vector<Region> regions;
  for (const size_t i : {size_t{0}, size_t{1}})
    regions.push_back(
        w.region({}, [&](const Ids&) -> Ids { return w.inlined(e.region(i), arguments); }));
  return w.ops("stablehlo.if", {e.in(0)}, e.result_types(), {}, std::move(regions));
}

Ids write_while(Emit& e) {
  GraphToProgram& w = e.writer();
  std::vector<Region> regions;
  for (const size_t i : {size_t{0}, size_t{1}})
    regions.push_back(w.region(
        e.result_types(), [&](const Ids& state) -> Ids { return w.inlined(e.region(i), state); }));
  return w.ops("stablehlo.while", e.all(), e.result_types(), {}, std::move(regions));
}

namespace {

Value with_spare_row(Value x) {
  Dims none(static_cast<size_t>(x.rank()), 0), high = none;
  high[0] = 1;
  return x.builder().op(Opcode::pad, {x, x.builder().scalar(x.dtype(), 0)},
                        {{"low", none}, {"high", high}});
}

}  // namespace

// A loop that counts: the scanned operands and the stacks of results are part of its state.
Ids write_scan(Emit& e) {
  const Op op = e.op();
  const auto carried = static_cast<size_t>(op.integer("carried"));
  const size_t operands = e.all().size();
  const std::vector<Type> results = e.result_types();
  const Graph& body = e.region(0);
  const Dims& length = op.dims("length");
  const Dim steps = operands > carried ? e.type(carried).dim(0) : length[0];
  // A loop that may have no step reads no row, but rows must have a place: there is one more.
  const int64_t spare = provably_le(1, steps) ? 0 : 1;
  return e.spelled([&](Builder& b, std::span<const Value> in) {
    const auto integer = [](Builder& at, int64_t number) {
      return at.constant(Tensor::from_integers(Type::scalar(DType::i64), Ints{number}));
    };
    const auto starts = [&](Builder& at, Value value, Value place) {
      std::vector<Value> all = {value};
      all.push_back(place);
      for (int i = 1; i < value.rank(); ++i) all.push_back(integer(at, 0));
      return all;
    };
    // The step, the number of steps, the state, what is scanned, what is stacked.
    std::vector<Value> state = {integer(b, 0), size_value(b, steps)};
    state.insert(state.end(), in.begin(), in.end());
    if (spare > 0)
      for (size_t i = carried; i < operands; ++i) state[2 + i] = with_spare_row(in[i]);
    for (size_t i = carried; i < results.size(); ++i) {
      Dims dims(results[i].dims().begin(), results[i].dims().end());
      dims[0] += spare;
      state.push_back(broadcast(b.scalar(results[i].dtype(), 0), dims, {}));
    }
    const std::vector<Value> end = while_loop(
        state,
        [](Builder&, std::span<const Value> at) {
          return std::vector<Value>{compare("lt", at[0], at[1])};
        },
        [&](Builder& inner, std::span<const Value> at) {
          const Value place = op.flag("reverse") ? at[1] - integer(inner, 1) - at[0] : at[0];
          std::vector<Value> arguments(at.begin() + 2,
                                       at.begin() + 2 + static_cast<std::ptrdiff_t>(carried));
          for (size_t i = carried; i < operands; ++i) {
            const Value all = at[2 + i];
            Dims sizes = all.dims();
            sizes[0] = 1;
            const Value row =
                inner.op(Opcode::dynamic_slice, starts(inner, all, place), {{"sizes", sizes}});
            arguments.push_back(reshape(row, Dims(sizes.begin() + 1, sizes.end())));
          }
          const std::vector<Value> made = inner.inlined(body, arguments);
          std::vector<Value> next = {at[0] + integer(inner, 1), at[1]};
          next.insert(next.end(), made.begin(),
                      made.begin() + static_cast<std::ptrdiff_t>(carried));
          for (size_t i = carried; i < operands; ++i) next.push_back(at[2 + i]);
          for (size_t i = carried; i < results.size(); ++i) {
            const Value stack = at[2 + operands + i - carried];
            Dims dims = stack.dims();
            dims[0] = 1;
            std::vector<Value> update = starts(inner, stack, place);
            update.insert(update.begin() + 1, reshape(made[i], dims));
            next.push_back(inner.op(Opcode::dynamic_update, update));
          }
          return next;
        });
    std::vector<Value> made(end.begin() + 2,
                            end.begin() + 2 + static_cast<std::ptrdiff_t>(carried));
    for (size_t i = carried; i < results.size(); ++i)
      made.push_back(slice(end[2 + operands + i - carried], 0, 0, steps));
    return made;
  });
}

Ids write_call(Emit& e) { return e.writer().inlined(e.region(0), e.all()); }

}  // namespace hone::hlo

#include <algorithm>

#include "zoo/random/generator.h"

// Recipes of control flow and collectives.

namespace hone {
namespace {

// One to three values, the first of the type, brought to the size of inputs.
std::vector<Value> some_arguments(Generator& g, DType dtype) {
  std::vector<Value> values = {g.within(g.pick(dtype), kInputBound)};
  for (int64_t more = g.number(0, 2); more > 0; --more) {
    DType type = static_cast<DType>(g.number(0, kDTypeCount - 1));
    Value v = g.pick(type);
    if (g.bound(v) > kInputBound && is_storage_only(type)) continue;
    values.push_back(g.within(v, kInputBound));
  }
  // A storage-only value cannot be scaled; a fresh one is small.
  if (g.bound(values[0]) > kInputBound) values[0] = g.fresh(dtype, values[0].dims());
  return values;
}

std::vector<Type> types_of(std::span<const Value> values) {
  std::vector<Type> types;
  for (Value v : values) types.push_back(v.type());
  return types;
}

// A body of a few random steps from the arguments to values of the given types.
Builder::Body random_body(Generator& g, std::vector<Type> results) {
  Rng rng = g.rng().fork();
  const RandomGraphOptions& options = g.options();
  int depth = g.depth() + 1;
  return [rng, &options, depth, results](Builder& b, std::span<const Value> arguments) {
    Generator inner(b, rng, options, depth);
    Rng steps = rng;
    return inner.body(arguments, static_cast<int>(steps.between(1, 3)), results);
  };
}

void keep_all(Generator& g, std::span<const Value> results, size_t count) {
  for (size_t i = 0; i < count; ++i) g.keep(results[i], kInputBound);
}

void branched(Generator& g, Opcode, DType dtype) {
  Value predicate = g.pick(dtype, {});
  std::vector<Value> arguments = some_arguments(g, DType::f32);
  std::vector<Type> results = types_of(arguments);
  std::vector<Value> made =
      if_else(predicate, arguments, random_body(g, results), random_body(g, results));
  keep_all(g, made, results.size());
}

// The state is a counter and values; the body counts to a small number.
void looped(Generator& g, Opcode, DType dtype) {
  std::vector<Value> state = some_arguments(g, dtype);
  std::vector<Type> types = types_of(state);
  state.push_back(g.builder().scalar(DType::i32, 0));
  int64_t trips = g.number(0, 3);
  Builder::Body step = random_body(g, types);
  std::vector<Value> made = while_loop(
      state,
      [&](Builder&, std::span<const Value> s) {
        return std::vector{compare("lt", s.back(), static_cast<double>(trips))};
      },
      [&](Builder& b, std::span<const Value> s) {
        std::vector<Value> next = step(b, s.first(s.size() - 1));
        next.push_back(s.back() + 1);
        return next;
      });
  keep_all(g, made, types.size());
}

void scanned(Generator& g, Opcode, DType dtype) {
  std::vector<Value> state = some_arguments(g, dtype);
  Dim length = g.dim();
  std::vector<Value> sequences;
  for (int64_t more = g.number(1, 2); more > 0; --more) {
    Dims dims = g.shape(0, 2);
    dims.insert(dims.begin(), length);
    sequences.push_back(g.within(g.pick(DType::f32, dims), kInputBound));
  }
  std::vector<Type> results = types_of(state);
  results.push_back(Type::get(DType::f32, g.shape(0, 2)));  // stacked
  std::vector<Value> made = scan(state, sequences, random_body(g, results), g.rng().chance(0.5));
  keep_all(g, made, results.size());
}

void called(Generator& g, Opcode opcode, DType dtype) {
  std::vector<Value> arguments = some_arguments(g, dtype);
  std::vector<Type> types = types_of(arguments);
  GraphRef callee = g.builder().region("callee", types, random_body(g, types));
  keep_all(g, g.builder().ops(opcode, arguments, {}, {callee}), types.size());
}

void device_of(Generator& g, Opcode opcode, DType) {
  g.keep(g.builder().op(opcode, std::span<const Value>()), 1);
}

std::string combine_kind(Generator& g, DType dtype) {
  std::vector<std::string> kinds = {"sum", "max", "min"};
  if (is_bool(dtype)) kinds = {"and", "or"};
  return g.rng().pick(kinds);
}

void all_reduced(Generator& g, Opcode opcode, DType dtype) {
  Value x = g.pick(dtype);
  g.keep(g.builder().op(
             opcode, {x},
             {{"kind", combine_kind(g, dtype)}, {"group_size", int64_t{g.options().devices}}}),
         g.bound(x) * g.options().devices);
}

void all_gathered(Generator& g, Opcode opcode, DType dtype) {
  Value x = g.pick_ranked(dtype, 1, 3);
  g.keep_like(g.builder().op(opcode, {x},
                             {{"axis", g.axis(x)}, {"group_size", int64_t{g.options().devices}}}),
              x);
}

// A value whose dim at `axis` is a multiple of the group.
Value divisible(Generator& g, DType dtype, int64_t& axis) {
  Dims dims = g.static_shape(1, 3);
  axis = g.number(0, static_cast<int64_t>(dims.size()) - 1);
  Dim& d = dims[static_cast<size_t>(axis)];
  d = d.value() * g.options().devices;
  return g.pick(dtype, dims);
}

void reduce_scattered(Generator& g, Opcode opcode, DType dtype) {
  int64_t axis;
  Value x = divisible(g, dtype, axis);
  g.keep(g.builder().op(opcode, {x},
                        {{"kind", combine_kind(g, dtype)},
                         {"axis", axis},
                         {"group_size", int64_t{g.options().devices}}}),
         g.bound(x) * g.options().devices);
}

void exchanged(Generator& g, Opcode opcode, DType dtype) {
  int64_t axis;
  Value x = divisible(g, dtype, axis);
  g.keep_like(g.builder().op(opcode, {x},
                             {{"split_axis", axis},
                              {"concat_axis", g.axis(x)},
                              {"group_size", int64_t{g.options().devices}}}),
              x);
}

void permuted(Generator& g, Opcode opcode, DType dtype) {
  Ints pairs;  // around the ring
  for (int d = 0; d < g.options().devices; ++d) {
    pairs.push_back(d);
    pairs.push_back((d + 1) % g.options().devices);
  }
  Value x = g.pick(dtype);
  g.keep_like(g.builder().op(opcode, {x}, {{"pairs", pairs}}), x);
}

constexpr Recipe kControlRecipes[] = {
    {Opcode::if_, branched},
    {Opcode::while_, looped},
    {Opcode::scan, scanned},
    {Opcode::call, called},
    {Opcode::device_index, device_of},
    {Opcode::all_reduce, all_reduced},
    {Opcode::all_gather, all_gathered},
    {Opcode::reduce_scatter, reduce_scattered},
    {Opcode::all_to_all, exchanged},
    {Opcode::permute, permuted},
};

}  // namespace

std::span<const Recipe> control_recipes() { return kControlRecipes; }

}  // namespace hone

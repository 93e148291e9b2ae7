#include <algorithm>
#include <cmath>

#include "zoo/random/generator.h"

// Recipes of composites. Averages are taken over static dims without zeros.

namespace hone {
namespace {

double elements(Value x) {
  return static_cast<double>(std::max<int64_t>(1, x.type().elements().range().high));
}

// Sometimes absent.
Value maybe(Generator& g, DType dtype, const Dims& dims) {
  return g.rng().chance(0.5) ? g.within(g.pick(dtype, dims), kInputBound) : Value();
}

void activation(Generator& g, Opcode opcode, DType dtype) {
  Value x = g.within(g.pick(dtype), 8);
  Attrs attrs;
  if (opcode == Opcode::gelu) attrs = {{"form", g.rng().chance(0.5) ? "erf" : "tanh"}};
  if (opcode == Opcode::hard_sigmoid && g.rng().chance(0.5))
    attrs = {{"alpha", 0.25}, {"beta", 0.375}};
  g.keep(g.builder().op(opcode, {x}, attrs), g.bound(x) + 1);
}

void sloped(Generator& g, Opcode opcode, DType dtype) {
  Value x = g.within(g.pick(dtype), 8);
  Dims slope = x.dims();
  for (Dim& d : slope)
    if (g.rng().chance(0.3)) d = 1;
  Value s = g.within(g.pick(dtype, slope), 1);
  g.keep(g.builder().op(opcode, {x, s}), 2 * g.bound(x));
}

void softmax_of(Generator& g, Opcode opcode, DType dtype) {
  Value x = g.within(g.pick_ranked(dtype, 1, 4, false), 8);
  int64_t axis = g.axis(x);
  if (g.rng().chance(0.5)) axis -= x.rank();
  g.keep(g.builder().op(opcode, {x}, {{"axis", axis}}), opcode == Opcode::softmax ? 1 : 32);
}

void normed(Generator& g, Opcode opcode, DType dtype) {
  Value x = g.within(g.pick_solid(dtype, 1, 4), 8);
  int64_t axis = g.axis(x);
  Dims inner = x.dims();
  inner.erase(inner.begin(), inner.begin() + axis);
  std::vector<Value> operands = {x, maybe(g, dtype, inner)};
  if (opcode == Opcode::layer_norm && operands[1]) operands.push_back(maybe(g, dtype, inner));
  g.keep(g.builder().op(opcode, operands, {{"axis", axis}, {"epsilon", 0.0078125}}),
         2 * std::sqrt(elements(x)) + 2);
}

void batch_normed(Generator& g, Opcode opcode, DType dtype) {
  Value x = g.within(g.pick_ranked(dtype, 2, 4), 4);
  Dims channel = {x.dim(1)};
  Value variance = g.positive(g.within(g.pick(dtype, channel), 4), 0.5);
  auto vector = [&] { return g.within(g.pick(dtype, channel), kInputBound); };
  g.keep(g.builder().op(opcode, {x, vector(), vector(), vector(), variance}), 32);
}

void grouped_norm(Generator& g, Opcode opcode, DType dtype) {
  int64_t groups = g.number(1, 3);
  Dims dims = g.static_shape(3, 4);
  dims[1] = groups * g.number(1, 2);
  Value x = g.within(g.pick(dtype, dims), 8);
  Dims channel = {dims[1]};
  Attrs attrs = {{"epsilon", 0.0078125}};
  if (opcode == Opcode::group_norm) attrs.emplace_back("groups", groups);
  g.keep(g.builder().op(
             opcode, {x, g.within(g.pick(dtype, channel), 2), g.within(g.pick(dtype, channel), 2)},
             attrs),
         2 * std::sqrt(elements(x)) + 2);
}

void local_norm(Generator& g, Opcode opcode, DType dtype) {
  Value x = g.within(g.pick_solid(dtype, 2, 4), 8);
  g.keep(g.builder().op(opcode, {x}, {{"size", g.number(1, 4)}, {"alpha", 0.25}}), 8);
}

void attended(Generator& g, Opcode opcode, DType dtype) {
  int64_t kv_heads = g.number(1, 2), group = g.number(1, 2);
  Dim batch = g.dim(false), queries = g.number(1, 4), keys = g.number(1, 4), past = g.number(1, 3);
  Dim depth = g.number(1, 4);
  auto part = [&](Dim heads, Dim length) {
    return g.within(g.pick(dtype, {batch, heads, length, depth}), kInputBound);
  };
  bool cached = g.rng().chance(0.4);
  bool causal = g.rng().chance(0.5);
  // With fewer keys than queries the first queries would see nothing.
  if (causal && !cached) queries = std::min(queries.value(), keys.value());
  if (causal && cached) queries = std::min(queries.value(), keys.value() + past.value());
  Dim all = cached ? keys + past : keys;
  std::vector<Value> operands = {part(kv_heads * group, queries), part(kv_heads, keys),
                                 part(kv_heads, keys), maybe(g, dtype, {queries, all})};
  if (cached) operands.insert(operands.end(), {part(kv_heads, past), part(kv_heads, past)});
  std::vector<Value> results = g.builder().ops(
      opcode, operands, {{"causal", causal}, {"softcap", g.rng().chance(0.3) ? 4.0 : 0.0}});
  for (size_t i = 0; i < (cached ? 3u : 1u); ++i) g.keep(results[i], kInputBound);
}

void rotated(Generator& g, Opcode opcode, DType dtype) {
  Dims dims = g.static_shape(4, 4);
  int64_t half = g.number(1, 2);
  dims[3] = 2 * half + (g.rng().chance(0.5) ? 2 : 0);
  Value x = g.within(g.pick(dtype, dims), 4);
  Value angle = g.within(g.pick(dtype, {dims[2], half}), 4);
  g.keep(g.builder().op(opcode, {x, unary(Opcode::cos, angle), unary(Opcode::sin, angle)},
                        {{"interleaved", g.rng().chance(0.5)}}),
         8);
}

void recurrent(Generator& g, Opcode opcode, DType dtype) {
  static constexpr std::string_view directions[] = {"forward", "reverse", "bidirectional"};
  std::string direction(g.rng().pick(directions));
  int64_t gates = opcode == Opcode::lstm ? 4 : opcode == Opcode::gru ? 3 : 1;
  int64_t dirs = direction == "bidirectional" ? 2 : 1, hidden = g.number(1, 3);
  Dim time = g.number(1, 4), batch = g.number(1, 3), input = g.number(1, 3);
  auto operand = [&](const Dims& dims) { return g.within(g.pick(dtype, dims), kInputBound); };
  std::vector<Value> operands = {operand({time, batch, input}),
                                 operand({dirs, gates * hidden, input}),
                                 operand({dirs, gates * hidden, hidden}),
                                 maybe(g, dtype, {dirs, 2 * gates * hidden}),
                                 g.rng().chance(0.3) ? g.pick(DType::i32, {batch}) : Value(),
                                 maybe(g, dtype, {dirs, batch, hidden})};
  if (opcode == Opcode::lstm) {
    operands.push_back(maybe(g, dtype, {dirs, batch, hidden}));
    operands.push_back(maybe(g, dtype, {dirs, 3 * hidden}));
  }
  Attrs attrs = {{"direction", direction}};
  if (opcode == Opcode::gru) attrs.emplace_back("linear_before_reset", g.rng().chance(0.5));
  std::vector<Value> results = g.builder().ops(opcode, operands, attrs);
  for (size_t i = 0; i < (opcode == Opcode::lstm ? 3u : 2u); ++i) g.keep(results[i], 8);
}

void einsum_of(Generator& g, Opcode, DType dtype) {
  struct Case {
    std::string_view equation, terms[2];
  };
  static constexpr Case cases[] = {{"ij,jk->ik", {"ij", "jk"}},   {"bij,bkj->bik", {"bij", "bkj"}},
                                   {"ij->ji", {"ij", ""}},        {"ii->i", {"ii", ""}},
                                   {"ij,ij->", {"ij", "ij"}},     {"i,j->ij", {"i", "j"}},
                                   {"...i,i->...", {"abi", "i"}}, {"ijk->k", {"ijk", ""}}};
  const Case& c = g.rng().pick(cases);
  Dims size(26);
  for (Dim& d : size) d = g.dim();
  std::vector<Value> operands;
  double bound = 1;
  for (std::string_view term : c.terms) {
    if (term.empty()) continue;
    Dims dims;
    for (char letter : term) dims.push_back(size[static_cast<size_t>(letter - 'a')]);
    operands.push_back(g.within(g.pick(dtype, dims), 4));
    bound *= g.bound(operands.back());
  }
  double terms = 1;  // at most the elements of the largest operand are summed
  for (Value v : operands) terms = std::max(terms, elements(v));
  g.keep(einsum(c.equation, operands), bound * terms);
}

void resized(Generator& g, Opcode opcode, DType dtype) {
  static constexpr std::string_view coordinates[] = {
      "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"};
  static constexpr std::string_view nearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                                 "ceil"};
  Value x = g.within(g.pick_solid(dtype, 1, 4), 8);
  Dims sizes = x.dims();
  for (Dim& d : sizes)
    if (g.rng().chance(0.5)) d = g.number(1, 6);
  std::vector<std::string> modes = {"nearest"};
  if (is_real(dtype)) modes.insert(modes.end(), {"linear", "cubic"});
  g.keep(g.builder().op(opcode, {x},
                        {{"sizes", sizes},
                         {"mode", g.rng().pick(modes)},
                         {"coordinates", std::string(g.rng().pick(coordinates))},
                         {"nearest", std::string(g.rng().pick(nearest))}}),
         4 * g.bound(x));
}

void pooled(Generator& g, Opcode opcode, DType dtype) {
  Value x = g.pick_solid(dtype, 3, 4);
  g.keep_like(g.builder().op(opcode, {x}, {{"kind", g.rng().chance(0.5) ? "average" : "max"}}), x);
}

void running_sum(Generator& g, Opcode opcode, DType dtype) {
  Value x = g.pick_ranked(dtype, 1, 3);
  g.keep(g.builder().op(opcode, {x},
                        {{"axis", g.axis(x)},
                         {"exclusive", g.rng().chance(0.5)},
                         {"reverse", g.rng().chance(0.5)}}),
         8 * g.bound(x));
}

void one_hot_of(Generator& g, Opcode opcode, DType dtype) {
  Value indices = g.pick_ranked(dtype, 0, 3);
  DType type = g.rng().chance(0.5) ? DType::f32 : DType::i64;
  std::vector<Value> operands = {indices};
  if (g.rng().chance(0.5)) operands.push_back(g.within(g.pick(type, {2}), kInputBound));
  g.keep(g.builder().op(opcode, operands,
                        {{"depth", Dims{g.number(0, 5)}},
                         {"axis", g.number(-1 - indices.rank(), indices.rank())},
                         {"dtype", type}}),
         kInputBound);
}

void top_of(Generator& g, Opcode opcode, DType dtype) {
  Value x = g.pick_solid(dtype, 1, 3);
  int64_t axis = g.axis(x);
  std::vector<Value> results =
      g.builder().ops(opcode, std::vector{x},
                      {{"k", Dims{g.number(0, x.dim(static_cast<int>(axis)).value())}},
                       {"axis", axis},
                       {"largest", g.rng().chance(0.5)}});
  g.keep_like(results[0], x);
  g.keep(results[1], 1);
}

void to_space(Generator& g, Opcode opcode, DType dtype) {
  int64_t block = g.number(1, 2);
  Value x = g.pick(dtype, {g.dim(), block * block * g.number(1, 2), g.dim(), g.dim()});
  g.keep_like(g.builder().op(opcode, {x},
                             {{"block", block}, {"mode", g.rng().chance(0.5) ? "dcr" : "crd"}}),
              x);
}

void to_depth(Generator& g, Opcode opcode, DType dtype) {
  int64_t block = g.number(1, 2);
  Value x = g.pick(dtype, {g.dim(), g.dim(), block * g.dim(), block * g.dim()});
  g.keep_like(g.builder().op(opcode, {x}, {{"block", block}}), x);
}

// One scale, or one per index of an axis.
Dims scale_dims(Generator& g, Value x, int64_t& axis) {
  axis = x.rank() > 0 ? g.axis(x) : 0;
  if (x.rank() == 0 || g.rng().chance(0.5)) return {};
  return {x.dim(static_cast<int>(axis))};
}

void quantized(Generator& g, Opcode opcode, DType dtype) {
  static constexpr DType types[] = {DType::u8, DType::i8,       DType::i4,    DType::u4,
                                    DType::i2, DType::f8e4m3fn, DType::f4e2m1};
  DType to = g.rng().pick(types);
  Value x = g.within(g.pick(dtype), 8);
  int64_t axis;
  Dims dims = scale_dims(g, x, axis);
  Value scale = g.positive(g.within(g.pick(dtype, dims), 2), 0.5);
  std::vector<Value> operands = {x, scale};
  if (is_integer(to) && g.rng().chance(0.5)) operands.push_back(g.pick(to, dims));
  g.keep(g.builder().op(opcode, operands, {{"axis", axis}, {"dtype", to}}), 32);
}

void dequantized(Generator& g, Opcode opcode, DType dtype) {
  Value x = g.small(g.pick(dtype));
  int64_t axis;
  Dims dims = scale_dims(g, x, axis);
  static constexpr DType types[] = {DType::f32, DType::f16};
  std::vector<Value> operands = {x, g.within(g.pick(g.rng().pick(types), dims), 2)};
  if (is_integer(dtype) && g.rng().chance(0.5)) operands.push_back(g.small(g.pick(dtype, dims)));
  g.keep(g.builder().op(opcode, operands, {{"axis", axis}}), 128);
}

// With what sorts the indices, as derivatives want it.
void rows_gathered(Generator& g, Opcode opcode, DType dtype) {
  Builder& b = g.builder();
  const Value x = g.pick_ranked(dtype, 1, 3, false);
  static constexpr DType types[] = {DType::i32, DType::i64, DType::u8};
  Value indices = g.pick(g.rng().pick(types), {g.dim()});
  const Value places = iota(b, DType::i64, indices.dims(), 0);
  const Value keys[] = {cast(indices, DType::i64), places};
  const std::vector<Value> sorted = sort(keys, 0, false);
  const Value rows = iota(b, DType::i64, {x.dim(0) + 1}, 0);
  const Value is_before = compare("lt", unsqueeze(keys[0], 0), unsqueeze(rows, 1));
  const Value offsets = reduce_sum(cast(is_before, DType::i64), {1});
  std::vector<Value> operands = {x, indices, offsets, sorted[1]};
  if (g.rng().chance(0.5)) operands = {x, sorted[0], offsets};
  g.keep_like(b.op(opcode, operands), x);
}

constexpr Recipe kCompositeRecipes[] = {
    {Opcode::relu, activation},
    {Opcode::gelu, activation},
    {Opcode::silu, activation},
    {Opcode::hard_swish, activation},
    {Opcode::hard_sigmoid, activation},
    {Opcode::mish, activation},
    {Opcode::softplus, activation},
    {Opcode::prelu, sloped},
    {Opcode::softmax, softmax_of},
    {Opcode::log_softmax, softmax_of},
    {Opcode::layer_norm, normed},
    {Opcode::rms_norm, normed},
    {Opcode::batch_norm, batch_normed},
    {Opcode::group_norm, grouped_norm},
    {Opcode::instance_norm, grouped_norm},
    {Opcode::lrn, local_norm},
    {Opcode::attention, attended},
    {Opcode::rotary_embedding, rotated},
    {Opcode::lstm, recurrent},
    {Opcode::gru, recurrent},
    {Opcode::rnn, recurrent},
    {Opcode::einsum, einsum_of},
    {Opcode::resize, resized},
    {Opcode::global_pool, pooled},
    {Opcode::cumsum, running_sum},
    {Opcode::one_hot, one_hot_of},
    {Opcode::top_k, top_of, kJumps},
    {Opcode::depth_to_space, to_space},
    {Opcode::space_to_depth, to_depth},
    {Opcode::quantize, quantized, kJumps},
    {Opcode::dequantize, dequantized},
    {Opcode::gather_rows, rows_gathered},
    {Opcode::stop_gradient, activation},
};

}  // namespace

std::span<const Recipe> composite_recipes() { return kCompositeRecipes; }

}  // namespace hone

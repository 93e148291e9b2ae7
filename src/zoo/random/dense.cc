#include <algorithm>
#include <cmath>
#include <optional>

#include "zoo/random/generator.h"

// Recipes of contractions, reductions, windows and sorts.

namespace hone {
namespace {

double count_of(Dim d) { return static_cast<double>(std::max<int64_t>(1, d.range().high)); }

// The type of the second factor. Bytes may meet those of the other sign, as machines multiply them.
DType second_type(Generator& g, DType first) {
  if (first == DType::u8) return g.rng().chance(0.5) ? DType::i8 : first;
  if (first == DType::i8) return g.rng().chance(0.5) ? DType::u8 : first;
  return first;
}

bool may_flush(Generator& g, DType dtype) { return dtype == DType::bf16 && g.rng().chance(0.5); }

// Powers of two: sums of reals are exact then, and no rounding decides what they are quantized to.
Value power_scale(Generator& g, const Dims& dims, int64_t least, int64_t most) {
  const Type type = Type::get(DType::f32, dims);
  std::vector<double> scales;
  for (int64_t i = 0; i < type.static_elements(); ++i)
    scales.push_back(std::exp2(static_cast<double>(g.number(least, most))));
  return g.builder().constant(Tensor::from_reals(type, scales));
}

// A factor as quantized models have it: bytes less their zero point, as i32 or scaled to f32.
// Weights may have a scale for each index of the axis.
Value quantized_factor(Generator& g, DType dtype, const Dims& dims, bool is_weight,
                       std::optional<int64_t> axis) {
  Builder& b = g.builder();
  const DType byte = is_weight == g.rng().chance(0.8) ? DType::i8 : DType::u8;
  const Type type = Type::get(byte, dims);
  const bool is_constant = is_weight && type.is_static() && g.rng().chance(0.7);
  const Value x = is_constant ? b.constant(random_tensor(type, g.rng())) : g.pick(byte, dims);
  Value zero;
  if (g.rng().chance(is_weight ? 0.3 : 0.7))
    zero = b.constant(random_tensor(Type::scalar(byte), g.rng()));
  if (dtype == DType::i32) {
    const Value wide = cast(x, dtype);
    return zero ? wide - broadcast_to(cast(zero, dtype), dims) : wide;
  }
  Dims scales;
  if (axis && dims[static_cast<size_t>(*axis)].is_static() && !zero && g.rng().chance(0.7))
    scales = {dims[static_cast<size_t>(*axis)]};
  const Attrs attrs = scales.empty() ? Attrs() : Attrs{{"axis", *axis}};
  const Value y = b.op(Opcode::dequantize, {x, power_scale(g, scales, -9, -6), zero}, attrs);
  g.set_bound(y, 4);
  return y;
}

bool may_be_quantized(Generator& g, DType dtype) {
  return (dtype == DType::f32 || dtype == DType::i32) && g.rng().chance(0.35);
}

// The product of such factors, and often the bytes that it is quantized to.
void keep_product(Generator& g, Value y, double bound) {
  g.keep(y, bound);
  if (y.dtype() != DType::f32 || g.options().continuous || g.rng().chance(0.4)) return;
  Builder& b = g.builder();
  const DType byte = g.rng().chance(0.6) ? DType::u8 : DType::i8;
  if (g.rng().chance(0.3)) y = relu(y);
  Value zero;
  if (g.rng().chance(0.5)) zero = b.constant(random_tensor(Type::scalar(byte), g.rng()));
  const std::vector<Value> operands = {y, power_scale(g, {}, -14, -8), zero};
  g.keep(b.op(Opcode::quantize, operands, {{"dtype", byte}}), 255);
}

// Batch, free and contracted dims in random order on both sides.
void contracted(Generator& g, Opcode opcode, DType dtype) {
  Dims batch = g.shape(0, 1), contract = g.shape(0, 2), left = g.shape(0, 1), right = g.shape(0, 1);
  struct Side {
    Dims dims;
    Ints batch, contract;
    std::optional<int64_t> free;
  };
  auto side = [&](const Dims& free) {
    Side s;
    std::vector<std::pair<int, size_t>> order;  // (kind, index)
    for (size_t i = 0; i < batch.size(); ++i) order.emplace_back(0, i);
    for (size_t i = 0; i < contract.size(); ++i) order.emplace_back(1, i);
    for (size_t i = 0; i < free.size(); ++i) order.emplace_back(2, i);
    g.rng().shuffle(order);
    s.batch.resize(batch.size());
    s.contract.resize(contract.size());
    for (auto [kind, i] : order) {
      int64_t at = static_cast<int64_t>(s.dims.size());
      s.dims.push_back(kind == 0 ? batch[i] : kind == 1 ? contract[i] : free[i]);
      if (kind == 0) s.batch[i] = at;
      if (kind == 1) s.contract[i] = at;
      if (kind == 2) s.free = at;
    }
    return s;
  };
  Side l = side(left), r = side(right);
  const DType other = second_type(g, dtype);
  const bool is_quantized = may_be_quantized(g, dtype);
  Value x = is_quantized ? quantized_factor(g, dtype, l.dims, false, {})
                         : g.within(g.pick(dtype, l.dims), 4);
  Value y = is_quantized ? quantized_factor(g, dtype, r.dims, true, r.free)
                         : g.within(g.pick(other, r.dims), 4);
  double bound = g.bound(x) * g.bound(y);
  for (Dim d : contract) bound *= count_of(d);
  bool widen = dtype == DType::i8 || dtype == DType::u8 || dtype == DType::bf16;
  std::string accumulate = !widen ? "same" : is_real(dtype) ? "f32" : "i32";
  const Value z =
      g.builder().op(opcode, {x, y},
                     {{"lhs_batch", l.batch},
                      {"rhs_batch", r.batch},
                      {"lhs_contract", l.contract},
                      {"rhs_contract", r.contract},
                      {"accumulate", other != dtype || g.rng().chance(0.5) ? accumulate : "same"},
                      {"flush", may_flush(g, dtype)}});
  is_quantized ? keep_product(g, z, bound) : g.keep(z, bound);
}

// Some are what most convs of models are: windows of 3 side by side, and constant weights.
void convolved(Generator& g, Opcode opcode, DType dtype) {
  const bool is_plain = g.rng().chance(0.3);
  int64_t spatial = is_plain ? g.number(1, 2) : g.number(0, 2);
  int64_t groups = is_plain ? 1 : g.number(1, 3);
  int64_t in = g.number(1, is_plain ? 5 : 2), out = g.number(1, is_plain ? 9 : 2);
  Dims x_dims = {g.dim(), groups * in}, w_dims = {groups * out, in};
  Ints stride, low, high, input_dilation, kernel_dilation;
  double bound = static_cast<double>(in);
  for (int64_t i = 0; i < spatial; ++i) {
    int64_t kernel = is_plain ? 3 : g.number(1, 3), dilation = is_plain ? 1 : g.number(1, 2);
    int64_t reach = (kernel - 1) * dilation + 1;
    bound *= static_cast<double>(kernel);
    x_dims.push_back(is_plain ? g.number(2, 10) : g.number(1, 6));
    w_dims.push_back(kernel);
    stride.push_back(is_plain ? 1 : g.number(1, 2));
    low.push_back(g.number(0, 2));
    high.push_back(std::max(g.number(0, 2), reach));  // so that one window always fits
    input_dilation.push_back(is_plain ? 1 : g.number(1, 2));
    kernel_dilation.push_back(dilation);
  }
  const bool is_quantized = may_be_quantized(g, dtype);
  Value x = is_quantized ? quantized_factor(g, dtype, x_dims, false, {})
                         : g.within(g.pick(dtype, x_dims), 4);
  const DType other = second_type(g, dtype);
  Value w;
  if (is_quantized)
    w = quantized_factor(g, dtype, w_dims, true, 0);
  else if (is_plain)
    w = g.builder().constant(
        random_tensor(Type::get(other, w_dims), g.rng(), g.options().specials));
  else
    w = g.within(g.pick(other, w_dims), 4);
  if (is_plain && !is_quantized) g.set_bound(w, kInputBound);
  const Value y = g.builder().op(opcode, {x, w},
                                 {{"stride", stride},
                                  {"pad_low", low},
                                  {"pad_high", high},
                                  {"input_dilation", input_dilation},
                                  {"kernel_dilation", kernel_dilation},
                                  {"groups", groups},
                                  {"accumulate", other != dtype ? "i32" : "same"},
                                  {"flush", may_flush(g, dtype)}});
  bound *= g.bound(x) * g.bound(w);
  is_quantized ? keep_product(g, y, bound) : g.keep(y, bound);
}

Ints some_axes(Generator& g, Value x) {
  Ints axes;
  for (int axis = 0; axis < x.rank(); ++axis)
    if (g.rng().chance(0.5)) axes.push_back(axis);
  return axes;
}

void reduced(Generator& g, Opcode opcode, DType dtype) {
  if (dtype == DType::boolean) {
    Value x = g.pick(dtype);
    g.keep(reduce(g.rng().chance(0.5) ? "and" : "or", x, some_axes(g, x)), 1);
    return;
  }
  std::vector<std::string> kinds = {"sum", "product", "max", "min"};
  if (is_integer(dtype)) kinds.insert(kinds.end(), {"and", "or"});
  std::string kind = g.rng().pick(kinds);
  // The greatest of nothing is infinite.
  Value x = g.pick_ranked(dtype, 0, 4, kind == "sum" || kind == "product");
  if (kind == "product") x = g.within(x, 1);
  Ints axes = some_axes(g, x);
  double bound = g.bound(x);
  if (kind == "sum")
    for (int64_t axis : axes) bound *= count_of(x.dim(static_cast<int>(axis)));
  g.keep(g.builder().op(opcode, {x}, {{"kind", kind}, {"axes", axes}}), bound);
}

void arg_reduced(Generator& g, Opcode opcode, DType dtype) {
  Value x = g.pick_ranked(dtype, 1, 4, false);
  g.keep(g.builder().op(opcode, {x},
                        {{"kind", g.rng().chance(0.5) ? "max" : "min"},
                         {"axis", g.axis(x)},
                         {"last", g.rng().chance(0.5)},
                         {"dtype", g.rng().chance(0.5) ? DType::i64 : DType::i32}}),
         1);
}

void accumulated(Generator& g, Opcode opcode, DType dtype) {
  static constexpr std::string_view kinds[] = {"sum", "product", "max", "min"};
  std::string kind(g.rng().pick(kinds));
  Value x = g.pick_ranked(dtype, 1, 3);
  if (kind == "product") x = g.within(x, 1);
  int64_t axis = g.axis(x);
  // An exclusive maximum begins with -infinity.
  bool finite = kind == "sum" || kind == "product";
  double bound = g.bound(x) * (kind == "sum" ? count_of(x.dim(static_cast<int>(axis))) : 1);
  g.keep(g.builder().op(opcode, {x},
                        {{"kind", kind},
                         {"axis", axis},
                         {"exclusive", finite && g.rng().chance(0.3)},
                         {"reverse", g.rng().chance(0.3)}}),
         std::max(1.0, bound));
}

void windowed(Generator& g, Opcode opcode, DType dtype) {
  static constexpr std::string_view kinds[] = {"sum", "product", "max", "min"};
  std::string kind(g.rng().pick(kinds));
  Value x = g.pick_solid(dtype, 0, 3);
  if (kind == "product") x = g.within(x, 1);
  double bound = g.bound(x);
  Ints window, stride, low, high;
  for (Dim d : x.dims()) {
    int64_t size = g.number(1, 3);
    // Padding is narrower than the window, so that every window sees an element.
    low.push_back(g.number(0, size - 1));
    high.push_back(std::max(g.number(0, size - 1), size - d.value() - low.back()));
    if (high.back() >= size) high.back() = size - 1, low.back() = size - 1;
    window.push_back(size);
    stride.push_back(g.number(1, 2));
    if (kind == "sum") bound *= static_cast<double>(size);
  }
  g.keep(g.builder().op(opcode, {x},
                        {{"kind", kind},
                         {"window", window},
                         {"stride", stride},
                         {"pad_low", low},
                         {"pad_high", high}}),
         bound);
}

void sorted(Generator& g, Opcode opcode, DType dtype) {
  std::vector<Value> operands = {g.pick_ranked(dtype, 1, 3)};
  for (int64_t more = g.number(0, 2); more > 0; --more) {
    DType type = static_cast<DType>(g.number(0, kDTypeCount - 1));
    operands.push_back(g.pick(type, operands[0].dims()));
  }
  int64_t keys = 1;
  while (keys < static_cast<int64_t>(operands.size()) &&
         kComputable.contains(operands[static_cast<size_t>(keys)].dtype()) && g.rng().chance(0.3))
    ++keys;
  std::vector<Value> results = g.builder().ops(
      opcode, operands,
      {{"axis", g.axis(operands[0])}, {"descending", g.rng().chance(0.5)}, {"keys", keys}});
  for (size_t i = 0; i < results.size(); ++i) g.keep_like(results[i], operands[i]);
}

// Offsets of any size that do not decrease, as derivatives want them; of integers, any at all.
Value some_offsets(Generator& g, DType dtype) {
  static constexpr DType types[] = {DType::i32, DType::i64, DType::u8};
  const Value offsets = g.pick(g.rng().pick(types), {g.dim(false)});
  return is_real(dtype) ? cumulative("max", offsets, 0) : offsets;
}

void segments_reduced(Generator& g, Opcode opcode, DType dtype) {
  static constexpr std::string_view kinds[] = {"sum", "max", "min"};
  const std::string kind(g.rng().pick(kinds));
  const Value x = g.pick_ranked(dtype, 1, 3);
  const double most = g.bound(x), bound = most * (kind == "sum" ? count_of(x.dim(0)) : 1);
  Value y = g.builder().op(opcode, {x, some_offsets(g, dtype)}, {{"kind", kind}});
  // The greatest of nothing is infinite.
  if (is_real(dtype) && kind == "max") y = maximum(y, -most);
  if (is_real(dtype) && kind == "min") y = minimum(y, most);
  g.keep(y, bound);
}

constexpr Recipe kDenseRecipes[] = {
    {Opcode::dot, contracted},         {Opcode::conv, convolved},
    {Opcode::reduce, reduced},         {Opcode::arg_reduce, arg_reduced, kJumps},
    {Opcode::cumulative, accumulated}, {Opcode::window_reduce, windowed},
    {Opcode::sort, sorted, kJumps},    {Opcode::segment_reduce, segments_reduced},
};

}  // namespace

std::span<const Recipe> dense_recipes() { return kDenseRecipes; }

}  // namespace hone

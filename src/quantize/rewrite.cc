#include "quantize/rewrite.h"

#include <algorithm>
#include <cmath>

#include "ir/functional.h"
#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "ir/ops/contraction.h"
#include "rewrite/constants.h"
#include "tensor/filled.h"

namespace hone::quantize {
namespace {

// How data and result change in a probe.
constexpr double kAsTheyAre = 0, kOnGrid = 1, kAsF16 = 2, kAsBf16 = 3, kAsTf32 = 4;

Value with_operands(Op op, const Layer& layer, Value data, Value weights) {
  const Value operands[] = {layer.side == 0 ? weights : data, layer.side == 0 ? data : weights};
  return data.builder().ops(op, operands)[0];
}
Value with_operands(const Graph& graph, const Layer& layer, Value data, Value weights) {
  return with_operands(graph.op(layer.node), layer, data, weights);
}

// The layer's op on bf16. Instructions that multiply bf16 take denormal numbers for 0, and who asks
// for so few bits does not ask for these.
Op op_on_bf16(const Graph& graph, const Layer& layer) {
  const Op op = graph.op(layer.node);
  return Op::get(op.opcode(), changed_attrs(op, {{"flush", true}}));
}

ValueId data_of(const Graph& graph, const Layer& layer) {
  return graph.operands(layer.node)[1 - layer.side];
}

// Numbers as a vector along one dim of x.
Tensor vector_of(std::span<const double> numbers) {
  return Tensor::from_reals(Type::get(DType::f32, {static_cast<int64_t>(numbers.size())}), numbers);
}
Value along(Value x, Value vector, int axis) {
  const auto dims = x.type().dims();
  return broadcast(vector, Dims(dims.begin(), dims.end()), {axis});
}

std::vector<double> inverse_of(std::span<const double> factors) {
  std::vector<double> inverse;
  for (double factor : factors) inverse.push_back(1 / factor);
  return inverse;
}

Value dequantized_weights(Builder& b, const Layer& layer, Precision level, int64_t group) {
  const PackedWeights packed = packed_weights(layer, level, group);
  const Attrs attrs = {{"axis", int64_t{packed.axis}}, {"block", packed.block}};
  return b.op(Opcode::dequantize,
              {b.constant(packed.numbers, layer.name + ".weights"),
               b.constant(packed.scales, layer.name + ".scales")},
              attrs);
}

// The layer's result from its data, without the correction.
Value uncorrected(const Graph& graph, const Layer& layer, const LayerChoice& choice, int64_t group,
                  Value data) {
  Builder& b = data.builder();
  switch (choice.level) {
    case Precision::f32: return with_operands(graph, layer, data, b.constant(layer.weights));
    case Precision::f16:
    case Precision::bf16: {
      const bool is_bf16 = choice.level == Precision::bf16;
      const DType dtype = is_bf16 ? DType::bf16 : DType::f16;
      const Op op = is_bf16 ? op_on_bf16(graph, layer) : graph.op(layer.node);
      const Value weights = b.constant(rounded_to(layer.weights, dtype), layer.name + ".weights");
      return cast(with_operands(op, layer, cast(data, dtype), weights), DType::f32);
    }
    case Precision::tf32: {
      const Op op = graph.op(layer.node);
      return with_operands(
          Op::get(op.opcode(), changed_attrs(op, {{"parts", kTf32Parts}})), layer, data,
          b.constant(rounded_weights(layer, choice.level, group), layer.name + ".weights"));
    }
    case Precision::w8:
    case Precision::w4:
    case Precision::w2:
      return with_operands(graph, layer, data, dequantized_weights(b, layer, choice.level, group));
    case Precision::int8: break;
  }
  const Grid grid = grid_of(choice.data);
  const Value scale = b.constant(Tensor::scalar(DType::f32, grid.scale));
  const Value zero = b.constant(Tensor::scalar(DType::u8, static_cast<double>(grid.zero)));
  Value smooth = data;
  if (!choice.smoothing.empty())
    smooth =
        data * along(data, b.constant(vector_of(inverse_of(choice.smoothing))), layer.data_axis);
  const Value bytes = b.op(Opcode::quantize, {smooth, scale, zero}, {{"dtype", DType::u8}});
  const Layer& read = choice.smoothing.empty() ? layer : with_factors(layer, choice.smoothing);
  return with_operands(graph, layer, b.op(Opcode::dequantize, {bytes, scale, zero}),
                       dequantized_weights(b, read, choice.level, group));
}

// The layer's result from its data.
Value computed(const Graph& graph, const Layer& layer, const LayerChoice& choice, int64_t group,
               Value data) {
  const Value y = uncorrected(graph, layer, choice, group, data);
  if (choice.correction.empty()) return y;
  return y + along(y, data.builder().constant(vector_of(choice.correction)), layer.result_axis);
}

// The type of the numbers along a dim; without the dim there is one.
Type along_type(Type type, int axis) {
  return axis < 0 ? Type::get(DType::f32, {}) : Type::get(DType::f32, {type.dim(axis)});
}
Value spread(Value x, Value numbers, int axis) {
  return axis < 0 ? numbers : along(x, numbers, axis);
}
Value reduced_but(std::string_view kind, Value x, int axis) {
  Ints axes;
  for (int d = 0; d < x.rank(); ++d)
    if (d != axis) axes.push_back(d);
  if (axes.empty()) return x;
  return kind == "mean" ? reduce_mean(x, axes) : reduce(kind, x, axes);
}

// x, or x rounded as the mode says to one of the short reals.
Value rounded_by(Value x, Value mode) {
  const Value y = select(compare("eq", mode, kAsF16), cast(cast(x, DType::f16), DType::f32), x);
  return select(compare("eq", mode, kAsBf16), cast(cast(x, DType::bf16), DType::f32), y);
}

// x as tensor cores read it for products of tf32.
Value cut_to_tf32(Value x) {
  const Value bits = x.builder().op(Opcode::bitcast, {x}, {{"dtype", DType::u32}});
  const Value mask = x.builder().constant(Tensor::scalar(DType::u32, double{kTf32Bits}));
  const auto dims = x.type().dims();
  const Value cut =
      x.builder().op(Opcode::and_, {bits, broadcast(mask, Dims(dims.begin(), dims.end()), {})});
  return x.builder().op(Opcode::bitcast, {cut}, {{"dtype", DType::f32}});
}

// The data, rounded as the mode says. The result of tf32 is f32.
Value rounded_data(Value x, Value mode, Value scale, Value zero) {
  const Value q = maximum(minimum(unary(Opcode::round, x / scale) + zero, 255), 0);
  const Value y = select(compare("eq", mode, kAsTf32), cut_to_tf32(x), rounded_by(x, mode));
  return select(compare("eq", mode, kOnGrid), (q - zero) * scale, y);
}

// Calls replace(copy, layer) for each layer that may be quantized, in order; other nodes stay.
template <class Replace>
Result<GraphCopy> copied(const Graph& graph, std::span<const Layer> layers,
                         const Replace& replace) {
  GraphCopy copy(graph);
  // The inputs come first, so that those which are added stand behind them.
  for (NodeId n : graph.nodes())
    if (is_parameter(graph.opcode(n))) HONE_TRY(copy.node(n));
  auto next = layers.begin();
  for (NodeId n : graph.nodes()) {
    if (is_parameter(graph.opcode(n))) continue;
    if (next == layers.end() || next->node != n) {
      HONE_TRY(copy.node(n));
      continue;
    }
    const Layer& layer = *next++;
    if (!layer.why_not.empty() || !HONE_TRY(replace(copy, layer))) HONE_TRY(copy.node(n));
  }
  return copy;
}

}  // namespace

Grid grid_of(const DataRange& range) {
  const double low = std::min(range.low, 0.0), high = std::max(range.high, 0.0);
  if (!(high > low)) return {};
  const auto scale = static_cast<float>((high - low) / 255);
  if (!(scale > 0)) return {};
  const double zero = std::clamp(std::nearbyint(-low / static_cast<double>(scale)), 0.0, 255.0);
  return {scale, static_cast<int64_t>(zero)};
}

Result<Graph> quantized(const Graph& graph, std::span<const Layer> layers,
                        std::span<const LayerChoice> choices, int64_t group) {
  HONE_CHECK(layers.size() == choices.size(), "{} choices for {} layers", choices.size(),
             layers.size());
  GraphCopy copy = HONE_TRY(copied(
      graph, layers,
      [&](GraphCopy& to, const Layer& layer) -> Result<bool> {
        const LayerChoice& choice = choices[static_cast<size_t>(&layer - layers.data())];
        if (choice.level == Precision::f32) return false;
        HONE_TRY(check_level(layer, choice.level, group));
        const ValueId data = data_of(graph, layer);
        Builder b;
        const Value x = b.parameter("data", graph.type(data));
        const Graph body = HONE_TRY(b.finish({computed(graph, layer, choice, group, x)}));
        to.replace(graph.result(layer.node), HONE_TRY(to.append(body, {{to(data)}}))[0]);
        return true;
      }));
  return remove_dead_code(copy.finish());
}

Result<std::optional<Graph>> quantized_open(const Graph& open, std::span<const Layer> layers,
                                            std::span<const LayerChoice> choices, int64_t group) {
  const std::vector<Layer> own = HONE_TRY(layers_of(open));
  const auto is_same = [](const Layer& a, const Layer& b) {
    return a.name == b.name && a.side == b.side && a.feature_axis == b.feature_axis &&
           a.group_axis == b.group_axis && a.data_axis == b.data_axis &&
           a.result_axis == b.result_axis && a.weights.type() == b.weights.type();
  };
  if (!std::ranges::equal(own, layers, [&](const Layer& a, const Layer& b) {
        // A layer that stays f32 has no weights to compare.
        const bool stays = choices[static_cast<size_t>(&b - layers.data())].level == Precision::f32;
        return stays ? a.name == b.name : a.why_not.empty() && is_same(a, b);
      }))
    return std::optional<Graph>();
  return std::optional(HONE_TRY(quantized(open, own, choices, group)));
}

Result<Graph> probe(const Graph& graph, std::span<const Layer> layers) {
  std::vector<ValueId> seen;
  GraphCopy copy = HONE_TRY(copied(
      graph, layers,
      [&](GraphCopy& to, const Layer& layer) -> Result<bool> {
        const ValueId data = data_of(graph, layer);
        const Type number = Type::get(DType::f32, {}),
                   result = graph.type(graph.result(layer.node));
        const Type types[] = {layer.weights.type(),
                              number,
                              number,
                              number,
                              along_type(graph.type(data), layer.data_axis),
                              along_type(result, layer.result_axis)};
        std::vector<ValueId> arguments = {to(data)};
        Builder b;
        const Value x = b.parameter("data", graph.type(data));
        std::vector<Value> in;
        for (const Type& type : types) {
          in.push_back(b.parameter(fmt::format("p{}", in.size()), type));
          arguments.push_back(
              to.target().add_parameter(type, fmt::format("{}.probe{}", layer.name, in.size())));
        }
        const Value smooth = x * spread(x, in[4], layer.data_axis);
        const Value y =
            with_operands(graph, layer, rounded_data(smooth, in[1], in[2], in[3]), in[0]);
        const Graph body = HONE_TRY(b.finish(
            {rounded_by(y, in[1]) + spread(y, in[5], layer.result_axis),
             reduced_but("min", x, layer.data_axis), reduced_but("max", x, layer.data_axis),
             reduced_but("mean", y, layer.result_axis)}));
        const std::vector<ValueId> results = HONE_TRY(to.append(body, arguments));
        to.replace(graph.result(layer.node), results[0]);
        seen.insert(seen.end(), results.begin() + 1, results.end());
        return true;
      }));
  Graph result = copy.finish();
  std::vector<ValueId> outputs(result.outputs().begin(), result.outputs().end());
  outputs.insert(outputs.end(), seen.begin(), seen.end());
  result.set_outputs(std::move(outputs));
  return remove_dead_code(result);
}

std::vector<Tensor> probe_inputs(const Layer& layer, const LayerChoice& choice, int64_t group) {
  const Grid grid = choice.level == Precision::int8 ? grid_of(choice.data) : Grid();
  const double mode = choice.level == Precision::int8   ? kOnGrid
                      : choice.level == Precision::f16  ? kAsF16
                      : choice.level == Precision::bf16 ? kAsBf16
                      : choice.level == Precision::tf32 ? kAsTf32
                                                        : kAsTheyAre;
  // As many numbers as the dim has indices, all the same.
  const auto filled = [](int64_t count, int axis, double number) {
    if (axis < 0) return Tensor::scalar(DType::f32, number);
    return vector_of(std::vector<double>(static_cast<size_t>(count), number));
  };
  const Type weights = layer.weights.type();
  const bool is_smooth = !choice.smoothing.empty();
  return {is_smooth ? rounded_weights(with_factors(layer, choice.smoothing), choice.level, group)
                    : rounded_weights(layer, choice.level, group),
          Tensor::scalar(DType::f32, mode),
          Tensor::scalar(DType::f32, static_cast<double>(grid.scale)),
          Tensor::scalar(DType::f32, static_cast<double>(grid.zero)),
          is_smooth ? vector_of(inverse_of(choice.smoothing))
                    : filled(weights.dim(layer.group_axis).value(), layer.data_axis, 1),
          choice.correction.empty()
              ? filled(weights.dim(layer.feature_axis).value(), layer.result_axis, 0)
              : vector_of(choice.correction)};
}

Result<Graph> layer_alone(const Graph& graph, const Layer& layer, Precision level, int64_t group) {
  Builder b;
  const Value x = b.parameter("data", graph.type(data_of(graph, layer)));
  return b.finish({computed(graph, layer, {level, {-1, 1}}, group, x)});
}

}  // namespace hone::quantize

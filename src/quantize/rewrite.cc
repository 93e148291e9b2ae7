#include "quantize/rewrite.h"

#include <algorithm>
#include <cmath>

#include "ir/functional.h"
#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "tensor/filled.h"

namespace hone::quantize {
namespace {

// How data and result change in a probe.
constexpr double kAsTheyAre = 0, kOnGrid = 1, kAsF16 = 2, kAsBf16 = 3;

Value with_operands(const Graph& graph, const Layer& layer, Value data, Value weights) {
  const Value operands[] = {layer.side == 0 ? weights : data, layer.side == 0 ? data : weights};
  return data.builder().ops(graph.op(layer.node), operands)[0];
}

ValueId data_of(const Graph& graph, const Layer& layer) {
  return graph.operands(layer.node)[1 - layer.side];
}

Value dequantized_weights(Builder& b, const Layer& layer, Precision level, int64_t group) {
  const PackedWeights packed = packed_weights(layer, level, group);
  const Attrs attrs = {{"axis", int64_t{packed.axis}}, {"block", packed.block}};
  return b.op(Opcode::dequantize,
              {b.constant(packed.numbers, layer.name + ".weights"),
               b.constant(packed.scales, layer.name + ".scales")},
              attrs);
}

// The layer's result from its data.
Value computed(const Graph& graph, const Layer& layer, const LayerChoice& choice, int64_t group,
               Value data) {
  Builder& b = data.builder();
  switch (choice.level) {
    case Precision::f32: return with_operands(graph, layer, data, b.constant(layer.weights));
    case Precision::f16:
    case Precision::bf16: {
      const DType dtype = choice.level == Precision::f16 ? DType::f16 : DType::bf16;
      const Value weights = b.constant(rounded_to(layer.weights, dtype), layer.name + ".weights");
      return cast(with_operands(graph, layer, cast(data, dtype), weights), DType::f32);
    }
    case Precision::w8:
    case Precision::w4:
      return with_operands(graph, layer, data, dequantized_weights(b, layer, choice.level, group));
    case Precision::int8: break;
  }
  const Grid grid = grid_of(choice.data);
  const Value scale = b.constant(Tensor::scalar(DType::f32, grid.scale));
  const Value zero = b.constant(Tensor::scalar(DType::u8, static_cast<double>(grid.zero)));
  const Value bytes = b.op(Opcode::quantize, {data, scale, zero}, {{"dtype", DType::u8}});
  return with_operands(graph, layer, b.op(Opcode::dequantize, {bytes, scale, zero}),
                       dequantized_weights(b, layer, choice.level, group));
}

// x, or x rounded as the mode says to one of the short reals.
Value rounded_by(Value x, Value mode) {
  const Value y = select(compare("eq", mode, kAsF16), cast(cast(x, DType::f16), DType::f32), x);
  return select(compare("eq", mode, kAsBf16), cast(cast(x, DType::bf16), DType::f32), y);
}

// The same, or the nearest number of the grid.
Value rounded_by(Value x, Value mode, Value scale, Value zero) {
  const Value q = maximum(minimum(unary(Opcode::round, x / scale) + zero, 255), 0);
  return select(compare("eq", mode, kOnGrid), (q - zero) * scale, rounded_by(x, mode));
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

Result<Graph> probe(const Graph& graph, std::span<const Layer> layers) {
  std::vector<ValueId> ranges;
  GraphCopy copy = HONE_TRY(copied(
      graph, layers,
      [&](GraphCopy& to, const Layer& layer) -> Result<bool> {
        const ValueId data = data_of(graph, layer);
        const Type number = Type::get(DType::f32, {});
        const Type types[] = {layer.weights.type(), number, number, number};
        std::vector<ValueId> arguments = {to(data)};
        Builder b;
        const Value x = b.parameter("data", graph.type(data));
        std::vector<Value> in;
        for (const Type& type : types) {
          in.push_back(b.parameter(fmt::format("p{}", in.size()), type));
          arguments.push_back(
              to.target().add_parameter(type, fmt::format("{}.probe{}", layer.name, in.size())));
        }
        Ints axes;
        for (int d = 0; d < x.rank(); ++d) axes.push_back(d);
        const Value given = rounded_by(x, in[1], in[2], in[3]);
        const Value y = with_operands(graph, layer, given, in[0]);
        const Graph body = HONE_TRY(
            b.finish({rounded_by(y, in[1]), reduce("min", x, axes), reduce("max", x, axes)}));
        const std::vector<ValueId> results = HONE_TRY(to.append(body, arguments));
        to.replace(graph.result(layer.node), results[0]);
        ranges.insert(ranges.end(), results.begin() + 1, results.end());
        return true;
      }));
  Graph result = copy.finish();
  std::vector<ValueId> outputs(result.outputs().begin(), result.outputs().end());
  outputs.insert(outputs.end(), ranges.begin(), ranges.end());
  result.set_outputs(std::move(outputs));
  return remove_dead_code(result);
}

std::vector<Tensor> probe_inputs(const Layer& layer, const LayerChoice& choice, int64_t group) {
  const Grid grid = choice.level == Precision::int8 ? grid_of(choice.data) : Grid();
  const double mode = choice.level == Precision::int8   ? kOnGrid
                      : choice.level == Precision::f16  ? kAsF16
                      : choice.level == Precision::bf16 ? kAsBf16
                                                        : kAsTheyAre;
  return {rounded_weights(layer, choice.level, group), Tensor::scalar(DType::f32, mode),
          Tensor::scalar(DType::f32, static_cast<double>(grid.scale)),
          Tensor::scalar(DType::f32, static_cast<double>(grid.zero))};
}

Result<Graph> layer_alone(const Graph& graph, const Layer& layer, Precision level, int64_t group) {
  Builder b;
  const Value x = b.parameter("data", graph.type(data_of(graph, layer)));
  return b.finish({computed(graph, layer, {level, {-1, 1}}, group, x)});
}

}  // namespace hone::quantize

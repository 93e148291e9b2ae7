#include "quantize/layers.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "ir/access.h"
#include "ir/op_facts.h"
#include "ir/reference/evaluate.h"
#include "rewrite/constants.h"
#include "tensor/filled.h"

namespace hone::quantize {
namespace {

constexpr int64_t kLeastGroup = 16;  // weights that share a scale of their own
constexpr int kMostMoves = 8;        // between a constant and the product that reads it

// The constant behind moves, as the product reads it; nothing: data is behind them.
Result<std::optional<Tensor>> constant_behind(const Graph& graph, ValueId v) {
  if (!graph.type(v).is_static()) return std::optional<Tensor>();
  std::vector<NodeId> moves;
  ValueId at = v;
  while (!is_constant(graph.opcode(graph.producer(at)))) {
    const NodeId n = graph.producer(at);
    if (!is_move(graph, n) || moves.size() == kMostMoves) return std::optional<Tensor>();
    moves.push_back(n);
    at = graph.operands(n)[0];
  }
  if (moves.empty()) return std::optional(graph.constant(graph.producer(at)));
  std::ranges::reverse(moves);
  const Graph alone = HONE_TRY(extract_subgraph(graph, moves, {&v, 1}));
  return std::optional( HONE_TRY(evaluate(alone, {}, {.numerics = Numerics::rounded})).front());
}

bool all_finite(const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.elements(); ++i)
    if (!std::isfinite(tensor.real_at(i))) return false;
  return true;
}

// The dim of an access whose index is that of `dim` in `other`, with nothing added; -1: none is.
int dim_that_meets(const Access& access, const Access& other, int dim) {
  if (dim < 0) return -1;
  const IndexExpr& index = other.index[static_cast<size_t>(dim)];
  const auto at = std::ranges::find(access.index, index);
  // A constant index meets everything.
  if (at == access.index.end() || index.as_constant()) return -1;
  return static_cast<int>(at - access.index.begin());
}

// The dims of the weights by what the product does with them.
void find_axes(const Graph& graph, Layer& layer) {
  const std::vector<Type> operands = graph.operand_types(layer.node);
  const AccessRelation relation =
      access_of({graph.op(layer.node), operands}, graph.result_types(layer.node));
  const int results = graph.type(graph.result(layer.node)).rank();
  const Access& access = relation.operands[layer.side].at(0);
  const Type type = layer.weights.type();
  const auto is_longer = [&](int dim, int than) {
    return than < 0 || type.dim(dim).value() > type.dim(than).value();
  };
  for (int dim = 0; dim < type.rank(); ++dim) {
    bool has_result = false;
    for (int iter = 0; iter < results; ++iter)
      has_result = has_result || access.index[static_cast<size_t>(dim)].mentions(iter);
    int& axis = has_result ? layer.feature_axis : layer.group_axis;
    if (is_longer(dim, axis)) axis = dim;
  }
  const Access& data = relation.operands[1 - layer.side].at(0);
  layer.data_axis = dim_that_meets(data, access, layer.group_axis);
  layer.result_axis = dim_that_meets(relation.results[0], access, layer.feature_axis);
  const Type result = graph.type(graph.result(layer.node));
  if (layer.result_axis >= 0 && result.is_static())
    layer.rows =
        result.static_elements() / std::max<int64_t>(result.dim(layer.result_axis).value(), 1);
}

bool are_quantized(const Graph& graph, ValueId v) {
  for (int i = 0; i < kMostMoves && is_move(graph, graph.producer(v)); ++i)
    v = graph.operands(graph.producer(v))[0];
  return is_dequantize(graph.opcode(graph.producer(v)));
}

Result<Layer> layer_at(const Graph& graph, NodeId n) {
  Layer layer = {.node = n, .name = std::string(graph.name(graph.result(n)))};
  if (layer.name.empty()) layer.name = graph.label(graph.result(n));
  const std::span<const ValueId> operands = graph.operands(n);
  std::optional<Tensor> weights;
  for (size_t side : {size_t{1}, size_t{0}}) {
    std::optional<Tensor> found = HONE_TRY(constant_behind(graph, operands[side]));
    if (!found) continue;
    if (weights) {
      layer.why_not = "both operands are constants";
      return layer;
    }
    weights = std::move(found);
    layer.side = side;
  }
  if (!weights) {
    const bool is_done = are_quantized(graph, operands[0]) || are_quantized(graph, operands[1]);
    layer.why_not = is_done ? "it is quantized already" : "it has no constant weights";
    return layer;
  }
  const Type result = graph.type(graph.result(n)), data = graph.type(operands[1 - layer.side]);
  if (weights->dtype() != DType::f32 || result.dtype() != DType::f32 ||
      data.dtype() != DType::f32) {
    layer.why_not = fmt::format("its weights are {} and its result is {}, not f32",
                                hone::name(weights->dtype()), hone::name(result.dtype()));
    return layer;
  }
  layer.weights = *std::move(weights);
  if (!all_finite(layer.weights)) {
    layer.why_not = "its weights have infinities or NaN";
    return layer;
  }
  find_axes(graph, layer);
  if (layer.feature_axis < 0 || layer.group_axis < 0)
    layer.why_not = "its weights have no features, or nothing is summed over";
  return layer;
}

bool matches(std::string_view name, std::string_view pattern) {
  if (pattern.ends_with('*')) return name.starts_with(pattern.substr(0, pattern.size() - 1));
  return name == pattern;
}

// ---- Weights ------------------------------------------------------------------------------------

DType type_of_numbers(Precision level) {
  switch (level) {
    case Precision::w4: return DType::i4;
    case Precision::w2: return DType::i2;
    default: return DType::i8;
  }
}
double highest_of(Precision level) { return std::ldexp(1, bits(type_of_numbers(level)) - 1) - 1; }
bool has_groups(Precision level) { return level == Precision::w4 || level == Precision::w2; }

double squared_error(std::span<const double> weights, double scale, double highest) {
  double sum = 0;
  for (double w : weights) {
    const double q = std::clamp(std::nearbyint(w / scale), -highest - 1, highest);
    sum += (q * scale - w) * (q * scale - w);
  }
  return sum;
}

struct Counts {
  int64_t outer, along, inner;  // of elements before, along and behind an axis
};

Counts counts_of(Type type, int axis) {
  Counts counts = {1, type.dim(axis).value(), 1};
  for (int d = 0; d < type.rank(); ++d)
    if (d != axis) (d < axis ? counts.outer : counts.inner) *= type.dim(d).value();
  return counts;
}

// Rounded to 11 bits. The largest numbers become no infinity, but the largest of tf32.
Tensor rounded_to_tf32(const Tensor& tensor) {
  constexpr uint32_t kHalf = 0x1000, kInfinity = 0x7f800000;
  std::vector<double> numbers;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const auto bits = std::bit_cast<uint32_t>(static_cast<float>(tensor.real_at(i)));
    const uint32_t rounded = (bits + kHalf) & kTf32Bits;
    const bool is_finite = (rounded & kInfinity) != kInfinity;
    numbers.push_back(std::bit_cast<float>(is_finite ? rounded : bits & kTf32Bits));
  }
  return Tensor::from_reals(tensor.type(), numbers);
}

}  // namespace

std::string_view name(Precision level) {
  switch (level) {
#define HONE_LEVEL(member, text, ...) \
  case Precision::member: return text;
#include "quantize/levels.def"
  }
  return "";
}

std::optional<Precision> precision_of(std::string_view text) {
  for (Precision level : kPrecisions)
    if (name(level) == text) return level;
  return std::nullopt;
}

Result<std::vector<Layer>> layers_of(const Graph& graph) {
  std::vector<Layer> layers;
  for (NodeId n : graph.nodes())
    if (is_contraction(graph.opcode(n))) layers.push_back(HONE_TRY(layer_at(graph, n)));
  return layers;
}

Status leave_out(std::vector<Layer>& layers, std::span<const std::string> names) {
  for (const std::string& pattern : names) {
    bool is_known = false;
    for (Layer& layer : layers) {
      if (!matches(layer.name, pattern)) continue;
      is_known = true;
      if (layer.why_not.empty()) layer.why_not = "--keep";
    }
    if (!is_known)
      return usage_error("no layer is called '{}'", pattern)
          .with_hint(layers.empty() ? "the model has no products"
                                    : fmt::format("the first is '{}'", layers[0].name));
  }
  return {};
}

Status check_level(const Layer& layer, Precision level, int64_t group) {
  if (level == Precision::f32) return {};
  if (!layer.why_not.empty()) return unsupported("{}", layer.why_not);
  const int64_t along = layer.weights.type().dim(layer.group_axis).value();
  if (has_groups(level) && along < std::min(group, kLeastGroup))
    return unsupported("it sums over {} numbers, and a group has {}", along, group);
  // No version of ONNX that hone writes has such a type, but MatMulNBits has the weights.
  if (level == Precision::w2 && layer.weights.type().rank() != 2)
    return unsupported("its weights are {}, and those of 2 bits are for matrices",
                       layer.weights.type().to_string());
  constexpr double kMostF16 = 65504;
  if (level == Precision::f16)
    for (int64_t i = 0; i < layer.weights.elements(); ++i)
      if (std::abs(layer.weights.real_at(i)) > kMostF16)
        return unsupported("a weight is {}, beyond f16", layer.weights.real_at(i));
  return {};
}

Layer with_factors(const Layer& layer, std::span<const double> factors) {
  const Counts counts = counts_of(layer.weights.type(), layer.group_axis);
  HONE_CHECK(static_cast<int64_t>(factors.size()) == counts.along, "{} factors for {} indices",
             factors.size(), counts.along);
  std::vector<double> values(static_cast<size_t>(layer.weights.elements()));
  layer.weights.read_reals(0, std::span<double>(values));
  for (size_t at = 0; at < values.size(); ++at)
    values[at] *= factors[at / static_cast<size_t>(counts.inner) % factors.size()];
  Layer result = layer;
  result.weights = Tensor::from_reals(layer.weights.type(), values);
  return result;
}

double best_scale(std::span<const double> weights, double highest) {
  constexpr int kClips = 16;
  constexpr double kLeastClip = 0.6;
  double most = 0;
  for (double w : weights) most = std::max(most, std::abs(w));
  if (most == 0) return 1;
  double best = 0, least = HUGE_VAL;
  for (int i = 0; i < kClips; ++i) {
    const double clip = 1 - (1 - kLeastClip) * i / kClips;
    const auto scale = static_cast<double>(static_cast<float>(most * clip / highest));
    if (scale == 0) continue;
    const double error = squared_error(weights, scale, highest);
    if (error < least) least = error, best = scale;
  }
  return best == 0 ? 1 : best;
}

PackedWeights packed_weights(const Layer& layer, Precision level, int64_t group) {
  const Type type = layer.weights.type();
  const bool is_grouped = has_groups(level);
  PackedWeights packed = {.numbers = {},
                          .scales = {},
                          .axis = is_grouped ? layer.group_axis : layer.feature_axis,
                          .block = is_grouped ? group : 0};
  const Counts counts = counts_of(type, packed.axis);
  const double highest = highest_of(level);
  std::vector<double> weights(static_cast<size_t>(layer.weights.elements())), scales;
  layer.weights.read_reals(0, std::span<double>(weights));
  std::vector<int64_t> numbers(weights.size());
  const auto take = [&](std::span<const int64_t> places) {
    std::vector<double> taken;
    for (int64_t at : places) taken.push_back(weights[static_cast<size_t>(at)]);
    scales.push_back(best_scale(taken, highest));
    for (int64_t at : places) {
      const double q = std::nearbyint(weights[static_cast<size_t>(at)] / scales.back());
      numbers[static_cast<size_t>(at)] = static_cast<int64_t>(std::clamp(q, -highest - 1, highest));
    }
  };
  std::vector<int64_t> places;
  const auto add = [&](int64_t o, int64_t a, int64_t i) {
    places.push_back((o * counts.along + a) * counts.inner + i);
  };
  Dims dims = {counts.along};
  if (is_grouped) {
    dims.assign(type.dims().begin(), type.dims().end());
    const int64_t blocks = (counts.along + group - 1) / group;
    dims[static_cast<size_t>(packed.axis)] = blocks;
    for (int64_t o = 0; o < counts.outer; ++o)
      for (int64_t b = 0; b < blocks; ++b)
        for (int64_t i = 0; i < counts.inner; ++i) {
          places.clear();
          for (int64_t a = b * group; a < std::min((b + 1) * group, counts.along); ++a)
            add(o, a, i);
          take(places);
        }
  } else {
    for (int64_t a = 0; a < counts.along; ++a) {
      places.clear();
      for (int64_t o = 0; o < counts.outer; ++o)
        for (int64_t i = 0; i < counts.inner; ++i) add(o, a, i);
      take(places);
    }
  }
  packed.numbers = Tensor::from_integers(type.with_dtype(type_of_numbers(level)), numbers);
  packed.scales = Tensor::from_reals(Type::get(DType::f32, dims), scales);
  return packed;
}

Tensor rounded_weights(const Layer& layer, Precision level, int64_t group) {
  switch (level) {
    case Precision::f32: return layer.weights;
    case Precision::tf32: return rounded_to_tf32(layer.weights);
    case Precision::f16: return rounded_to(rounded_to(layer.weights, DType::f16), DType::f32);
    case Precision::bf16: return rounded_to(rounded_to(layer.weights, DType::bf16), DType::f32);
    case Precision::w8:
    case Precision::w4:
    case Precision::w2:
    case Precision::int8: break;
  }
  const PackedWeights packed = packed_weights(layer, level, group);
  const Counts counts = counts_of(layer.weights.type(), packed.axis);
  const int64_t blocks =
      packed.block == 0 ? counts.along : (counts.along + packed.block - 1) / packed.block;
  std::vector<double> values;
  for (int64_t at = 0; at < layer.weights.elements(); ++at) {
    const int64_t inner = at % counts.inner, along = at / counts.inner % counts.along;
    const int64_t outer = at / counts.inner / counts.along;
    const int64_t scale =
        packed.block == 0 ? along : (outer * blocks + along / packed.block) * counts.inner + inner;
    values.push_back(static_cast<double>(packed.numbers.integer_at(at)) *
                     packed.scales.real_at(scale));
  }
  return Tensor::from_reals(layer.weights.type(), values);
}

int64_t weight_bytes(const Layer& layer, Precision level, int64_t group) {
  if (!layer.weights) return 0;
  const int64_t bytes = layer.weights.byte_size();
  switch (level) {
    case Precision::f32:
    case Precision::tf32: return bytes;
    case Precision::f16:
    case Precision::bf16: return bytes / 2;
    case Precision::w8:
    case Precision::int8:
      return bytes / 4 + 4 * layer.weights.type().dim(layer.feature_axis).value();
    case Precision::w4:
    case Precision::w2: {
      const int64_t along = layer.weights.type().dim(layer.group_axis).value();
      return bytes * bits(type_of_numbers(level)) / 32 +
             bytes / along * ((along + group - 1) / group);
    }
  }
  return bytes;
}

}  // namespace hone::quantize

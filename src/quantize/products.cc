#include <algorithm>

#include "ir/functional.h"
#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "quantize/hardware.h"

// Products of a table, as a graph: a layer is rows by weights, and each product is looked up.

namespace hone::quantize {
namespace {

constexpr int64_t kMostProducts = int64_t{1} << 28;                     // of a layer in a run
constexpr int64_t kMostInputs = (int64_t{1} << 31) / kMostProduct - 1;  // of a sum in i32

bool all_are(const Ints& numbers, int64_t value) {
  return std::ranges::all_of(numbers, [&](int64_t n) { return n == value; });
}

Ints but(int rank, int64_t axis) {
  Ints dims;
  for (int64_t d = 0; d < rank; ++d)
    if (d != axis) dims.push_back(d);
  return dims;
}

// The dims of a convolution in their usual order: [batch, features, spatial...].
struct Window {
  Ints kernel, stride, low, high, dilation;
};
Window window_of(Op op, Type weights) {
  const auto or_all = [&](std::string_view name, int64_t usual) {
    Ints given = op.ints(name);
    if (given.empty()) given.assign(static_cast<size_t>(weights.rank()) - 2, usual);
    return given;
  };
  Ints kernel = weights.static_dims();
  kernel.erase(kernel.begin(), kernel.begin() + 2);
  return {kernel, or_all("stride", 1), or_all("pad_low", 0), or_all("pad_high", 0),
          or_all("kernel_dilation", 1)};
}

Status check_conv(Op op) {
  if (!op.word("order").empty() || op.integer("groups") != 1 ||
      !all_are(op.ints("input_dilation"), 1))
    return unsupported("a convolution in groups, of another order or transposed");
  for (std::string_view name : {"pad_low", "pad_high"})
    for (int64_t pad : op.ints(name))
      if (pad < 0) return unsupported("a convolution that crops its input");
  return {};
}

// The windows of x [batch, features, spatial...] read: [batch, out..., features * taps]. The
// features of a tap are neighbours.
Value windows(Value x, const Window& w, Type result, double padding) {
  const int rank = x.rank();
  Ints low = {0, 0}, high = {0, 0};
  low.insert(low.end(), w.low.begin(), w.low.end());
  high.insert(high.end(), w.high.begin(), w.high.end());
  if (!all_are(low, 0) || !all_are(high, 0)) x = pad(x, low, high, padding);
  int64_t taps = 1;
  for (int64_t size : w.kernel) taps *= size;
  std::vector<Value> parts;
  for (int64_t tap = 0; tap < taps; ++tap) {
    Value part = x;
    int64_t left = tap;
    for (int d = rank; d-- > 2;) {
      const auto s = static_cast<size_t>(d) - 2;
      const int64_t begin = left % w.kernel[s] * w.dilation[s];
      left /= w.kernel[s];
      const int64_t last = (result.dim(d).value() - 1) * w.stride[s];
      part = slice(part, d, begin, begin + last + 1, w.stride[s]);
    }
    parts.push_back(part);
  }
  Ints order = {0};
  for (int64_t d = 2; d < rank; ++d) order.push_back(d);
  order.push_back(1);
  return transpose(concat(parts, 1), order);
}

// The weights [outputs, inputs] in the order in which windows() and dims have them.
Value weights_in_rows(Value w, Op op, const Layer& layer) {
  if (is_dot(op.opcode())) {
    const int64_t summed = op.ints(layer.side == 1 ? "rhs_contract" : "lhs_contract")[0];
    return summed == 1 ? w : transpose(w, {1, 0});
  }
  Ints order = {0};
  for (int64_t d = 2; d < w.rank(); ++d) order.push_back(d);
  order.push_back(1);
  const Value last = transpose(w, order);
  return reshape(last, {w.dim(0), Dim(w.type().static_elements() / w.dim(0).value())});
}

// The data as rows of inputs; `padding` is the number that stands for 0.
Value data_in_rows(Value x, Op op, const ByteLayer& l, Type result, double padding) {
  if (is_dot(op.opcode())) {
    const int64_t summed = op.ints(l.layer.side == 1 ? "lhs_contract" : "rhs_contract")[0];
    Ints order = but(x.rank(), summed);
    order.push_back(summed);
    x = transpose(x, order);
  } else {
    x = windows(x, window_of(op, l.layer.weights.type()), result, padding);
  }
  return reshape(x, {l.rows, l.inputs});
}

// [rows, outputs] in the dims of the result.
Value as_result(Value y, Op op, const ByteLayer& l, Type result) {
  const Dims wanted(result.dims().begin(), result.dims().end());
  if (is_dot(op.opcode())) return reshape(l.layer.side == 1 ? y : transpose(y, {1, 0}), wanted);
  Dims dims = {wanted[0]};
  dims.insert(dims.end(), wanted.begin() + 2, wanted.end());
  dims.push_back(wanted[1]);
  Ints order = {0, result.rank() - 1};
  for (int64_t d = 1; d + 1 < result.rank(); ++d) order.push_back(d);
  return transpose(reshape(y, dims), order);
}

// Integers of the layer's data in i32, and how to read them.
struct Codes {
  Value numbers;  // i32, signed or not
  double scale = 1;
  int64_t zero = 0;
};
Codes codes_of(Value x, const DataRange& range, bool is_signed) {
  Builder& b = x.builder();
  Grid grid = grid_of(range);
  if (is_signed) {
    const double most = std::max(-range.low, range.high);
    grid = {most > 0 ? static_cast<float>(most / 127) : 1.0F, 0};
    if (!(grid.scale > 0)) grid.scale = 1;
  }
  const DType dtype = is_signed ? DType::i8 : DType::u8;
  const Value bytes = b.op(Opcode::quantize,
                           {x, b.constant(Tensor::scalar(DType::f32, grid.scale)),
                            b.constant(Tensor::scalar(dtype, static_cast<double>(grid.zero)))},
                           {{"dtype", dtype}});
  return {cast(bytes, DType::i32), static_cast<double>(grid.scale), grid.zero};
}

// The layer's result [rows, outputs] by the table i32[65536]. Terms with zero points are exact.
Value by_table(Value rows, const Codes& data, Value weights, const PackedWeights& packed,
               const ByteLayer& l, bool is_signed, Value table) {
  Builder& b = rows.builder();
  const double middle = is_signed ? 0 : 128;  // unsigned weights are i8 less their least number
  const Value w = weights + middle;
  const Dims all = {l.rows, l.outputs, l.inputs};
  const Value row = binary(Opcode::and_, rows, 255.0) * 256;
  const Value place =
      broadcast(row, all, {0, 2}) + broadcast(binary(Opcode::and_, w, 255.0), all, {1, 2});
  Value sums = reduce_sum(take(table, place), {2});
  if (!is_signed) {
    // (x - zero) (w - middle) = x w - middle x - zero w + zero middle.
    const double zero = static_cast<double>(data.zero);
    const Value of_rows = reduce_sum(rows, {1}, true) * middle;
    const Value of_weights = reshape(reduce_sum(w, {1}), {1, l.outputs}) * zero;
    sums = sums - broadcast_to(of_rows, sums.dims()) - broadcast_to(of_weights, sums.dims()) +
           zero * middle * static_cast<double>(l.inputs);
  }
  const Value scales = b.constant(packed.scales) * data.scale;
  return cast(sums, DType::f32) * broadcast(scales, sums.dims(), {1});
}

Result<Graph> layer_by_table(const Graph& graph, const ByteLayer& l, const DataRange& range,
                             bool is_signed, const Tensor* table) {
  const Op op = graph.op(l.layer.node);
  const Type result = graph.type(graph.result(l.layer.node));
  const ValueId data = graph.operands(l.layer.node)[1 - l.layer.side];
  Builder b;
  const Value x = b.parameter("data", graph.type(data));
  const Value products = table != nullptr ? b.constant(*table, l.layer.name + ".products")
                                          : b.parameter("table", Type::get(DType::i32, {65536}));
  const PackedWeights packed = packed_weights(l.layer, Precision::int8, 0);
  const Value weights = weights_in_rows(
      cast(b.constant(packed.numbers, l.layer.name + ".weights"), DType::i32), op, l.layer);
  const Codes codes = codes_of(x, range, is_signed);
  const Value rows = data_in_rows(codes.numbers, op, l, result, static_cast<double>(codes.zero));
  return b.finish(
      {as_result(by_table(rows, codes, weights, packed, l, is_signed, products), op, l, result)});
}

}  // namespace

Result<ByteLayer> byte_layer(const Graph& graph, const Layer& layer) {
  if (!layer.why_not.empty()) return unsupported("{}", layer.why_not);
  const Op op = graph.op(layer.node);
  const Type weights = layer.weights.type(), result = graph.type(graph.result(layer.node));
  if (!result.is_static()) return unsupported("its size is open");
  if (is_dot(op.opcode())) {
    if (weights.rank() != 2 || !op.ints("lhs_batch").empty())
      return unsupported("its weights are {}, not a matrix", weights.to_string());
  } else if (is_convolution(op.opcode()) && layer.side == 1) {
    HONE_TRY(check_conv(op));
  } else {
    return unsupported("it is no product of rows by weights");
  }
  const int feature = is_convolution(op.opcode()) ? 0 : layer.feature_axis;
  ByteLayer l = {.layer = layer, .outputs = weights.dim(feature).value()};
  l.inputs = weights.static_elements() / std::max<int64_t>(l.outputs, 1);
  l.rows = result.static_elements() / std::max<int64_t>(l.outputs, 1);
  if (l.inputs < 1 || l.outputs < 1 || l.rows < 1) return unsupported("it has no products");
  if (l.inputs > kMostInputs) return unsupported("sums of {} products may not fit i32", l.inputs);
  if (l.rows > kMostProducts / l.inputs / l.outputs)
    return unsupported("a run has more than {} products", kMostProducts);
  return l;
}

Result<Graph> with_products(const Graph& graph, std::span<const ByteLayer> layers,
                            std::span<const DataRange> ranges, bool is_signed,
                            std::span<const Tensor> tables) {
  GraphCopy copy(graph);
  // The inputs come first, so that the tables stand behind them.
  for (NodeId n : graph.nodes())
    if (is_parameter(graph.opcode(n))) HONE_TRY(copy.node(n));
  size_t next = 0;
  for (NodeId n : graph.nodes()) {
    if (is_parameter(graph.opcode(n))) continue;
    if (next == layers.size() || layers[next].layer.node != n) {
      HONE_TRY(copy.node(n));
      continue;
    }
    const ByteLayer& l = layers[next];
    const Tensor* table = tables.empty() ? nullptr : &tables[next];
    const Graph body = HONE_TRY(layer_by_table(graph, l, ranges[next], is_signed, table));
    std::vector<ValueId> arguments = {copy(graph.operands(n)[1 - l.layer.side])};
    if (table == nullptr)
      arguments.push_back(
          copy.target().add_parameter(Type::get(DType::i32, {65536}), l.layer.name + ".products"));
    copy.replace(graph.result(n), HONE_TRY(copy.append(body, arguments))[0]);
    ++next;
  }
  return remove_dead_code(copy.finish());
}

}  // namespace hone::quantize

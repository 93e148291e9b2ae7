#include <algorithm>

#include "front/decoder/rounded_product.h"
#include "front/onnx/write/packed_product.h"
#include "front/onnx/write/registry.h"
#include "ir/functional.h"
#include "tensor/counting.h"

namespace hone::onnx_io {
namespace {

// Operands in the element type that the sums are kept in.
Names in_accumulator_type(Emit& e) {
  Names operands = {e.in(0), e.in(1)};
  DType result = e.result_type().dtype();
  for (size_t i = 0; i < 2; ++i)
    if (e.type(i).dtype() != result) operands[i] = e.cast(operands[i], result);
  return operands;
}

// The orders of dims in which MatMul takes the operands: batch dims, then rows and columns.
struct MatMulOrder {
  Ints left, right;
  bool is_as_it_is() const {
    return left == counting(0, static_cast<int64_t>(left.size())) &&
           right == counting(0, static_cast<int64_t>(right.size()));
  }
};

// The dims of an operand that are neither in a batch nor summed over.
Ints free_dims(int64_t rank, const Ints& batch, const Ints& contract) {
  Ints dims;
  for (int64_t axis = 0; axis < rank; ++axis)
    if (std::find(batch.begin(), batch.end(), axis) == batch.end() &&
        std::find(contract.begin(), contract.end(), axis) == contract.end())
      dims.push_back(axis);
  return dims;
}

Ints joined(Ints dims, const Ints& more, const Ints& last) {
  dims.insert(dims.end(), more.begin(), more.end());
  dims.insert(dims.end(), last.begin(), last.end());
  return dims;
}

// None for a product that MatMul does not say. A right operand that is one matrix serves every
// row of the left one.
std::optional<MatMulOrder> matmul_order(Emit& e) {
  const Op op = e.op();
  const Ints &left_batch = op.ints("lhs_batch"), &right_batch = op.ints("rhs_batch");
  const Ints &left_sum = op.ints("lhs_contract"), &right_sum = op.ints("rhs_contract");
  const Ints rows = free_dims(e.rank(0), left_batch, left_sum);
  const Ints columns = free_dims(e.rank(1), right_batch, right_sum);
  const bool fits = left_sum.size() == 1 && columns.size() == 1 &&
                    (left_batch.empty() ? !rows.empty() : rows.size() == 1);
  if (!fits) return std::nullopt;
  return MatMulOrder{joined(left_batch, rows, left_sum), joined(right_batch, right_sum, columns)};
}

constexpr DTypeSet kGemm = {DType::f64, DType::f32, DType::f16};

std::string letters(int64_t rank, char first) {
  std::string text;
  for (int64_t i = 0; i < rank; ++i) text += static_cast<char>(first + i);
  return text;
}

// "abc,adc->abd": letters of the right operand follow those of the left.
std::string dot_equation(Emit& e) {
  const Op op = e.op();
  if (e.rank(0) + e.rank(1) > 26) e.unsupported("more dims than there are letters");
  std::string left = letters(e.rank(0), 'a');
  std::string right = letters(e.rank(1), static_cast<char>('a' + e.rank(0)));
  auto tie = [&](std::string_view lhs, std::string_view rhs) {
    const Ints& from = op.ints(lhs);
    const Ints& to = op.ints(rhs);
    for (size_t i = 0; i < from.size(); ++i)
      right[static_cast<size_t>(to[i])] = left[static_cast<size_t>(from[i])];
  };
  tie("lhs_batch", "rhs_batch");
  tie("lhs_contract", "rhs_contract");
  std::string result;
  for (int64_t axis : op.ints("lhs_batch")) result += left[static_cast<size_t>(axis)];
  for (int64_t axis : free_dims(e.rank(0), op.ints("lhs_batch"), op.ints("lhs_contract")))
    result += left[static_cast<size_t>(axis)];
  for (int64_t axis : free_dims(e.rank(1), op.ints("rhs_batch"), op.ints("rhs_contract")))
    result += right[static_cast<size_t>(axis)];
  return fmt::format("{},{}->{}", left, right, result);
}

// The data [.., K] of a product by packed weights.
std::string rows_of(Emit& e, const PackedProduct& p) {
  if (!p.rounded.is_none()) return e.value(p.rounded);
  const Ints& summed = e.op().ints("lhs_contract");
  if (!p.is_of_blocks)
    return e.transpose(e.in(0), joined(free_dims(e.rank(0), {}, summed), summed, {}));
  const Dims dims = {e.type(0).dim(0), p.inputs};
  if (const std::optional<NodeId> made = e.maker(0, Opcode::reshape)) {
    const ValueId before = e.graph().operands(*made)[0];
    const std::span<const Dim> given = e.graph().type(before).dims();
    if (std::ranges::equal(given, dims)) return e.value(before);
  }
  return e.reshape(e.in(0), dims);
}

}  // namespace

bool export_packed(Emit& e, const PackedProduct& p) {
  const std::string x = rows_of(e, p), w = e.constant(p.numbers);
  if (p.bits == 0)
    return e.result("Gemm", {x, e.cast(w, e.type(0).dtype())}, {{"transB", int64_t{1}}});
  Attributes attributes = {
      {"K", p.inputs}, {"N", p.outputs}, {"bits", p.bits}, {"block_size", p.block}};
  if (!p.rounded.is_none()) attributes.push_back({"accuracy_level", kLevelOfBytes});
  return e.result("com.microsoft.MatMulNBits",
                  {x, w, e.constant(p.scales), p.zeros ? e.constant(*p.zeros) : std::string()},
                  std::move(attributes));
}

bool export_dot(Emit& e) {
  if (const PackedProduct* packed = e.packed()) return export_packed(e, *packed);
  DType from = e.type(0).dtype();
  bool is_integer_matmul = (from == DType::i8 || from == DType::u8) &&
                           (e.type(1).dtype() == DType::i8 || e.type(1).dtype() == DType::u8) &&
                           e.result_type().dtype() == DType::i32;
  const std::optional<MatMulOrder> order = matmul_order(e);
  if (order && is_integer_matmul)
    return e.result("MatMulInteger",
                    {e.transpose(e.in(0), order->left), e.transpose(e.in(1), order->right)});
  const Names operands = in_accumulator_type(e);
  const Op op = e.op();
  const bool is_gemm = order && op.ints("lhs_batch").empty() && e.rank(0) == 2 &&
                       !order->is_as_it_is() && kGemm.contains(from) &&
                       from == e.result_type().dtype();
  if (is_gemm)
    return e.result("Gemm", operands,
                    {{"transA", int64_t{op.ints("lhs_contract")[0] == 0}},
                     {"transB", int64_t{op.ints("rhs_contract")[0] == 1}}});
  if (order)
    return e.result(
        "MatMul", {e.transpose(operands[0], order->left), e.transpose(operands[1], order->right)});
  std::string equation = dot_equation(e);
  return e.result("Einsum", operands, {{"equation", std::string_view(equation)}});
}

// ---- Convolution -------------------------------------------------------------------------------

namespace {

// The permutation that brings dims in the order `from` into the order `to`.
Ints reordered(std::string_view from, std::string_view to) {
  Ints permutation;
  for (char c : to) permutation.push_back(static_cast<int64_t>(from.find(c)));
  return permutation;
}

struct ConvOrder {
  std::string input, kernel, output;
  static ConvOrder of(Emit& e) {
    std::string spatial = letters(e.rank(0) - 2, '0');
    std::string order = e.op().word("order");
    if (order.empty()) return {"bf" + spatial, "oi" + spatial, "bf" + spatial};
    size_t bar = order.find('_'), arrow = order.find("->");
    return {order.substr(0, bar), order.substr(bar + 1, arrow - bar - 1), order.substr(arrow + 2)};
  }
};

bool all_are(const Ints& numbers, int64_t value) {
  return std::all_of(numbers.begin(), numbers.end(), [&](int64_t n) { return n == value; });
}

// Padding of the input by hand: zeros between elements, and negative padding, which crops.
std::string padded_input(Emit& e, const std::string& x, Type type, const Ints& low,
                         const Ints& high, const Ints& dilation) {
  Graph graph("padding");
  size_t rank = static_cast<size_t>(type.rank());
  Dims lows(rank, 0), highs(rank, 0);
  Ints interior(rank, 0);
  for (size_t i = 2; i < rank; ++i) {
    if (!low.empty()) lows[i] = low[i - 2];
    if (!high.empty()) highs[i] = high[i - 2];
    if (!dilation.empty()) interior[i] = dilation[i - 2] - 1;
  }
  ValueId input = graph.add_parameter(type);
  ValueId zero = graph.add_constant(Tensor::scalar(type.dtype(), 0));
  Op pad = Op::get(Opcode::pad, {{"low", lows}, {"high", highs}, {"interior", interior}});
  Result<NodeId> node = graph.append(pad, std::vector{input, zero});
  if (!node.ok()) e.unsupported("{}", node.error().what());
  graph.set_outputs({graph.result(*node)});
  return e.inlined(graph, {x})[0];
}

}  // namespace

namespace {

// Weights of a transposed convolution: channels of input and output trade places within a group,
// and the kernel is turned round.
std::string transposed_weights(Emit& e, const std::string& w, Type type, int64_t groups) {
  Builder b("weights");
  Value x = b.parameter("w", type);
  const Dims dims = x.dims();
  Dims split = {groups, floordiv(dims[0], groups)}, joined = {dims[1] * groups, split[1]};
  split.insert(split.end(), dims.begin() + 1, dims.end());
  joined.insert(joined.end(), dims.begin() + 2, dims.end());
  Ints permutation = counting(0, type.rank() + 1);
  std::swap(permutation[1], permutation[2]);
  Value y = reshape(transpose(reshape(x, split), permutation), joined);
  Result<Graph> graph = b.finish({reverse(y, counting(2, type.rank()))});
  if (!graph.ok()) e.unsupported("{}", graph.error().what());
  return e.inlined(*graph, {w})[0];
}

// A convolution of an input with holes is a transposed one, if paddings are within the kernel.
std::optional<Attributes> transposed_attributes(Emit& e, Type weights, const Ints& low,
                                                const Ints& high) {
  const Op op = e.op();
  const Ints& holes = op.ints("input_dilation");
  if (holes.empty() || all_are(holes, 1) || !all_are(op.ints("stride"), 1)) return std::nullopt;
  Ints dilation = op.ints("kernel_dilation"), before, after, extra;
  if (dilation.empty()) dilation.assign(low.size(), 1);
  for (size_t i = 0; i < low.size(); ++i) {
    const Dim size = weights.dim(static_cast<int>(i) + 2);
    if (!size.is_static() || size.value() < 1) return std::nullopt;
    const int64_t reach = (size.value() - 1) * dilation[i];
    before.push_back(reach - low[i]);
    after.push_back(std::max<int64_t>(reach - high[i], 0));
    extra.push_back(std::max<int64_t>(high[i] - reach, 0));
    if (before.back() < 0 || extra.back() >= std::max(holes[i], dilation[i])) return std::nullopt;
  }
  before.insert(before.end(), after.begin(), after.end());
  Attributes attributes = {{"group", op.integer("groups")}, {"strides", holes}};
  if (!all_are(before, 0)) attributes.push_back({"pads", before});
  if (!all_are(extra, 0)) attributes.push_back({"output_padding", extra});
  if (!all_are(dilation, 1)) attributes.push_back({"dilations", dilation});
  return attributes;
}

Type permuted(Type type, const Ints& permutation) {
  Dims dims;
  for (int64_t axis : permutation) dims.push_back(type.dim(static_cast<int>(axis)));
  return type.with_dims(dims);
}

}  // namespace

bool export_conv(Emit& e) {
  const Op op = e.op();
  ConvOrder order = ConvOrder::of(e);
  std::string spatial = letters(e.rank(0) - 2, '0');
  Names operands = in_accumulator_type(e);
  std::string x = e.transpose(operands[0], reordered(order.input, "bf" + spatial));
  std::string w = e.transpose(operands[1], reordered(order.kernel, "oi" + spatial));
  if (spatial.empty()) {
    // A spatial dim of 1 is added, and taken away again.
    const std::string y = e.squeeze(e.node("Conv", {e.unsqueeze(x, {2}), e.unsqueeze(w, {2})},
                                           {{"group", op.integer("groups")}}),
                                    {2});
    return e.result("Transpose", {y}, {{"perm", reordered("bf", order.output)}});
  }
  Ints low = op.ints("pad_low"), high = op.ints("pad_high");
  if (low.empty()) low.assign(spatial.size(), 0);
  if (high.empty()) high.assign(spatial.size(), 0);
  const Ints back = reordered("bf" + spatial, order.output);
  const bool is_reordered = order.output != "bf" + spatial;
  auto convolved = [&](std::string_view name, const Names& inputs, const Attributes& attributes) {
    if (!is_reordered) return e.result(name, inputs, attributes);
    return e.result("Transpose", {e.node(name, inputs, attributes)}, {{"perm", back}});
  };
  const DType dtype = e.result_type().dtype();
  const Type weights =
      permuted(e.type(1), reordered(order.kernel, "oi" + spatial)).with_dtype(dtype);
  if (std::optional<Attributes> attributes = transposed_attributes(e, weights, low, high))
    return convolved("ConvTranspose", {x, transposed_weights(e, w, weights, op.integer("groups"))},
                     *attributes);
  bool is_negative = *std::min_element(low.begin(), low.end()) < 0 ||
                     *std::min_element(high.begin(), high.end()) < 0;
  if (is_negative || !all_are(op.ints("input_dilation"), 1)) {
    const Type type = permuted(e.type(0), reordered(order.input, "bf" + spatial)).with_dtype(dtype);
    x = padded_input(e, x, type, low, high, op.ints("input_dilation"));
    low.assign(spatial.size(), 0);
    high = low;
  }
  Ints pads = low;
  pads.insert(pads.end(), high.begin(), high.end());
  Attributes attributes = {{"group", op.integer("groups")}};
  if (!all_are(pads, 0)) attributes.push_back({"pads", pads});
  if (!all_are(op.ints("stride"), 1)) attributes.push_back({"strides", op.ints("stride")});
  if (!all_are(op.ints("kernel_dilation"), 1))
    attributes.push_back({"dilations", op.ints("kernel_dilation")});
  return convolved("Conv", {x, w}, attributes);
}

}  // namespace hone::onnx_io

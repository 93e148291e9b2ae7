#include <algorithm>
#include <numeric>

#include "io/onnx/write/registry.h"

namespace hone::onnx_io {
namespace {

Ints count_from(int64_t first, int64_t count) {
  Ints numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

// Operands in the element type that the sums are kept in.
Names in_accumulator_type(Emit& e) {
  Names operands = {e.in(0), e.in(1)};
  DType result = e.result_type().dtype();
  for (size_t i = 0; i < 2; ++i)
    if (e.type(i).dtype() != result) operands[i] = e.cast(operands[i], result);
  return operands;
}

// Whether MatMul says it: leading batch dims, the last dim of one with the last but one of the
// other. A right operand that is one matrix serves every batch.
bool is_matmul(Emit& e) {
  const Op op = e.op();
  int64_t left = e.rank(0), right = e.rank(1);
  auto batch = static_cast<int64_t>(op.ints("lhs_batch").size());
  Ints leading = count_from(0, batch);
  if (op.ints("lhs_batch") != leading || op.ints("rhs_batch") != leading) return false;
  if (op.ints("lhs_contract") != Ints{left - 1}) return false;
  if (batch == 0) return right == 2 && left >= 2 && op.ints("rhs_contract") == Ints{0};
  return left == batch + 2 && right == batch + 2 && op.ints("rhs_contract") == Ints{batch};
}

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
  auto add_free = [&](const std::string& text, const Ints& batch, const Ints& contract) {
    for (int64_t axis = 0; axis < static_cast<int64_t>(text.size()); ++axis)
      if (std::find(batch.begin(), batch.end(), axis) == batch.end() &&
          std::find(contract.begin(), contract.end(), axis) == contract.end())
        result += text[static_cast<size_t>(axis)];
  };
  add_free(left, op.ints("lhs_batch"), op.ints("lhs_contract"));
  add_free(right, op.ints("rhs_batch"), op.ints("rhs_contract"));
  return fmt::format("{},{}->{}", left, right, result);
}

}  // namespace

bool export_dot(Emit& e) {
  DType from = e.type(0).dtype();
  bool is_integer_matmul = (from == DType::i8 || from == DType::u8) &&
                           (e.type(1).dtype() == DType::i8 || e.type(1).dtype() == DType::u8) &&
                           e.result_type().dtype() == DType::i32;
  if (is_matmul(e)) {
    if (is_integer_matmul) return e.result("MatMulInteger", {e.in(0), e.in(1)});
    return e.result("MatMul", in_accumulator_type(e));
  }
  std::string equation = dot_equation(e);
  return e.result("Einsum", in_accumulator_type(e), {{"equation", std::string_view(equation)}});
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
  if (!node.ok()) e.unsupported("{}", node.error().what);
  graph.set_outputs({graph.result(*node)});
  return e.inlined(graph, {x})[0];
}

}  // namespace

bool export_conv(Emit& e) {
  const Op op = e.op();
  ConvOrder order = ConvOrder::of(e);
  std::string spatial = letters(e.rank(0) - 2, '0');
  if (spatial.empty()) e.unsupported("a convolution without spatial dims");
  Names operands = in_accumulator_type(e);
  std::string x = e.transpose(operands[0], reordered(order.input, "bf" + spatial));
  std::string w = e.transpose(operands[1], reordered(order.kernel, "oi" + spatial));
  Ints low = op.ints("pad_low"), high = op.ints("pad_high");
  if (low.empty()) low.assign(spatial.size(), 0);
  if (high.empty()) high.assign(spatial.size(), 0);
  bool is_negative = *std::min_element(low.begin(), low.end()) < 0 ||
                     *std::min_element(high.begin(), high.end()) < 0;
  if (is_negative || !all_are(op.ints("input_dilation"), 1)) {
    Dims dims;
    for (int64_t axis : reordered(order.input, "bf" + spatial))
      dims.push_back(e.type(0).dim(static_cast<int>(axis)));
    Type type = Type::get(e.result_type().dtype(), dims);
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
  Ints back = reordered("bf" + spatial, order.output);
  if (order.output == "bf" + spatial) return e.result("Conv", {x, w}, attributes);
  return e.result("Transpose", {e.node("Conv", {x, w}, attributes)}, {{"perm", back}});
}

}  // namespace hone::onnx_io

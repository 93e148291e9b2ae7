#include "lab/tpu/from_graph.h"

#include <unordered_map>

#include "ir/ops/conv_order.h"

namespace hone::tpu {
namespace {

// The name that XLA gives an op, if that is another one.
constexpr std::pair<Opcode, std::string_view> kNames[] = {
    {Opcode::rng_bits, "rng-bit-generator"},
    {Opcode::neg, "negate"},
    {Opcode::round, "round-nearest-even"},
    {Opcode::exp, "exponential"},
    {Opcode::expm1, "exponential-minus-one"},
    {Opcode::log1p, "log-plus-one"},
    {Opcode::sin, "sine"},
    {Opcode::cos, "cosine"},
    {Opcode::is_finite, "is-finite"},
    {Opcode::popcount, "popcnt"},
    {Opcode::sub, "subtract"},
    {Opcode::mul, "multiply"},
    {Opcode::div, "divide"},
    {Opcode::rem, "remainder"},
    {Opcode::pow, "power"},
    {Opcode::max, "maximum"},
    {Opcode::min, "minimum"},
    {Opcode::shift_left, "shift-left"},
    {Opcode::shift_right, "shift-right-arithmetic"},
    {Opcode::cast, "convert"},
    {Opcode::bitcast, "bitcast-convert"},
    {Opcode::concat, "concatenate"},
    {Opcode::dynamic_slice, "dynamic-slice"},
    {Opcode::dynamic_update, "dynamic-update-slice"},
    {Opcode::conv, "convolution"},
    {Opcode::arg_reduce, "reduce"},
    {Opcode::cumulative, "reduce-window"},
    {Opcode::window_reduce, "reduce-window"},
};

std::string_view name_of(Opcode opcode) {
  static const std::unordered_map<Opcode, std::string_view> names(std::begin(kNames),
                                                                  std::end(kNames));
  const auto at = names.find(opcode);
  return at == names.end() ? hone::name(opcode) : at->second;
}

// XLA's number of the type; 0 where it had none when the data was published.
int64_t type_number(DType dtype) {
  switch (dtype) {
    case DType::boolean: return 1;
    case DType::i8: return 2;
    case DType::i16: return 3;
    case DType::i32: return 4;
    case DType::i64: return 5;
    case DType::u8: return 6;
    case DType::u16: return 7;
    case DType::u32: return 8;
    case DType::u64: return 9;
    case DType::f16: return 10;
    case DType::f32: return 11;
    case DType::f64: return 12;
    case DType::bf16: return 16;
    default: return 0;
  }
}

int64_t largest(Dim dim) { return dim.range().high; }

Integers largest(const Dims& dims) {
  Integers sizes;
  for (Dim dim : dims) sizes.push_back(largest(dim));
  return sizes;
}

int64_t at_or(const Ints& list, size_t i, int64_t otherwise) {
  return i < list.size() ? list[i] : otherwise;
}

Integers wide(const std::vector<int>& numbers) { return {numbers.begin(), numbers.end()}; }

class Converter {
 public:
  Converter(const Graph& graph, const std::function<Integers(ValueId)>& layout)
      : graph_(graph), layout_(layout) {}

  HloModule run() {
    HloComputation all = {.id = 0, .root = 0, .name = graph_.name()};
    for (NodeId node : graph_.nodes()) all.instructions.push_back(instruction(node));
    const auto outputs = graph_.outputs();
    if (outputs.size() == 1) {
      all.root = graph_.producer(outputs[0]).index;
    } else {
      all.root = static_cast<int64_t>(graph_.node_count());
      HloInstruction tuple = {.id = all.root, .opcode = "tuple"};
      tuple.shape = {.element_type = 13, .tuple_size = static_cast<int64_t>(outputs.size())};
      for (ValueId output : outputs) tuple.operands.push_back(graph_.producer(output).index);
      all.instructions.push_back(std::move(tuple));
    }
    return {.name = graph_.name(), .computations = {std::move(all)}};
  }

 private:
  HloInstruction instruction(NodeId node) {
    const Op op = graph_.op(node);
    const ValueId result = graph_.result(node);
    const Type type = graph_.type(result);
    HloInstruction to = {.id = node.index, .opcode = std::string(name_of(op.opcode()))};
    to.shape = {.element_type = type_number(type.dtype()), .minor_to_major = layout_(result)};
    for (Dim dim : type.dims()) to.shape.dims.push_back(largest(dim));
    for (ValueId operand : graph_.operands(node))
      if (!operand.is_none()) to.operands.push_back(graph_.producer(operand).index);
    switch (op.opcode()) {
      case Opcode::parameter: to.parameter_number = parameters_++; break;
      case Opcode::broadcast: to.dimensions = op.ints("map"); break;
      case Opcode::transpose: to.dimensions = op.ints("permutation"); break;
      case Opcode::reverse:
      case Opcode::reduce: to.dimensions = op.ints("axes"); break;
      case Opcode::concat:
      case Opcode::arg_reduce:
      case Opcode::cumulative: to.dimensions = {op.integer("axis")}; break;
      case Opcode::slice: add_slice(op, to); break;
      case Opcode::pad: add_pad(op, to); break;
      case Opcode::dynamic_slice: to.dynamic_slice_sizes = largest(op.dims("sizes")); break;
      case Opcode::dot: add_dot(op, to); break;
      case Opcode::conv: add_conv(op, node, to); break;
      case Opcode::window_reduce: add_window(op, to); break;
      default: break;
    }
    return to;
  }

  static void add_slice(const Op& op, HloInstruction& to) {
    const Dims& start = op.dims("start");
    for (size_t i = 0; i < start.size(); ++i)
      to.slice.push_back(
          {largest(start[i]), largest(op.dims("limit")[i]), at_or(op.ints("stride"), i, 1)});
  }

  static void add_pad(const Op& op, HloInstruction& to) {
    const Dims& low = op.dims("low");
    for (size_t i = 0; i < low.size(); ++i)
      to.padding.push_back({largest(low[i]), largest(op.dims("high")[i])});
  }

  static void add_dot(const Op& op, HloInstruction& to) {
    to.dot = {op.ints("lhs_contract"), op.ints("rhs_contract"), op.ints("lhs_batch"),
              op.ints("rhs_batch")};
  }

  void add_conv(const Op& op, NodeId node, HloInstruction& to) {
    const Type kernel = graph_.type(graph_.operands(node)[1]);
    const ConvOrder order = parse_conv_order(op.word("order"), kernel.rank() - 2).value();
    to.conv = {order.input_batch,         order.input_feature,       order.kernel_input,
               order.kernel_output,       order.output_batch,        order.output_feature,
               wide(order.input_spatial), wide(order.kernel_spatial)};
    to.feature_groups = op.integer("groups");
    to.batch_groups = 1;
    for (size_t i = 0; i < order.kernel_spatial.size(); ++i)
      to.window.push_back({.size = largest(kernel.dim(order.kernel_spatial[i])),
                           .stride = at_or(op.ints("stride"), i, 1),
                           .padding_low = at_or(op.ints("pad_low"), i, 0),
                           .padding_high = at_or(op.ints("pad_high"), i, 0),
                           .window_dilation = at_or(op.ints("kernel_dilation"), i, 1),
                           .base_dilation = at_or(op.ints("input_dilation"), i, 1)});
  }

  static void add_window(const Op& op, HloInstruction& to) {
    const Ints& sizes = op.ints("window");
    for (size_t i = 0; i < sizes.size(); ++i)
      to.window.push_back({.size = sizes[i],
                           .stride = at_or(op.ints("stride"), i, 1),
                           .padding_low = at_or(op.ints("pad_low"), i, 0),
                           .padding_high = at_or(op.ints("pad_high"), i, 0),
                           .window_dilation = at_or(op.ints("window_dilation"), i, 1),
                           .base_dilation = at_or(op.ints("input_dilation"), i, 1)});
  }

  const Graph& graph_;
  const std::function<Integers(ValueId)>& layout_;
  int64_t parameters_ = 0;
};

}  // namespace

HloModule hlo_of(const Graph& graph, const std::function<Integers(ValueId)>& layout) {
  return Converter(graph, layout).run();
}

}  // namespace hone::tpu

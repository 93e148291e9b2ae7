#include "zoo/quantized.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "ir/graph_copy.h"
#include "ir/op_def.h"
#include "ir/ops/conv_order.h"

namespace hone {
namespace {

// Which values depend on no input.
std::vector<bool> constants_of(const Graph& graph) {
  std::vector<bool> constants(graph.value_count());
  for (NodeId n : graph.nodes()) {
    const auto is_constant = [&](ValueId v) { return v.is_none() || constants[v.index]; };
    const bool all =
        graph.opcode(n) != Opcode::parameter && std::ranges::all_of(graph.operands(n), is_constant);
    for (ValueId v : graph.results(n)) constants[v.index] = all;
  }
  return constants;
}

// The dim of a contraction's weights that has the features, if there is one and they are a
// constant.
std::optional<int> features_of(const Graph& graph, NodeId n) {
  const Opcode opcode = graph.opcode(n);
  if (opcode != Opcode::conv && opcode != Opcode::dot) return std::nullopt;
  const ValueId weights = graph.operands(n)[1];
  const int rank = graph.type(weights).rank();
  if (graph.opcode(graph.producer(weights)) != Opcode::constant) return std::nullopt;
  if (opcode == Opcode::conv)
    return parse_conv_order(graph.op(n).word("order"), rank - 2)->kernel_output;
  const Ints& contract = graph.op(n).ints("rhs_contract");
  if (rank != 2 || contract.size() != 1) return std::nullopt;
  return static_cast<int>(1 - contract[0]);
}

// Depends on the index of each element along the dim.
template <class Visit>
void each_by_feature(const Tensor& weights, int dim, const Visit& visit) {
  const int64_t features = weights.type().dim(dim).value();
  const int64_t stride = row_major_strides(weights.type().static_dims())[static_cast<size_t>(dim)];
  for (int64_t i = 0; i < weights.elements(); ++i) visit(i, i / stride % features);
}

// ---- Without norms ------------------------------------------------------------------------------

class NormsIntoWeights {
 public:
  explicit NormsIntoWeights(const Graph& graph)
      : graph_(graph), users_(graph), constants_(constants_of(graph)), copy_(graph) {}

  Result<Graph> run() {
    for (NodeId n : graph_.nodes()) {
      if (graph_.opcode(n) == Opcode::conv && features_of(graph_, n)) {
        HONE_TRY(conv(n));
      } else if (std::ranges::find(left_out_, n) == left_out_.end()) {
        HONE_TRY(copy_.node(n));
      }
    }
    return remove_dead_code(copy_.finish());
  }

 private:
  Status conv(NodeId n) {
    std::vector<ValueId> operands = copy_(graph_.operands(n));
    const std::optional<NodeId> next = added_behind(n);
    if (next && graph_.opcode(*next) == Opcode::batch_norm)
      operands[1] = copy_.target().add_constant(scaled(n, *next));
    const NodeId made = HONE_TRY(copy_.target().append(graph_.op(n), operands));
    copy_.replace(graph_.result(n), copy_.target().result(made));
    if (next) {
      copy_.replace(graph_.result(*next), copy_.target().result(made));
      left_out_.push_back(*next);
    }
    return {};
  }

  // The batch norm or the sum with a bias that is the only one to read the conv.
  std::optional<NodeId> added_behind(NodeId n) const {
    const ValueId result = graph_.result(n);
    if (!users_.has_one_use(result)) return std::nullopt;
    const NodeId next = users_.of(result)[0];
    const bool is_added =
        graph_.opcode(next) == Opcode::add || graph_.opcode(next) == Opcode::batch_norm;
    for (ValueId v : graph_.operands(next))
      if (v != result && !constants_[v.index]) return std::nullopt;
    return is_added ? std::optional(next) : std::nullopt;
  }

  Tensor scaled(NodeId n, NodeId norm) const {
    const Tensor& weights = graph_.constant(graph_.producer(graph_.operands(n)[1]));
    const auto vector = [&](size_t i) -> const Tensor& {
      return graph_.constant(graph_.producer(graph_.operands(norm)[i]));
    };
    const Tensor &scale = vector(1), &variance = vector(4);
    const double epsilon = graph_.op(norm).real("epsilon");
    std::vector<double> numbers(static_cast<size_t>(weights.elements()));
    each_by_feature(weights, *features_of(graph_, n), [&](int64_t i, int64_t feature) {
      numbers[static_cast<size_t>(i)] = weights.real_at(i) * scale.real_at(feature) /
                                        std::sqrt(variance.real_at(feature) + epsilon);
    });
    return Tensor::from_reals(weights.type(), numbers);
  }

  const Graph& graph_;
  const Users users_;
  const std::vector<bool> constants_;
  GraphCopy copy_;
  std::vector<NodeId> left_out_;
};

// ---- Quantized ----------------------------------------------------------------------------------

class Quantizer {
 public:
  explicit Quantizer(const Graph& graph)
      : graph_(graph), users_(graph), constants_(constants_of(graph)), copy_(graph) {
    for (NodeId n : graph.nodes()) {
      if (!is_quantized(n)) continue;
      for (ValueId v : graph.operands(n)) choose(v);
      choose(behind(graph.result(n)));
    }
    std::ranges::sort(chosen_, {}, &ValueId::index);
  }

  Result<Graph> ranges() {
    std::vector<ValueId> values;
    for (NodeId n : graph_.nodes()) HONE_TRY(copy_.node(n));
    for (ValueId v : chosen_) values.push_back(copy_(v));
    Graph result = copy_.finish();
    std::vector<ValueId> outputs;
    for (ValueId v : values)
      for (const char* kind : {"min", "max"}) {
        Ints axes;
        for (int axis = 0; axis < result.type(v).rank(); ++axis) axes.push_back(axis);
        const Op reduce =
            Op::get(Opcode::reduce, {{"kind", std::string(kind)}, {"axes", std::move(axes)}});
        outputs.push_back(result.result(HONE_TRY(result.append(reduce, {&v, 1}))));
      }
    result.set_outputs(std::move(outputs));
    return remove_dead_code(result);
  }

  Result<Graph> run(std::span<const Tensor> ranges) {
    if (ranges.size() != 2 * chosen_.size())
      return bad_input("{} numbers are given for the ranges of {} values", ranges.size(),
                       chosen_.size());
    for (NodeId n : graph_.nodes()) {
      if (features_of(graph_, n)) {
        HONE_TRY(product(n));
      } else {
        HONE_TRY(copy_.node(n));
      }
      for (ValueId v : graph_.results(n)) HONE_TRY(again(v, ranges));
    }
    return remove_dead_code(copy_.finish());
  }

 private:
  bool is_quantized(NodeId n) const {
    const Opcode opcode = graph_.opcode(n);
    if (graph_.results(n).size() != 1 || constants_[graph_.result(n).index]) return false;
    if (opcode == Opcode::add)
      return std::ranges::none_of(graph_.operands(n),
                                  [&](ValueId v) { return constants_[v.index]; });
    const bool is_pool = opcode == Opcode::global_pool ||
                         (opcode == Opcode::window_reduce && graph_.op(n).word("kind") == "max");
    return is_pool || features_of(graph_, n).has_value();
  }

  // The value behind elementwise ops with constants that nothing else reads, such as a relu.
  ValueId behind(ValueId v) const {
    while (users_.has_one_use(v)) {
      const NodeId next = users_.of(v)[0];
      const auto may_stand = [&](ValueId operand) {
        return operand == v || constants_[operand.index];
      };
      if (!is_elementwise(graph_.opcode(next)) && graph_.opcode(next) != Opcode::relu) break;
      if (!std::ranges::all_of(graph_.operands(next), may_stand)) break;
      v = graph_.result(next);
    }
    return v;
  }

  void choose(ValueId v) {
    const bool may_be =
        graph_.type(v).dtype() == DType::f32 && !constants_[v.index] && !users_.of(v).empty();
    if (may_be && std::ranges::find(chosen_, v) == chosen_.end()) chosen_.push_back(v);
  }

  Result<ValueId> made(Op op, const std::vector<ValueId>& operands) {
    return copy_.target().result(HONE_TRY(copy_.target().append(op, operands)));
  }
  ValueId constant(Tensor tensor) { return copy_.target().add_constant(std::move(tensor)); }

  Status again(ValueId v, std::span<const Tensor> ranges) {
    const auto at = std::ranges::find(chosen_, v) - chosen_.begin();
    if (at == std::ssize(chosen_)) return {};
    const double low = std::min(ranges[static_cast<size_t>(2 * at)].real_at(0), 0.0);
    const double high = std::max(ranges[static_cast<size_t>(2 * at + 1)].real_at(0), 0.0);
    const double scale = high > low ? (high - low) / 255 : 1;
    const ValueId by = constant(Tensor::from_reals(Type::scalar(DType::f32), {{scale}}));
    const ValueId zero =
        constant(Tensor::from_integers(Type::scalar(DType::u8), {{std::lround(-low / scale)}}));
    const ValueId real = copy_(v);
    copy_.target().set_name(real, "");  // it goes to what stands for the value
    const ValueId bytes =
        HONE_TRY(made(Op::get(Opcode::quantize, {{"dtype", DType::u8}}), {real, by, zero}));
    const ValueId result = HONE_TRY(made(Op::get(Opcode::dequantize, {}), {bytes, by, zero}));
    copy_.replace(v, result);
    return {};
  }

  Status product(NodeId n) {
    const Tensor& weights = graph_.constant(graph_.producer(graph_.operands(n)[1]));
    const int dim = *features_of(graph_, n);
    std::vector<double> scales(static_cast<size_t>(weights.type().dim(dim).value()));
    each_by_feature(weights, dim, [&](int64_t i, int64_t feature) {
      double& scale = scales[static_cast<size_t>(feature)];
      scale = std::max(scale, std::abs(weights.real_at(i)) / 127);
    });
    for (double& scale : scales) scale = scale > 0 ? scale : 1;
    std::vector<int64_t> bytes(static_cast<size_t>(weights.elements()));
    each_by_feature(weights, dim, [&](int64_t i, int64_t feature) {
      bytes[static_cast<size_t>(i)] =
          std::lround(weights.real_at(i) / scales[static_cast<size_t>(feature)]);
    });
    const Type type = Type::get(DType::f32, {static_cast<int64_t>(scales.size())});
    const ValueId w = constant(Tensor::from_integers(weights.type().with_dtype(DType::i8), bytes));
    const Op dequantize = Op::get(Opcode::dequantize, {{"axis", int64_t{dim}}});
    const ValueId factor =
        HONE_TRY(made(dequantize, {w, constant(Tensor::from_reals(type, scales))}));
    copy_.replace(graph_.result(n),
                  HONE_TRY(made(graph_.op(n), {copy_(graph_.operands(n)[0]), factor})));
    return {};
  }

  const Graph& graph_;
  const Users users_;
  const std::vector<bool> constants_;
  GraphCopy copy_;
  std::vector<ValueId> chosen_;
};

}  // namespace

Result<Graph> without_norms(const Graph& graph) { return NormsIntoWeights(graph).run(); }

Result<Graph> ranges_of(const Graph& graph) { return Quantizer(graph).ranges(); }

Result<Graph> quantized(const Graph& graph, std::span<const Tensor> ranges) {
  return Quantizer(graph).run(ranges);
}

}  // namespace hone

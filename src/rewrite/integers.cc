#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/planted.h"
#include "ir/functional.h"
#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "ir/reference/evaluate.h"
#include "rewrite/constants.h"
#include "rewrite/expand.h"
#include "rewrite/passes.h"

// Quantizers leave a model in reals, with each tensor quantized and dequantized again around its
// ops. The product of dequantized bytes is that of integers, times the scales:
//   sum (x - a) * s * (w - b) * t = s * t * sum (x - a) * (w - b)
// The sum is exact, so the result is nearer to the real one than a sum of reals is. An op that only
// moves bytes, or takes the largest, needs no reals either.

namespace hone {
namespace {

bool is_byte(DType dtype) { return dtype == DType::u8 || dtype == DType::i8; }

// A scale of usual size: the product of two, and its inverse, are ordinary numbers.
bool is_usual(double scale) { return scale > 0x1p-60 && scale < 0x1p60; }

// True if a quantized model may be in it.
bool has_dequantized(const Graph& graph) {
  for (NodeId n : graph.nodes()) {
    if (is_dequantize(graph.opcode(n))) return true;
    for (const GraphRef& region : graph.regions(n))
      if (has_dequantized(*region)) return true;
  }
  return false;
}

// Bytes that were dequantized by usual scales, and moved.
struct Factor {
  ValueId bytes, zero;
  Op dequantize;
  std::vector<NodeId> moves = {};  // first to last
  // Indexed along a dim of the contraction's result; without one, a number.
  std::optional<int> dim = {};
  std::vector<double> scale = {};
  int64_t most = 255;  // of the size of a byte less its zero point
};

AccessRelation access_of(const Graph& graph, NodeId n) {
  const std::vector<Type> operands = graph.operand_types(n);
  return hone::access_of({graph.op(n), operands}, graph.result_types(n));
}

// The number along which an expression runs through all points; none: it depends on none of them,
// or in another way.
std::optional<int> only_iter(const IndexExpr& expr, int rank) {
  std::optional<int> only;
  for (int iter = 0; iter < rank; ++iter) {
    if (!expr.mentions(iter)) continue;
    if (only) return std::nullopt;
    only = iter;
  }
  return only;
}

class Integers {
 public:
  explicit Integers(const Graph& graph) : copy_(graph) {}

  Result<Graph> run() {
    const Graph& source = copy_.source();
    for (NodeId n : source.nodes()) {
      if (HONE_TRY(rewrite(n))) continue;
      HONE_TRY(copy_.node(n, source.op(n),
                          HONE_TRY(transform_regions(source, n, products_of_integers))));
    }
    return remove_dead_code(copy_.finish());
  }

 private:
  // The graph that is being made; the values below are of it.
  const Graph& graph() { return copy_.target(); }
  NodeId producer(ValueId v) { return graph().producer(v); }

  // False: the node stays as it is.
  Result<bool> rewrite(NodeId n) {
    const Graph& source = copy_.source();
    if (class_of(source.opcode(n)) == OpClass::contraction) return multiply(n);
    if (is_quantize(source.opcode(n))) return quantize(n);
    if (is_move(source, n) || is_max_of_windows(n)) return move(n);
    return false;
  }

  Result<bool> replace(NodeId n, Builder& b, Value result, std::vector<ValueId> arguments) {
    std::erase_if(arguments, [](ValueId v) { return v.is_none(); });
    const Graph body = HONE_TRY(b.finish({result}));
    copy_.replace(copy_.source().result(n), HONE_TRY(copy_.append(body, arguments))[0]);
    return true;
  }

  // A tensor, its scale and its zero point, which may be absent.
  static std::vector<ValueId> three(std::span<const ValueId> operands) {
    std::vector<ValueId> all(operands.begin(), operands.end());
    all.resize(3, ValueId::none());
    return all;
  }

  Value parameter(Builder& b, std::string_view name, ValueId v) {
    return v.is_none() ? Value() : b.parameter(name, graph().type(v));
  }

  // The scale, if it is a constant of usual numbers.
  Result<std::optional<Tensor>> usual_scale(ValueId v) {
    std::optional<Tensor> scale = HONE_TRY(made_of_constants(graph(), v));
    if (!scale || scale->dtype() != DType::f32) return std::optional<Tensor>();
    for (int64_t i = 0; i < scale->elements(); ++i)
      if (!is_usual(scale->real_at(i))) return std::optional<Tensor>();
    return scale;
  }

  // ---- What moves ------------------------------------------------------------------------------

  // Each window has an element, so that no identity of reals comes out.
  bool is_max_of_windows(NodeId n) {
    const Graph& source = copy_.source();
    const Op op = source.op(n);
    if (!combines_windows(op.opcode()) || op.word("kind") != "max") return false;
    const Ints& window = op.ints("window");
    for (std::string_view name : {"pad_low", "pad_high"})
      for (size_t i = 0; i < op.ints(name).size(); ++i)
        if (op.ints(name)[i] < 0 || op.ints(name)[i] >= window[i]) return false;
    for (std::string_view name : {"input_dilation", "window_dilation"})
      if (std::ranges::any_of(op.ints(name), [](int64_t each) { return each != 1; })) return false;
    return true;
  }

  // The bytes after the op, dequantized: it keeps their order.
  Result<bool> move(NodeId n) {
    const NodeId before = producer(copy_(copy_.source().operands(n)[0]));
    if (!is_dequantize(graph().opcode(before))) return false;
    const std::vector<ValueId> in = three(graph().operands(before));
    if (!is_byte(graph().type(in[0]).dtype()) || graph().type(in[1]).rank() > 0) return false;
    if (!is_move(copy_.source(), n) && !HONE_TRY(usual_scale(in[1]))) return false;
    Builder b;
    const Value moved = b.ops(copy_.source().op(n), {{parameter(b, "x", in[0])}})[0];
    const Value scale = parameter(b, "scale", in[1]), zero = parameter(b, "zero", in[2]);
    return replace(n, b, b.ops(graph().op(before), {{moved, scale, zero}})[0], in);
  }

  // ---- What is quantized -----------------------------------------------------------------------

  Result<bool> quantize(NodeId n) {
    const std::vector<ValueId> in = three(copy_(copy_.source().operands(n)));
    const Op op = copy_.source().op(n);
    if (!is_byte(op.dtype("dtype")) || op.integer("block") > 0) return false;
    const std::optional<Tensor> scale = HONE_TRY(usual_scale(in[1]));
    if (!scale) return false;
    if (const ValueId same = HONE_TRY(unquantized(in, op, *scale)); !same.is_none()) {
      copy_.replace(copy_.source().result(n), same);
      return true;
    }
    if (!is_rounded(in[0])) return false;
    return multiplied(n, in, op, *scale);
  }

  // The bytes that the operand was dequantized from in the same way.
  Result<ValueId> unquantized(const std::vector<ValueId>& in, Op op, const Tensor& scale) {
    const NodeId before = producer(in[0]);
    if (!is_dequantize(graph().opcode(before))) return ValueId::none();
    const std::vector<ValueId> from = three(graph().operands(before));
    if (graph().type(from[0]).dtype() != op.dtype("dtype") || graph().type(from[1]).rank() > 0 ||
        graph().op(before).integer("block") > 0)
      return ValueId::none();
    const std::optional<Tensor> other = HONE_TRY(usual_scale(from[1]));
    if (!other || !other->same_bytes(scale)) return ValueId::none();
    const std::optional<int64_t> zero = HONE_TRY(number(in[2]));
    if (!zero || zero != HONE_TRY(number(from[2]))) return ValueId::none();
    return from[0];
  }

  Result<std::optional<int64_t>> number(ValueId zero) {
    if (zero.is_none()) return std::optional<int64_t>(0);
    const std::optional<Tensor> tensor = HONE_TRY(made_of_constants(graph(), zero));
    if (!tensor || tensor->type().rank() > 0) return std::optional<int64_t>();
    return std::optional(tensor->integer_at(0));
  }

  // True if a product's rounding is in the value, so that an exact quotient is none: elementwise
  // ops alone are between them.
  bool is_rounded(ValueId v) {
    constexpr size_t kMostNodes = 16;
    std::vector<ValueId> open = {v};
    for (size_t i = 0; i < open.size() && open.size() <= kMostNodes; ++i) {
      if (std::ranges::find(products_, open[i]) != products_.end()) return true;
      if (!is_elementwise(graph().opcode(producer(open[i])))) continue;
      for (ValueId operand : graph().operands(producer(open[i]))) open.push_back(operand);
    }
    return false;
  }

  // In place of a division.
  Result<bool> multiplied(NodeId n, const std::vector<ValueId>& in, Op op, const Tensor& scale) {
    std::vector<double> inverse;
    for (int64_t i = 0; i < scale.elements(); ++i) inverse.push_back(1 / scale.real_at(i));
    Builder b;
    const Value x = parameter(b, "x", in[0]), zero = parameter(b, "zero", in[2]);
    const auto spread = [&](Value v) { return spread_over(v, x.dims(), op); };
    Value y = x * spread(b.constant(Tensor::from_reals(scale.type(), inverse)));
    y = HONE_PLANT(quantize_cut, unary(Opcode::round, y), y);
    if (zero) y = y + spread(cast(zero, DType::f32));
    return replace(n, b, cast(y, op.dtype("dtype")), {in[0], in[2]});
  }

  // A number, or one for each index along the op's axis.
  static Value spread_over(Value v, const Dims& dims, Op op) {
    if (v.rank() == 0) return broadcast(v, dims, {});
    const int64_t axis = op.integer("axis");
    return broadcast(v, dims, {axis < 0 ? axis + static_cast<int64_t>(dims.size()) : axis});
  }

  // ---- Products --------------------------------------------------------------------------------

  Result<bool> multiply(NodeId n) {
    const Graph& source = copy_.source();
    const AccessRelation relation = access_of(source, n);
    const Type type = source.type(source.result(n));
    if (type.dtype() != DType::f32) return false;
    std::array<Factor, 2> factors;
    double most = 1;
    for (size_t side = 0; side < 2; ++side) {
      std::optional<Factor> factor =
          HONE_TRY(decode(copy_(source.operands(n)[side]), relation, side));
      if (!factor) return false;
      most *= static_cast<double>(factor->most);
      factors[side] = std::move(*factor);
    }
    for (const IterDim& dim : relation.dims) {
      if (dim.kind != IterKind::reduction) continue;
      if (!dim.extent.is_static()) return false;
      most *= static_cast<double>(dim.extent.value());
    }
    if (most >= 0x1p31 || !HONE_TRY(may_multiply(source.opcode(n), factors))) return false;
    Builder b;
    std::vector<Value> integers;
    for (size_t side = 0; side < 2; ++side)
      integers.push_back(centered(b, side == 0 ? "x" : "w", factors[side]));
    const Value sum =
        b.op(source.opcode(n), integers, changed_attrs(source.op(n), {{"accumulate", "same"}}));
    const Value y = scaled(cast(sum, DType::f32), factors);
    HONE_TRY(
        replace(n, b, y, {factors[0].bytes, factors[0].zero, factors[1].bytes, factors[1].zero}));
    products_.push_back(copy_(source.result(n)));
    return true;
  }

  // True if the products are those of bytes (bytes.cc), so that they are faster than those of
  // reals.
  Result<bool> may_multiply(Opcode opcode, const std::array<Factor, 2>& factors) {
    bool are_numbers = true;  // the zero points
    for (const Factor& factor : factors)
      are_numbers = are_numbers && (factor.zero.is_none() || graph().type(factor.zero).rank() == 0);
    return (are_numbers && is_dot(opcode)) || HONE_TRY(are_weights(factors[1]));
  }

  // Constants that an i8 holds without their zero point.
  Result<bool> are_weights(const Factor& w) {
    const std::optional<Tensor> bytes = HONE_TRY(made_of_constants(graph(), w.bytes));
    if (!bytes) return false;
    if (w.most <= 128 && bytes->dtype() == DType::i8) {
      const std::optional<int64_t> zero = HONE_TRY(number(w.zero));
      if (zero == 0) return true;
    }
    Builder b;
    const Value integers = centered(b, "w", w);
    Graph body = HONE_TRY(b.finish({integers}));
    std::vector<Tensor> arguments = {*bytes};
    if (!w.zero.is_none()) {
      const std::optional<Tensor> zero = HONE_TRY(made_of_constants(graph(), w.zero));
      if (!zero) return false;
      arguments.push_back(*zero);
    }
    const Tensor numbers = HONE_TRY(evaluate(body, arguments))[0];
    for (int64_t i = 0; i < numbers.elements(); ++i)
      if (wrap_to(DType::i8, numbers.integer_at(i)) != numbers.integer_at(i)) return false;
    return true;
  }

  Result<std::optional<Factor>> decode(ValueId v, const AccessRelation& relation, size_t side) {
    std::vector<IndexExpr> index = identity_index(graph().type(v).rank());
    const int rank = static_cast<int>(index.size());
    Factor factor;
    NodeId n = producer(v);
    for (; is_move(graph(), n); n = producer(graph().operands(n)[0])) {
      const AccessRelation move = access_of(graph(), n);
      std::vector<IndexExpr> moved;
      for (const IndexExpr& expr : move.operands[0].at(0).index)
        moved.push_back(expr.substitute(index));
      index = std::move(moved);
      factor.moves.push_back(n);
    }
    std::ranges::reverse(factor.moves);
    if (!is_dequantize(graph().opcode(n))) return std::optional<Factor>();
    const std::vector<ValueId> in = three(graph().operands(n));
    if (!is_byte(graph().type(in[0]).dtype()) || graph().op(n).integer("block") > 0)
      return std::optional<Factor>();
    factor.bytes = in[0], factor.zero = in[2], factor.dequantize = graph().op(n);
    const std::optional<Tensor> scale = HONE_TRY(usual_scale(in[1]));
    if (!scale) return std::optional<Factor>();
    if (const std::optional<int64_t> zero = HONE_TRY(number(in[2]))) {
      const int64_t low = graph().type(in[0]).dtype() == DType::u8 ? 0 : -128;
      factor.most = std::max(*zero - low, low + 255 - *zero);
    }
    if (scale->type().rank() == 0) {
      factor.scale = {scale->real_at(0)};
      return std::optional(std::move(factor));
    }
    const int64_t axis = graph().op(n).integer("axis");
    const int64_t bytes_rank = graph().type(in[0]).rank();
    const IndexExpr& along = index[static_cast<size_t>(axis < 0 ? axis + bytes_rank : axis)];
    const std::optional<int> dim = only_iter(along, rank);
    if (!dim || !graph().type(v).dim(*dim).is_static()) return std::optional<Factor>();
    // The dim of the result that goes through the same indices.
    const IndexExpr& read = relation.operands[side].at(0).index[static_cast<size_t>(*dim)];
    const auto same = std::ranges::find(relation.results[0].index, read);
    if (same == relation.results[0].index.end()) return std::optional<Factor>();
    factor.dim = static_cast<int>(same - relation.results[0].index.begin());
    std::vector<int64_t> point(static_cast<size_t>(rank));
    for (int64_t i = 0; i < graph().type(v).dim(*dim).value(); ++i) {
      point[static_cast<size_t>(*dim)] = HONE_PLANT(scale_first, i, 0);
      factor.scale.push_back(scale->real_at(along.at(point)));
    }
    return std::optional(std::move(factor));
  }

  // The bytes as i32, less their zero point.
  Value centered(Builder& b, std::string_view name, const Factor& factor) {
    Value x = cast(parameter(b, name, factor.bytes), DType::i32);
    if (const Value zero = parameter(b, fmt::format("{}_zero", name), factor.zero))
      x = x - spread_over(cast(zero, DType::i32), x.dims(), factor.dequantize);
    for (NodeId move : factor.moves) x = b.ops(graph().op(move), {{x}})[0];
    return x;
  }

  // Scales by one factor, if one of the scales is a number.
  static Value scaled(Value sum, const std::array<Factor, 2>& factors) {
    const auto times = [&](const Factor& by, double number) {
      std::vector<double> scale;
      for (double each : by.scale) scale.push_back(each * number);
      const auto count = static_cast<int64_t>(scale.size());
      const Type type = by.dim ? Type::get(DType::f32, {count}) : Type::scalar(DType::f32);
      const Value v = sum.builder().constant(Tensor::from_reals(type, scale));
      return sum * broadcast(v, sum.dims(), by.dim ? Ints{*by.dim} : Ints());
    };
    for (size_t side = 0; side < 2; ++side)
      if (!factors[side].dim) return times(factors[1 - side], factors[side].scale[0]);
    sum = times(factors[0], 1);
    return times(factors[1], 1);
  }

  GraphCopy copy_;
  std::vector<ValueId> products_;
};

}  // namespace

Result<Graph> products_of_integers(const Graph& graph) {
  if (!has_dequantized(graph)) return graph;
  const auto is_other = [](Opcode opcode) {
    return !is_quantize(opcode) && !is_dequantize(opcode);
  };
  const Graph expanded = HONE_TRY(expand_composites(graph, is_other));
  return Integers(expanded).run();
}

}  // namespace hone

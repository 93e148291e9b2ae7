#include <algorithm>
#include <optional>

#include "base/planted.h"
#include "ir/functional.h"
#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "ir/ops/conv_order.h"
#include "rewrite/constants.h"
#include "rewrite/passes.h"

// Importers write a product of quantized numbers as one of i32: their bytes are cast, and lose
// their zero points. Machines multiply bytes faster, u8 by i8. So zero points are taken out of the
// sums: what they contribute are sums of one operand alone, constant ones where it is constant. All
// of it is exact modulo 2^32.

namespace hone {
namespace {

bool is_byte_type(DType dtype) { return dtype == DType::u8 || dtype == DType::i8; }

// The parts of an operand: bytes, cast to i32, moved, and less a number.
struct Bytes {
  ValueId bytes;
  std::vector<NodeId> moves;       // of the bytes, first to last
  ValueId zero = ValueId::none();  // of i32 without dims; none: 0
  std::optional<int64_t> known_zero = 0;
};

class Decoder {
 public:
  explicit Decoder(const Graph& graph) : graph_(graph) {}

  std::optional<Bytes> decode(ValueId v) const {
    Bytes result;
    for (;;) {
      const NodeId n = graph_.producer(v);
      const Opcode opcode = graph_.opcode(n);
      if (is_move(graph_, n)) {
        result.moves.push_back(n);
        v = graph_.operands(n)[0];
      } else if (opcode == Opcode::sub && result.zero.is_none()) {
        result.zero = number(graph_.operands(n)[1]);
        if (result.zero.is_none()) return std::nullopt;
        result.known_zero = constant(result.zero);
        v = graph_.operands(n)[0];
      } else {
        if (opcode != Opcode::cast || graph_.type(v).dtype() != DType::i32) return std::nullopt;
        result.bytes = graph_.operands(n)[0];
        if (!is_byte_type(graph_.type(result.bytes).dtype())) return std::nullopt;
        std::ranges::reverse(result.moves);
        return result;
      }
    }
  }

  // True if it comes from the type, so that a byte holds it.
  bool is_of(ValueId number, DType dtype) const {
    const NodeId n = graph_.producer(number);
    return graph_.opcode(n) == Opcode::cast && graph_.type(graph_.operands(n)[0]).dtype() == dtype;
  }

 private:
  // The one number that all elements are.
  ValueId number(ValueId v) const {
    while (graph_.type(v).rank() > 0) {
      const NodeId n = graph_.producer(v);
      if (!is_move(graph_, n)) return ValueId::none();
      v = graph_.operands(n)[0];
    }
    return v;
  }

  std::optional<int64_t> constant(ValueId v) const {
    const Result<std::optional<Tensor>> tensor = made_of_constants(graph_, v);
    if (!tensor.ok() || !*tensor) return std::nullopt;
    return (*tensor)->integer_at(0);
  }

  const Graph& graph_;
};

// The dims of the result that a side of a contraction gives, and the operand's own for each, in the
// result's order.
struct SideDims {
  std::vector<std::pair<int, int>> dims;  // of the operand, of the result
};

SideDims dims_of(Op op, const Graph& graph, NodeId n, size_t side) {
  const int rank = graph.type(graph.operands(n)[side]).rank();
  if (is_convolution(op.opcode())) {
    const ConvOrder order = *parse_conv_order(op.word("order"), rank - 2);
    return {{{order.kernel_output, order.output_feature}}};
  }
  SideDims all;
  const Ints& batch = op.ints(side == 0 ? "lhs_batch" : "rhs_batch");
  const Ints& contract = op.ints(side == 0 ? "lhs_contract" : "rhs_contract");
  for (size_t i = 0; i < batch.size(); ++i)
    all.dims.emplace_back(static_cast<int>(batch[i]), static_cast<int>(i));
  std::vector<int> free;
  for (int dim = 0; dim < rank; ++dim)
    if (std::ranges::find(batch, dim) == batch.end() &&
        std::ranges::find(contract, dim) == contract.end())
      free.push_back(dim);
  const int results = graph.type(graph.result(n)).rank();
  const int first =
      static_cast<int>(side == 0 ? batch.size() : static_cast<size_t>(results) - free.size());
  for (size_t i = 0; i < free.size(); ++i)
    all.dims.emplace_back(free[i], first + static_cast<int>(i));
  return all;
}

// The sums over the other dims, modulo 2^32.
Tensor sums_over_rest(const Tensor& tensor, const SideDims& side) {
  const Ints strides = row_major_strides(tensor.type().static_dims());
  Dims dims;
  for (const auto& [from, to] : side.dims) dims.push_back(tensor.type().dim(from));
  const Type type = Type::get(DType::i32, dims);
  std::vector<int64_t> sums(static_cast<size_t>(type.static_elements()));
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    int64_t at = 0;
    for (const auto& [from, to] : side.dims) {
      const int64_t size = tensor.type().dim(from).value();
      at = at * size + i / strides[static_cast<size_t>(from)] % size;
    }
    sums[static_cast<size_t>(at)] += tensor.integer_at(i);
  }
  for (int64_t& sum : sums) sum = wrap_to(DType::i32, sum);
  return Tensor::from_integers(type, sums);
}

// The same for a value that is not a constant.
Value sums_over_rest(Value bytes, const SideDims& side) {
  Ints axes, kept, order;
  for (int dim = 0; dim < bytes.rank(); ++dim) {
    const auto is_dim = [&](const std::pair<int, int>& each) { return each.first == dim; };
    (std::ranges::any_of(side.dims, is_dim) ? kept : axes).push_back(dim);
  }
  for (const auto& [from, to] : side.dims)
    order.push_back(std::ranges::find(kept, from) - kept.begin());
  return transpose(reduce_sum(cast(bytes, DType::i32), axes), order);
}

Value over_result(Value sums, Value result, const SideDims& side) {
  Ints map;
  for (const auto& [from, to] : side.dims) map.push_back(to);
  return broadcast(sums, result.dims(), map);
}

class ByteProducts {
 public:
  explicit ByteProducts(const Graph& graph) : graph_(graph), decoder_(graph), copy_(graph) {}

  Result<Graph> run() {
    for (NodeId n : graph_.nodes()) {
      if (HONE_TRY(rewrite(n))) continue;
      HONE_TRY(
          copy_.node(n, graph_.op(n), HONE_TRY(transform_regions(graph_, n, products_of_bytes))));
    }
    return remove_dead_code(copy_.finish());
  }

 private:
  // False: the node is not such a product.
  Result<bool> rewrite(NodeId n) {
    const Opcode opcode = graph_.opcode(n);
    if (!is_dot(opcode) && !is_convolution(opcode)) return false;
    if (graph_.type(graph_.result(n)).dtype() != DType::i32) return false;
    const std::optional<Bytes> x = decoder_.decode(graph_.operands(n)[0]);
    if (!x) return false;
    const std::optional<Tensor> weights = HONE_TRY(small_constant(graph_.operands(n)[1]));
    std::optional<Bytes> w;
    if (!weights) {
      w = decoder_.decode(graph_.operands(n)[1]);
      if (!w || (signed_zero(*w) != 0 && !depth_of_dot(n))) return false;
    }
    if (needs_padding(n, *x) && !may_be_padded(n, *x)) return false;
    const Graph body = HONE_TRY(product(n, *x, weights, w));
    std::vector<ValueId> arguments;
    const auto add = [&](const Bytes& side) {
      arguments.push_back(copy_(side.bytes));
      if (!side.known_zero) arguments.push_back(copy_(side.zero));
    };
    add(*x);
    if (w) add(*w);
    copy_.replace(graph_.result(n), HONE_TRY(copy_.append(body, arguments))[0]);
    return true;
  }

  // The numbers are those that an i8 holds.
  Result<std::optional<Tensor>> small_constant(ValueId v) const {
    std::optional<Tensor> tensor = HONE_TRY(made_of_constants(graph_, v));
    if (!tensor || !is_integer(tensor->dtype())) return std::optional<Tensor>();
    for (int64_t i = 0; i < tensor->elements(); ++i)
      if (wrap_to(DType::i8, tensor->integer_at(i)) != tensor->integer_at(i))
        return std::optional<Tensor>();
    return tensor;
  }

  // How many products a dot adds up.
  std::optional<int64_t> depth_of_dot(NodeId n) const {
    if (!is_dot(graph_.opcode(n))) return std::nullopt;
    int64_t depth = 1;
    for (int64_t dim : graph_.op(n).ints("lhs_contract")) {
      const Dim extent = graph_.type(graph_.operands(n)[0]).dim(static_cast<int>(dim));
      if (!extent.is_static()) return std::nullopt;
      depth *= extent.value();
    }
    return depth;
  }

  bool is_signed_byte(const Bytes& x) const { return graph_.type(x.bytes).dtype() == DType::i8; }
  // The number that is taken from the byte as a u8.
  std::optional<int64_t> zero_of(const Bytes& x) const {
    if (!x.known_zero) return std::nullopt;
    return *x.known_zero + (is_signed_byte(x) ? 128 : 0);
  }

  // The number that is taken from the byte as an i8.
  std::optional<int64_t> signed_zero(const Bytes& w) const {
    if (!w.known_zero) return std::nullopt;
    return *w.known_zero - (is_signed_byte(w) ? 0 : 128);
  }

  // A conv multiplies padding as zeros, which are bytes at the zero point.
  bool needs_padding(NodeId n, const Bytes& x) const {
    if (!is_convolution(graph_.opcode(n)) || zero_of(x) == 0) return false;
    const auto any = [&](std::string_view name, int64_t usual) {
      return std::ranges::any_of(graph_.op(n).ints(name),
                                 [&](int64_t each) { return each != usual; });
    };
    return any("pad_low", 0) || any("pad_high", 0) || any("input_dilation", 1);
  }
  bool may_be_padded(NodeId n, const Bytes& x) const {
    if (std::ranges::any_of(graph_.op(n).ints("input_dilation"),
                            [](int64_t each) { return each != 1; }))
      return false;
    if (const std::optional<int64_t> zero = zero_of(x)) return *zero >= 0 && *zero < 256;
    return decoder_.is_of(x.zero, graph_.type(x.bytes).dtype());
  }

  // sum (u - a) * (w - c) = sum u * w - a * sum w - c * (sum u - depth * a)
  Result<Graph> product(NodeId n, const Bytes& x, const std::optional<Tensor>& weights,
                        const std::optional<Bytes>& w) {
    Builder b;
    Value u = moved(b, "x", x, DType::u8);
    const int64_t added = is_signed_byte(x) ? 128 : 0;
    const Value a = zero_point(b, "x_zero", x, HONE_PLANT(byte_zero, added, 0));
    Attrs changes = {{"accumulate", std::string("i32")}};
    if (needs_padding(n, x)) u = padded(b, n, u, a, changes);
    const Value factor = w ? moved(b, "w", *w, DType::i8) : b.constant(as_bytes(*weights));
    const Op op = graph_.op(n);
    Value sum = b.op(op.opcode(), {u, factor}, changed_attrs(op, changes));
    if (zero_of(x) != 0) {
      const SideDims dims = dims_of(op, graph_, n, 1);
      const Value lost =
          w ? sums_over_rest(factor, dims) : b.constant(sums_over_rest(*weights, dims));
      sum = sum - over_result(lost * broadcast(a, lost.dims(), {}), sum, dims);
    }
    if (w && signed_zero(*w) != 0) {
      const Value c = zero_point(b, "w_zero", *w, is_signed_byte(*w) ? 0 : -128);
      const SideDims dims = dims_of(op, graph_, n, 0);
      Value lost = sums_over_rest(u, dims);
      lost = lost - broadcast(a * static_cast<double>(*depth_of_dot(n)), lost.dims(), {});
      sum = sum - over_result(lost * broadcast(c, lost.dims(), {}), sum, dims);
    }
    return b.finish({sum});
  }

  // The bytes of the type, whose highest bit is the other one where theirs is another type.
  Value moved(Builder& b, std::string_view name, const Bytes& bytes, DType dtype) {
    Value v = b.parameter(name, graph_.type(bytes.bytes));
    for (NodeId move : bytes.moves) v = b.ops(graph_.op(move), {{v}})[0];
    if (v.dtype() == dtype) return v;
    v = b.op(Opcode::bitcast, {v}, {{"dtype", dtype}});
    return b.op(Opcode::xor_, {v, b.full(dtype, v.dims(), dtype == DType::u8 ? 128 : -128)});
  }

  // As an i32, for bytes to whose numbers `added` was added.
  Value zero_point(Builder& b, std::string_view name, const Bytes& bytes, int64_t added) {
    if (!bytes.known_zero) return b.parameter(name, DType::i32, {}) + static_cast<double>(added);
    return b.scalar(DType::i32, static_cast<double>(*bytes.known_zero + added));
  }

  static Tensor as_bytes(const Tensor& weights) {
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < weights.elements(); ++i) numbers.push_back(weights.integer_at(i));
    return Tensor::from_integers(weights.type().with_dtype(DType::i8), numbers);
  }

  // With bytes at the zero point, in place of the conv's own padding.
  Value padded(Builder& b, NodeId n, Value u, Value zero, Attrs& changes) {
    const Op op = graph_.op(n);
    const ConvOrder order = *parse_conv_order(op.word("order"), u.rank() - 2);
    Dims low(static_cast<size_t>(u.rank()), 0), high = low;
    for (size_t i = 0; i < order.input_spatial.size(); ++i) {
      const auto dim = static_cast<size_t>(order.input_spatial[i]);
      const Ints &lows = op.ints("pad_low"), &highs = op.ints("pad_high");
      if (!lows.empty()) low[dim] = lows[i];
      if (!highs.empty()) high[dim] = highs[i];
    }
    changes.emplace_back("pad_low", Ints());
    changes.emplace_back("pad_high", Ints());
    const Value padding = HONE_PLANT(byte_padding, cast(zero, DType::u8), b.scalar(DType::u8, 0));
    return b.op(Opcode::pad, {u, padding}, {{"low", low}, {"high", high}});
  }

  const Graph& graph_;
  const Decoder decoder_;
  GraphCopy copy_;
};

}  // namespace

Result<Graph> products_of_bytes(const Graph& graph) { return ByteProducts(graph).run(); }

}  // namespace hone

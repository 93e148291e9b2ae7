#include <algorithm>
#include <optional>

#include "ir/functional.h"
#include "ir/graph_copy.h"
#include "ir/op_def.h"
#include "ir/ops/conv_order.h"
#include "ir/reference/evaluate.h"
#include "rewrite/passes.h"

// Importers write a product of quantized numbers as one of i32: their bytes are cast, and lose
// their zero points. Machines multiply bytes faster, u8 by i8. So with x = u + a and constant
// weights w
//   sum x * w = sum u * w + a * sum w
// where a is minus the zero point, and the last sum is a constant. All of it is exact modulo 2^32.

namespace hone {
namespace {

// Whether each element of the result is one of the only operand.
bool is_move(const Graph& graph, NodeId n) {
  return class_of(graph.opcode(n)) == OpClass::movement && graph.operands(n).size() == 1;
}

bool is_byte(DType dtype) { return dtype == DType::u8 || dtype == DType::i8; }

// What an operand is made of: bytes, cast to i32, moved, and less a number.
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
        if (!is_byte(graph_.type(result.bytes).dtype())) return std::nullopt;
        std::ranges::reverse(result.moves);
        return result;
      }
    }
  }

  // Whether it comes from the type, so that a byte holds it.
  bool is_of(ValueId number, DType dtype) const {
    const NodeId n = graph_.producer(number);
    return graph_.opcode(n) == Opcode::cast && graph_.type(graph_.operands(n)[0]).dtype() == dtype;
  }

  // The tensor, if it is made of constants by a few ops.
  Result<std::optional<Tensor>> made_of_constants(ValueId v) const {
    constexpr size_t kMostNodes = 16;
    std::vector<NodeId> nodes = {graph_.producer(v)};
    for (size_t i = 0; i < nodes.size(); ++i) {
      const NodeId n = nodes[i];
      const bool is_plain = graph_.opcode(n) == Opcode::constant ||
                            is_elementwise(graph_.opcode(n)) || is_move(graph_, n);
      if (!is_plain || nodes.size() > kMostNodes || !graph_.type(graph_.result(n)).is_static())
        return std::optional<Tensor>();
      for (ValueId operand : graph_.operands(n))
        if (std::ranges::find(nodes, graph_.producer(operand)) == nodes.end())
          nodes.push_back(graph_.producer(operand));
    }
    std::erase_if(nodes, [&](NodeId n) { return graph_.opcode(n) == Opcode::constant; });
    if (nodes.empty()) return std::optional(graph_.constant(graph_.producer(v)));
    std::ranges::sort(nodes);
    const Graph alone = HONE_TRY(extract_subgraph(graph_, nodes, {&v, 1}));
    return std::optional(std::move(HONE_TRY(evaluate(alone, {}))[0]));
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
    const Result<std::optional<Tensor>> tensor = made_of_constants(v);
    if (!tensor.ok() || !*tensor) return std::nullopt;
    return (*tensor)->integer_at(0);
  }

  const Graph& graph_;
};

// The attributes of an op, some of them changed.
Attrs changed(Op op, const Attrs& changes) {
  Attrs attrs;
  for (size_t i = 0; i < op.attrs().size(); ++i)
    attrs.emplace_back(op.def().attrs[i].name, op.attrs()[i]);
  for (const auto& [name, value] : changes)
    std::ranges::find(attrs, name, &Attrs::value_type::first)->second = value;
  return attrs;
}

// What a contraction makes of its second operand: the dims of the result that it gives, by its own.
struct Weights {
  std::vector<std::pair<int, int>> dims;  // of the operand, of the result
};

Weights weights_of(Op op, const Graph& graph, NodeId n) {
  const int rank = graph.type(graph.operands(n)[1]).rank();
  const int results = graph.type(graph.result(n)).rank();
  if (op.opcode() == Opcode::conv) {
    const ConvOrder order = *parse_conv_order(op.word("order"), rank - 2);
    return {{{order.kernel_output, order.output_feature}}};
  }
  Weights weights;
  const Ints &batch = op.ints("rhs_batch"), &contract = op.ints("rhs_contract");
  for (size_t i = 0; i < batch.size(); ++i)
    weights.dims.emplace_back(static_cast<int>(batch[i]), static_cast<int>(i));
  std::vector<int> free;
  for (int dim = 0; dim < rank; ++dim)
    if (std::ranges::find(batch, dim) == batch.end() &&
        std::ranges::find(contract, dim) == contract.end())
      free.push_back(dim);
  for (size_t i = 0; i < free.size(); ++i)
    weights.dims.emplace_back(free[i], results - static_cast<int>(free.size() - i));
  return weights;
}

// The sums over the other dims, modulo 2^32.
Tensor sums_over_rest(const Tensor& tensor, const Weights& weights) {
  const Ints strides = row_major_strides(tensor.type().static_dims());
  Dims dims;
  for (const auto& [from, to] : weights.dims) dims.push_back(tensor.type().dim(from));
  const Type type = Type::get(DType::i32, dims);
  std::vector<int64_t> sums(static_cast<size_t>(type.static_elements()));
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    int64_t at = 0;
    for (const auto& [from, to] : weights.dims) {
      const int64_t size = tensor.type().dim(from).value();
      at = at * size + i / strides[static_cast<size_t>(from)] % size;
    }
    sums[static_cast<size_t>(at)] += tensor.integer_at(i);
  }
  for (int64_t& sum : sums) sum = wrap_to(DType::i32, sum);
  return Tensor::from_integers(type, sums);
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
  // False: the node is no such product.
  Result<bool> rewrite(NodeId n) {
    const Opcode opcode = graph_.opcode(n);
    if (opcode != Opcode::dot && opcode != Opcode::conv) return false;
    if (graph_.type(graph_.result(n)).dtype() != DType::i32) return false;
    const std::optional<Bytes> x = decoder_.decode(graph_.operands(n)[0]);
    if (!x) return false;
    const std::optional<Tensor> weights =
        HONE_TRY(decoder_.made_of_constants(graph_.operands(n)[1]));
    if (!weights || !is_integer(weights->dtype())) return false;
    for (int64_t i = 0; i < weights->elements(); ++i)
      if (wrap_to(DType::i8, weights->integer_at(i)) != weights->integer_at(i)) return false;
    if (needs_padding(n, *x) && !may_be_padded(n, *x)) return false;
    const Graph body = HONE_TRY(product(n, *x, *weights));
    std::vector<ValueId> arguments = {copy_(x->bytes)};
    if (!x->known_zero) arguments.push_back(copy_(x->zero));
    copy_.replace(graph_.result(n), HONE_TRY(copy_.append(body, arguments))[0]);
    return true;
  }

  bool is_signed_byte(const Bytes& x) const { return graph_.type(x.bytes).dtype() == DType::i8; }
  // What is taken from the byte as a u8.
  std::optional<int64_t> zero_of(const Bytes& x) const {
    if (!x.known_zero) return std::nullopt;
    return *x.known_zero + (is_signed_byte(x) ? 128 : 0);
  }

  // A conv multiplies padding as zeros, which are bytes at the zero point.
  bool needs_padding(NodeId n, const Bytes& x) const {
    if (graph_.opcode(n) != Opcode::conv || zero_of(x) == 0) return false;
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

  Result<Graph> product(NodeId n, const Bytes& x, const Tensor& weights) {
    Builder b;
    Value u = b.parameter("x", graph_.type(x.bytes));
    Value zero = x.known_zero
                     ? b.constant(Tensor::from_integers(Type::scalar(DType::i32), {{*zero_of(x)}}))
                     : b.parameter("zero", DType::i32, {});
    if (!x.known_zero && is_signed_byte(x)) zero = zero + 128.0;
    for (NodeId move : x.moves) u = b.ops(graph_.op(move), {{u}})[0];
    if (is_signed_byte(x))
      u = b.op(Opcode::xor_, {b.op(Opcode::bitcast, {u}, {{"dtype", DType::u8}}),
                              b.full(DType::u8, u.dims(), 128)});
    Attrs changes = {{"accumulate", std::string("i32")}};
    if (needs_padding(n, x)) u = padded(b, n, u, zero, changes);
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < weights.elements(); ++i) numbers.push_back(weights.integer_at(i));
    const Value w =
        b.constant(Tensor::from_integers(weights.type().with_dtype(DType::i8), numbers));
    Value sum = b.op(graph_.opcode(n), {u, w}, changed(graph_.op(n), changes));
    if (zero_of(x) != 0) {
      const Weights dims = weights_of(graph_.op(n), graph_, n);
      Ints map;
      for (const auto& [from, to] : dims.dims) map.push_back(to);
      Value lost = b.constant(sums_over_rest(weights, dims));
      lost = lost * broadcast(zero, lost.dims(), {});
      sum = sum - broadcast(lost, sum.dims(), map);
    }
    return b.finish({sum});
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
    return b.op(Opcode::pad, {u, cast(zero, DType::u8)}, {{"low", low}, {"high", high}});
  }

  const Graph& graph_;
  const Decoder decoder_;
  GraphCopy copy_;
};

}  // namespace

Result<Graph> products_of_bytes(const Graph& graph) { return ByteProducts(graph).run(); }

}  // namespace hone

#include "front/onnx/write/packed_product.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/hash.h"
#include "front/decoder/blocks.h"
#include "front/decoder/rounded_product.h"
#include "ir/functional.h"
#include "ir/op_facts.h"
#include "ir/reference/evaluate.h"

namespace hone::onnx_io {
namespace {

// The nodes that make a value, without those behind the first `most`; nothing: data are among them.
std::optional<std::vector<NodeId>> makers_of(const Graph& graph, ValueId v, size_t most) {
  std::set<NodeId> all = {graph.producer(v)};
  std::vector<NodeId> left = {graph.producer(v)};
  while (!left.empty()) {
    const NodeId n = left.back();
    left.pop_back();
    if (is_parameter(graph.opcode(n)) || !graph.regions(n).empty() || all.size() > most)
      return std::nullopt;
    for (ValueId operand : graph.operands(n))
      if (!operand.is_none() && all.insert(graph.producer(operand)).second)
        left.push_back(graph.producer(operand));
  }
  return std::vector<NodeId>(all.begin(), all.end());
}

// The value, if few ops make it of constants.
std::optional<Tensor> constant_of(const Graph& graph, ValueId v) {
  constexpr size_t kMostNodes = 16;
  if (is_constant(graph.opcode(graph.producer(v)))) return graph.constant(graph.producer(v));
  std::optional<std::vector<NodeId>> nodes = makers_of(graph, v, kMostNodes);
  if (!nodes || !graph.type(v).is_static()) return std::nullopt;
  std::erase_if(*nodes, [&](NodeId n) { return is_constant(graph.opcode(n)); });
  const Result<Graph> alone = extract_subgraph(graph, *nodes, {&v, 1});
  if (!alone.ok()) return std::nullopt;
  Result<std::vector<Tensor>> made = evaluate(*alone, {}, {.numerics = Numerics::rounded});
  return made.ok() ? std::optional(made->front()) : std::nullopt;
}

// Numbers of a few bits in bytes, the lowest bits first. Each row begins a byte.
class BitRows {
 public:
  BitRows(std::span<std::byte> to, int64_t bits, int64_t columns)
      : to_(to), bits_(bits), row_bytes_((columns * bits + 7) / 8) {
    std::ranges::fill(to, std::byte{0});
  }
  void set(int64_t row, int64_t column, int64_t number) {
    const int64_t at = column * bits_;
    to_[static_cast<size_t>(row * row_bytes_ + at / 8)] |=
        static_cast<std::byte>(number << (at % 8));
  }

 private:
  std::span<std::byte> to_;
  int64_t bits_, row_bytes_;
};

Type bytes_type(const PackedProduct& p) {
  const int64_t blocks = (p.inputs + p.block - 1) / p.block;
  return Type::get(DType::u8, {p.outputs, blocks, p.block * p.bits / 8});
}

// ---- Weights that `dequantize` makes ------------------------------------------------------------

constexpr int64_t kLeastBlock = 16, kMostBlock = 128;
constexpr DTypeSet kFewBits = {DType::i2, DType::u2, DType::i4, DType::u4, DType::i8, DType::u8};

// Which scale is that of a weight.
struct ScaleOf {
  int64_t outputs = 1, inputs = 1;            // of the scales: as many as there are along each
  int64_t output_step = 0, input_step = 0;    // in the tensor of scales
  int64_t output_block = 1, input_block = 1;  // weights that share a scale

  int64_t at(int64_t output, int64_t input) const {
    return output / output_block * output_step + input / input_block * input_step;
  }
};

// `summed`: the weights' dim that is summed over. Nothing: scales change within every block.
std::optional<ScaleOf> scale_of(Op op, Type weights, Type scales, int summed, int64_t& block) {
  ScaleOf of;
  const int64_t inputs = weights.dim(summed).value();
  block = kLeastBlock;
  while (block < inputs && block < kMostBlock) block *= 2;
  if (scales.rank() == 0) return of;
  const int64_t axis = op.integer("axis") + (op.integer("axis") < 0 ? weights.rank() : 0);
  const int64_t given = op.integer("block");
  if (given == 0) {
    if (axis == summed) return std::nullopt;
    of.output_step = 1;
    return of;
  }
  if (axis != summed) return std::nullopt;
  of.input_block = given;
  of.input_step = summed == 1 ? 1 : scales.dim(1).value();
  of.output_step = summed == 1 ? scales.dim(1).value() : 1;
  // The largest power of 2 that divides the block, unless one block is all.
  if (given < inputs) block = std::min(given & -given, int64_t{1} << 30);
  return block < kLeastBlock ? std::nullopt : std::optional(of);
}

int64_t middle_of(DType dtype) { return is_signed(dtype) ? int64_t{1} << (bits(dtype) - 1) : 0; }

// [outputs, inputs], in bytes when they are read.
Tensor packed_numbers(const PackedProduct& p, const Tensor& numbers, int summed) {
  const int64_t middle = middle_of(numbers.dtype());
  auto fill = [p, numbers, summed, middle](std::span<std::byte> to) {
    const int64_t blocks = (p.inputs + p.block - 1) / p.block;
    BitRows rows(to, p.bits, blocks * p.block);
    const int64_t width = numbers.type().dim(1).value();
    std::vector<int64_t> line(static_cast<size_t>(width));
    for (int64_t i = 0; i < numbers.type().dim(0).value(); ++i) {
      numbers.read_integers(i * width, line);
      for (int64_t j = 0; j < width; ++j)
        rows.set(summed == 1 ? i : j, summed == 1 ? j : i, line[static_cast<size_t>(j)] + middle);
    }
  };
  const uint64_t identity = hash_combine(
      hash_combine(numbers.content_hash(), hash_string("n_bits", static_cast<uint64_t>(summed))),
      static_cast<uint64_t>(p.block));
  return Tensor::lazy(bytes_type(p), identity, std::move(fill));
}

// Absent where each is the one that MatMulNBits takes if none is given.
std::optional<Tensor> packed_zeros(const PackedProduct& p, const Tensor& zeros, const ScaleOf& of) {
  const int64_t usual = int64_t{1} << (p.bits - 1), middle = middle_of(zeros.dtype());
  const int64_t blocks = (p.inputs + p.block - 1) / p.block;
  Tensor packed = Tensor::zeros(Type::get(DType::u8, {p.outputs, (blocks * p.bits + 7) / 8}));
  BitRows rows(packed.mutable_bytes(), p.bits, blocks);
  bool are_usual = true;
  for (int64_t n = 0; n < p.outputs; ++n)
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t zero = zeros.integer_at(of.at(n, b * p.block)) + middle;
      are_usual = are_usual && zero == usual;
      rows.set(n, b, zero);
    }
  return are_usual ? std::nullopt : std::optional(std::move(packed));
}

Tensor spread_scales(const PackedProduct& p, const Tensor& scales, const ScaleOf& of) {
  const int64_t blocks = (p.inputs + p.block - 1) / p.block;
  std::vector<double> all;
  for (int64_t n = 0; n < p.outputs; ++n)
    for (int64_t b = 0; b < blocks; ++b) all.push_back(scales.real_at(of.at(n, b * p.block)));
  return Tensor::from_reals(Type::get(scales.dtype(), {p.outputs, blocks}), all);
}

std::optional<PackedProduct> of_dequantized(const Graph& graph, NodeId dot, NodeId dequantize) {
  const std::span<const ValueId> operands = graph.operands(dequantize);
  const std::optional<Tensor> numbers = constant_of(graph, operands[0]),
                              scales = constant_of(graph, operands[1]);
  if (!numbers || !scales || numbers->type().rank() != 2 || !kFewBits.contains(numbers->dtype()))
    return std::nullopt;
  const auto summed = static_cast<int>(graph.op(dot).ints("rhs_contract")[0]);
  PackedProduct p = {.inputs = numbers->type().dim(summed).value(),
                     .outputs = numbers->type().dim(1 - summed).value(),
                     .bits = bits(numbers->dtype())};
  if (p.inputs < 1 || p.outputs < 1) return std::nullopt;
  const std::optional<ScaleOf> of =
      scale_of(graph.op(dequantize), numbers->type(), scales->type(), summed, p.block);
  if (!of) return std::nullopt;
  Tensor zeros = Tensor::zeros(scales->type().with_dtype(numbers->dtype()));
  if (operands.size() > 2 && !operands[2].is_none()) {
    const std::optional<Tensor> given = constant_of(graph, operands[2]);
    if (!given) return std::nullopt;
    zeros = *given;
  }
  p.numbers = packed_numbers(p, *numbers, summed);
  p.scales = spread_scales(p, *scales, *of);
  p.zeros = packed_zeros(p, zeros, *of);
  return p;
}

// ---- Weights of GGUF files ----------------------------------------------------------------------

// Two values that are computed in the same way from the same constants, and from values that are
// taken as the same.
class SameWay {
 public:
  SameWay(const Graph& a, const Graph& b) : a_(a), b_(b) {}

  void take_as_same(ValueId x, ValueId y) { known_.emplace(x.index, y.index); }
  bool operator()(ValueId x, ValueId y) {
    if (x.is_none() || y.is_none()) return x.is_none() && y.is_none();
    if (!known_.emplace(x.index, y.index).second) return true;
    const NodeId n = a_.producer(x), m = b_.producer(y);
    if (is_parameter(a_.opcode(n))) return false;  // one is not another, unless that is known
    if (!(a_.type(x) == b_.type(y)) || !(a_.op(n) == b_.op(m))) return false;
    if (is_constant(a_.opcode(n)))
      return a_.constant(n).content_hash() == b_.constant(m).content_hash();
    const auto from = a_.operands(n), to = b_.operands(m);
    return std::ranges::equal(from, to, [&](ValueId v, ValueId w) { return (*this)(v, w); });
  }

 private:
  const Graph &a_, &b_;
  std::set<std::pair<uint32_t, uint32_t>> known_;
};

// One constant, by the formula of a format, in rows [outputs, bytes].
struct BlockWeights {
  BlockFormat format = {};
  Tensor bytes = {};
};
std::optional<BlockWeights> block_weights(const Graph& graph, ValueId v) {
  constexpr size_t kMostNodes = 160;
  const std::optional<std::vector<NodeId>> nodes = makers_of(graph, v, kMostNodes);
  if (!nodes) return std::nullopt;
  for (NodeId n : *nodes) {
    if (!is_constant(graph.opcode(n)) || graph.constant(n).dtype() != DType::u8 ||
        graph.constant(n).type().rank() != 2)
      continue;
    const Tensor bytes = graph.constant(n);
    for (int f = 0; f < kBlockFormats; ++f) {
      const auto format = static_cast<BlockFormat>(f);
      const BlockLayout& layout = layout_of(format);
      const int64_t width = bytes.type().dim(1).value();
      if (bytes.elements() == 0 || width % layout.bytes != 0 ||
          bytes.elements() / layout.bytes * layout.elements != graph.type(v).static_elements())
        continue;
      Builder b;
      const Result<Graph> formula =
          b.finish({unpacked_as_they_lie(b.constant(bytes, "blocks"), format)});
      if (formula.ok() && SameWay(graph, *formula)(v, formula->outputs()[0]))
        return BlockWeights{format, bytes};
    }
  }
  return std::nullopt;
}

// Calls make(bytes, first row, rows) for some rows at a time.
void in_pieces(const Tensor& bytes, const auto& make) {
  constexpr int64_t kAtOnce = int64_t{1} << 18;
  const int64_t rows = bytes.type().dim(0).value(), width = bytes.type().dim(1).value();
  const int64_t step = std::max<int64_t>(kAtOnce / width, 1);
  std::vector<std::byte> scratch;
  const std::span<const std::byte> all = bytes.bytes_once(scratch);
  for (int64_t first = 0; first < rows; first += step) {
    const int64_t count = std::min(step, rows - first);
    const auto part =
        all.subspan(static_cast<size_t>(first * width), static_cast<size_t>(count * width));
    make(Tensor::copy_of(Type::get(DType::u8, {count, width}), part), first, count);
  }
}

// One of the values that `of` builds from the bytes.
Tensor computed(const Tensor& bytes, const auto& of) {
  Builder b;
  const Result<Graph> graph = b.finish({of(b.constant(bytes, "blocks"))});
  HONE_CHECK(graph.ok(), "{}", graph.error().what());
  Result<std::vector<Tensor>> made = evaluate(*graph, {}, {.numerics = Numerics::rounded});
  HONE_CHECK(made.ok(), "{}", made.error().what());
  return made->front();
}

Tensor numbers_of_blocks(const PackedProduct& p, const BlockWeights& w) {
  auto fill = [p, w](std::span<std::byte> to) {
    BitRows rows(to, p.bits, p.inputs);  // whole blocks
    in_pieces(w.bytes, [&](const Tensor& part, int64_t first, int64_t count) {
      const Tensor numbers =
          computed(part, [&](Value v) { return scaled_blocks(v, w.format)->numbers; });
      const int64_t middle = int64_t{1} << (p.bits - 1);
      for (int64_t i = 0; i < count * p.inputs; ++i)
        rows.set(first + i / p.inputs, i % p.inputs,
                 static_cast<int64_t>(numbers.real_at(i)) + middle);
    });
  };
  const uint64_t identity =
      hash_combine(w.bytes.content_hash(), hash_string(layout_of(w.format).name, 0x6e));
  return Tensor::lazy(bytes_type(p), identity, std::move(fill));
}

Tensor scales_of_blocks(const PackedProduct& p, const BlockWeights& w) {
  auto fill = [w](std::span<std::byte> to) {
    in_pieces(w.bytes, [&](const Tensor& part, int64_t first, int64_t count) {
      const Tensor scales =
          computed(part, [&](Value v) { return scaled_blocks(v, w.format)->scales; });
      const std::span<const std::byte> bytes = scales.bytes();
      std::ranges::copy(bytes, to.begin() + first * std::ssize(bytes) / count);
    });
  };
  const uint64_t identity =
      hash_combine(w.bytes.content_hash(), hash_string(layout_of(w.format).name, 0x73));
  return Tensor::lazy(Type::get(DType::f32, {p.outputs, p.inputs / p.block}), identity,
                      std::move(fill));
}

Tensor halves_of_blocks(const PackedProduct& p, const BlockWeights& w) {
  auto fill = [w](std::span<std::byte> to) {
    in_pieces(w.bytes, [&](const Tensor& part, int64_t first, int64_t count) {
      const Tensor halves =
          computed(part, [&](Value v) { return cast(unpacked(v, w.format), DType::f16); });
      const std::span<const std::byte> bytes = halves.bytes();
      std::ranges::copy(bytes, to.begin() + first * std::ssize(bytes) / count);
    });
  };
  const uint64_t identity =
      hash_combine(w.bytes.content_hash(), hash_string(layout_of(w.format).name, 0x68));
  return Tensor::lazy(Type::get(DType::f16, {p.outputs, p.inputs}), identity, std::move(fill));
}

// The weights that share a scale.
std::optional<int64_t> scaled_together(BlockFormat format, int64_t& bits) {
  const BlockLayout& layout = layout_of(format);
  Builder b;
  const std::optional<ScaledBlocks> parts =
      scaled_blocks(b.parameter("blocks", Type::get(DType::u8, {1, layout.bytes})), format);
  if (!parts) return std::nullopt;
  bits = parts->bits;
  return layout.elements / parts->scales.type().static_elements();
}

std::optional<PackedProduct> of_blocks(const Graph& graph, NodeId dot) {
  const ValueId x = graph.operands(dot)[0], w = graph.operands(dot)[1];
  const Op op = graph.op(dot);
  const std::optional<BlockWeights> found = block_weights(graph, w);
  if (!found || graph.type(x).rank() < 2) return std::nullopt;
  // All dims but the first, in their order.
  Ints behind;
  for (int64_t d = 1; d < graph.type(x).rank(); ++d) behind.push_back(d);
  if (op.ints("lhs_contract") != behind || op.ints("rhs_contract") != behind) return std::nullopt;
  const BlockLayout& layout = layout_of(found->format);
  PackedProduct p = {.inputs = found->bytes.type().dim(1).value() / layout.bytes * layout.elements,
                     .outputs = found->bytes.type().dim(0).value(),
                     .is_of_blocks = true};
  if (const std::optional<int64_t> together = scaled_together(found->format, p.bits)) {
    p.block = *together;
    p.numbers = numbers_of_blocks(p, *found);
    p.scales = scales_of_blocks(p, *found);
  } else {
    p.numbers = halves_of_blocks(p, *found);
  }
  return p;
}

// ---- Products of rounded data -------------------------------------------------------------------

// Goes from a value to what makes it, along first operands, as long as the ops are of a kind.
template <class Is>
ValueId behind(const Graph& graph, ValueId v, const Is& is) {
  while (!graph.operands(graph.producer(v)).empty() && is(graph.opcode(graph.producer(v))))
    v = graph.operands(graph.producer(v))[0];
  return v;
}

bool is_move(Opcode opcode) {
  return repeats_elements(opcode) || regroups_dims(opcode) || permutes_dims(opcode);
}

// Where product_of_rounded() would have found its parts, if the sum is what it has built.
struct RoundedParts {
  ValueId data, bytes, scales, zeros = ValueId::none();
};
std::optional<RoundedParts> rounded_parts(const Graph& graph, NodeId sum) {
  const auto operand = [&](ValueId v, size_t i) -> std::optional<ValueId> {
    const std::span<const ValueId> all = graph.operands(graph.producer(v));
    return i < all.size() && !all[i].is_none() ? std::optional(all[i]) : std::nullopt;
  };
  const auto is_scalar_op = [](Opcode opcode) { return is_elementwise(opcode) || is_move(opcode); };
  const ValueId scaled = graph.operands(sum)[0];
  if (graph.opcode(graph.producer(scaled)) != Opcode::mul) return std::nullopt;
  RoundedParts parts;
  const ValueId products = behind(graph, scaled, is_scalar_op);
  if (!is_dot(graph.opcode(graph.producer(products)))) return std::nullopt;
  parts.bytes = behind(graph, *operand(products, 1), is_scalar_op);
  const ValueId grouped =
      behind(graph, *operand(products, 0), [](Opcode opcode) { return is_elementwise(opcode); });
  const std::optional<ValueId> padded = operand(grouped, 0);
  if (!padded) return std::nullopt;
  parts.data = behind(graph, *padded, [](Opcode opcode) { return opcode == Opcode::pad; });
  // The scales of both are the second factor, and those of the weights its second one.
  const std::optional<ValueId> scales = operand(behind(graph, *operand(scaled, 1), is_move), 1);
  if (!scales) return std::nullopt;
  parts.scales = behind(graph, *scales, is_move);
  const ValueId difference =
      behind(graph, *operand(scaled, 0), [](Opcode opcode) { return opcode == Opcode::cast; });
  const std::optional<ValueId> middles = operand(difference, 1);
  if (!middles) return std::nullopt;
  const std::optional<ValueId> zeros = operand(behind(graph, *middles, is_move), 1);
  if (!zeros) return std::nullopt;
  const ValueId of_groups = behind(
      graph, *zeros, [&](Opcode opcode) { return is_move(opcode) || (opcode == Opcode::cast); });
  if (graph.type(of_groups).rank() == 2) parts.zeros = of_groups;
  return parts;
}

// MatMulNBits has zero points in as many bits as numbers, or real ones.
bool are_zero_points(const Tensor& zeros, int64_t bits) {
  if (is_real(zeros.dtype())) return true;
  for (int64_t i = 0; i < zeros.elements(); ++i) {
    const int64_t zero = zeros.integer_at(i);
    if (zero < 0 || zero >= int64_t{1} << bits) return false;
  }
  return true;
}

// The zero points in bytes, or as reals.
Tensor zeros_of_groups(const PackedProduct& p, const Tensor& zeros) {
  if (is_real(zeros.dtype())) return zeros;
  const int64_t blocks = zeros.type().dim(1).value();
  Tensor packed = Tensor::zeros(Type::get(DType::u8, {p.outputs, (blocks * p.bits + 7) / 8}));
  BitRows rows(packed.mutable_bytes(), p.bits, blocks);
  for (int64_t n = 0; n < p.outputs; ++n)
    for (int64_t b = 0; b < blocks; ++b) rows.set(n, b, zeros.integer_at(n * blocks + b));
  return packed;
}

std::optional<PackedProduct> rounded_product(const Graph& graph, NodeId sum) {
  const std::optional<RoundedParts> parts = rounded_parts(graph, sum);
  if (!parts) return std::nullopt;
  const Type data = graph.type(parts->data);
  if (data.rank() < 1 || !data.dim(data.rank() - 1).is_static()) return std::nullopt;
  const int64_t inputs = data.dim(data.rank() - 1).value();
  const std::optional<Tensor> bytes = constant_of(graph, parts->bytes),
                              scales = constant_of(graph, parts->scales);
  if (!bytes || !scales || bytes->dtype() != DType::u8 || bytes->type().rank() != 3 ||
      scales->dtype() != DType::f32 || scales->type().rank() != 2)
    return std::nullopt;
  std::optional<Tensor> zeros;
  if (!parts->zeros.is_none() && !(zeros = constant_of(graph, parts->zeros))) return std::nullopt;
  for (const int64_t bits : {2, 4, 8}) {
    const int64_t group = bytes->type().dim(2).value() * 8 / bits;
    if (group < kLeastBlock || (group & -group) != group ||
        (inputs + group - 1) / group != bytes->type().dim(1).value() ||
        (zeros && !are_zero_points(*zeros, bits)))
      continue;
    Builder b;
    GroupedWeights weights = {.bytes = b.constant(*bytes), .scales = b.constant(*scales)};
    weights.bits = bits;
    if (zeros) weights.zeros = b.constant(*zeros);
    const Value x = b.parameter("x", data);
    const Result<Graph> formula = b.finish({product_of_rounded(x, weights)});
    if (!formula.ok()) continue;
    SameWay same(graph, *formula);
    same.take_as_same(parts->data, x.id());
    same.take_as_same(parts->bytes, weights.bytes.id());
    same.take_as_same(parts->scales, weights.scales.id());
    if (zeros) same.take_as_same(parts->zeros, weights.zeros.id());
    if (!same(graph.result(sum), formula->outputs()[0])) continue;
    PackedProduct p = {.inputs = inputs,
                       .outputs = bytes->type().dim(0).value(),
                       .bits = bits,
                       .block = group,
                       .rounded = parts->data,
                       .numbers = *bytes,
                       .scales = *scales};
    if (zeros) p.zeros = zeros_of_groups(p, *zeros);
    return p;
  }
  return std::nullopt;
}

bool is_quantized(const Graph& graph, ValueId v) {
  return is_dequantize(graph.opcode(graph.producer(v)));
}

std::optional<PackedProduct> packed_dot(const Graph& graph, NodeId dot) {
  const ValueId x = graph.operands(dot)[0], w = graph.operands(dot)[1];
  const Type weights = graph.type(w), result = graph.type(graph.result(dot));
  const Op op = graph.op(dot);
  const DType dtype = result.dtype();
  if (!weights.is_static() || weights.dtype() != dtype || graph.type(x).dtype() != dtype ||
      (dtype != DType::f32 && dtype != DType::f16) || !op.ints("lhs_batch").empty())
    return std::nullopt;
  const NodeId maker = graph.producer(w);
  if (!is_dequantize(graph.opcode(maker)))
    return dtype == DType::f32 ? of_blocks(graph, dot) : std::nullopt;
  if (is_quantized(graph, x) || weights.rank() != 2 || op.ints("rhs_contract").size() != 1)
    return std::nullopt;
  return of_dequantized(graph, dot, maker);
}

}  // namespace

std::optional<PackedProduct> packed_product(const Graph& graph, NodeId node) {
  if (graph.opcode(node) == Opcode::reduce) return rounded_product(graph, node);
  return is_dot(graph.opcode(node)) ? packed_dot(graph, node) : std::nullopt;
}

std::vector<bool> needed_beside_weights(const Graph& graph,
                                        const std::map<NodeId, PackedProduct>& packed) {
  std::vector<bool> needed(graph.node_count());
  const auto need = [&](ValueId v) {
    if (!v.is_none()) needed[graph.producer(v).index] = true;
  };
  for (ValueId v : graph.outputs()) need(v);
  for (size_t i = graph.node_count(); i-- > 0;) {
    const NodeId n = {static_cast<uint32_t>(i)};
    if (!needed[i]) continue;
    if (const auto product = packed.find(n); product != packed.end())
      need(product->second.rounded.is_none() ? graph.operands(n)[0] : product->second.rounded);
    else
      for (ValueId v : graph.operands(n)) need(v);
  }
  return needed;
}

}  // namespace hone::onnx_io

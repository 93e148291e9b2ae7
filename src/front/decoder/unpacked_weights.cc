#include "front/decoder/unpacked_weights.h"

#include <optional>
#include <vector>

#include "base/hash.h"
#include "front/decoder/blocks.h"
#include "ir/graph_copy.h"

namespace hone {
namespace {

// A node that gives the f32 form of a constant.
struct UnpackedWeight {
  Tensor stored;
  std::optional<BlockFormat> format;  // nothing: reals of 16 bits
};

std::optional<UnpackedWeight> unpacked_weight(const Graph& graph, NodeId n) {
  const Opcode opcode = graph.opcode(n);
  if (opcode != Opcode::call && opcode != Opcode::cast) return std::nullopt;
  if (graph.operands(n).size() != 1) return std::nullopt;
  const NodeId producer = graph.producer(graph.operands(n)[0]);
  if (graph.opcode(producer) != Opcode::constant) return std::nullopt;
  const Tensor& stored = graph.constant(producer);
  if (opcode == Opcode::call) {
    const std::optional<BlockFormat> format = unpacked_by(*graph.regions(n)[0]);
    if (!format) return std::nullopt;
    return UnpackedWeight{stored, format};
  }
  const bool is_short = stored.dtype() == DType::f16 || stored.dtype() == DType::bf16;
  if (!is_short || graph.type(graph.result(n)).dtype() != DType::f32) return std::nullopt;
  return UnpackedWeight{stored, {}};
}

Tensor unpack_later(const UnpackedWeight& weight, Type type) {
  const uint64_t kind = weight.format ? static_cast<uint64_t>(*weight.format) + 1 : 0;
  const uint64_t identity = hash_combine(weight.stored.content_hash(), kind);
  return Tensor::lazy(type, identity, [weight](std::span<std::byte> bytes) {
    const std::span<float> out(reinterpret_cast<float*>(bytes.data()),
                               bytes.size() / sizeof(float));
    if (weight.format)
      unpack_blocks(*weight.format, weight.stored.bytes(), out);
    else
      weight.stored.read_reals(0, out);
  });
}

}  // namespace

Result<Graph> with_unpacked_weights(const Graph& graph) {
  GraphCopy copy(graph);
  for (NodeId n : graph.nodes()) {
    const std::optional<UnpackedWeight> weight = unpacked_weight(graph, n);
    if (!weight) {
      HONE_TRY(copy.node(n));
      continue;
    }
    const ValueId result = graph.result(n);
    copy.replace(result, copy.target().add_constant(unpack_later(*weight, graph.type(result))));
  }
  return remove_dead_code(copy.finish());
}

int64_t unpacked_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (NodeId n : graph.nodes())
    if (unpacked_weight(graph, n)) bytes += graph.type(graph.result(n)).static_bytes();
  return bytes;
}

}  // namespace hone

#include "ir/denormals.h"

#include <cstring>

namespace hone {
namespace {

// Patterns with no exponent but a mantissa.
template <class Pattern>
int64_t count_patterns(std::span<const std::byte> bytes, int mantissa_bits) {
  const auto magnitude = static_cast<Pattern>(static_cast<Pattern>(~Pattern{0}) >> 1);
  const auto least_normal = static_cast<Pattern>(Pattern{1} << mantissa_bits);
  int64_t count = 0;
  for (size_t at = 0; at + sizeof(Pattern) <= bytes.size(); at += sizeof(Pattern)) {
    Pattern pattern;
    std::memcpy(&pattern, bytes.data() + at, sizeof(Pattern));
    const auto size = static_cast<Pattern>(pattern & magnitude);
    count += size != 0 && size < least_normal ? 1 : 0;
  }
  return count;
}

DenormalCount count_denormals(const Tensor& tensor) {
  const DType dtype = tensor.dtype();
  if (dtype != DType::f64 && dtype != DType::f32 && dtype != DType::bf16) return {};
  if (!tensor.is_materialized()) return {};
  const std::span<const std::byte> bytes = tensor.bytes();
  DenormalCount count = {.reals = tensor.elements()};
  if (dtype == DType::f64) count.denormals = count_patterns<uint64_t>(bytes, 52);
  if (dtype == DType::f32) count.denormals = count_patterns<uint32_t>(bytes, 23);
  if (dtype == DType::bf16) count.denormals = count_patterns<uint16_t>(bytes, 7);
  return count;
}

}  // namespace

DenormalCount count_denormals(const Graph& graph) {
  DenormalCount count;
  for (NodeId n : graph.nodes()) {
    if (graph.opcode(n) == Opcode::constant) count += count_denormals(graph.constant(n));
    for (const GraphRef& region : graph.regions(n)) count += count_denormals(*region);
  }
  return count;
}

DenormalCount count_denormals(const Model& model) {
  DenormalCount count;
  for (const Graph* graph : graphs_of(model)) count += count_denormals(*graph);
  return count;
}

}  // namespace hone

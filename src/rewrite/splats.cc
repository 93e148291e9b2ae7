#include <cstring>
#include <optional>

#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "rewrite/passes.h"

namespace hone {
namespace {

// The largest constant that folding makes; larger constants are not looked at, since that may read
// a file.
constexpr int64_t kMaxSplatBytes = 64 * 1024;

// The element that all others equal, if there are several.
std::optional<Tensor> splat_element(const Tensor& tensor) {
  const int bits_each = bits(tensor.dtype());
  if (tensor.elements() < 2 || bits_each % 8 != 0 || tensor.byte_size() > kMaxSplatBytes)
    return std::nullopt;
  std::vector<std::byte> scratch;
  const std::span<const std::byte> bytes = tensor.bytes_once(scratch);
  const size_t size = static_cast<size_t>(bits_each) / 8;
  // Equal to itself moved by one element.
  if (std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) != 0) return std::nullopt;
  return Tensor::copy_of(Type::scalar(tensor.dtype()), bytes.first(size));
}

}  // namespace

Result<Graph> splats_as_broadcasts(const Graph& graph) {
  GraphCopy copy(graph);
  for (NodeId n : graph.nodes()) {
    std::optional<Tensor> element;
    if (is_constant(graph.opcode(n))) element = splat_element(graph.constant(n));
    if (!element) {
      HONE_TRY(
          copy.node(n, graph.op(n), HONE_TRY(transform_regions(graph, n, splats_as_broadcasts))));
      continue;
    }
    const ValueId scalar = copy.target().add_constant(std::move(*element));
    const std::span<const Dim> dims = graph.type(graph.result(n)).dims();
    const Op broadcast =
        Op::get(Opcode::broadcast, {{"dims", Dims(dims.begin(), dims.end())}, {"map", Ints{}}});
    const NodeId made = HONE_TRY(copy.target().append(broadcast, {&scalar, 1}));
    copy.replace(graph.result(n), copy.target().result(made));
  }
  return copy.finish();
}

}  // namespace hone

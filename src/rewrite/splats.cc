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

// The same for integers of which a byte has several.
std::optional<Tensor> splat_of_part_of_byte(const Tensor& tensor) {
  if (!is_integer(tensor.dtype())) return std::nullopt;
  const int64_t first = tensor.integer_at(0), count = tensor.elements();
  for (int64_t i = 1; i < count; ++i)
    if (tensor.integer_at(i) != first) return std::nullopt;
  return Tensor::from_integers(Type::scalar(tensor.dtype()), {&first, 1});
}

// The element that all others equal, if there are several.
std::optional<Tensor> splat_element(const Tensor& tensor) {
  const int bits_each = bits(tensor.dtype());
  if (tensor.elements() < 2 || tensor.byte_size() > kMaxSplatBytes) return std::nullopt;
  if (bits_each < 8) return splat_of_part_of_byte(tensor);
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

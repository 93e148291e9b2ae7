#include <algorithm>
#include <vector>

#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "rewrite/numbers.h"
#include "rewrite/passes.h"

// The driver of a GPU passes 4 KiB of parameters to a kernel, an address for each value that it
// reads. So hundreds of values are joined by several kernels, whose results another one joins.

namespace hone {
namespace {

constexpr size_t kMostJoined = 256;

}  // namespace

Result<Graph> join_in_pieces(const Graph& graph) {
  GraphCopy copy(graph);
  for (NodeId n : graph.nodes()) {
    std::vector<ValueId> parts;
    if (joins_operands(graph.opcode(n))) parts = copy(graph.operands(n));
    if (parts.size() <= kMostJoined) {
      HONE_TRY(copy.node(n, graph.op(n), HONE_TRY(transform_regions(graph, n, join_in_pieces))));
      continue;
    }
    const auto joined = [&](std::span<const ValueId> values) {
      return append_value(copy.target(), graph.op(n), values);
    };
    while (parts.size() > kMostJoined) {
      std::vector<ValueId> pieces;
      for (size_t i = 0; i < parts.size(); i += kMostJoined) {
        const size_t count = std::min(kMostJoined, parts.size() - i);
        pieces.push_back(HONE_TRY(joined(std::span(parts).subspan(i, count))));
      }
      parts = std::move(pieces);
    }
    copy.replace(graph.result(n), HONE_TRY(joined(parts)));
  }
  return copy.finish();
}

}  // namespace hone

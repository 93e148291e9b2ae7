#include "shard/shard_subject.h"

#include "base/text.h"
#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "rewrite/passes.h"

namespace hone {

Result<ShardSubject> shard_subject(const Graph& given, int64_t least_constant) {
  if (!given.is_static())
    return unsupported("sharding needs sizes: graph '{}' has symbols", excerpt(given.name()))
        .with_hint("bind them");
  static const Result<std::vector<Pass>> passes = parse_passes("widen,expand,dce,names");
  HONE_CHECK(passes.ok(), "{}", passes.error().to_string());
  const Graph graph = HONE_TRY(run_passes(given, *passes));
  ShardSubject made = {.graph = Graph(), .own_inputs = given.inputs().size()};
  GraphCopy copy(graph);
  for (const ValueId v : graph.inputs()) HONE_TRY(copy.node(graph.producer(v)));
  for (const NodeId n : graph.nodes()) {
    if (is_parameter(graph.opcode(n))) continue;
    const ValueId v = graph.result(n);
    if (is_constant(graph.opcode(n)) && graph.type(v).rank() > 0 &&
        graph.type(v).static_bytes() >= least_constant) {
      copy.replace(v, copy.target().add_parameter(graph.type(v)));
      made.constants.push_back(graph.constant(n));
      continue;
    }
    HONE_TRY(copy.node(n));
  }
  made.graph = copy.finish();
  return made;
}

}  // namespace hone

#include "plan/copies.h"

#include <algorithm>
#include <numeric>

#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "plan/planned.h"
#include "plan/view.h"

namespace hone {
namespace {

// One operand that becomes a copy.
struct Port {
  NodeId reader;
  ValueId value;
  auto operator<=>(const Port&) const = default;
};

class Copying {
 public:
  Copying(const Graph& graph, const std::vector<CopyOverlay>& copies)
      : graph_(graph), copy_(graph) {
    for (const CopyOverlay& copy : copies)
      for (NodeId reader : copy.readers) ports_.emplace(Port{reader, copy.of}, &copy.name);
  }

  Result<GraphRef> run() {
    for (NodeId n : graph_.nodes()) HONE_TRY(add(n));
    return std::make_shared<const Graph>(copy_.finish());
  }

 private:
  Status add(NodeId n) {
    const auto begin = ports_.lower_bound({n, ValueId{0}});
    auto end = begin;
    for (; end != ports_.end() && end->first.reader == n; ++end)
      HONE_TRY(read(end->first.value, *end->second));
    HONE_TRY(copy_.node(n));
    for (auto at = begin; at != end; ++at)
      copy_.replace(at->first.value, originals_.at(at->first.value));
    return {};
  }

  // Lets the copy stand for the value.
  Status read(ValueId v, const std::string& name) {
    Graph& target = copy_.target();
    originals_.try_emplace(v, copy_(v));
    const auto [at, is_first] = made_.try_emplace(name);
    if (is_first) {
      const NodeId producer = graph_.producer(v);
      if (is_constant(graph_.opcode(producer))) {
        at->second = target.add_constant(graph_.constant(producer), name);
      } else {
        Ints order(static_cast<size_t>(graph_.type(v).rank()));
        std::iota(order.begin(), order.end(), 0);
        const Op same = Op::get(Opcode::transpose, {{"permutation", std::move(order)}});
        const ValueId original = copy_(v);
        at->second = target.result(HONE_TRY(target.append(same, {&original, 1})));
        target.set_name(at->second, name);
      }
    }
    copy_.replace(v, at->second);
    return {};
  }

  const Graph& graph_;
  GraphCopy copy_;
  std::map<Port, const std::string*> ports_;  // and the copy that is read there
  std::map<std::string, ValueId> made_;       // copies in the new graph
  std::map<ValueId, ValueId> originals_;      // and what they are of
};

}  // namespace

Result<GraphRef> with_copies(const Graph& graph, const std::map<std::string, Copy>& copies) {
  if (copies.empty()) return GraphRef(GraphRef(), &graph);
  ValueNames names(graph);
  const Overlay overlay = HONE_TRY(overlay_of(graph, Users(graph), copies, names));
  return Copying(graph, overlay.copies()).run();
}

Result<Overlay> overlay_of(const Graph& graph, const Users& users,
                           const std::map<std::string, Copy>& copies, ValueNames& names) {
  Overlay overlay;
  std::map<std::string_view, ValueId> made;
  const auto add = [&](const std::string& name, const Copy& copy) -> Status {
    CopyOverlay found{name, {}, {}};
    const auto known = made.find(copy.of);
    found.of = known != made.end() ? known->second : HONE_TRY(names.value(copy.of));
    for (const std::string& reader : copy.readers)
      found.readers.push_back(HONE_TRY(names.node(graph, reader)));
    std::ranges::sort(found.readers);
    HONE_TRY(check_copy({graph, overlay}, names, name, found.of, found.readers));
    made[name] = {static_cast<uint32_t>(graph.value_count() + overlay.copies().size())};
    overlay.add(graph, users, std::move(found));
    return {};
  };
  for (const auto& [name, copy] : copies)
    if (Status good = add(name, copy); !good.ok())
      return std::move(good).error().within("copy %" + name);
  for (const auto& [name, v] : made) names.add(std::string(name), v);
  return overlay;
}

Status check_copy(GraphView graph, const ValueNames& names, const std::string& name, ValueId of,
                  std::span<const NodeId> readers) {
  if (names.has(name)) return bad_input("the graph already has a value of this name");
  if (graph.is_copy(of))
    return bad_input("'%{}' is a copy, which cannot be copied again", graph.name(of));
  if (is_number(graph, of))
    return bad_input("'%{}' is a constant of one element, which has no memory", graph.name(of));
  if (readers.empty()) return bad_input("nothing reads it");
  for (size_t i = 0; i < readers.size(); ++i) {
    const NodeId n = readers[i];
    if (n.index >= graph.node_count()) return bad_input("there is no node {}", n.index);
    const std::string reader = step_name(graph, n);
    if (i > 0 && readers[i - 1] == n) return bad_input("'%{}' is named twice", reader);
    if (graph.is_copy(n) ||
        std::ranges::find(graph.graph().operands(n), of) == graph.graph().operands(n).end())
      return bad_input("'%{}' does not read '%{}'", reader, graph.name(of));
    for (ValueId v : graph.operands(n))
      if (!v.is_none() && graph.is_copy(v) && graph.original(v) == of)
        return bad_input("'%{}' reads '%{}', another copy of '%{}'", reader, graph.name(v),
                         graph.name(of));
  }
  return {};
}

}  // namespace hone

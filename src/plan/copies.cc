#include "plan/copies.h"

#include <algorithm>
#include <numeric>

#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "plan/value_names.h"
#include "plan/view.h"

namespace hone {
namespace {

// One operand that becomes a copy.
struct Port {
  NodeId reader;
  ValueId value;
  auto operator<=>(const Port&) const = default;
};

class CopyFinder {
 public:
  CopyFinder(const Graph& graph, const std::map<std::string, Copy>& copies)
      : graph_(graph), copies_(copies), names_(graph) {}

  Result<std::vector<CopyOverlay>> run() {
    std::vector<CopyOverlay> found;
    for (const auto& [name, copy] : copies_) {
      Result<CopyOverlay> one = find(name, copy);
      if (!one.ok()) return std::move(one).error().within("copy %" + name);
      found.push_back(*std::move(one));
    }
    return found;
  }

 private:
  Result<CopyOverlay> find(const std::string& name, const Copy& copy) {
    if (names_.has(name)) return bad_input("the graph has a value of this name");
    if (copies_.contains(copy.of))
      return bad_input("'%{}' is a copy, which is not copied again", copy.of);
    const ValueId v = HONE_TRY(names_.value(copy.of));
    if (is_number(graph_, v))
      return bad_input("'%{}' is a constant of one element, which has no memory", copy.of);
    if (copy.readers.empty()) return bad_input("nothing reads it");
    CopyOverlay found{name, v, {}};
    for (const std::string& reader : copy.readers) {
      const NodeId n = HONE_TRY(names_.node(reader));
      if (std::ranges::find(graph_.operands(n), v) == graph_.operands(n).end())
        return bad_input("'%{}' does not read '%{}'", reader, copy.of);
      found.readers.push_back(n);
      const auto [at, is_new] = ports_.try_emplace({n, v}, &name);
      if (is_new) continue;
      if (*at->second == name) return bad_input("'%{}' stands twice", reader);
      return bad_input("'%{}' reads '%{}', another copy of '%{}'", reader, *at->second, copy.of);
    }
    std::ranges::sort(found.readers);
    return found;
  }

  const Graph& graph_;
  const std::map<std::string, Copy>& copies_;
  const ValueNames names_;
  std::map<Port, const std::string*> ports_;  // and the copy that is read there
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
  const std::vector<CopyOverlay> found = HONE_TRY(find_copies(graph, copies));
  return Copying(graph, found).run();
}

Result<std::vector<CopyOverlay>> find_copies(const Graph& graph,
                                             const std::map<std::string, Copy>& copies) {
  return CopyFinder(graph, copies).run();
}

}  // namespace hone

#include "front/onnx/body.h"
#include "front/onnx/checks.h"
#include "front/onnx/constraints.h"
#include "front/onnx/registry.h"

// If: an op with two regions where one graph says it all, and else a segment with two bodies.

namespace hone::onnx_io {
namespace {

// The condition is known: the branch's nodes stand in line.
void inline_branch(Node& n, const onnx::GraphProto& branch) {
  Frame inside(n.frame());
  import_graph(inside, n.flow(), branch);
  for (int i = 0; i < branch.output_size(); ++i)
    n.out(static_cast<size_t>(i), inside.find(branch.output(i).name()));
}

std::vector<int64_t> joined(std::vector<int64_t> a, const std::vector<int64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Why not, if it cannot be an op.
std::optional<Error> if_as_op(Node& n, Value condition, const onnx::GraphProto& on_true,
                              const onnx::GraphProto& on_false) {
  Result<Region> yes = import_region(n, on_true, {});
  if (!yes.ok()) return yes.error();
  Result<Region> no = import_region(n, on_false, {});
  if (!no.ok()) return no.error();
  for (size_t i = 0; i < yes->results.size(); ++i)
    if (yes->results[i].type() != no->results[i].type())
      return unsupported("result {} is {} or {}", i, yes->results[i].type().to_string(),
                         no->results[i].type().to_string());
  std::vector<Slot*> captures = joined(yes->flow->captures(), no->flow->captures());
  std::vector<Value> operands = {condition};
  for (Slot* slot : captures) operands.push_back(n.flow().value_of(*slot));
  std::vector<GraphRef> regions = {n.take(finish(*yes, captures)), n.take(finish(*no, captures))};
  std::vector<Value> results = n.builder().ops(Opcode::if_, operands, {}, regions);
  lift_found(n, results, joined(yes->flow->checks(), no->flow->checks()));
  n.out_all(results);
  return {};
}

// True if the value is known once sizes are: it reads no data.
bool follows_from_sizes(Value value) {
  const Graph& graph = value.builder().graph();
  std::vector<bool> is_read(graph.node_count());
  is_read[graph.producer(value.id()).index] = true;
  for (size_t i = is_read.size(); i-- > 0;) {
    if (!is_read[i]) continue;
    const NodeId node = {static_cast<uint32_t>(i)};
    if (graph.opcode(node) == Opcode::parameter) return false;
    for (ValueId operand : graph.operands(node))
      if (!operand.is_none()) is_read[graph.producer(operand).index] = true;
  }
  return true;
}

// One of two branches is sure to run, so sizes that neither takes are none of the flow's.
void need_ranges_of_both(Node& n, const Branch& yes, const Branch& no) {
  Flow& flow = n.flow();
  if (!flow.may_narrow || yes.error || no.error) return;
  std::vector<Symbol> now;
  for (const auto& [name, dim] : yes.sizes)
    if (const std::optional<Symbol> symbol = flow.symbol(name)) now.push_back(*symbol);
  Bindings both = needed_by_both(yes.sizes, no.sizes, now);
  if (both.empty()) return;
  throw Constraint{std::move(both), hone::unsupported("neither branch fits").within(n.describe())};
}

void if_as_segment(Node& n, Value condition, const onnx::GraphProto& on_true,
                   const onnx::GraphProto& on_false) {
  Flow& flow = n.flow();
  IfSegment segment;
  segment.condition = flow.export_name(*flow.define("condition", condition));
  Branch yes = import_branch(n, on_true), no = import_branch(n, on_false);
  // Sizes will tell the branch, and the ranks that go with it. The attributes of a function are
  // known while it is called, not later.
  const bool waits = flow.has_symbols() && follows_from_sizes(condition);
  if ((yes.error && no.error) || ((yes.error || no.error) && (waits || n.frame().is_function())))
    throw Failure{std::move(yes.error ? *yes.error : *no.error)};
  need_ranges_of_both(n, yes, no);
  if (yes.error) yes.body = untyped_branch(n, on_true, no.body.types);
  if (no.error) no.body = untyped_branch(n, on_false, yes.body.types);
  // A rank that goes with data is known when the condition is, which is asked for. The rest is
  // deferred until then; within a branch nothing does.
  for (size_t i = 0; i < yes.body.types.size() && n.frame().depth() == 0; ++i)
    if (yes.body.types[i].rank() != no.body.types[i].rank()) (void)n.integers(0);
  std::vector<Type> types;
  for (size_t i = 0; i < yes.body.types.size(); ++i)
    types.push_back(
        common_type(n, {yes.body.types[i], no.body.types[i]}, fmt::format("result {}", i)));
  segment.on_true = std::move(yes.body.body);
  segment.on_false = std::move(no.body.body);
  segment.results = define_results(n, types);
  if (n.is_checked()) {
    segment.results.push_back(flow.fresh_name("found"));
    flow.add_check(flow.external(segment.results.back(), found_type()),
                   joined(yes.body.checks, no.body.checks));
  }
  flow.append(Segment{std::move(segment)});
}

}  // namespace

void map_if(Node& n) {
  const onnx::GraphProto& on_true = n.graph("then_branch");
  const onnx::GraphProto& on_false = n.graph("else_branch");
  for (const onnx::GraphProto* branch : {&on_true, &on_false}) {
    if (branch->input_size() > 0)
      n.bad("a branch has {} inputs, must have none", branch->input_size());
    if (static_cast<size_t>(branch->output_size()) != n.outputs())
      n.bad("a branch has {} results, the node {}", branch->output_size(), n.outputs());
  }
  Value condition = as_flag(n, n.in(0), "the condition");
  if (std::optional<bool> known = known_flag(n, condition)) {
    inline_branch(n, *known ? on_true : on_false);
    return;
  }
  std::optional<Error> why_not = if_as_op(n, condition, on_true, on_false);
  if (!why_not) return;
  if (n.flow().kind() == Flow::Kind::region) throw NotARegion{std::move(*why_not)};
  if_as_segment(n, condition, on_true, on_false);
}

}  // namespace hone::onnx_io

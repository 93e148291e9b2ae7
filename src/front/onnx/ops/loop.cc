#include <algorithm>

#include "front/onnx/body.h"
#include "front/onnx/checks.h"
#include "front/onnx/registry.h"

// Loop: a scan, a while, or else a segment.

namespace hone::onnx_io {
namespace {

struct LoopParts {
  const onnx::GraphProto& body;
  Value trip_count;  // absent: no bound
  Value condition;   // absent: true
  std::vector<Value> initial;
  size_t stacked;  // how many results are stacked, after the carried ones
};

// True if the region never says "stop" on its own.
bool always_continues(Region& region) {
  Value next = region.results[0];
  if (next.id() == region.parameters[1].id()) return true;
  std::optional<Dims> known = region.flow->contents().of(next.id());
  return known && known->front().is(1);
}

std::vector<Type> body_types(const std::vector<Value>& carried) {
  std::vector<Type> types = {Type::scalar(DType::i64), Type::scalar(DType::boolean)};
  for (Value value : carried) types.push_back(value.type());
  return types;
}

bool keeps_types(const Region& region, const std::vector<Value>& carried) {
  for (size_t i = 0; i < carried.size(); ++i)
    if (region.results[1 + i].type() != carried[i].type()) return false;
  return true;
}

// As scan: the number of iterations is a size, and nothing ends the loop before.
bool loop_as_scan(Node& n, const LoopParts& loop, Region& region) {
  if (!loop.trip_count || !always_continues(region)) return false;
  if (loop.condition && known_flag(n, loop.condition) != true) return false;
  bool is_known = n.flow().contents().of(loop.trip_count.id()).has_value();
  if (!is_known && loop.stacked == 0) return false;
  Dim length = n.size(loop.trip_count);
  if (length.range().low < 0 || length.range().high > Node::kMostSize) return false;
  Builder& b = n.builder();
  std::vector<Value> operands = {b.scalar(DType::i64, 0)};
  operands.insert(operands.end(), loop.initial.begin(), loop.initial.end());
  const std::vector<Slot*>& captures = region.flow->captures();
  for (Slot* slot : captures) operands.push_back(n.flow().value_of(*slot));
  const auto kept = static_cast<long>(operands.size());  // without what was found
  if (n.is_checked()) operands.push_back(nothing_found(b));
  Graph step = *n.take(finish(region, captures));
  // Parameters: counter, carried, captured, found; the condition is always true inside.
  std::vector<Type> types;
  for (Value operand : operands) types.push_back(operand.type());
  size_t carried = loop.initial.size();
  GraphRef body = b.region("body", types, [&](Builder& inner, std::span<const Value> in) {
    std::vector<Value> arguments = {in[0], inner.scalar(DType::boolean, 1)};
    arguments.insert(arguments.end(), in.begin() + 1, in.begin() + kept);
    std::vector<Value> results = inner.inlined(step, arguments);
    std::vector<Value> out = {in[0] + 1.0};
    out.insert(out.end(), results.begin() + 1, results.begin() + 1 + static_cast<long>(carried));
    out.insert(out.end(), in.begin() + 1 + static_cast<long>(carried), in.begin() + kept);
    keep_found(in.subspan(static_cast<size_t>(kept)), results, out);
    out.insert(out.end(), results.begin() + 1 + static_cast<long>(carried), results.end());
    return out;
  });
  std::vector<Value> results =
      b.ops(Opcode::scan, operands,
            {{"carried", static_cast<int64_t>(operands.size())}, {"length", Dims{length}}}, {body});
  for (size_t i = 0; i < carried; ++i) n.out(i, results[1 + i]);
  for (size_t i = 0; i < loop.stacked; ++i) n.out(carried + i, results[operands.size() + i]);
  results.resize(operands.size());
  lift_found(n, results, region.flow->checks());
  return true;
}

// A condition that is a function of the carried values alone, as `while` has it. It is cut out of
// the graph of a loop's body, which computes it from their next values. Parameters: the carried
// values, those captured.
class WhileCondition {
 public:
  // Null if something else decides, or if the body reads the counter or the condition before.
  static std::optional<WhileCondition> of(const Graph& step, size_t carried) {
    const Users users(step);
    for (ValueId own : step.inputs().first(2))
      if (!users.of(own).empty() || users.is_output(own)) return {};
    WhileCondition made;
    std::vector<ValueId> copies(step.value_count(), ValueId::none());
    auto add = [&](ValueId v) {
      const ValueId parameter = made.graph_.add_parameter(step.type(v));
      if (copies[v.index].is_none()) copies[v.index] = parameter;
    };
    for (ValueId next : step.outputs().subspan(1, carried)) add(next);
    for (ValueId captured : step.inputs().subspan(2 + carried)) add(captured);
    for (NodeId n : made.needed(step, copies))
      if (!made.copy(step, n, copies)) return {};
    made.graph_.set_outputs({copies[step.outputs()[0].index]});
    return made;
  }

  const Graph& graph() const { return graph_; }

  // True if a value of another graph is the condition of these values of it.
  bool is_same(const Graph& outer, ValueId value, std::span<const Value> arguments) const {
    // The values here as they must be there; from the back, so that all readers come first.
    std::vector<ValueId> there(graph_.value_count(), ValueId::none());
    for (size_t i = 0; i < arguments.size(); ++i)
      there[graph_.inputs()[i].index] = arguments[i].id();
    auto expect = [&](ValueId here, ValueId other) {
      if (here.is_none() || other.is_none()) return here.is_none() && other.is_none();
      if (there[here.index].is_none()) there[here.index] = other;
      return there[here.index] == other;
    };
    if (!expect(graph_.outputs()[0], value)) return false;
    for (size_t i = graph_.node_count(); i-- > 0;) {
      const NodeId a = {static_cast<uint32_t>(i)};
      if (graph_.opcode(a) == Opcode::parameter) continue;
      for (size_t r = 0; r < graph_.results(a).size(); ++r) {
        const ValueId other = there[graph_.result(a, r).index];
        if (other.is_none()) continue;
        const NodeId b = outer.producer(other);
        if (!is_same_node(a, outer, b) || outer.result(b, r) != other) return false;
        for (size_t k = 0; k < graph_.operands(a).size(); ++k)
          if (!expect(graph_.operands(a)[k], outer.operands(b)[k])) return false;
      }
    }
    return true;
  }

 private:
  WhileCondition() : graph_("condition") {}

  // The nodes behind the first output, down to what is copied already, in order.
  static std::vector<NodeId> needed(const Graph& step, const std::vector<ValueId>& copies) {
    std::vector<bool> is_needed(step.value_count());
    is_needed[step.outputs()[0].index] = true;
    std::vector<NodeId> list;
    for (size_t i = step.node_count(); i-- > 0;) {
      const NodeId n = {static_cast<uint32_t>(i)};
      bool is_wanted = false;
      for (ValueId v : step.results(n))
        is_wanted |= is_needed[v.index] && copies[v.index].is_none();
      if (!is_wanted) continue;
      for (ValueId v : step.operands(n))
        if (!v.is_none()) is_needed[v.index] = true;
      list.push_back(n);
    }
    std::reverse(list.begin(), list.end());
    return list;
  }

  bool copy(const Graph& step, NodeId n, std::vector<ValueId>& copies) {
    if (step.opcode(n) == Opcode::parameter) return false;
    if (step.opcode(n) == Opcode::constant) {
      copies[step.result(n).index] = graph_.add_constant(step.constant(n));
      return true;
    }
    std::vector<ValueId> operands;
    for (ValueId v : step.operands(n)) operands.push_back(v.is_none() ? v : copies[v.index]);
    Result<NodeId> made =
        graph_.append(step.op(n), operands, {step.regions(n).begin(), step.regions(n).end()});
    if (!made.ok()) return false;
    for (size_t i = 0; i < step.results(n).size(); ++i) {
      ValueId& result = copies[step.result(n, i).index];
      if (result.is_none()) result = graph_.result(*made, i);
    }
    return true;
  }

  // But for the operands.
  bool is_same_node(NodeId a, const Graph& outer, NodeId b) const {
    if (graph_.op(a) != outer.op(b)) return false;
    if (graph_.opcode(a) == Opcode::constant) {
      const Tensor& x = graph_.constant(a);
      const Tensor& y = outer.constant(b);
      return x.type() == y.type() && x.content_hash() == y.content_hash();
    }
    const auto in = graph_.regions(a), out = outer.regions(b);
    if (in.size() != out.size() || graph_.results(a).size() != outer.results(b).size() ||
        graph_.operands(a).size() != outer.operands(b).size())
      return false;
    for (size_t i = 0; i < in.size(); ++i)
      if (structural_hash(*in[i]) != structural_hash(*out[i])) return false;
    return true;
  }

  Graph graph_;
};

// As while: state = counter, condition, limit, carried, captured. In some loops the condition is
// the same function of the carried values before the loop and after each iteration, and nothing
// else ends the loop. Then the function is the while's, and the state is the carried and captured
// values.
bool loop_as_while(Node& n, const LoopParts& loop, Region& region) {
  if (loop.stacked > 0) return false;
  Builder& b = n.builder();
  std::vector<Value> kept = loop.initial;
  const std::vector<Slot*>& captures = region.flow->captures();
  for (Slot* slot : captures) kept.push_back(n.flow().value_of(*slot));
  const Graph step = *n.take(finish(region, captures));
  const size_t carried = loop.initial.size();
  const auto condition = WhileCondition::of(step, carried);
  const bool is_while = condition && !loop.trip_count && loop.condition && !kept.empty() &&
                        condition->is_same(b.graph(), loop.condition.id(), kept);
  std::vector<Value> state;
  if (!is_while)
    state = {b.scalar(DType::i64, 0), loop.condition ? loop.condition : b.scalar(DType::boolean, 1),
             loop.trip_count ? loop.trip_count : b.scalar(DType::i64, 0x1p62)};
  const size_t first = state.size();
  state.insert(state.end(), kept.begin(), kept.end());
  const size_t unfound = state.size();  // without what was found
  if (n.is_checked()) state.push_back(nothing_found(b));
  auto goes_on = [&](Builder& inner, std::span<const Value> in) {
    if (is_while) return inner.inlined(condition->graph(), in.first(unfound));
    return std::vector{binary(Opcode::and_, in[1], compare("lt", in[0], in[2]))};
  };
  auto body = [&](Builder& inner, std::span<const Value> in) {
    std::vector<Value> arguments, out;
    if (is_while)
      arguments = {inner.scalar(DType::i64, 0), inner.scalar(DType::boolean, 1)};  // not read
    else
      arguments = {in[0], in[1]};
    const std::span<const Value> own = in.first(unfound).subspan(first);
    arguments.insert(arguments.end(), own.begin(), own.end());
    std::vector<Value> results = inner.inlined(step, arguments);
    if (!is_while) out = {in[0] + 1.0, results[0], in[2]};
    out.insert(out.end(), results.begin() + 1, results.begin() + 1 + static_cast<long>(carried));
    out.insert(out.end(), own.begin() + static_cast<long>(carried), own.end());
    keep_found(in.subspan(unfound), results, out);
    return out;
  };
  std::vector<Value> results = while_loop(state, goes_on, body);
  for (size_t i = 0; i < carried; ++i) n.out(i, results[first + i]);
  lift_found(n, results, region.flow->checks());
  return true;
}

// The types that the carried values have in every iteration: where a size changes, it is unknown.
SegmentBody import_loop_body(Node& n, const LoopParts& loop, std::vector<BodyInput>& inputs,
                             const std::string& found) {
  for (int attempt = 0; attempt <= kMaxRank; ++attempt) {
    SegmentBody body = import_body(n, loop.body, inputs, 1 + loop.initial.size(), found);
    bool is_stable = true;
    for (size_t i = 0; i < loop.initial.size(); ++i) {
      Type type = inputs[2 + i].type, next = body.types[1 + i];
      if (next == type) continue;
      std::string what = fmt::format("carried value {}", i);
      Type wider = wider_type(n, type, next, what);
      is_stable &= wider == type;
      inputs[2 + i].type = wider;
    }
    if (is_stable) return body;
  }
  n.unsupported("the sizes of its carried values never settle");
}

// The size of all pieces together: as many rows as there are iterations.
Type stacked_type(Node& n, Type piece) {
  Type known = common_type(n, {piece}, "a stacked result");
  Dims dims(known.dims().begin(), known.dims().end());
  int64_t others = 1;
  for (size_t i = 1; i < dims.size(); ++i)
    others = (Dim(others) * std::max<int64_t>(dims[i].range().high, 1)).value();
  int64_t most = std::clamp<int64_t>((int64_t{1} << 58) / others, 1, Node::kMostSize);
  dims[0] = n.flow().fresh_symbol("iterations", most);
  return n.take(Type::make(known.dtype(), dims));
}

void loop_as_segment(Node& n, const LoopParts& loop) {
  Flow& flow = n.flow();
  LoopSegment segment;
  auto name_of = [&](std::string_view wish, Value value) {
    return flow.export_name(*flow.define(std::string(wish), value));
  };
  if (loop.trip_count) segment.trip_count = name_of("trip_count", loop.trip_count);
  if (loop.condition) segment.condition = name_of("condition", loop.condition);
  segment.counter = flow.fresh_name("iteration");
  std::vector<BodyInput> inputs = {{segment.counter, Type::scalar(DType::i64), {}},
                                   {"", Type::scalar(DType::boolean), Elements{Dim(1)}}};
  for (size_t i = 0; i < loop.initial.size(); ++i) {
    std::string name = flow.fresh_name(loop.body.input(static_cast<int>(2 + i)).name());
    segment.carried.push_back({name, name_of(name + "_initial", loop.initial[i])});
    inputs.push_back({name, loop.initial[i].type(), {}});
  }
  std::string found;  // what was, as the last carried value
  if (n.is_checked()) {
    found = flow.fresh_name("found");
    segment.carried.push_back({found, name_of(found + "_initial", nothing_found(n.builder()))});
  }
  SegmentBody body = import_loop_body(n, loop, inputs, found);
  std::vector<Type> types;
  for (size_t i = 0; i < loop.initial.size(); ++i)
    types.push_back(common_type(n, {inputs[2 + i].type, body.types[1 + i]}, "a carried value"));
  for (size_t i = 0; i < loop.stacked; ++i) {
    Type piece = body.types[1 + loop.initial.size() + i];
    // Without rows yet, so sizes that are not known are left to the first piece.
    Dims rows(piece.dims().begin(), piece.dims().end());
    for (Dim& size : rows)
      if (!size.is_static()) size = 0;
    rows[0] = 0;
    Value none = n.builder().full(piece.dtype(), rows, 0);
    segment.grown.push_back(name_of(fmt::format("stack_{}", i), none));
    types.push_back(stacked_type(n, piece));
  }
  segment.next_condition = body.body.results.front();
  body.body.results.erase(body.body.results.begin());
  segment.body = std::move(body.body);
  segment.results = define_results(n, types);
  if (n.is_checked()) {
    const std::string name = flow.fresh_name("found");
    segment.results.insert(segment.results.begin() + static_cast<long>(loop.initial.size()), name);
    flow.add_check(flow.external(name, found_type()), body.checks);
  }
  flow.append(Segment{std::move(segment)});
}

}  // namespace

void map_loop(Node& n) {
  LoopParts loop = {n.graph("body"), {}, {}, {}, 0};
  for (size_t i = 2; i < n.inputs(); ++i) loop.initial.push_back(n.in(i));
  size_t carried = loop.initial.size();
  auto inputs = static_cast<size_t>(loop.body.input_size());
  auto outputs = static_cast<size_t>(loop.body.output_size());
  if (inputs != 2 + carried || outputs < 1 + carried || outputs - 1 < n.outputs())
    n.bad("{} values are carried and {} results wanted, the body has {} inputs and {} outputs",
          carried, n.outputs(), inputs, outputs);
  loop.stacked = outputs - 1 - carried;
  if (n.has(0)) {
    loop.trip_count = n.in(0);
    if (!is_integer(loop.trip_count.dtype()) || loop.trip_count.rank() > 1)
      n.bad("the trip count is {}, must be one integer", loop.trip_count.type().to_string());
    loop.trip_count = cast(reshape(loop.trip_count, {}), DType::i64);
  }
  if (n.has(1)) loop.condition = as_flag(n, n.in(1), "the condition");
  Result<Region> region = import_region(n, loop.body, body_types(loop.initial));
  if (region.ok()) {
    std::vector<Value>& results = region->results;
    results[0] = as_flag(n, results[0], "the condition of the body");
    if (keeps_types(*region, loop.initial) &&
        (loop_as_scan(n, loop, *region) || loop_as_while(n, loop, *region)))
      return;
  }
  if (n.flow().kind() == Flow::Kind::region)
    throw region.ok() ? NotARegion() : NotARegion{region.error()};
  loop_as_segment(n, loop);
}

}  // namespace hone::onnx_io

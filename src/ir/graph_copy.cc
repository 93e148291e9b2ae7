#include "ir/graph_copy.h"

#include <utility>

#include "ir/sharding.h"

namespace hone {
namespace {

Result<NodeId> append_node(const Graph& from, NodeId n, Op op, std::span<const ValueId> operands,
                           std::vector<GraphRef> regions, Graph& to) {
  if (from.opcode(n) == Opcode::constant) return to.producer(to.add_constant(from.constant(n)));
  Result<NodeId> copy = to.append(op, operands, std::move(regions));
  if (!copy.ok()) return std::move(copy).error().within(from.describe(n));
  return copy;
}

}  // namespace

GraphCopy::GraphCopy(const Graph& source)
    : source_(source), target_(source.name()), map_(source.value_count()) {
  target_.reserve(source.node_count());
}

ValueId GraphCopy::operator()(ValueId v) const {
  if (v.is_none()) return v;
  HONE_CHECK(!map_[v.index].is_none(), "value {} was left out but is used", source_.label(v));
  return map_[v.index];
}

std::vector<ValueId> GraphCopy::operator()(std::span<const ValueId> values) const {
  std::vector<ValueId> mapped;
  mapped.reserve(values.size());
  for (ValueId v : values) mapped.push_back((*this)(v));
  return mapped;
}

Result<NodeId> GraphCopy::node(NodeId n) {
  std::span<const GraphRef> regions = source_.regions(n);
  return node(n, source_.op(n), {regions.begin(), regions.end()});
}

Result<NodeId> GraphCopy::node(NodeId n, Op op, std::vector<GraphRef> regions) {
  NodeId copy;
  if (source_.opcode(n) == Opcode::parameter) {
    const Dims& dims = op.dims("dims");
    Type type = HONE_TRY(Type::make(op.dtype("dtype"), dims));
    copy = target_.producer(target_.add_parameter(type));
  } else {
    copy = HONE_TRY(
        append_node(source_, n, op, (*this)(source_.operands(n)), std::move(regions), target_));
  }
  for (size_t i = 0; i < source_.results(n).size(); ++i)
    replace(source_.result(n, i), target_.result(copy, i));
  return copy;
}

void GraphCopy::replace(ValueId v, ValueId replacement) {
  const ValueId before = std::exchange(map_[v.index], replacement);
  const std::string_view name = source_.name(v);
  if (name.empty() || !target_.name(replacement).empty()) return;
  // A name is of one value: plans know values by it.
  if (!before.is_none() && target_.name(before) == name) target_.set_name(before, "");
  target_.set_name(replacement, name);
}

Result<std::vector<ValueId>> GraphCopy::append(const Graph& body,
                                               std::span<const ValueId> arguments) {
  HONE_CHECK(arguments.size() == body.inputs().size(), "'{}' takes {} inputs, {} given",
             body.name(), body.inputs().size(), arguments.size());
  std::vector<ValueId> map(body.value_count());
  for (size_t i = 0; i < arguments.size(); ++i) map[body.inputs()[i].index] = arguments[i];
  for (NodeId n : body.nodes()) {
    if (body.opcode(n) == Opcode::parameter) continue;
    std::vector<ValueId> operands;
    for (ValueId v : body.operands(n)) operands.push_back(v.is_none() ? v : map[v.index]);
    std::span<const GraphRef> regions = body.regions(n);
    NodeId copy = HONE_TRY(
        append_node(body, n, body.op(n), operands, {regions.begin(), regions.end()}, target_));
    for (size_t i = 0; i < body.results(n).size(); ++i)
      map[body.result(n, i).index] = target_.result(copy, i);
  }
  std::vector<ValueId> outputs;
  for (ValueId v : body.outputs()) outputs.push_back(map[v.index]);
  return outputs;
}

Graph GraphCopy::finish() {
  target_.set_outputs((*this)(source_.outputs()));
  for (Donation d : source_.donations()) target_.add_donation(d.input, d.output);
  if (const Shardings* before = source_.shardings()) {
    auto after = std::make_shared<Shardings>();
    for (const auto& [value, sharding] : before->values) {
      const ValueId copy = map_[value.index];
      if (!copy.is_none() && target_.type(copy).rank() == source_.type(value).rank())
        after->add(copy, sharding);
    }
    after->outputs = before->outputs;
    target_.set_shardings(std::move(after));
  }
  return std::move(target_);
}

}  // namespace hone

#include "shard/device_nodes.h"

#include <algorithm>
#include <numeric>

#include "ir/op_def.h"
#include "ir/op_facts.h"
#include "shard/local_op.h"

namespace hone {

ValueId NodesOnDevices::parameter(int32_t device, Type type, std::string_view name) {
  device_of.push_back(device);
  return graph.add_parameter(type, name);
}

ValueId NodesOnDevices::constant(int32_t device, const Tensor& tensor) {
  device_of.push_back(device);
  return graph.add_constant(tensor);
}

ValueId NodesOnDevices::append(int32_t device, Op op, std::span<const ValueId> operands) {
  const Result<NodeId> made = graph.append(op, operands);
  HONE_CHECK(made.ok(), "a part of an exchange does not fit: {}", made.error().to_string());
  device_of.push_back(device);
  return graph.result(*made);
}

ValueId NodesOnDevices::stretch(int32_t device, ValueId value, size_t dim, int64_t begin,
                                int64_t end) {
  const Type type = graph.type(value);
  Dims starts(static_cast<size_t>(type.rank()), 0), limits(type.dims().begin(), type.dims().end());
  if (begin == 0 && limits[dim].is(end)) return value;
  starts[dim] = begin;
  limits[dim] = end;
  return append(device, Op::get(Opcode::slice, {{"start", starts}, {"limit", limits}}), {{value}});
}

ValueId NodesOnDevices::joined(int32_t device, std::span<const ValueId> values, size_t dim) {
  if (values.size() == 1) return values[0];
  return append(device, Op::get(Opcode::concat, {{"axis", static_cast<int64_t>(dim)}}), values);
}

DeviceNodes::DeviceNodes(const Graph& program, std::vector<int32_t> devices, NodesOnDevices& made)
    : program_(program),
      devices_(std::move(devices)),
      made_(made),
      values_(program.value_count()) {}

namespace {

bool exchanges_inside(const Graph& graph, NodeId n) {
  for (const GraphRef& region : graph.regions(n))
    for (const NodeId inner : region->nodes())
      if (class_of(region->opcode(inner)) == OpClass::collective ||
          exchanges_inside(*region, inner))
        return true;
  return false;
}

size_t dim_of(Op op, std::string_view attr) { return static_cast<size_t>(op.integer(attr)); }

}  // namespace

Status DeviceNodes::add(NodeId n) {
  const Op op = program_.op(n);
  if (class_of(op.opcode()) != OpClass::collective) return copy(n);
  std::vector<ValueId> made(devices_.size());
  if (program_.operands(n).empty())
    numbers(made);
  else if (has_attr(op, "pairs"))
    permute(n, made);
  else
    for (const Members& group : groups(op)) exchange(n, group, made);
  define(program_.result(n), std::move(made));
  return {};
}

// The place of each device.
void DeviceNodes::numbers(std::vector<ValueId>& made) {
  for (size_t place = 0; place < made.size(); ++place) {
    const auto number = static_cast<int64_t>(place);
    made[place] = made_.constant(devices_[place],
                                 Tensor::from_integers(Type::scalar(DType::i64), {&number, 1}));
  }
}

// Attributes say whether elements are combined or joined, and along which dims.
void DeviceNodes::exchange(NodeId n, const Members& group, std::vector<ValueId>& made) {
  const Op op = program_.op(n);
  const ValueId v = program_.operands(n)[0];
  const bool combines = has_attr(op, "kind");
  if (combines && !has_attr(op, "axis")) return all_reduce(n, group, made);
  for (size_t i = 0; i < group.size(); ++i) {
    ValueId& own = made[group[i]];
    if (combines)
      own = combined(op, parts(v, group, dim_of(op, "axis"), i), group[i]);
    else if (has_attr(op, "split_axis"))
      own = made_.joined(devices_[group[i]], parts(v, group, dim_of(op, "split_axis"), i),
                         dim_of(op, "concat_axis"));
    else
      own = gathered(v, group, group[i], dim_of(op, "axis"));
  }
}

Error inner_exchange(const Graph& graph, NodeId n) {
  return unsupported("devices of a stage would exchange data within {}", graph.describe(n))
      .with_hint("divide it otherwise, or give the stage one device");
}

Status DeviceNodes::copy(NodeId n) {
  if (exchanges_inside(program_, n)) return inner_exchange(program_, n);
  std::vector<std::vector<ValueId>> made(program_.results(n).size());
  for (size_t place = 0; place < devices_.size(); ++place) {
    if (is_constant(program_.opcode(n))) {
      made[0].push_back(made_.constant(devices_[place], program_.constant(n)));
      continue;
    }
    std::vector<ValueId> operands;
    for (const ValueId v : program_.operands(n))
      operands.push_back(v.is_none() ? v : values_[v.index][place]);
    const std::span<const GraphRef> regions = program_.regions(n);
    const NodeId node =
        HONE_TRY(made_.graph.append(program_.op(n), operands, {regions.begin(), regions.end()}));
    made_.device_of.push_back(devices_[place]);
    for (size_t i = 0; i < made.size(); ++i) made[i].push_back(made_.graph.result(node, i));
  }
  for (size_t i = 0; i < made.size(); ++i) define(program_.result(n, i), std::move(made[i]));
  return {};
}

std::vector<DeviceNodes::Members> DeviceNodes::groups(Op op) const {
  std::vector<Members> all;
  const auto size = static_cast<size_t>(op.integer("group_size"));
  const Ints& said = op.ints("groups");
  for (size_t i = 0; i < devices_.size(); ++i) {
    if (i % size == 0) all.emplace_back();
    all.back().push_back(said.empty() ? i : static_cast<size_t>(said[i]));
  }
  return all;
}

ValueId DeviceNodes::gathered(ValueId v, const Members& group, size_t place, size_t dim) {
  std::vector<ValueId> all;
  for (const size_t member : group) all.push_back(values_[v.index][member]);
  return made_.joined(devices_[place], all, dim);
}

std::vector<ValueId> DeviceNodes::parts(ValueId v, const Members& group, size_t dim, size_t index) {
  const int64_t part =
      program_.type(v).dim(static_cast<int>(dim)).value() / static_cast<int64_t>(group.size());
  const int64_t begin = static_cast<int64_t>(index) * part;
  std::vector<ValueId> all;
  for (const size_t member : group)
    all.push_back(
        made_.stretch(devices_[member], values_[v.index][member], dim, begin, begin + part));
  return all;
}

// In the order of the devices, so that all have the same bits.
ValueId DeviceNodes::combined(Op op, std::span<const ValueId> summands, size_t place) {
  ValueId all = summands[0];
  for (const ValueId one : summands.subspan(1))
    all = made_.append(devices_[place], Op::get(combine_of(op.word("kind"))), {{all, one}});
  return all;
}

// Each device combines a part, and all get it: a device receives twice its share. If no dim has as
// many parts, each device combines everything.
void DeviceNodes::all_reduce(NodeId n, const Members& group, std::vector<ValueId>& made) {
  const Op op = program_.op(n);
  const ValueId v = program_.operands(n)[0];
  const Type type = program_.type(v);
  int dim = 0;
  while (dim < type.rank() && type.dim(dim).value() % std::ssize(group) != 0) ++dim;
  if (dim == type.rank() || type.static_elements() == 0) {
    std::vector<ValueId> all;
    for (const size_t member : group) all.push_back(values_[v.index][member]);
    for (const size_t member : group) made[member] = combined(op, all, member);
    return;
  }
  const auto along = static_cast<size_t>(dim);
  std::vector<ValueId> sums;
  for (size_t i = 0; i < group.size(); ++i)
    sums.push_back(combined(op, parts(v, group, along, i), group[i]));
  for (const size_t member : group) made[member] = made_.joined(devices_[member], sums, along);
}

// Who gets nothing has zeros.
void DeviceNodes::permute(NodeId n, std::vector<ValueId>& made) {
  const Op op = program_.op(n);
  const ValueId v = program_.operands(n)[0];
  std::vector<Members> all;
  if (op.integer("group_size") > 0) {
    all = groups(op);
  } else {
    all.emplace_back(devices_.size());
    std::iota(all[0].begin(), all[0].end(), size_t{0});
  }
  const Ints& pairs = op.ints("pairs");
  std::vector<bool> gets(made.size(), false);
  for (const Members& group : all)
    for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
      const size_t target = group[static_cast<size_t>(pairs[i + 1])];
      made[target] = values_[v.index][group[static_cast<size_t>(pairs[i])]];
      gets[target] = true;
    }
  const Type type = program_.type(v);
  for (size_t place = 0; place < made.size(); ++place) {
    if (gets[place]) continue;
    const ValueId zero = made_.constant(devices_[place], Tensor::zeros(Type::scalar(type.dtype())));
    const Dims dims(type.dims().begin(), type.dims().end());
    made[place] = made_.append(
        devices_[place], Op::get(Opcode::broadcast, {{"dims", dims}, {"map", Ints()}}), {{zero}});
  }
}

}  // namespace hone

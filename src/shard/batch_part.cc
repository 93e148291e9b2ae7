#include "shard/batch_part.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/op_facts.h"
#include "shard/batch_walk.h"
#include "shard/data_flow.h"
#include "shard/local_op.h"

namespace hone {

Error mixes_rows(std::string_view op, std::string_view why) {
  return unsupported("op '{}' mixes the rows of the batch: {}", op, why)
      .with_hint("run it on one device, or say which inputs have the batch, and along which dim");
}

Result<WalkedRows> walk_rows(const Graph& graph, std::vector<int>& parameters,
                             std::span<const int> wanted, const BatchShare& share) {
  for (;;) {
    BatchWalk one(graph, parameters, share);
    HONE_TRY(one.run(wanted));
    if (one.demands().empty()) {
      std::vector<bool> kept;
      for (size_t i = 0; i < parameters.size(); ++i) kept.push_back(one.is_kept(i));
      return WalkedRows{one.take_graph(), one.outputs(), one.depends_on_first(), one.has_sums(),
                        kept};
    }
    for (const RowDemand& demand : one.demands()) parameters[demand.parameter] = demand.dim;
  }
}

// ---- Types and ops of a share -------------------------------------------------------------------

Type BatchWalk::local_type(Type type, int dim) const {
  if (dim < 0) return type;
  Dims dims(type.dims().begin(), type.dims().end());
  Dim& size = dims[static_cast<size_t>(dim)];
  size = size.value() / share_.rows * share_.count;
  return type.with_dims(dims);
}

namespace {

std::vector<const Graph*> pointers(std::span<const GraphRef> regions) {
  std::vector<const Graph*> plain;
  for (const GraphRef& region : regions) plain.push_back(region.get());
  return plain;
}

}  // namespace

Result<NodeId> BatchWalk::append(NodeId n, std::span<const ValueId> operands,
                                 std::span<const int> operand_dims,
                                 std::span<const int> result_dims, std::vector<GraphRef> regions) {
  std::vector<Type> wanted;
  for (size_t i = 0; i < result_dims.size(); ++i)
    wanted.push_back(local_type(whole_.type(whole_.result(n, i)), result_dims[i]));
  return append_as(n, whole_.op(n), operands, operand_dims, result_dims, std::move(regions),
                   wanted);
}

Result<NodeId> BatchWalk::append_as(NodeId n, Op as, std::span<const ValueId> operands,
                                    std::span<const int> operand_dims,
                                    std::span<const int> result_dims, std::vector<GraphRef> regions,
                                    std::span<const Type> wanted) {
  std::vector<Type> sized = whole_.operand_types(n);
  const std::vector<Type> results = whole_.result_types(n);
  sized.insert(sized.end(), results.begin(), results.end());
  std::vector<int> dims(operand_dims.begin(), operand_dims.end());
  dims.insert(dims.end(), result_dims.begin(), result_dims.end());
  const std::vector<SizeEntry> entries = size_entries(as, sized, dims, share_);

  std::vector<Type> types;
  for (ValueId v : operands) types.push_back(v.is_none() ? Type() : part_.type(v));
  const std::optional<Op> op = local_op({as, types, pointers(regions)}, entries, wanted);
  if (!op)
    return mixes_rows(whole_.op(n).name(), "it has no form for fewer rows").at(whole_.describe(n));
  return part_.append(*op, operands, std::move(regions));
}

void BatchWalk::define(NodeId n, size_t result, ValueId local, int dim) {
  const ValueId v = whole_.result(n, result);
  dims_[v.index] = dim;
  local_[v.index] = local;
  // The name of a sum is that of the value, when all parts are added up.
  if (dim != kPartialSum && part_.name(local).empty()) part_.set_name(local, whole_.name(v));
}

std::vector<int> BatchWalk::operand_dims(NodeId n) const {
  std::vector<int> dims;
  for (ValueId v : whole_.operands(n)) dims.push_back(v.is_none() ? kWhole : dims_[v.index]);
  return dims;
}

// ---- Nodes --------------------------------------------------------------------------------------

void BatchWalk::parameter(NodeId n) {
  const ValueId v = whole_.result(n);
  const int dim = dims_[v.index];
  define(n, 0, part_.add_parameter(local_type(whole_.type(v), dim)), dim);
}

Status BatchWalk::whole_node(NodeId n) {
  if (is_constant(whole_.opcode(n))) {
    define(n, 0, part_.add_constant(whole_.constant(n)), kWhole);
    return {};
  }
  std::vector<ValueId> operands;
  for (ValueId v : whole_.operands(n)) operands.push_back(v.is_none() ? v : local_[v.index]);
  const std::span<const GraphRef> regions = whole_.regions(n);
  const NodeId copy =
      HONE_TRY(part_.append(whole_.op(n), operands, {regions.begin(), regions.end()}));
  for (size_t i = 0; i < whole_.results(n).size(); ++i) define(n, i, part_.result(copy, i), kWhole);
  return {};
}

Status BatchWalk::row_by_row(NodeId n) {
  const std::vector<int> dims = operand_dims(n);
  const std::vector<Type> operands = whole_.operand_types(n), results = whole_.result_types(n);
  RowsOfOp rows({whole_.op(n), operands}, results, share_.rows);
  const std::optional<RowRule> rule = rows.from_operands(dims);
  if (!rule) {
    if (const std::optional<RowRule> sum = rows.sum_from_operands(dims))
      return sum_of_rows(n, *sum);
    return mixes_rows(whole_.op(n).name(), rows.reason(dims)).at(whole_.describe(n));
  }
  const std::vector<ValueId> local = HONE_TRY(operands_at(n, rule->operands));
  const NodeId made = HONE_TRY(append(n, local, rule->operands, rule->results, {}));
  for (size_t i = 0; i < results.size(); ++i) define(n, i, part_.result(made, i), rule->results[i]);
  return {};
}

Status BatchWalk::node(NodeId n) {
  const Opcode opcode = whole_.opcode(n);
  if (is_parameter(opcode)) return parameter(n), Status();
  const std::vector<int> given = operand_dims(n);
  if (std::ranges::find(given, kPartialSum) != given.end()) {
    if (std::ranges::all_of(given, [](int dim) { return dim == kPartialSum; }) &&
        keeps_sums(whole_, n))
      return sum_of_sums(n);
    for (ValueId v : whole_.operands(n))
      if (!v.is_none() && dims_[v.index] == kPartialSum) HONE_TRY(add_up(v));
  }
  const std::vector<int> dims = operand_dims(n);
  if (std::ranges::all_of(dims, [](int dim) { return dim == kWhole; })) return whole_node(n);
  if (class_of(opcode) == OpClass::control) return control(n);
  if (is_composite(opcode)) return composite(n);
  const std::vector<Type> operands = whole_.operand_types(n);
  if (has_access({whole_.op(n), operands})) return row_by_row(n);
  return mixes_rows(name(opcode), "it talks to other devices").at(whole_.describe(n));
}

Status BatchWalk::run(std::span<const int> wanted) {
  const std::vector<bool> live = live_nodes(whole_);
  for (NodeId n : whole_.nodes())
    if (live[n.index] && talks_to_devices(whole_, n))
      return mixes_rows(name(whole_.opcode(n)), "it talks to other devices").at(whole_.describe(n));
  const auto is_wanted_in_parts = [&](size_t i) {
    return i < wanted.size() && wanted[i] == kPartialSum;
  };
  for (size_t i = 0; i < whole_.outputs().size(); ++i) {
    const ValueId v = whole_.outputs()[i];
    if (is_wanted_in_parts(i) && users_.of(v).empty()) stays_[v.index] = true;
  }
  for (NodeId n : whole_.nodes())
    if (live[n.index]) HONE_TRY(node(n));
  std::vector<ValueId> outputs;
  for (size_t i = 0; i < whole_.outputs().size(); ++i) {
    const ValueId v = whole_.outputs()[i];
    if (dims_[v.index] == kPartialSum && !is_wanted_in_parts(i)) HONE_TRY(add_up(v));
    const int dim = i < wanted.size() && wanted[i] != kWhole ? wanted[i] : dims_[v.index];
    outputs.push_back(HONE_TRY(at(v, dim)));
    outputs_.push_back(dim);
  }
  part_.set_outputs(std::move(outputs));
  return {};
}

Result<BatchPart> batch_part(const Graph& graph, std::vector<int> inputs, const BatchShare& share) {
  HONE_CHECK(graph.is_static() && inputs.size() == graph.inputs().size() && share.rows >= 2 &&
                 share.count >= 1 && share.first + share.count <= share.rows &&
                 (share.devices > 1 || share.count == share.rows),
             "a share of a batch of '{}' is no part of it", graph.name());
  WalkedRows walked = HONE_TRY(walk_rows(graph, inputs, {}, share));
  return BatchPart{
      HONE_TRY(remove_dead_code(walked.graph)), std::move(inputs), std::move(walked.outputs),
                   walked.depends_on_first, walked.has_sums};
}

}  // namespace hone

#include <algorithm>
#include <optional>

#include "ir/op_facts.h"
#include "shard/batch_walk.h"
#include "shard/local_op.h"

// The values of a part of a batch: whole ones that meet rows are cut, and partial sums are added
// up.

namespace hone {
namespace {

// Two sides want rows of one value along two dims.
Error two_ways(const Graph& graph, ValueId v, int have, int wanted) {
  return unsupported("{} has the rows of the batch along dim {}, but they are needed along {}",
                     graph.label(v), have,
                     wanted == kWhole ? "none: all rows at once" : fmt::format("dim {}", wanted))
      .at(graph.describe(graph.producer(v)));
}

constexpr int kMostDepth = 500;  // a chain of cuts; a longer one is computed whole

}  // namespace

// ---- Whole values that meet rows ----------------------------------------------------------------

Result<ValueId> BatchWalk::at(ValueId v, int dim) {
  if (v.is_none()) return v;
  if (dims_[v.index] == kPartialSum && dim != kPartialSum) HONE_TRY(add_up(v));
  if (dims_[v.index] == dim) return local_[v.index];
  if (dims_[v.index] != kWhole) return two_ways(whole_, v, dims_[v.index], dim);
  const std::pair<ValueId, int> key(v, dim);
  if (const auto known = cuts_.find(key); known != cuts_.end()) return known->second;
  const ValueId made = HONE_TRY(dim == kPartialSum ? counted_once(v) : cut(v, dim));
  cuts_.emplace(key, made);
  return made;
}

Result<std::vector<ValueId>> BatchWalk::operands_at(NodeId n, std::span<const int> dims) {
  std::vector<ValueId> operands;
  for (size_t i = 0; i < dims.size(); ++i) {
    const ValueId v = whole_.operands(n)[i];
    operands.push_back(HONE_TRY(at(v, dims[i])));
  }
  return operands;
}

Result<ValueId> BatchWalk::cut(ValueId v, int dim) {
  const NodeId n = whole_.producer(v);
  const Opcode opcode = whole_.opcode(n);
  if (is_parameter(opcode)) {
    const auto inputs = whole_.inputs();
    const auto number = static_cast<size_t>(std::ranges::find(inputs, v) - inputs.begin());
    const bool is_known = std::ranges::any_of(
        demands_, [&](const RowDemand& demand) { return demand.parameter == number; });
    if (!is_known) demands_.push_back({number, dim});
    return sliced(v, dim);  // this walk is done again
  }
  return computed_cut(v, dim);
}

// Only these rows are computed, as far as the op computes row by row; of a constant and of what
// follows from the places of elements, they are cut out.
Result<ValueId> BatchWalk::computed_cut(ValueId v, int dim) {
  const NodeId n = whole_.producer(v);
  const OpClass kind = class_of(whole_.opcode(n));
  const std::vector<Type> operands = whole_.operand_types(n), results = whole_.result_types(n);
  const Application application{whole_.op(n), operands};
  const bool is_made_of_operands = kind != OpClass::leaf && kind != OpClass::generator;
  if (!is_made_of_operands || !has_access(application) || depth_ == kMostDepth)
    return sliced(v, dim);
  const std::optional<RowRule> rule =
      RowsOfOp(application, results, share_.rows)
          .from_result(static_cast<int>(whole_.result_index(v)), dim);
  // A sum that was added up is here whole; its operands have other rows.
  const auto is_divided = [&](ValueId operand) {
    return !operand.is_none() && dims_[operand.index] != kWhole;
  };
  if (!rule || std::ranges::any_of(whole_.operands(n), is_divided)) return sliced(v, dim);
  ++depth_;
  const Result<std::vector<ValueId>> local = operands_at(n, rule->operands);
  --depth_;
  if (!local.ok()) return local.error();
  const Result<NodeId> made = append(n, *local, rule->operands, rule->results, {});
  if (!made.ok()) return sliced(v, dim);
  for (size_t i = 0; i < results.size(); ++i)
    cuts_.emplace(std::pair(whole_.result(n, i), rule->results[i]), part_.result(*made, i));
  return part_.result(*made, whole_.result_index(v));
}

namespace {

// True if each row along the dim has the same bytes.
bool has_equal_rows(const Tensor& tensor, int dim, int64_t rows) {
  constexpr int64_t kMostBytes = int64_t{1} << 20;
  if (dim != 0 || bits(tensor.dtype()) % 8 != 0 || tensor.byte_size() > kMostBytes) return false;
  const auto bytes = tensor.bytes();
  const size_t each = bytes.size() / static_cast<size_t>(rows);
  return std::equal(bytes.begin(), bytes.end() - static_cast<ptrdiff_t>(each),
                    bytes.begin() + static_cast<ptrdiff_t>(each));
}

}  // namespace

Result<ValueId> BatchWalk::sliced(ValueId v, int dim) {
  const Type type = whole_.type(v);
  const int64_t each = type.dim(dim).value() / share_.rows;
  const NodeId n = whole_.producer(v);
  const bool is_alike =
      is_constant(whole_.opcode(n)) && has_equal_rows(whole_.constant(n), dim, share_.rows);
  const int64_t first = is_alike ? 0 : share_.first;
  if (!is_alike) depends_on_first_ = true;
  Dims start(static_cast<size_t>(type.rank()), 0);
  Dims limit(type.dims().begin(), type.dims().end());
  start[static_cast<size_t>(dim)] = first * each;
  limit[static_cast<size_t>(dim)] = (first + share_.count) * each;
  const ValueId whole[] = {local_[v.index]};
  const NodeId slice =
      HONE_TRY(part_.append(Op::get(Opcode::slice, {{"start", start}, {"limit", limit}}), whole));
  return part_.result(slice);
}

// ---- Partial sums -------------------------------------------------------------------------------

Result<ValueId> BatchWalk::cast_to(ValueId local, DType dtype) {
  if (part_.type(local).dtype() == dtype) return local;
  const ValueId operands[] = {local};
  return part_.result( HONE_TRY(part_.append(Op::get(Opcode::cast, {{"dtype", dtype}}), operands)));
}

Status BatchWalk::add_up(ValueId v) {
  has_sums_ = true;
  const ValueId part[] = {local_[v.index]};
  const Op op =
      Op::get(Opcode::all_reduce, {{"kind", std::string("sum")}, {"group_size", share_.devices}});
  const ValueId sum = part_.result(HONE_TRY(part_.append(op, part)));
  local_[v.index] = HONE_TRY(cast_to(sum, whole_.type(v).dtype()));
  dims_[v.index] = kWhole;
  part_.set_name(local_[v.index], whole_.name(v));
  return {};
}

// Zeros that are written as such: they count nothing.
bool BatchWalk::is_zero(ValueId v) const {
  const auto alone = [&](NodeId n) {
    return class_of(whole_.opcode(n)) == OpClass::movement && whole_.operands(n).size() == 1;
  };
  NodeId n = whole_.producer(v);
  while (alone(n)) n = whole_.producer(whole_.operands(n)[0]);
  constexpr int64_t kMostBytes = int64_t{1} << 20;
  if (!is_constant(whole_.opcode(n)) || whole_.constant(n).byte_size() > kMostBytes) return false;
  return std::ranges::all_of(whole_.constant(n).bytes(),
                             [](std::byte byte) { return byte == std::byte{0}; });
}

// On the first device it counts; the others have zeros.
Result<ValueId> BatchWalk::counted_once(ValueId v) {
  const Type type = whole_.type(v);
  const DType dtype = sum_type(type.dtype());
  const bool is_nothing = is_zero(v);
  if (!is_nothing) depends_on_first_ = true;
  if (is_nothing || share_.first == 0) return cast_to(local_[v.index], dtype);
  const ValueId zero[] = {part_.add_constant(Tensor::zeros(Type::scalar(dtype)))};
  const Op spread = Op::get(
      Opcode::broadcast, {{"dims", Dims(type.dims().begin(), type.dims().end())}, {"map", Ints()}});
  return part_.result(HONE_TRY(part_.append(spread, zero)));
}

Status BatchWalk::sum_of_rows(NodeId n, const RowRule& rule) {
  std::vector<ValueId> local = HONE_TRY(operands_at(n, rule.operands));
  std::vector<Type> wanted;
  SumForm form = {.op = whole_.op(n), .operands = {}};
  for (const ValueId v : local) form.operands.push_back(v.is_none() ? Type() : part_.type(v));
  for (const Type& type : whole_.result_types(n)) {
    wanted.push_back(Type::get(sum_type(type.dtype()), type.dims()));
    form = sum_form(form.op, std::move(form.operands), type.dtype());
  }
  for (size_t i = 0; i < local.size(); ++i)
    if (!local[i].is_none()) local[i] = HONE_TRY(cast_to(local[i], form.operands[i].dtype()));
  const NodeId made =
      HONE_TRY(append_as(n, form.op, local, rule.operands, rule.results, {}, wanted));
  for (size_t i = 0; i < wanted.size(); ++i) define(n, i, part_.result(made, i), kPartialSum);
  return finish_sums(n);
}

// True if the op makes of parts of sums the parts of its result, if all of its operands are such.
bool BatchWalk::keeps_sums(const Graph& graph, NodeId n) {
  const OpDef& def = graph.op(n).def();
  if (is_elementwise(def.opcode)) return def.traits.kind == "sum";
  int64_t elements = 0;  // there must not be more of them to add up
  for (ValueId v : graph.operands(n)) elements += graph.type(v).static_elements();
  return class_of(def.opcode) == OpClass::movement &&
         graph.type(graph.result(n)).static_elements() <= elements;
}

Status BatchWalk::sum_of_sums(NodeId n) {
  std::vector<ValueId> parts;
  for (ValueId v : whole_.operands(n)) parts.push_back(local_[v.index]);
  const NodeId made = HONE_TRY(part_.append(whole_.op(n), parts));
  define(n, 0, part_.result(made), kPartialSum);
  return finish_sums(n);
}

// A sum stays in parts if its one reader may keep it so. Else it is added up at once, so that it is
// on its way while later ops compute.
Status BatchWalk::finish_sums(NodeId n) {
  for (ValueId v : whole_.results(n)) {
    const bool meets_sums = users_.has_one_use(v) && keeps_sums(whole_, users_.of(v)[0]);
    if (dims_[v.index] == kPartialSum && !meets_sums && !stays_[v.index]) HONE_TRY(add_up(v));
  }
  return {};
}

}  // namespace hone

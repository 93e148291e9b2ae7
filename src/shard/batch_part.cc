#include "shard/batch_part.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "ir/application.h"
#include "ir/op_facts.h"
#include "shard/local_op.h"

namespace hone {

namespace {

// Two sides want rows of one value along two dims.
Error two_ways(const Graph& graph, ValueId v, int have, int wanted) {
  return unsupported("{} has the rows of the batch along dim {}, but they are needed along {}",
                     graph.label(v), have,
                     wanted == kWhole ? "none: all rows at once" : fmt::format("dim {}", wanted))
      .at(graph.describe(graph.producer(v)));
}

constexpr std::string_view kWayOut =
    "run it on one device, or say which inputs have the batch, and along which dim";

Error mixes(std::string_view op, std::string_view why) {
  return unsupported("op '{}' mixes the rows of the batch: {}", op, why).with_hint(kWayOut);
}

constexpr int kMostDepth = 500;  // a chain of cuts; a longer one is computed whole

// A parameter that an op meets row by row.
struct Demand {
  size_t parameter;
  int dim;
};

// Walks through one graph: the whole one, a region or an expansion. It is done again with more
// parameters cut as long as there are demands.
class Walk {
 public:
  Walk(const Graph& whole, std::span<const int> parameters, const BatchShare& share)
      : whole_(whole),
        share_(share),
        part_(whole.name()),
        dims_(whole.value_count(), kWhole),
        local_(whole.value_count()),
        users_(whole),
        stays_(whole.value_count()) {
    for (size_t i = 0; i < parameters.size(); ++i) dims_[whole.inputs()[i].index] = parameters[i];
  }

  // wanted: kWhole for an output that may be as it comes; kPartialSum for one that stays in parts.
  Status run(std::span<const int> wanted);

  Graph take_graph() { return std::move(part_); }
  const std::vector<int>& outputs() const { return outputs_; }
  const std::vector<Demand>& demands() const { return demands_; }
  bool depends_on_first() const { return depends_on_first_; }
  bool has_sums() const { return has_sums_; }
  // True if the parameter is a partial sum, and was never added up.
  bool is_kept(size_t parameter) const {
    return dims_[whole_.inputs()[parameter].index] == kPartialSum;
  }

 private:
  Type local_type(Type type, int dim) const;
  std::vector<int> operand_dims(NodeId n) const;

  Status node(NodeId n);
  void parameter(NodeId n);
  Status whole_node(NodeId n);
  Status row_by_row(NodeId n);
  Status sum_of_rows(NodeId n, const RowRule& rule);
  Status sum_of_sums(NodeId n);
  Status finish_sums(NodeId n);
  Status composite(NodeId n);
  Status control(NodeId n);

  // The local value, with rows along the dim; a whole value is cut.
  Result<ValueId> at(ValueId v, int dim);
  Result<ValueId> cut(ValueId v, int dim);
  Result<ValueId> computed_cut(ValueId v, int dim);
  Result<ValueId> sliced(ValueId v, int dim);
  // The value of a partial sum, and a part of a sum that is the value.
  Status add_up(ValueId v);
  Result<ValueId> counted_once(ValueId v);
  bool is_zero(ValueId v) const;
  Result<ValueId> cast_to(ValueId local, DType dtype);
  Result<std::vector<ValueId>> operands_at(NodeId n, std::span<const int> dims);

  Result<NodeId> append(NodeId n, std::span<const ValueId> operands,
                        std::span<const int> operand_dims, std::span<const int> result_dims,
                        std::vector<GraphRef> regions);
  // The dims of sizes and results are as above; types of operands as they are, and of results.
  Result<NodeId> append_as(NodeId n, std::span<const ValueId> operands,
                           std::span<const int> operand_dims, std::span<const int> result_dims,
                           std::vector<GraphRef> regions, std::span<const Type> wanted);
  std::vector<ValueId> inlined(const Graph& body, std::span<const ValueId> arguments);
  void define(NodeId n, size_t result, ValueId local, int dim);

  const Graph& whole_;
  const BatchShare& share_;
  Graph part_;
  std::vector<int> dims_;       // by value of the whole graph
  std::vector<ValueId> local_;  // what stands for it, along that dim
  const Users users_;
  std::vector<bool> stays_;  // by value: an output that is wanted in parts, and read by nobody else
  std::map<std::pair<ValueId, int>, ValueId> cuts_;  // of whole values
  std::vector<Demand> demands_;
  std::vector<int> outputs_;
  bool depends_on_first_ = false;
  bool has_sums_ = false;
  int depth_ = 0;  // of cuts that are computed from cuts
};

struct Walked {
  Graph graph;
  std::vector<int> outputs;
  bool depends_on_first = false;
  bool has_sums = false;
  std::vector<bool> kept;  // of each parameter: Walk::is_kept
};

// Cuts parameters until no op asks for more of them.
Result<Walked> walk(const Graph& graph, std::vector<int>& parameters, std::span<const int> wanted,
                    const BatchShare& share) {
  for (;;) {
    Walk one(graph, parameters, share);
    HONE_TRY(one.run(wanted));
    if (one.demands().empty()) {
      std::vector<bool> kept;
      for (size_t i = 0; i < parameters.size(); ++i) kept.push_back(one.is_kept(i));
      return Walked{one.take_graph(), one.outputs(), one.depends_on_first(), one.has_sums(), kept};
    }
    for (const Demand& demand : one.demands()) parameters[demand.parameter] = demand.dim;
  }
}

// ---- Types and ops of a share -------------------------------------------------------------------

Type Walk::local_type(Type type, int dim) const {
  if (dim < 0) return type;
  Dims dims(type.dims().begin(), type.dims().end());
  Dim& size = dims[static_cast<size_t>(dim)];
  size = size.value() / share_.rows * share_.count;
  return type.with_dims(dims);
}

std::vector<const Graph*> pointers(std::span<const GraphRef> regions) {
  std::vector<const Graph*> plain;
  for (const GraphRef& region : regions) plain.push_back(region.get());
  return plain;
}

Result<NodeId> Walk::append(NodeId n, std::span<const ValueId> operands,
                            std::span<const int> operand_dims, std::span<const int> result_dims,
                            std::vector<GraphRef> regions) {
  std::vector<Type> wanted;
  for (size_t i = 0; i < result_dims.size(); ++i)
    wanted.push_back(local_type(whole_.type(whole_.result(n, i)), result_dims[i]));
  return append_as(n, operands, operand_dims, result_dims, std::move(regions), wanted);
}

Result<NodeId> Walk::append_as(NodeId n, std::span<const ValueId> operands,
                               std::span<const int> operand_dims, std::span<const int> result_dims,
                               std::vector<GraphRef> regions, std::span<const Type> wanted) {
  std::vector<Type> sized = whole_.operand_types(n);
  const std::vector<Type> results = whole_.result_types(n);
  sized.insert(sized.end(), results.begin(), results.end());
  std::vector<int> dims(operand_dims.begin(), operand_dims.end());
  dims.insert(dims.end(), result_dims.begin(), result_dims.end());
  const std::vector<SizeEntry> entries = size_entries(whole_.op(n), sized, dims, share_);

  std::vector<Type> types;
  for (ValueId v : operands) types.push_back(v.is_none() ? Type() : part_.type(v));
  const std::optional<Op> op = local_op({whole_.op(n), types, pointers(regions)}, entries, wanted);
  if (!op)
    return mixes(whole_.op(n).name(), "it has no form for fewer rows").at(whole_.describe(n));
  return part_.append(*op, operands, std::move(regions));
}

void Walk::define(NodeId n, size_t result, ValueId local, int dim) {
  const ValueId v = whole_.result(n, result);
  dims_[v.index] = dim;
  local_[v.index] = local;
  // The name of a sum is that of the value, when all parts are added up.
  if (dim != kPartialSum && part_.name(local).empty()) part_.set_name(local, whole_.name(v));
}

std::vector<int> Walk::operand_dims(NodeId n) const {
  std::vector<int> dims;
  for (ValueId v : whole_.operands(n)) dims.push_back(v.is_none() ? kWhole : dims_[v.index]);
  return dims;
}

// ---- Whole values that meet rows ----------------------------------------------------------------

Result<ValueId> Walk::at(ValueId v, int dim) {
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

Result<std::vector<ValueId>> Walk::operands_at(NodeId n, std::span<const int> dims) {
  std::vector<ValueId> operands;
  for (size_t i = 0; i < dims.size(); ++i) {
    const ValueId v = whole_.operands(n)[i];
    operands.push_back(HONE_TRY(at(v, dims[i])));
  }
  return operands;
}

Result<ValueId> Walk::cut(ValueId v, int dim) {
  const NodeId n = whole_.producer(v);
  const Opcode opcode = whole_.opcode(n);
  if (is_parameter(opcode)) {
    const auto inputs = whole_.inputs();
    const auto number = static_cast<size_t>(std::ranges::find(inputs, v) - inputs.begin());
    const bool is_known = std::ranges::any_of(
        demands_, [&](const Demand& demand) { return demand.parameter == number; });
    if (!is_known) demands_.push_back({number, dim});
    return sliced(v, dim);  // this walk is done again
  }
  return computed_cut(v, dim);
}

// Only these rows are computed, as far as the op computes row by row; of a constant and of what
// follows from the places of elements, they are cut out.
Result<ValueId> Walk::computed_cut(ValueId v, int dim) {
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

// True if each row along the dim has the same bytes.
bool has_equal_rows(const Tensor& tensor, int dim, int64_t rows) {
  constexpr int64_t kMostBytes = int64_t{1} << 20;
  if (dim != 0 || bits(tensor.dtype()) % 8 != 0 || tensor.byte_size() > kMostBytes) return false;
  const auto bytes = tensor.bytes();
  const size_t each = bytes.size() / static_cast<size_t>(rows);
  return std::equal(bytes.begin(), bytes.end() - static_cast<ptrdiff_t>(each),
                    bytes.begin() + static_cast<ptrdiff_t>(each));
}

Result<ValueId> Walk::sliced(ValueId v, int dim) {
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

// The type in which parts of a sum are added up. Rounded once, as on one device. Types that are for
// storage alone cannot be added up.
DType sum_type(DType dtype) {
  if (is_real(dtype)) return bits(dtype) <= 16 ? DType::f32 : dtype;
  return is_storage_only(dtype) ? DType::i32 : dtype;
}

Result<ValueId> Walk::cast_to(ValueId local, DType dtype) {
  if (part_.type(local).dtype() == dtype) return local;
  const ValueId operands[] = {local};
  return part_.result( HONE_TRY(part_.append(Op::get(Opcode::cast, {{"dtype", dtype}}), operands)));
}

Status Walk::add_up(ValueId v) {
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
bool Walk::is_zero(ValueId v) const {
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
Result<ValueId> Walk::counted_once(ValueId v) {
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

Status Walk::sum_of_rows(NodeId n, const RowRule& rule) {
  std::vector<ValueId> local = HONE_TRY(operands_at(n, rule.operands));
  std::vector<Type> wanted;
  for (const Type& type : whole_.result_types(n)) {
    const DType wide = sum_type(type.dtype());
    wanted.push_back(Type::get(wide, type.dims()));
    for (ValueId& v : local)
      if (!v.is_none() && part_.type(v).dtype() == type.dtype()) v = HONE_TRY(cast_to(v, wide));
  }
  const NodeId made = HONE_TRY(append_as(n, local, rule.operands, rule.results, {}, wanted));
  for (size_t i = 0; i < wanted.size(); ++i) define(n, i, part_.result(made, i), kPartialSum);
  return finish_sums(n);
}

// True if the op makes of parts of sums the parts of its result, if all of its operands are such.
bool keeps_sums(const Graph& graph, NodeId n) {
  const OpDef& def = graph.op(n).def();
  if (is_elementwise(def.opcode)) return def.traits.kind == "sum";
  int64_t elements = 0;  // there must not be more of them to add up
  for (ValueId v : graph.operands(n)) elements += graph.type(v).static_elements();
  return class_of(def.opcode) == OpClass::movement &&
         graph.type(graph.result(n)).static_elements() <= elements;
}

Status Walk::sum_of_sums(NodeId n) {
  std::vector<ValueId> parts;
  for (ValueId v : whole_.operands(n)) parts.push_back(local_[v.index]);
  const NodeId made = HONE_TRY(part_.append(whole_.op(n), parts));
  define(n, 0, part_.result(made), kPartialSum);
  return finish_sums(n);
}

// A sum stays in parts if its one reader may keep it so. Else it is added up at once, so that it is
// on its way while later ops compute.
Status Walk::finish_sums(NodeId n) {
  for (ValueId v : whole_.results(n)) {
    const bool meets_sums = users_.has_one_use(v) && keeps_sums(whole_, users_.of(v)[0]);
    if (dims_[v.index] == kPartialSum && !meets_sums && !stays_[v.index]) HONE_TRY(add_up(v));
  }
  return {};
}

// ---- Nodes --------------------------------------------------------------------------------------

void Walk::parameter(NodeId n) {
  const ValueId v = whole_.result(n);
  const int dim = dims_[v.index];
  define(n, 0, part_.add_parameter(local_type(whole_.type(v), dim)), dim);
}

Status Walk::whole_node(NodeId n) {
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

Status Walk::row_by_row(NodeId n) {
  const std::vector<int> dims = operand_dims(n);
  const std::vector<Type> operands = whole_.operand_types(n), results = whole_.result_types(n);
  RowsOfOp rows({whole_.op(n), operands}, results, share_.rows);
  const std::optional<RowRule> rule = rows.from_operands(dims);
  if (!rule) {
    if (const std::optional<RowRule> sum = rows.sum_from_operands(dims))
      return sum_of_rows(n, *sum);
    return mixes(whole_.op(n).name(), rows.reason(dims)).at(whole_.describe(n));
  }
  const std::vector<ValueId> local = HONE_TRY(operands_at(n, rule->operands));
  const NodeId made = HONE_TRY(append(n, local, rule->operands, rule->results, {}));
  for (size_t i = 0; i < results.size(); ++i) define(n, i, part_.result(made, i), rule->results[i]);
  return {};
}

Status Walk::node(NodeId n) {
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
  return mixes(name(opcode), "it talks to other devices").at(whole_.describe(n));
}

// The graph of one device has nobody to talk to; as a part it would have.
bool talks(const Graph& graph, NodeId n) {
  if (class_of(graph.opcode(n)) == OpClass::collective) return true;
  for (const GraphRef& region : graph.regions(n))
    for (NodeId inner : region->nodes())
      if (talks(*region, inner)) return true;
  return false;
}

Status Walk::run(std::span<const int> wanted) {
  const std::vector<bool> live = live_nodes(whole_);
  for (NodeId n : whole_.nodes())
    if (live[n.index] && talks(whole_, n))
      return mixes(name(whole_.opcode(n)), "it talks to other devices").at(whole_.describe(n));
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

// ---- Composites ---------------------------------------------------------------------------------

std::vector<ValueId> Walk::inlined(const Graph& body, std::span<const ValueId> arguments) {
  std::vector<ValueId> map(body.value_count());
  for (size_t i = 0; i < arguments.size(); ++i) map[body.inputs()[i].index] = arguments[i];
  for (NodeId n : body.nodes()) {
    if (is_parameter(body.opcode(n))) continue;
    if (is_constant(body.opcode(n))) {
      map[body.result(n).index] = part_.add_constant(body.constant(n));
      continue;
    }
    std::vector<ValueId> operands;
    for (ValueId v : body.operands(n)) operands.push_back(v.is_none() ? v : map[v.index]);
    const std::span<const GraphRef> regions = body.regions(n);
    const Result<NodeId> copy =
        part_.append(body.op(n), operands, {regions.begin(), regions.end()});
    HONE_CHECK(copy.ok(), "a part of an expansion fails: {}", copy.error().to_string());
    for (size_t i = 0; i < body.results(n).size(); ++i)
      map[body.result(n, i).index] = part_.result(*copy, i);
  }
  std::vector<ValueId> outputs;
  for (ValueId v : body.outputs()) outputs.push_back(map[v.index]);
  return outputs;
}

Status Walk::composite(NodeId n) {
  const Graph spelled = HONE_TRY(expansion(whole_.op(n), whole_.operand_types(n)));
  std::vector<int> present;
  std::vector<ValueId> arguments;
  for (ValueId v : whole_.operands(n))
    if (!v.is_none()) present.push_back(dims_[v.index]);
  Result<Walked> walked = walk(spelled, present, {}, share_);
  if (!walked.ok())
    return mixes(whole_.op(n).name(), fmt::format("inside of it, {}", walked.error().what()))
        .at(whole_.describe(n));
  if (walked->depends_on_first) depends_on_first_ = true;
  if (walked->has_sums) has_sums_ = true;
  std::vector<int> dims;
  std::vector<ValueId> operands;
  size_t next = 0;
  for (ValueId v : whole_.operands(n)) {
    dims.push_back(v.is_none() ? kWhole : present[next++]);
    operands.push_back(HONE_TRY(at(v, dims.back())));
    if (!v.is_none()) arguments.push_back(operands.back());
  }

  std::vector<Type> types, wanted;
  for (ValueId v : operands) types.push_back(v.is_none() ? Type() : part_.type(v));
  for (ValueId v : walked->graph.outputs()) wanted.push_back(walked->graph.type(v));
  std::vector<Type> sized = whole_.operand_types(n);
  const std::vector<Type> results = whole_.result_types(n);
  sized.insert(sized.end(), results.begin(), results.end());
  std::vector<int> sized_dims = dims;
  sized_dims.insert(sized_dims.end(), walked->outputs.begin(), walked->outputs.end());
  const std::optional<Op> op = local_op(
      {whole_.op(n), types}, size_entries(whole_.op(n), sized, sized_dims, share_), wanted);
  std::vector<ValueId> made;
  if (op && structural_hash(HONE_TRY(expansion(*op, types))) == structural_hash(walked->graph)) {
    const NodeId one = HONE_TRY(part_.append(*op, operands));
    for (ValueId v : part_.results(one)) made.push_back(v);
  } else {
    made = inlined(walked->graph, arguments);
  }
  for (size_t i = 0; i < made.size(); ++i) define(n, i, made[i], walked->outputs[i]);
  return {};
}

// ---- Control flow -------------------------------------------------------------------------------

// How the operands and results of a node correspond to those of its regions.
struct Flow {
  size_t first = 0;    // operands from here on are parameters of each region
  size_t carried = 0;  // the first ones, which come back as results
  size_t scanned = 0;  // others, which lose dim 0 on the way in; later results get one
  bool is_loop = false;
};

Flow flow_of(Op op, size_t operands) {
  Flow flow;
  if (is_branch(op.opcode())) flow.first = 1;
  flow.is_loop = is_loop(op.opcode());
  if (is_while(op.opcode())) flow.carried = operands;
  if (is_scan(op.opcode())) {
    flow.carried = static_cast<size_t>(op.integer("carried"));
    flow.scanned = operands - flow.carried;
  }
  return flow;
}

// The regions of a node, as far as all of them agree on parameters and results.
class Regions {
 public:
  Regions(const Graph& graph, NodeId n, const Flow& flow, std::vector<int> parameters,
          const BatchShare& share)
      : graph_(graph), n_(n), flow_(flow), share_(share), parameters_(std::move(parameters)) {
    results_.assign(graph.results(n).size(), kWhole);
  }

  Status settle() {
    for (bool changed = true; changed;) {
      changed = false;
      walked_.clear();
      const size_t count = graph_.regions(n_).size();
      for (size_t i = 0; i < count; ++i) {
        const bool is_condition = flow_.is_loop && count > 1 && i == 0;
        const std::vector<int> before = parameters_;
        Result<Walked> one =
            walk(*graph_.regions(n_)[i], parameters_,
                 is_condition ? std::span<const int>() : std::span<const int>(results_), share_);
        if (!one.ok()) return std::move(one).error().within(graph_.describe(n_));
        changed = changed || parameters_ != before;
        if (!is_condition) changed = HONE_TRY(take_results(one->outputs)) || changed;
        walked_.push_back(std::move(*one));
      }
    }
    return {};
  }

  // A state that each step only adds to stays in parts: it is added up once, after the loop. After
  // settle().
  Status keep_sums() {
    const bool have_sums = std::ranges::any_of(walked_, &Walked::has_sums);
    std::vector<bool> may(flow_.is_loop && have_sums ? flow_.carried : 0);
    for (size_t i = 0; i < may.size(); ++i) may[i] = may_stay_in_parts(i);
    // Fewer of them each time.
    for (int round = 0; round < kMostRounds && std::ranges::find(may, true) != may.end(); ++round)
      if (HONE_TRY(walk_in_parts(may))) return {};
    return {};
  }

  const std::vector<int>& parameters() const { return parameters_; }
  const std::vector<int>& results() const { return results_; }
  std::vector<Walked>& walked() { return walked_; }

 private:
  static constexpr int kMostRounds = 3;  // loops may stand in loops

  // Numbers of 16 bits are added up in a type that is not the state's. To a state that stays as it
  // is nothing is added.
  bool may_stay_in_parts(size_t i) const {
    const DType dtype = graph_.type(graph_.result(n_, i)).dtype();
    const Graph& body = *graph_.regions(n_).back();
    return body.outputs()[i] != body.inputs()[i] && results_[i] == kWhole &&
           parameters_[i] == kWhole && sum_type(dtype) == dtype;
  }

  // With these states in parts. True: it is so from now on. False: some of them may not.
  Result<bool> walk_in_parts(std::vector<bool>& may) {
    std::vector<int> parameters = parameters_, results = results_;
    for (size_t i = 0; i < may.size(); ++i)
      if (may[i]) parameters[i] = results[i] = kPartialSum;
    std::vector<Walked> walked;
    std::vector<bool> kept = may;
    const size_t count = graph_.regions(n_).size();
    for (size_t region = 0; region < count; ++region) {
      const bool is_condition = count > 1 && region == 0;
      std::vector<int> own = parameters;
      Result<Walked> one =
          walk(*graph_.regions(n_)[region], own,
               is_condition ? std::span<const int>() : std::span<const int>(results), share_);
      if (!one.ok() || own != parameters) return may.clear(), false;  // others would change
      walked.push_back(std::move(*one));
      for (size_t i = 0; i < may.size(); ++i) kept[i] = kept[i] && walked.back().kept[i];
    }
    const bool is_good = kept == may;
    may = std::move(kept);
    if (!is_good) return false;
    parameters_ = std::move(parameters);
    results_ = std::move(results);
    walked_ = std::move(walked);
    return true;
  }

  Result<bool> take_results(std::span<const int> outputs) {
    bool changed = false;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] != kWhole && results_[i] == kWhole) {
        results_[i] = outputs[i];
        changed = true;
      }
      if (outputs[i] != kWhole && outputs[i] != results_[i])
        return mixes(graph_.op(n_).name(),
                     fmt::format("its result {} has the rows along dim {} or {}", i, results_[i],
                                 outputs[i]))
            .at(graph_.describe(n_));
      if (i < flow_.carried) changed = HONE_TRY(join(results_[i], parameters_[i], i)) || changed;
    }
    return changed;
  }

  // The state before and after a step of a loop.
  Result<bool> join(int& result, int& parameter, size_t i) {
    if (result == parameter) return false;
    if (result != kWhole && parameter != kWhole)
      return mixes(graph_.op(n_).name(),
                   fmt::format("state {} has the rows along dim {} before a step, and {} after it",
                               i, parameter, result))
          .at(graph_.describe(n_));
    (result == kWhole ? result : parameter) = std::max(result, parameter);
    return true;
  }

  const Graph& graph_;
  const NodeId n_;
  const Flow& flow_;
  const BatchShare& share_;
  std::vector<int> parameters_;
  std::vector<int> results_;
  std::vector<Walked> walked_;
};

// Devices that add up sums in what a truth decides must take the same way, or they would wait for
// each other. Each computes the truth by code of its own, which may round in another way. So it
// holds if it does on one of them.
Result<ValueId> agreed(Graph& graph, ValueId truth, int64_t devices) {
  const auto apply = [&](Op op, ValueId operand) -> Result<ValueId> {
    const ValueId operands[] = {operand};
    return graph.result(HONE_TRY(graph.append(op, operands)));
  };
  const ValueId number = HONE_TRY(apply(Op::get(Opcode::cast, {{"dtype", DType::i32}}), truth));
  const Op most =
      Op::get(Opcode::all_reduce, {{"kind", std::string("max")}, {"group_size", devices}});
  return apply(Op::get(Opcode::cast, {{"dtype", DType::boolean}}), HONE_TRY(apply(most, number)));
}

Status agree_on_output(Graph& test, int64_t devices) {
  const ValueId truth = HONE_TRY(agreed(test, test.outputs()[0], devices));
  test.set_outputs({truth});
  return {};
}

Status Walk::control(NodeId n) {
  const Flow flow = flow_of(whole_.op(n), whole_.operands(n).size());
  std::vector<int> dims = operand_dims(n);
  std::vector<int> parameters(dims.begin() + static_cast<ptrdiff_t>(flow.first), dims.end());
  for (size_t i = flow.carried; i < flow.carried + flow.scanned; ++i) {
    if (parameters[i] == 0)
      return mixes(whole_.op(n).name(),
                   fmt::format("it takes one step after the other along dim 0 of operand {}", i))
          .at(whole_.describe(n));
    if (parameters[i] != kWhole) --parameters[i];
  }
  Regions regions(whole_, n, flow, std::move(parameters), share_);
  HONE_TRY(regions.settle());
  const bool have_sums = std::ranges::any_of(regions.walked(), &Walked::has_sums);
  HONE_TRY(regions.keep_sums());

  for (size_t i = 0; i < regions.parameters().size(); ++i) {
    const int dim = regions.parameters()[i];
    const bool is_scanned = flow.scanned > 0 && i >= flow.carried;
    dims[flow.first + i] = dim != kWhole && is_scanned ? dim + 1 : dim;
  }
  std::vector<int> results = regions.results();
  if (is_scan(whole_.opcode(n)))
    for (size_t i = flow.carried; i < results.size(); ++i)
      if (results[i] != kWhole) ++results[i];
  std::vector<GraphRef> bodies;
  if (have_sums && is_while(whole_.opcode(n)))
    HONE_TRY(agree_on_output(regions.walked()[0].graph, share_.devices));
  for (Walked& one : regions.walked()) {
    if (one.depends_on_first) depends_on_first_ = true;
    bodies.push_back(std::make_shared<Graph>(std::move(one.graph)));
  }
  std::vector<ValueId> local = HONE_TRY(operands_at(n, dims));
  if (have_sums && is_branch(whole_.opcode(n))) {
    local[0] = HONE_TRY(agreed(part_, local[0], share_.devices));
  }
  has_sums_ = has_sums_ || have_sums;
  const NodeId made = HONE_TRY(append(n, local, dims, results, std::move(bodies)));
  for (size_t i = 0; i < results.size(); ++i) define(n, i, part_.result(made, i), results[i]);
  return finish_sums(n);
}

}  // namespace

Result<BatchPart> batch_part(const Graph& graph, std::vector<int> inputs, const BatchShare& share) {
  HONE_CHECK(graph.is_static() && inputs.size() == graph.inputs().size() && share.rows >= 2 &&
                 share.count >= 1 && share.first + share.count <= share.rows &&
                 (share.devices > 1 || share.count == share.rows),
             "a share of a batch of '{}' is no part of it", graph.name());
  Walked walked = HONE_TRY(walk(graph, inputs, {}, share));
  return BatchPart{
      HONE_TRY(remove_dead_code(walked.graph)), std::move(inputs), std::move(walked.outputs),
                   walked.depends_on_first, walked.has_sums};
}

}  // namespace hone

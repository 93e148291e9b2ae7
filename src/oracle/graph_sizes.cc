#include "oracle/graph_sizes.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "ir/application.h"
#include "ir/op_facts.h"

namespace hone {

namespace {

// An element of an input takes as long as this many operations: the reference reads it from memory
// and keeps it in double.
constexpr double kOperationsOfInput = 16;

bool is_splat(const Tensor& constant) {
  if (constant.elements() == 0) return false;
  const std::span<const std::byte> bytes = constant.bytes();
  if (constant.byte_size() < constant.elements()) {  // packed
    for (int64_t i = 1; i < constant.elements(); ++i)
      if (constant.real_at(i) != constant.real_at(0)) return false;
    return true;
  }
  const size_t each = bytes.size() / static_cast<size_t>(constant.elements());
  return std::memcmp(bytes.data(), bytes.data() + each, bytes.size() - each) == 0;
}

}  // namespace

bool can_be_cut(const Tensor& constant) {
  return kReal.contains(constant.dtype()) || is_splat(constant);
}

Tensor cut_to(const Tensor& constant, Type type) {
  if (type == constant.type()) return constant;
  const Ints from = row_major_strides(constant.type().static_dims());
  const Ints dims = type.static_dims();
  std::vector<double> reals;
  std::vector<int64_t> integers;
  const bool has_reals = is_real(type.dtype());  // those of 8 and 4 bits too
  Ints point(dims.size(), 0);
  for (int64_t count = type.static_elements(); count-- > 0;) {
    int64_t place = 0;
    for (size_t i = 0; i < dims.size(); ++i) place += point[i] * from[i];
    if (has_reals)
      reals.push_back(constant.real_at(place));
    else
      integers.push_back(constant.integer_at(place));
    for (size_t i = dims.size(); i-- > 0;) {
      if (++point[i] < dims[i]) break;
      point[i] = 0;
    }
  }
  return has_reals ? Tensor::from_reals(type, reals) : Tensor::from_integers(type, integers);
}

Result<ModelSizes> ModelSizes::of(const Graph& graph, int64_t least) {
  ModelSizes sizes(least);
  sizes.top_ = HONE_TRY(sizes.walk(graph, {}));
  for (ValueId v : graph.inputs()) {
    WorkOfSizes read = {kOperationsOfInput, {}};
    for (int i = 0; i < graph.type(v).rank(); ++i) {
      read.operations *= static_cast<double>(graph.type(v).dim(i).value());
      read.dims.push_back(sizes.top_.dim(v, i));
    }
    sizes.work_.push_back(std::move(read));
  }
  for (Donation donation : graph.donations()) {
    const ValueId from = graph.inputs()[donation.input], to = graph.outputs()[donation.output];
    sizes.join_dims(sizes.top_.dim(from, 0), sizes.top_.dim(to, 0), graph.type(from).rank());
  }
  return sizes;
}

double ModelSizes::operations() const {
  double sum = 0;
  for (const WorkOfSizes& work : work_) {
    double operations = work.operations;
    for (int dim : work.dims) operations /= static_cast<double>(classes_.divisor(dim));
    sum += operations;
  }
  return sum;
}

bool ModelSizes::is_summed(int dim) const {
  return std::ranges::any_of(
      summed_, [&](int one) { return classes_.class_of(one) == classes_.class_of(dim); });
}

bool ModelSizes::is_steps(int dim) const {
  return std::ranges::any_of(
      steps_, [&](int one) { return classes_.class_of(one) == classes_.class_of(dim); });
}

Type ModelSizes::sized(Type type, int dim) const {
  Dims dims;
  for (int i = 0; i < type.rank(); ++i) dims.emplace_back(classes_.size(dim + i));
  return type.with_dims(dims);
}

void ModelSizes::join_dims(int a, int b, int count) {
  for (int i = 0; i < count; ++i) classes_.join(a + i, b + i);
}

void ModelSizes::pin_dims(Type type, int first) {
  for (int i = 0; i < type.rank(); ++i) classes_.pin(first + i);
}

// ---- Nodes --------------------------------------------------------------------------------------

Result<GraphSizes> ModelSizes::walk(const Graph& graph, const Loops& loops) {
  GraphSizes sizes = {.graph = &graph, .first = std::vector<int>(graph.value_count(), 0)};
  for (NodeId n : graph.nodes())
    for (ValueId v : graph.results(n)) {
      const Type type = graph.type(v);
      for (int i = 0; i < type.rank(); ++i) {
        const int dim = classes_.add(type.dim(i).value());
        if (i == 0) sizes.first[v.index] = dim;
      }
    }
  for (NodeId n : graph.nodes()) HONE_TRY(node(sizes, n, loops));
  return sizes;
}

Status ModelSizes::node(GraphSizes& sizes, NodeId n, const Loops& loops) {
  const Graph& graph = *sizes.graph;
  const Opcode opcode = graph.opcode(n);
  if (is_parameter(opcode)) return {};
  if (is_constant(opcode)) {
    const ValueId v = graph.result(n);
    if (!can_be_cut(graph.constant(n))) pin_dims(graph.type(v), sizes.dim(v, 0));
    return {};
  }
  const std::vector<Type> operands = graph.operand_types(n);
  if (hone::class_of(opcode) == OpClass::control) return control(sizes, n, loops);
  if (is_composite(opcode)) return composite(sizes, n, loops);
  if (regroups_dims(opcode))
    reshape(sizes, n);
  else if (has_access({graph.op(n), operands}))
    relation(sizes, n, loops);
  else
    collective(sizes, n);
  return {};
}

// The dims that the relation takes through one iteration dim are divided alike. Where an index is
// the sum of several, as that of a window, the longest one decides, and the others stay.
void ModelSizes::link(const Access& access, Type type, int first, const AccessRelation& relation,
                      int iters) {
  if (access.index.size() != static_cast<size_t>(type.rank())) return pin_dims(type, first);
  for (int i = 0; i < type.rank(); ++i) {
    const bool has_one = type.dim(i).is(1);
    if (has_one && access.is_data_dependent(i)) continue;
    int longest = -1;
    std::vector<int> others;
    for (int d = 0; d < static_cast<int>(relation.dims.size()); ++d) {
      const int64_t extent = relation.dims[static_cast<size_t>(d)].extent.value();
      if (extent <= 1 || !access.index[static_cast<size_t>(i)].mentions(d)) continue;
      if (longest < 0 || relation.dims[static_cast<size_t>(longest)].extent.value() < extent) {
        if (longest >= 0) others.push_back(longest);
        longest = d;
      } else {
        others.push_back(d);
      }
    }
    if (longest >= 0) classes_.join(first + i, iters + longest);
    for (int d : others) classes_.pin(iters + d);
  }
}

void ModelSizes::relation(const GraphSizes& sizes, NodeId n, const Loops& loops) {
  const Graph& graph = *sizes.graph;
  const std::vector<Type> operands = graph.operand_types(n), results = graph.result_types(n);
  const AccessRelation relation = access_of({graph.op(n), operands}, results);
  const bool sums =
      is_contraction(graph.opcode(n)) || hone::class_of(graph.opcode(n)) == OpClass::reduction;
  WorkOfSizes work = {loops.trips, loops.dims};
  int iters = 0;
  for (const IterDim& dim : relation.dims) {
    const int added = classes_.add(dim.extent.value());
    if (&dim == relation.dims.data()) iters = added;
    if (dim.kind == IterKind::reduction && sums) summed_.push_back(added);
    work.operations *= static_cast<double>(dim.extent.value());
    work.dims.push_back(added);
  }
  work.operations *= std::max(1.0, graph.op(n).def().flops_per_point);
  work_.push_back(std::move(work));
  for (size_t i = 0; i < operands.size(); ++i) {
    const ValueId v = graph.operands(n)[i];
    if (v.is_none() || operands[i].rank() == 0) continue;
    for (const Access& access : relation.operands[i])
      if (!access.index.empty() || access.guards.empty())
        link(access, operands[i], sizes.dim(v, 0), relation, iters);
  }
  for (size_t i = 0; i < results.size(); ++i)
    link(relation.results[i], results[i], sizes.dim(graph.result(n, i), 0), relation, iters);
}

// Each group of dims has as many elements before as behind; dims of one element belong to none.
void ModelSizes::reshape(const GraphSizes& sizes, NodeId n) {
  const Graph& graph = *sizes.graph;
  const ValueId from = graph.operands(n)[0], to = graph.result(n);
  const Type before = graph.type(from), behind = graph.type(to);
  if (before.static_elements() == 0) {
    pin_dims(before, sizes.dim(from, 0));
    return pin_dims(behind, sizes.dim(to, 0));
  }
  int i = 0, j = 0;
  while (i < before.rank() || j < behind.rank()) {
    std::vector<int> left, right;
    int64_t left_size = 1, right_size = 1;
    do {
      const bool takes_left = j >= behind.rank() || (i < before.rank() && left_size <= right_size);
      const int64_t size = takes_left ? before.dim(i).value() : behind.dim(j).value();
      const int dim = takes_left ? sizes.dim(from, i++) : sizes.dim(to, j++);
      (takes_left ? left_size : right_size) *= size;
      if (size != 1) (takes_left ? left : right).push_back(dim);
    } while (left_size != right_size);
    if (left.size() == 1 && right.size() == 1)
      classes_.join(left[0], right[0]);
    else if (!left.empty())
      classes_.balance(std::move(left), std::move(right));
  }
}

// A value from other devices has the same dims, each perhaps longer or shorter.
void ModelSizes::collective(const GraphSizes& sizes, NodeId n) {
  const Graph& graph = *sizes.graph;
  for (size_t i = 0; i < graph.results(n).size() && i < graph.operands(n).size(); ++i) {
    const ValueId from = graph.operands(n)[i], to = graph.result(n, i);
    if (graph.type(from).rank() == graph.type(to).rank())
      join_dims(sizes.dim(from, 0), sizes.dim(to, 0), graph.type(to).rank());
  }
}

Status ModelSizes::composite(const GraphSizes& sizes, NodeId n, const Loops& loops) {
  const Graph& graph = *sizes.graph;
  const Graph spelled = HONE_TRY(expansion(graph.op(n), graph.operand_types(n)));
  const GraphSizes inner = HONE_TRY(walk(spelled, loops));
  size_t next = 0;
  for (ValueId v : graph.operands(n)) {
    if (v.is_none()) continue;
    const ValueId parameter = spelled.inputs()[next++];
    join_dims(sizes.dim(v, 0), inner.dim(parameter, 0), graph.type(v).rank());
  }
  for (size_t i = 0; i < graph.results(n).size(); ++i) {
    const ValueId v = graph.result(n, i);
    join_dims(sizes.dim(v, 0), inner.dim(spelled.outputs()[i], 0), graph.type(v).rank());
  }
  return {};
}

Status ModelSizes::control(GraphSizes& sizes, NodeId n, const Loops& loops) {
  const Graph& graph = *sizes.graph;
  const Op op = graph.op(n);
  const std::span<const ValueId> operands = graph.operands(n);
  const size_t first = is_branch(op.opcode()) ? 1 : 0;
  const bool scans = is_scan(op.opcode());
  const size_t carried = scans                   ? static_cast<size_t>(op.integer("carried"))
                         : is_while(op.opcode()) ? operands.size()
                                                 : 0;
  Loops inner = loops;
  int steps = 0;
  if (scans) {
    const int64_t length = operands.size() > carried ? graph.type(operands[carried]).dim(0).value()
                                                     : op.dims("length")[0].value();
    steps = classes_.add(length);
    sizes.steps[n.index] = steps;
    steps_.push_back(steps);
    inner.trips *= static_cast<double>(length);
    inner.dims.push_back(steps);
  }
  // A stacked value has the steps in front of the dims that the body sees.
  const auto join_value = [&](ValueId outside, int inside, bool stacked) {
    const int rank = graph.type(outside).rank();
    if (stacked) classes_.join(sizes.dim(outside, 0), steps);
    join_dims(sizes.dim(outside, stacked ? 1 : 0), inside, rank - (stacked ? 1 : 0));
  };
  std::vector<GraphSizes> regions;
  for (const GraphRef& region : graph.regions(n)) {
    const GraphSizes& body = regions.emplace_back(HONE_TRY(walk(*region, inner)));
    for (size_t i = first; i < operands.size(); ++i)
      join_value(operands[i], body.dim(region->inputs()[i - first], 0), scans && i >= carried);
    const bool is_condition = is_while(op.opcode()) && regions.size() == 1;
    if (is_condition) continue;
    for (size_t i = 0; i < region->outputs().size(); ++i)
      join_value(graph.result(n, i), body.dim(region->outputs()[i], 0), scans && i >= carried);
  }
  for (size_t i = 0; i < carried; ++i)
    join_value(operands[i], sizes.dim(graph.result(n, i), 0), false);
  sizes.regions[n.index] = std::move(regions);
  return {};
}

}  // namespace hone

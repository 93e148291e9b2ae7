#include "shard/node_division.h"

#include <algorithm>
#include <functional>

#include "base/checked_math.h"
#include "ir/op_facts.h"
#include "shard/local_op.h"

namespace hone {
namespace {

size_t at_factor(int f) { return static_cast<size_t>(f); }

// Takes as much from the front of the list as a factor of this size has room for.
MeshParts taken(MeshParts& left, int64_t size) {
  MeshParts made;
  int64_t room = size;
  while (!left.empty() && room > 1) {
    MeshPart& part = left.front();
    if (room % part.size == 0) {
      made.push_back(part);
      room /= part.size;
      left.erase(left.begin());
      continue;
    }
    if (part.size % room != 0) break;
    made.push_back({part.axis, part.before, room});
    part = {part.axis, part.before * room, part.size / room};
    room = 1;
  }
  return made;
}

// How results that lack the reduced dims combine, if devices can: "" if they cannot.
std::string_view kind_of_partial(Op op, Type result) {
  // Sums of narrow reals would be rounded once more.
  if (!DTypeSet{DType::f32, DType::f64, DType::i32, DType::i64}.contains(result.dtype())) return "";
  if (is_contraction(op.opcode())) return "sum";
  if (class_of(op.opcode()) != OpClass::reduction || !combines_by_kind(op.opcode())) return "";
  const std::string& kind = op.word("kind");
  for (const std::string_view one : {"sum", "max", "min"})
    if (kind == one) return one;
  return "";
}

bool has_factor(const std::vector<TensorFactors>& tensors, int factor) {
  return std::ranges::any_of(tensors, [&](const TensorFactors& tensor) {
    return std::ranges::any_of(
        tensor, [&](const DimFactors& dim) { return std::ranges::find(dim, factor) != dim.end(); });
  });
}

// The node alone, its operands as inputs.
Result<ShardingRule> rule_with_regions(const Graph& graph, NodeId n) {
  Graph alone;
  std::vector<ValueId> operands;
  for (const ValueId v : graph.operands(n))
    operands.push_back(v.is_none() ? v : alone.add_parameter(graph.type(v)));
  const std::span<const GraphRef> regions = graph.regions(n);
  const NodeId made =
      HONE_TRY(alone.append(graph.op(n), operands, {regions.begin(), regions.end()}));
  std::vector<ValueId> outputs;
  for (const ValueId v : alone.results(made)) outputs.push_back(v);
  alone.set_outputs(std::move(outputs));
  ShardingRule rule = HONE_TRY(sharding_rule(alone));
  // An absent operand has no dims.
  std::vector<TensorFactors> all;
  size_t next = 0;
  for (const ValueId v : graph.operands(n))
    all.push_back(v.is_none() ? TensorFactors() : std::move(rule.operands[next++]));
  rule.operands = std::move(all);
  return rule;
}

}  // namespace

MeshParts dividing(const MeshParts& axes, int64_t size) {
  MeshParts made;
  for (const MeshPart& part : axes) {
    if (part.size == 1) continue;  // an axis of one device moves nothing
    if (part.size < 1 || size % (count_of(made) * part.size) != 0 || size == 0) break;
    made.push_back(part);
  }
  return made;
}

MeshParts covering(const MeshParts& axes, int64_t size) {
  MeshParts made, found;
  for (const MeshPart& part : axes) {
    if (part.size == 1) continue;
    if (part.size < 1 || part.size > size) break;
    made.push_back(part);
    const int64_t count = count_of(made);
    if (count > size) break;
    if ((count - 1) * ceil_div(size, count) < size) found = made;
  }
  return found;
}

bool has_padding(const MeshParts& axes, int64_t size) { return size % count_of(axes) != 0; }

MeshParts without_clashes(const MeshParts& wanted, const std::vector<MeshParts>& axes) {
  MeshParts made;
  for (const MeshPart& part : wanted) {
    for (const MeshParts& others : axes)
      for (const MeshPart& other : others)
        if (clashes(part, other)) return made;
    made.push_back(part);
  }
  return made;
}

Type local_type(Type whole, const ShardLayout& layout) {
  Dims dims(whole.dims().begin(), whole.dims().end());
  for (size_t d = 0; d < dims.size(); ++d)
    dims[d] = ceil_div(dims[d].value(), count_of(layout.dims[d]));
  return whole.with_dims(dims);
}

Sharding sharding_of(const MeshRef& mesh, const ShardLayout& layout, std::string_view kind) {
  Sharding made = {.mesh = mesh};
  for (const MeshParts& parts : layout.dims) made.dims.push_back({axis_parts(*mesh, parts)});
  made.partial = axis_parts(*mesh, layout.partial);
  for (const PartialKind one : {PartialKind::sum, PartialKind::max, PartialKind::min})
    if (kind == name(one)) made.partial_kind = one;
  return made;
}

ShardLayout layout_of(const Sharding& said) {
  ShardLayout layout = {.partial = moving_parts(*said.mesh, said.partial)};
  for (const DimSharding& dim : said.dims)
    layout.dims.push_back(moving_parts(*said.mesh, dim.axes));
  return layout;
}

ShardLayout undivided(Type type) {
  return {.dims = std::vector<MeshParts>(static_cast<size_t>(type.rank()))};
}

Result<NodeDivider> NodeDivider::make(const Graph& graph, NodeId n) {
  NodeDivider made(graph, n);
  if (!graph.regions(n).empty()) {
    made.rule_ = HONE_TRY(rule_with_regions(graph, n));
    return made;
  }
  const std::vector<Type> operands = graph.operand_types(n), results = graph.result_types(n);
  made.rule_ = HONE_TRY(sharding_rule(Application{graph.op(n), operands}, results));
  if (!results.empty()) made.partial_ = kind_of_partial(graph.op(n), results[0]);
  if (results.size() == 1) made.windows_ = dim_windows({graph.op(n), operands}, results[0]);
  return made;
}

bool NodeDivider::is_combined(int factor) const {
  return rule_.factors[at_factor(factor)].kind == FactorKind::reduction && !partial_.empty() &&
         !has_factor(rule_.results, factor);
}

// The factor is a window's: it shares a dim with the places of the window, where padding shifts
// elements between the parts of devices.
bool NodeDivider::meets_neighbours(int factor) const {
  const auto is_place = [&](int f) {
    return rule_.factors[at_factor(f)].kind == FactorKind::permutation;
  };
  for (const TensorFactors& tensor : rule_.operands)
    for (const DimFactors& dim : tensor)
      if (std::ranges::find(dim, factor) != dim.end() && std::ranges::any_of(dim, is_place))
        return true;
  return false;
}

// Data says where elements go: what moves must be of the part that is written.
bool NodeDivider::is_written_elsewhere(int factor) const {
  const int8_t updates = graph_->op(node_).def().traits.updates;
  return updates != 0 && !has_factor({rule_.operands[static_cast<size_t>(updates)]}, factor);
}

std::string NodeDivider::obstacle(int factor) const {
  const Factor& one = rule_.factors[at_factor(factor)];
  const bool is_sum = is_combined(factor);
  if ((one.kind != FactorKind::pass && !is_sum) || one.is_blocked)
    return one.kind == FactorKind::permutation
               ? "neighbours would exchange data along a dim that is divided"
               : "it needs all of a dim that is divided";
  // Along a factor that one side alone has, a reshape moves elements between devices.
  if (regroups_dims(graph_->opcode(node_)) &&
      (!has_factor(rule_.operands, factor) || !has_factor(rule_.results, factor)))
    return "it cuts and joins dims across the parts of devices";
  if (is_sum && meets_neighbours(factor))
    return "neighbours would exchange data along a dim that is divided";
  if (is_written_elsewhere(factor)) return "data says where it writes along a dim that is divided";
  return "";
}

// No dim has another factor beside it.
bool NodeDivider::stands_alone(int factor) const {
  const auto shares = [&](const TensorFactors& tensor) {
    return std::ranges::any_of(tensor, [&](const DimFactors& dim) {
      return dim.size() > 1 && std::ranges::find(dim, factor) != dim.end();
    });
  };
  return std::ranges::none_of(rule_.operands, shares) &&
         std::ranges::none_of(rule_.results, shares);
}

// The factor is the place of a window in a dim of the result.
const DimWindow* NodeDivider::window_of(int factor) const {
  for (const DimWindow& window : windows_) {
    const DimFactors& dim = rule_.results[0][static_cast<size_t>(window.result_dim)];
    if (dim.size() == 1 && dim[0] == factor) return &window;
  }
  return nullptr;
}

MeshParts NodeDivider::fitting(int factor, const MeshParts& wanted, std::string& reason) const {
  std::string why = obstacle(factor);
  const int64_t size = rule_.factors[at_factor(factor)].size;
  if (why.empty()) return stands_alone(factor) ? covering(wanted, size) : dividing(wanted, size);
  const DimWindow* window = window_of(factor);
  if (window != nullptr) {
    const int64_t elements =
        graph_->type(graph_->operands(node_)[0]).dim(window->operand_dim).value();
    const int64_t results = graph_->type(graph_->result(node_)).dim(window->result_dim).value();
    const MeshParts axes = covering(wanted, std::min(elements, results));
    const bool covers_both = covering(axes, elements) == axes && covering(axes, results) == axes;
    if (!axes.empty() && covers_both && halo_of(*window, axes, elements, results)) return axes;
    why = "a device would need most of what all others have";
  }
  reason = std::move(why);
  return {};
}

// The axes of a tensor's dims: an inner factor counts where those before it are full.
std::optional<ShardLayout> NodeDivider::layout_by(const TensorFactors& tensor,
                                                  const std::vector<MeshParts>& axes) const {
  ShardLayout layout;
  for (const DimFactors& dim : tensor) {
    MeshParts& parts = layout.dims.emplace_back();
    bool is_full = true;
    for (const int f : dim) {
      const MeshParts& own = axes[at_factor(f)];
      if (!own.empty() && !is_full) return std::nullopt;
      parts.insert(parts.end(), own.begin(), own.end());
      is_full = is_full && count_of(own) == rule_.factors[at_factor(f)].size;
    }
  }
  return layout;
}

std::optional<Op> NodeDivider::local_op(const NodeDivision& division) const {
  const Op op = graph_->op(node_);
  std::vector<Type> types, wanted;
  std::vector<SizeEntry> entries;
  const auto add = [&](ValueId v, const ShardLayout& layout) {
    const Type whole = graph_->type(v), local = local_type(whole, layout);
    for (int d = 0; d < local.rank(); ++d)
      if (const auto at = static_cast<size_t>(d); !layout.dims[at].empty())
        add_size_entries(op, at, whole.dim(d), local.dim(d), entries);
    return local;
  };
  for (size_t i = 0; i < division.operands.size(); ++i) {
    const ValueId v = graph_->operands(node_)[i];
    types.push_back(v.is_none() ? Type() : add(v, division.operands[i]));
  }
  for (size_t i = 0; i < division.results.size(); ++i)
    wanted.push_back(add(graph_->result(node_, i), division.results[i]));
  if (division.halos.empty()) return hone::local_op({op, types}, entries, wanted);
  Dims fetched(types[0].dims().begin(), types[0].dims().end());
  for (const Halo& halo : division.halos)
    fetched[static_cast<size_t>(halo.window.operand_dim)] = halo.length();
  types[0] = types[0].with_dims(fetched);
  return hone::local_op({without_borders(op, types[0].rank(), division.halos), types}, entries,
                        wanted);
}

std::optional<NodeDivision> NodeDivider::division(std::vector<MeshParts> axes) const {
  NodeDivision made;
  for (const TensorFactors& tensor : rule_.operands) {
    std::optional<ShardLayout> layout = layout_by(tensor, axes);
    if (!layout) return std::nullopt;
    made.operands.push_back(std::move(*layout));
  }
  for (const TensorFactors& tensor : rule_.results) {
    std::optional<ShardLayout> layout = layout_by(tensor, axes);
    if (!layout) return std::nullopt;
    made.results.push_back(std::move(*layout));
  }
  for (const DimWindow& window : windows_) {
    const DimFactors& dim = rule_.results[0][static_cast<size_t>(window.result_dim)];
    if (dim.size() != 1 || axes[at_factor(dim[0])].empty()) continue;
    const std::optional<Halo> halo =
        halo_of(window, axes[at_factor(dim[0])],
                graph_->type(graph_->operands(node_)[0]).dim(window.operand_dim).value(),
                graph_->type(graph_->result(node_)).dim(window.result_dim).value());
    if (!halo) return std::nullopt;
    made.halos.push_back(*halo);
  }
  made.op = graph_->op(node_);
  const bool is_whole =
      std::ranges::all_of(axes, [](const MeshParts& parts) { return parts.empty(); });
  if (!is_whole && graph_->regions(node_).empty()) {
    const std::optional<Op> op = local_op(made);
    if (!op) return std::nullopt;
    made.op = *op;
  }
  MeshParts partial;
  for (size_t f = 0; f < axes.size(); ++f)
    if (rule_.factors[f].kind == FactorKind::reduction)
      partial.insert(partial.end(), axes[f].begin(), axes[f].end());
  if (!partial.empty()) made.kind = partial_;
  for (ShardLayout& result : made.results) result.partial = partial;
  made.axes = std::move(axes);
  return made;
}

MeshParts NodeDivider::axes_in(const TensorFactors& tensor, const ShardLayout& layout,
                               int factor) const {
  for (size_t d = 0; d < tensor.size(); ++d) {
    MeshParts left = layout.dims[d];
    for (const int f : tensor[d]) {
      const int64_t size = rule_.factors[at_factor(f)].size;
      const MeshParts own = tensor[d].size() == 1   ? covering(left, size)
                            : f == tensor[d].back() ? dividing(left, size)
                                                    : taken(left, size);
      if (f == factor) return own;
      if (count_of(own) != size) break;
    }
  }
  return {};
}

std::vector<MeshParts> NodeDivider::axes_of(const std::vector<ShardLayout>& results) const {
  std::vector<MeshParts> axes(rule_.factors.size());
  for (size_t f = 0; f < axes.size(); ++f) {
    const int factor = static_cast<int>(f);
    MeshParts wanted;
    for (size_t i = 0; i < results.size() && wanted.empty(); ++i)
      wanted = axes_in(rule_.results[i], results[i], factor);
    if (!wanted.empty() && obstacle(factor).empty()) axes[f] = without_clashes(wanted, axes);
  }
  if (results.empty()) return axes;
  for (const MeshPart& part : results[0].partial)
    for (size_t f = 0; f < axes.size(); ++f) {
      const int factor = static_cast<int>(f);
      if (!is_combined(factor) || !obstacle(factor).empty()) continue;
      MeshParts wanted = axes[f];
      wanted.push_back(part);
      std::string reason;
      if (fitting(factor, wanted, reason) != wanted) continue;
      if (!without_clashes({part}, axes).empty()) axes[f].push_back(part);
      break;
    }
  return axes;
}

namespace {

// Deals the axes of a mesh out to places, one after the other; each place takes as many as fit.
class AxisDealer {
 public:
  using Fits = std::function<bool(size_t place, const MeshParts& axes)>;
  AxisDealer(const Mesh& mesh, size_t places, Fits fits)
      : mesh_(mesh), fits_(std::move(fits)), axes_(places) {}

  // `take` gets each choice.
  template <class Take>
  void deal(const Take& take) {
    deal_axis(0, take);
  }

 private:
  template <class Take>
  void deal_axis(size_t axis, const Take& take) {
    if (axis == mesh_.axes.size()) return take(axes_);
    const int64_t size = mesh_.axes[axis].size;
    deal_axis(axis + 1, take);
    if (size == 1) return;
    for (size_t i = 0; i < axes_.size(); ++i) {
      axes_[i].push_back({axis, 1, size});
      if (fits_(i, axes_[i])) deal_axis(axis + 1, take);
      axes_[i].pop_back();
    }
  }

  const Mesh& mesh_;
  const Fits fits_;
  std::vector<MeshParts> axes_;
};

}  // namespace

std::vector<NodeDivision> divisions_of(const NodeDivider& divider, const Mesh& mesh) {
  std::vector<NodeDivision> found;
  const auto fits = [&](size_t place, const MeshParts& axes) {
    const int factor = static_cast<int>(place);
    std::string reason;
    return divider.obstacle(factor).empty() && divider.fitting(factor, axes, reason) == axes;
  };
  AxisDealer(mesh, divider.rule().factors.size(), fits)
      .deal([&](const std::vector<MeshParts>& axes) {
        std::optional<NodeDivision> one = divider.division(axes);
        if (one && divider.axes_of(one->results) == axes) found.push_back(std::move(*one));
      });
  return found;
}

std::vector<ShardLayout> layouts_of(Type type, const Mesh& mesh) {
  std::vector<ShardLayout> found;
  const auto fits = [&](size_t place, const MeshParts& axes) {
    return covering(axes, type.dim(static_cast<int>(place)).value()) == axes;
  };
  AxisDealer(mesh, static_cast<size_t>(type.rank()), fits)
      .deal([&](const std::vector<MeshParts>& axes) { found.push_back({.dims = axes}); });
  return found;
}

}  // namespace hone

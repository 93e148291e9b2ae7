#include "shard/node_division.h"

#include <algorithm>

#include "base/checked_math.h"
#include "ir/op_facts.h"
#include "shard/local_op.h"
#include "shard/whole_bytes.h"

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
  if (!kNumber.contains(result.dtype())) return "";
  if (reads_by_index(op) || is_contraction(op.opcode())) return "sum";
  if (writes_by_index(op)) return written_kind(op);
  if (class_of(op.opcode()) != OpClass::reduction || !combines_by_kind(op.opcode())) return "";
  const std::string& kind = op.word("kind");
  for (const std::string_view one : {"sum", "max", "min"})
    if (kind == one) return one;
  return "";
}

// A sum or a product of these is as exact, however it is cut.
bool may_run_apart(const std::string& kind, DType dtype) {
  return is_integer(dtype) || kind == "max" || kind == "min" || bits(dtype) >= 32;
}

// Elements that follow from their places alone.
bool is_generator(Opcode opcode) { return class_of(opcode) == OpClass::generator; }

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

Result<NodeDivider> NodeDivider::make(const Graph& graph, NodeId n) {
  NodeDivider made(graph, n);
  if (!graph.regions(n).empty()) {
    made.rule_ = HONE_TRY(rule_with_regions(graph, n));
    return made;
  }
  const std::vector<Type> operands = graph.operand_types(n), results = graph.result_types(n);
  made.rule_ = HONE_TRY(sharding_rule(Application{graph.op(n), operands}, results));
  if (!results.empty()) made.partial_ = kind_of_partial(graph.op(n), results[0]);
  // Where data addresses the operand, one of the summands is an element; others change nothing.
  if (made.partial_ == "sum" && !reads_by_index(graph.op(n)))
    if (const DType sums = sum_type(results[0].dtype()); sums != results[0].dtype())
      made.sums_ = sums;
  made.addressed_ = addressed_dims({graph.op(n), operands});
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

// The dim of operand 0 that data addresses and that has this factor alone.
const AddressedDim* NodeDivider::addressed_by(int factor) const {
  for (const AddressedDim& one : addressed_)
    if (rule_.operands[0][static_cast<size_t>(one.dim)] == DimFactors{factor}) return &one;
  return nullptr;
}

// Data says where elements go: what moves must be of the part that is written.
bool NodeDivider::is_written_elsewhere(int factor) const {
  const int8_t updates = graph_->op(node_).def().traits.updates;
  if (updates == 0) return false;
  const bool moves = has_factor({rule_.operands[static_cast<size_t>(updates)]}, factor);
  return (addressed_by(factor) != nullptr) == moves;
}

bool NodeDivider::passes(int factor) const {
  const auto has = [&](const TensorFactors& tensor) { return has_factor({tensor}, factor); };
  return rule_.factors[at_factor(factor)].kind == FactorKind::pass && obstacle(factor).empty() &&
         !rule_.operands.empty() && has(rule_.operands[0]) &&
         std::ranges::all_of(rule_.results, has);
}

bool NodeDivider::is_running(int factor) const {
  const Op op = graph_->op(node_);
  if (class_of(op.opcode()) != OpClass::ordered || !has_attr(op, "exclusive")) return false;
  return rule_.results[0][static_cast<size_t>(op.integer("axis"))] == DimFactors{factor};
}

bool NodeDivider::is_joined(int factor) const {
  const Op op = graph_->op(node_);
  return joins_operands(op.opcode()) &&
         rule_.results[0][static_cast<size_t>(op.integer("axis"))] == DimFactors{factor};
}

std::vector<Stretch> NodeDivider::stretches(const MeshParts& axes) const {
  const int dim = static_cast<int>(graph_->op(node_).integer("axis"));
  const int64_t all = graph_->type(graph_->result(node_)).dim(dim).value(), count = count_of(axes);
  std::vector<Stretch> found;
  int64_t offset = 0;
  for (const ValueId v : graph_->operands(node_)) {
    const int64_t size = graph_->type(v).dim(dim).value();
    if (covering(axes, size) != axes) return {};
    found.push_back({axes, offset, size, ceil_div(size, count), ceil_div(all, count)});
    offset += size;
  }
  return found;
}

// Random bits are numbered in row-major order.
bool NodeDivider::is_numbered_across(int factor) const {
  if (!is_generator(graph_->opcode(node_)) || graph_->operands(node_).empty()) return false;
  for (const DimFactors& dim : rule_.results[0]) {
    if (dim == DimFactors{factor}) return false;
    for (const int f : dim)
      if (rule_.factors[at_factor(f)].size > 1) return true;
  }
  return false;
}

std::string NodeDivider::obstacle(int factor) const {
  if (is_joined(factor)) return "";
  if (is_running(factor))
    return may_run_apart(graph_->op(node_).word("kind"),
                         graph_->type(graph_->result(node_)).dtype())
               ? ""
               : "numbers below 32 bits would be rounded once more";
  if (is_numbered_across(factor)) return "its elements are numbered across the dim";
  const Factor& one = rule_.factors[at_factor(factor)];
  // Within regions devices exchange what they need.
  const bool has_regions = !graph_->regions(node_).empty();
  if (has_regions && one.kind != FactorKind::replication && !one.is_blocked) return "";
  const bool is_sum = is_combined(factor);
  if ((one.kind != FactorKind::pass && !is_sum) || one.is_blocked)
    return one.kind == FactorKind::permutation
               ? "neighbours would exchange data along a dim that is divided"
               : "it needs all of a dim that is divided";
  // Along a factor that one side alone has, a reshape moves elements between devices.
  if (regroups_dims(graph_->opcode(node_)) &&
      (!has_factor(rule_.operands, factor) || !has_factor(rule_.results, factor)))
    return "it cuts and joins dims across the parts of devices";
  const bool is_read = reads_by_index(graph_->op(node_)) && one.kind == FactorKind::reduction;
  if (is_read && addressed_by(factor) == nullptr)
    return "data says where windows begin, which may be of two devices";
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
  if (why.empty()) {
    const MeshParts axes = stands_alone(factor) ? covering(wanted, size) : dividing(wanted, size);
    if (axes.empty()) return axes;
    if (is_joined(factor) && stretches(axes).empty()) {
      reason = "not each device has a part of each operand";
      return {};
    }
    // A block of random bits is of one device.
    if (is_generator(graph_->opcode(node_)) && !graph_->operands(node_).empty()) {
      const int64_t all = graph_->type(graph_->result(node_)).static_elements();
      if (ceil_div(size, count_of(axes)) * (all / size) % 2 == 0) return axes;
      reason = "two elements of one block of random bits would be of two devices";
      return {};
    }
    return axes;
  }
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

// The axes of a tensor's dims: an inner factor counts where those before it are full. Weights of a
// loop may have a factor twice, as their rows and as their columns: the last dim is divided.
std::optional<ShardLayout> NodeDivider::layout_by(const TensorFactors& tensor,
                                                  const std::vector<MeshParts>& axes) const {
  ShardLayout layout = {.dims = std::vector<MeshParts>(tensor.size())};
  std::vector<bool> is_used(axes.size());
  for (size_t d = tensor.size(); d-- > 0;) {
    MeshParts& parts = layout.dims[d];
    bool is_full = true;
    for (const int f : tensor[d]) {
      const MeshParts own = is_used[at_factor(f)] ? MeshParts() : axes[at_factor(f)];
      is_used[at_factor(f)] = true;
      if (!own.empty() && !is_full) return std::nullopt;
      parts.insert(parts.end(), own.begin(), own.end());
      is_full = is_full && count_of(own) == rule_.factors[at_factor(f)].size;
    }
  }
  return layout;
}

std::vector<MeshExchange> NodeDivider::exchanges(const NodeDivision& division) const {
  std::vector<MeshExchange> found;
  for (size_t f = 0; f < rule_.factors.size(); ++f) {
    if (division.axes[f].empty() || !is_joined(static_cast<int>(f))) continue;
    const std::vector<Stretch> all = stretches(division.axes[f]);
    for (size_t i = 0; i < all.size(); ++i) {
      const Type part = local_type(graph_->type(graph_->operands(node_)[i]), division.operands[i]);
      for (int64_t slot = 0; slot < all[i].slots(); ++slot)
        if (Ints pairs = all[i].pairs(slot); !pairs.empty())
          found.push_back({.kind = ReshardKind::permute,
                           .axes = all[i].axes,
                           .bytes = part.static_elements() * exchanged_bytes(part),
                           .element_bytes = exchanged_bytes(part),
                           .pairs = std::move(pairs)});
    }
  }
  if (division.halos.empty() && class_of(graph_->opcode(node_)) != OpClass::ordered) return found;
  Type local = local_type(graph_->type(graph_->operands(node_)[0]), division.operands[0]);
  const int64_t element_bytes = exchanged_bytes(local);
  for (const Halo& halo : division.halos) {
    const int dim = halo.window.operand_dim;
    const int64_t each = local.static_elements() / local.dim(dim).value();
    if (halo.window.is_mirrored)
      found.push_back({.kind = ReshardKind::permute,
                       .axes = halo.axes,
                       .bytes = each * halo.part * element_bytes,
                       .element_bytes = element_bytes,
                       .pairs = mirrored_pairs(count_of(halo.axes))});
    for (const HaloPiece& one : halo.pieces())
      if (one.hop != 0)
        found.push_back({.kind = ReshardKind::permute,
                         .axes = halo.axes,
                         .bytes = each * (one.end - one.begin) * element_bytes,
                         .element_bytes = element_bytes,
                         .hop = one.hop});
    Dims dims(local.dims().begin(), local.dims().end());
    dims[static_cast<size_t>(dim)] = halo.length();
    local = local.with_dims(dims);
  }
  for (size_t f = 0; f < rule_.factors.size(); ++f) {
    const MeshParts& axes = division.axes[f];
    if (axes.empty() || !is_running(static_cast<int>(f))) continue;
    const int dim = static_cast<int>(graph_->op(node_).integer("axis"));
    const int64_t each = local.static_elements() / local.dim(dim).value();
    found.push_back({.kind = ReshardKind::all_gather,
                     .axes = axes,
                     .bytes = each * (count_of(axes) - 1) * element_bytes,
                     .element_bytes = element_bytes});
  }
  return found;
}

std::vector<Type> NodeDivider::operand_types(const NodeDivision& division) const {
  std::vector<Type> types;
  for (size_t i = 0; i < division.operands.size(); ++i) {
    const ValueId v = graph_->operands(node_)[i];
    types.push_back(v.is_none() ? Type() : local_type(graph_->type(v), division.operands[i]));
  }
  if (types.empty() || !types[0]) return types;
  Dims dims(types[0].dims().begin(), types[0].dims().end());
  for (const Halo& halo : division.halos)
    dims[static_cast<size_t>(halo.window.operand_dim)] = halo.length();
  // A window that is longer than a part fits the whole dim.
  for (const IndexRange& range : division.ranges)
    if (range.of.window > range.part) dims[static_cast<size_t>(range.of.dim)] = range.of.size;
  if (!division.halos.empty() || !division.ranges.empty()) types[0] = types[0].with_dims(dims);
  return types;
}

std::optional<Op> NodeDivider::local_op(const NodeDivision& division) const {
  const Op op = division.op;
  std::vector<Type> wanted;
  std::vector<SizeEntry> entries;
  const auto add = [&](ValueId v, const ShardLayout& layout) {
    const Type whole = graph_->type(v), local = local_type(whole, layout);
    for (int d = 0; d < local.rank(); ++d)
      if (const auto at = static_cast<size_t>(d); !layout.dims[at].empty())
        add_size_entries(op, at, whole.dim(d), local.dim(d), entries);
    return local;
  };
  for (size_t i = 0; i < division.operands.size(); ++i)
    if (const ValueId v = graph_->operands(node_)[i]; !v.is_none()) add(v, division.operands[i]);
  for (size_t i = 0; i < division.results.size(); ++i)
    wanted.push_back(division.made_as(add(graph_->result(node_, i), division.results[i])));
  std::vector<Type> types = division.types;
  // Parts of what is joined have other sizes than the part of the result; all else must fit.
  if (joins_operands(op.opcode())) {
    const auto axis = static_cast<size_t>(op.integer("axis"));
    const MeshParts& axes = division.results[0].dims[axis];
    const auto whole_along = [&](Type& type, ValueId v) {
      Dims dims(type.dims().begin(), type.dims().end());
      dims[axis] = graph_->type(v).dim(static_cast<int>(axis));
      type = type.with_dims(dims);
    };
    for (size_t i = 0; i < types.size(); ++i) {
      if (division.operands[i].dims[axis] != axes) return std::nullopt;
      whole_along(types[i], graph_->operands(node_)[i]);
    }
    whole_along(wanted[0], graph_->result(node_));
  }
  for (const IndexRange& range : division.ranges) {
    if (!writes_by_index(op) || range.of.window <= range.part) continue;
    Dims dims(wanted[0].dims().begin(), wanted[0].dims().end());
    dims[static_cast<size_t>(range.of.dim)] = range.of.size;
    wanted[0] = wanted[0].with_dims(dims);
  }
  return hone::local_op(
      {without_borders(op, division.types.empty() ? 0 : division.types[0].rank(), division.halos),
       types},
      entries, wanted);
}

// The devices along the axes have parts of the results.
void NodeDivider::combine(const MeshParts& partial, NodeDivision& division) const {
  division.kind = partial_;
  for (ShardLayout& result : division.results) result.partial = partial;
  if (!sums_) return;
  division.sums = sums_;
  SumForm form =
      sum_form(division.op, std::move(division.types), graph_->type(graph_->result(node_)).dtype());
  division.op = form.op;
  division.types = std::move(form.operands);
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
    // Windows side by side that fill the dim: each device has its own.
    if (rule_.factors[at_factor(dim[0])].kind == FactorKind::pass) continue;
    const std::optional<Halo> halo =
        halo_of(window, axes[at_factor(dim[0])],
                graph_->type(graph_->operands(node_)[0]).dim(window.operand_dim).value(),
                graph_->type(graph_->result(node_)).dim(window.result_dim).value());
    if (!halo) return std::nullopt;
    made.halos.push_back(*halo);
  }
  for (const AddressedDim& one : addressed_)
    if (const MeshParts& parts = made.operands[0].dims[static_cast<size_t>(one.dim)];
        !parts.empty())
      made.ranges.push_back({one, parts, ceil_div(one.size, count_of(parts))});
  made.types = operand_types(made);
  made.axes = std::move(axes);
  made.exchanges = exchanges(made);
  made.op = graph_->op(node_);
  MeshParts partial;
  for (size_t f = 0; f < made.axes.size(); ++f)
    if (is_combined(static_cast<int>(f)))
      partial.insert(partial.end(), made.axes[f].begin(), made.axes[f].end());
  if (!partial.empty()) combine(partial, made);
  const bool is_whole =
      std::ranges::all_of(made.axes, [](const MeshParts& parts) { return parts.empty(); });
  if (!is_whole && graph_->regions(node_).empty()) {
    const std::optional<Op> op = local_op(made);
    if (!op) return std::nullopt;
    made.op = *op;
  }
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
    std::string reason;
    if (!wanted.empty()) axes[f] = fitting(factor, without_clashes(wanted, axes), reason);
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

std::vector<NodeDivision> divisions_of(const NodeDivider& divider, const Mesh& mesh) {
  std::vector<NodeDivision> found;
  const auto fits = [&](size_t place, const MeshParts& axes) {
    const int factor = static_cast<int>(place);
    std::string reason;
    return divider.fitting(factor, axes, reason) == axes;
  };
  AxisDealer(mesh, divider.rule().factors.size(), fits)
      .deal([&](const std::vector<MeshParts>& axes) {
        std::optional<NodeDivision> one = divider.division(axes);
        if (one && divider.axes_of(one->results) == axes) found.push_back(std::move(*one));
      });
  return found;
}

}  // namespace hone

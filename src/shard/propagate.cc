#include "shard/propagate.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <unordered_map>

#include "base/checked_math.h"
#include "base/text.h"
#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "shard/data_flow.h"
#include "shard/sharded_op.h"

namespace hone {
namespace {

constexpr int kLastStep = 4;

// A value, one of its later shardings, or an output.
struct ShardSlot {
  DividedValue value = {};
  const Graph* graph = nullptr;
  ValueId id = {};
  std::vector<MeshParts> stated = {};  // by dim
  std::vector<int64_t> priorities = {};
  bool is_stated = false;
};

// How early an op takes part.
enum class OpOrder : uint8_t { link, early, dynamic, broadcast, late };

struct OrderedOp {
  ShardedOp op = {};
  OpOrder order = OpOrder::late;
  bool reads_once = true;    // no operand has another reader, scalars aside
  bool is_read_once = true;  // nor has a result
  AxisPassage passage = AxisPassage::both;
  bool is_group = false;
  const Graph* graph = nullptr;
  NodeId node = {};
};

OpOrder order_of(Opcode opcode) {
  if (is_elementwise(opcode) || regroups_dims(opcode) || permutes_dims(opcode))
    return OpOrder::early;
  if (repeats_elements(opcode)) return OpOrder::broadcast;
  // A part at one place: its starts are scalars, one for each dim.
  if (class_of(opcode) == OpClass::indexed && op_def(opcode).operands.ends_with('*'))
    return OpOrder::dynamic;
  return OpOrder::late;
}

OpDirections directions_by_order(const OrderedOp& op, int step) {
  switch (op.order) {
    case OpOrder::link: return {};
    case OpOrder::early:
      if (step == 0) return {.to_operands = op.reads_once, .to_results = op.is_read_once};
      return {};
    case OpOrder::dynamic:
      if (step < 2) return {.to_operands = false, .to_results = step == 1 || op.is_read_once};
      break;
    case OpOrder::broadcast:
      if (step < 2) return {.to_operands = false, .to_results = false};
      if (step < kLastStep) return {.to_results = false, .along_permutations = step > 2};
      break;
    case OpOrder::late:
      if (step < 2) return {.to_operands = false, .to_results = false};
      break;
  }
  return {.along_permutations = step > 2};
}

OpDirections directions_of(const OrderedOp& op, int step) {
  const auto passes = [&](AxisPassage way) {
    return op.passage == AxisPassage::both || op.passage == way;
  };
  OpDirections made = directions_by_order(op, step);
  made.to_results = made.to_results && passes(AxisPassage::forward);
  made.to_operands = made.to_operands && passes(AxisPassage::backward);
  return made;
}

// All tensors are of one shape, behind dims of their own.
ShardingRule rule_of_link(std::span<const DividedValue* const> values, std::span<const bool> extra,
                          const std::vector<int64_t>& sizes) {
  ShardingRule rule;
  for (const int64_t size : sizes) rule.factors.push_back({.size = size});
  for (size_t i = 0; i < values.size(); ++i) {
    TensorFactors tensor;
    if (extra[i]) {
      rule.factors.push_back({1, FactorKind::replication, true});
      tensor.push_back({static_cast<int>(rule.factors.size()) - 1});
    }
    for (size_t d = 0; d < sizes.size(); ++d) tensor.push_back({static_cast<int>(d)});
    rule.operands.push_back(std::move(tensor));
  }
  return rule;
}

// A value on one device of several is whole, and stays so.
Sharding of_single_device(const MeshRef& mesh, const Sharding& stated) {
  return {.mesh = mesh,
          .dims = std::vector<DimSharding>(stated.dims.size()),
          .group = stated.group,
          .passage = stated.passage};
}

class Propagator {
 public:
  Propagator(MeshRef mesh, const PropagateOptions& options)
      : mesh_(std::move(mesh)), options_(options) {}

  Status add(const Graph& graph) {
    if (values_.contains(&graph)) return {};  // several nodes have one region
    std::vector<ShardSlot*>& slots = values_[&graph];
    const Shardings* stated = graph.shardings();
    for (uint32_t i = 0; i < graph.value_count(); ++i) {
      const std::vector<const Sharding*> all =
          stated == nullptr ? std::vector<const Sharding*>() : stated->of({i});
      slots.push_back(&slot(graph, {i}, all.empty() ? nullptr : all[0]));
      for (size_t k = 1; k < all.size(); ++k) {
        ShardSlot& later = slot(graph, {i}, all[k]);
        later_[{&graph, i, k}] = &later;
        link({slots.back(), &later});
      }
    }
    for (uint32_t i = 0; i < graph.outputs().size(); ++i) {
      const Sharding* one = stated == nullptr ? nullptr : stated->of_output(i);
      if (one == nullptr) continue;
      ShardSlot& output = slot(graph, graph.outputs()[i], one);
      outputs_[{&graph, i}] = &output;
      link({slots[graph.outputs()[i].index], &output});
    }
    const Users users(graph);
    for (const NodeId n : graph.nodes()) {
      if (is_leaf(graph.opcode(n))) continue;
      for (const GraphRef& region : graph.regions(n)) HONE_TRY(add(*region));
      if (graph.regions(n).empty()) {
        HONE_TRY(add_op(graph, n, users));
      } else {
        add_flow(graph, n);
      }
    }
    return {};
  }

  // Behind all graphs: a group has values of several.
  Status link_groups() {
    for (const auto& [number, slots] : groups_) {
      const Type type = slots[0]->graph->type(slots[0]->id);
      for (const ShardSlot* one : slots)
        if (const Type other = one->graph->type(one->id);
            !std::ranges::equal(type.dims(), other.dims()))
          return bad_input("values of the group {} have several shapes: {} is {}, {} is {}", number,
                           slots[0]->graph->label(slots[0]->id), type.to_string(),
                           one->graph->label(one->id), other.to_string());
      link(slots).is_group = true;
    }
    return {};
  }

  void run() {
    index_readers();
    std::set<int64_t> priorities = {0};
    for (const ShardSlot& one : slots_)
      priorities.insert(one.priorities.begin(), one.priorities.end());
    for (const int64_t priority : priorities) {
      reveal(priority);
      for (int step = options_.is_cautious ? kLastStep : 0; step <= kLastStep; ++step) settle(step);
    }
  }

  std::vector<ShardingConflict> conflicts() const {
    std::vector<ShardingConflict> found;
    for (const OrderedOp& one : ops_) conflicts_of(one, found);
    return found;
  }

  Result<Graph> annotated(const Graph& graph) const {
    GraphCopy copy(graph);
    for (const NodeId n : graph.nodes()) {
      if (graph.regions(n).empty()) {
        HONE_TRY(copy.node(n));
        continue;
      }
      std::vector<GraphRef> regions = HONE_TRY(
          transform_regions(graph, n, [&](const Graph& region) { return annotated(region); }));
      HONE_TRY(copy.node(n, graph.op(n), std::move(regions)));
    }
    Graph made = copy.finish();
    HONE_CHECK(made.value_count() == graph.value_count(), "a copy has other values");
    auto all = std::make_shared<Shardings>();
    const std::vector<ShardSlot*>& slots = values_.at(&graph);
    for (uint32_t i = 0; i < slots.size(); ++i) {
      if (says_something(*slots[i])) all->add({i}, sharding_of(*slots[i]));
      for (size_t k = 1;; ++k) {
        const auto more = later_.find({&graph, i, k});
        if (more == later_.end()) break;
        all->add({i}, sharding_of(*more->second));
      }
    }
    for (const auto& [key, slot] : outputs_)
      if (key.first == &graph) all->set_output(key.second, sharding_of(*slot));
    if (!all->empty()) made.set_shardings(std::move(all));
    return made;
  }

 private:
  ShardSlot& slot(const Graph& graph, ValueId v, const Sharding* stated) {
    if (stated != nullptr && stated->mesh->single_device())
      stated = &of_single_devices_.emplace_back(of_single_device(mesh_, *stated));
    const Type type = graph.type(v);
    ShardSlot& made = slots_.emplace_back();
    made.graph = &graph;
    made.id = v;
    made.is_stated = stated != nullptr;
    made.value.elements = type.static_elements();
    slot_of_[&made.value] = &made;
    for (size_t d = 0; d < static_cast<size_t>(type.rank()); ++d) {
      made.value.dims.push_back({.is_open = stated == nullptr || stated->dims[d].is_open});
      made.stated.push_back(stated == nullptr ? MeshParts()
                                              : mesh_parts(*mesh_, stated->dims[d].axes));
      made.priorities.push_back(stated == nullptr ? 0 : stated->dims[d].priority);
    }
    if (stated != nullptr) {
      stated_[&made] = stated;
      if (stated->group >= 0) groups_[stated->group].push_back(&made);
      made.value.never = mesh_parts(*mesh_, stated->replicated);
      const MeshParts partial = mesh_parts(*mesh_, stated->partial);
      made.value.never.insert(made.value.never.end(), partial.begin(), partial.end());
    }
    return made;
  }

  // Values that are divided alike. `extra`: some have a dim in front that the others lack.
  OrderedOp& link(const std::vector<ShardSlot*>& slots, const std::vector<bool>& stacked = {}) {
    std::vector<DividedValue*> values;
    std::vector<int64_t> sizes;
    const bool first_has_more = !stacked.empty() && stacked[0];
    const Type type = slots[0]->graph->type(slots[0]->id);
    for (int d = first_has_more ? 1 : 0; d < type.rank(); ++d) sizes.push_back(type.dim(d).value());
    auto extra = std::make_unique<bool[]>(slots.size());
    for (size_t i = 0; i < slots.size(); ++i) {
      values.push_back(&slots[i]->value);
      extra[i] = !stacked.empty() && stacked[i];
    }
    OrderedOp& made = ops_.emplace_back();
    made.order = OpOrder::link;
    made.op.rule = rule_of_link(values, {extra.get(), slots.size()}, sizes);
    made.op.operands = std::move(values);
    made.graph = slots[0]->graph;
    made.node = made.graph->producer(slots[0]->id);
    return made;
  }

  // Each reader of a constant may have a part of its own.
  bool is_free(const Graph& graph, ValueId v) const {
    if (values_.at(&graph)[v.index]->is_stated) return false;
    const NodeId n = graph.producer(v);
    if (is_constant(graph.opcode(n))) return true;
    return repeats_elements(graph.opcode(n)) && graph.type(graph.operands(n)[0]).rank() == 0;
  }

  DividedValue* read(const Graph& graph, ValueId v) {
    if (v.is_none()) return nullptr;
    return is_free(graph, v) ? &slot(graph, v, nullptr).value : &values_.at(&graph)[v.index]->value;
  }

  Status add_op(const Graph& graph, NodeId n, const Users& users) {
    const std::vector<Type> operands = graph.operand_types(n), results = graph.result_types(n);
    OrderedOp made = {.order = order_of(graph.opcode(n)), .graph = &graph, .node = n};
    Result<ShardingRule> rule = sharding_rule(Application{graph.op(n), operands}, results);
    if (!rule.ok()) return std::move(rule).error().within(graph.describe(n));
    made.op.rule = std::move(*rule);
    made.op.is_elementwise = is_elementwise(graph.opcode(n));
    for (const ValueId v : graph.operands(n)) {
      made.op.operands.push_back(read(graph, v));
      if (!v.is_none() && graph.type(v).rank() > 0 && !is_free(graph, v))
        made.reads_once = made.reads_once && users.has_one_use(v);
    }
    for (const ValueId v : graph.results(n)) {
      made.op.results.push_back(&values_.at(&graph)[v.index]->value);
      made.is_read_once = made.is_read_once && users.of(v).size() <= 1;
      const auto stated = stated_.find(values_.at(&graph)[v.index]);
      if (stated != stated_.end() && stated->second->passage != AxisPassage::both)
        made.passage = stated->second->passage;
    }
    ops_.push_back(std::move(made));
    return {};
  }

  void add_flow(const Graph& graph, NodeId n) {
    const std::span<const ValueId> operands = graph.operands(n);
    for (const FlowEdge& edge : data_flow(graph.op(n), operands.size(), graph.results(n).size())) {
      std::vector<ShardSlot*> slots;
      std::vector<bool> stacked;
      for (const FlowPlace& place : edge) {
        const Graph& at =
            place.region < 0 ? graph : *graph.regions(n)[static_cast<size_t>(place.region)];
        const ValueId v = place.region >= 0 ? (place.is_result ? at.outputs()[place.index]
                                                               : at.inputs()[place.index])
                          : place.is_result ? graph.result(n, place.index)
                                            : operands[place.index];
        const bool is_own = place.region < 0 && !place.is_result && is_free(graph, v);
        slots.push_back(is_own ? &slot(graph, v, nullptr) : values_.at(&at)[v.index]);
        stacked.push_back(place.is_stacked);
      }
      link(slots, stacked);
    }
  }

  void index_readers() {
    for (size_t i = 0; i < ops_.size(); ++i) {
      for (const DividedValue* value : ops_[i].op.operands)
        if (value != nullptr) readers_[value].push_back(i);
      for (const DividedValue* value : ops_[i].op.results) readers_[value].push_back(i);
    }
  }

  // Dims of this priority get what is stated of them, where it still fits.
  void reveal(int64_t priority) {
    for (ShardSlot& one : slots_)
      for (size_t d = 0; d < one.stated.size(); ++d) {
        DividedDim& dim = one.value.dims[d];
        if (one.priorities[d] != priority || !is_prefix(dim.axes, one.stated[d])) continue;
        MeshParts made = dim.axes;
        for (MeshPart part : behind(dim.axes, one.stated[d])) {
          const MeshPart asked = part;
          for (size_t other = 0; other < one.value.dims.size(); ++other)
            for (const MeshPart& taken : one.value.dims[other].axes)
              if (other != d && part.size > 0) part = cut_short(part, taken);
          if (part.size > 0) made.push_back(part);
          if (part != asked) break;
        }
        dim.axes = merged(made);
      }
  }

  void settle(int step) {
    std::vector<bool> waits(ops_.size(), true);
    for (bool any = true; any;) {
      any = false;
      for (size_t i = 0; i < ops_.size(); ++i)
        if (waits[i]) any = settle_op(i, step, waits) || any;
    }
  }

  // True: something has changed, and its readers wait. If an axis comes to one member of a group,
  // the others have it before other ops bring them anything else.
  bool settle_op(size_t i, int step, std::vector<bool>& waits) {
    waits[i] = false;
    const OrderedOp& one = ops_[i];
    if (!propagate_through(one.op, directions_of(one, step), options_.is_cautious,
                           static_cast<int32_t>(i)))
      return false;
    std::vector<size_t> woken;
    for (const auto* list : {&one.op.operands, &one.op.results})
      for (const DividedValue* value : *list)
        if (value != nullptr)
          woken.insert(woken.end(), readers_[value].begin(), readers_[value].end());
    for (const size_t reader : woken) waits[reader] = true;
    for (const size_t reader : woken)
      if (ops_[reader].is_group && waits[reader]) settle_op(reader, step, waits);
    return true;
  }

  static bool says_something(const ShardSlot& one) {
    return one.is_stated || std::ranges::any_of(one.value.dims, [](const DividedDim& dim) {
             return !dim.axes.empty();
           });
  }

  Sharding sharding_of(const ShardSlot& one) const {
    const auto stated = stated_.find(&one);
    Sharding made = stated == stated_.end() ? Sharding{} : *stated->second;
    made.mesh = mesh_;
    made.dims.resize(one.value.dims.size());
    for (size_t d = 0; d < made.dims.size(); ++d) {
      made.dims[d].axes = axis_parts(*mesh_, one.value.dims[d].axes);
      made.dims[d].is_open = one.value.dims[d].is_open;
    }
    return made;
  }

  ShardingDecision decision(const DividedValue* value) const {
    const ShardSlot& one = *slot_of_.at(value);
    int32_t by = -1;
    for (const DividedDim& dim : value->dims) by = std::max(by, dim.brought_by);
    const auto op = static_cast<size_t>(by);
    return {.value = one.graph->label(one.id),
            .dims = dims_text(sharding_of(one)),
            .because = by < 0 ? "stated" : ops_[op].graph->describe(ops_[op].node)};
  }

  int64_t bytes_of(const DividedValue* value) const {
    const ShardSlot& one = *slot_of_.at(value);
    return one.graph->type(one.id).static_bytes();
  }

  // The axes that one list has behind what both begin with.
  static MeshParts differing(const MeshParts& a, const MeshParts& b) {
    const MeshParts same = common_prefix(a, b);
    MeshParts rest = behind(same, a);
    return rest.empty() ? behind(same, b) : rest;
  }

  static bool is_along(const MeshParts& axes, const MeshPart& part) {
    return std::ranges::any_of(axes, [&](const MeshPart& one) { return clashes(one, part); });
  }

  // The bytes that are left to each group of devices along the axes, if others divide the value.
  static int64_t group_bytes(int64_t bytes, const std::vector<MeshParts>& factors,
                             const MeshParts& axes) {
    for (const MeshParts& parts : factors)
      for (const MeshPart& part : parts)
        if (!is_along(axes, part)) bytes = ceil_div(bytes, part.size);
    return bytes;
  }

  static bool divides_along(const std::vector<MeshParts>& factors, const MeshParts& axes) {
    return std::ranges::any_of(factors, [&](const MeshParts& parts) {
      return std::ranges::any_of(parts, [&](const MeshPart& one) { return is_along(axes, one); });
    });
  }

  // Axes of an operand that another tensor of the op has otherwise. A tensor that is whole is cut
  // for nothing; a result that is whole is gathered.
  void conflicts_of(const OrderedOp& one, std::vector<ShardingConflict>& found) const {
    std::vector<const DividedValue*> tensors;
    for (const DividedValue* value : one.op.operands)
      if (value != nullptr) tensors.push_back(value);
    const size_t operands = tensors.size();
    for (const DividedValue* value : one.op.results) tensors.push_back(value);
    std::vector<std::vector<MeshParts>> axes = axes_of_factors(one.op);
    // Nothing moves along an axis of one device.
    for (std::vector<MeshParts>& of_tensor : axes)
      for (MeshParts& parts : of_tensor)
        std::erase_if(parts, [](const MeshPart& part) { return part.size == 1; });
    std::vector<TensorFactors> factors;
    for (size_t i = 0; i < one.op.operands.size(); ++i)
      if (one.op.operands[i] != nullptr) factors.push_back(one.op.rule.operands[i]);
    factors.insert(factors.end(), one.op.rule.results.begin(), one.op.rule.results.end());
    const auto has = [&](size_t tensor, size_t f) {
      return std::ranges::any_of(factors[tensor], [&](const DimFactors& dim) {
        return std::ranges::find(dim, static_cast<int>(f)) != dim.end();
      });
    };
    for (size_t f = 0; f < one.op.rule.factors.size(); ++f)
      for (size_t a = 0; a < operands; ++a) {
        if (axes[a][f].empty()) continue;
        for (size_t b = a + 1; b < tensors.size(); ++b) {
          if (!has(b, f) || axes[a][f] == axes[b][f]) continue;
          if (axes[b][f].empty() && b < operands) continue;
          const size_t moved = bytes_of(tensors[b]) < bytes_of(tensors[a]) ? b : a;
          const MeshParts along = differing(axes[a][f], axes[b][f]);
          found.push_back({.node = one.graph->describe(one.node),
                           .kept = decision(tensors[b]),
                           .other = decision(tensors[a]),
                           .bytes = bytes_of(tensors[moved]),
                           .axes = along,
                           .group_bytes = group_bytes(bytes_of(tensors[moved]), axes[moved], along),
                           .is_gathered = !divides_along(axes[b], along)});
          return;
        }
        if (one.op.rule.factors[f].kind != FactorKind::replication) continue;
        found.push_back({.node = one.graph->describe(one.node),
                         .kept = {.value = one.graph->describe(one.node),
                                  .dims = "whole",
                                  .because = "the op needs all of the dim on each device"},
                         .other = decision(tensors[a]),
                         .bytes = bytes_of(tensors[a]),
                         .axes = axes[a][f],
                         .group_bytes = group_bytes(bytes_of(tensors[a]), axes[a], axes[a][f])});
        return;
      }
  }

  MeshRef mesh_;
  PropagateOptions options_;
  std::deque<ShardSlot> slots_;
  std::deque<Sharding> of_single_devices_;
  std::map<const Graph*, std::vector<ShardSlot*>> values_;
  std::map<std::tuple<const Graph*, uint32_t, size_t>, ShardSlot*> later_;
  std::map<std::pair<const Graph*, uint32_t>, ShardSlot*> outputs_;
  std::map<int64_t, std::vector<ShardSlot*>> groups_;
  std::unordered_map<const DividedValue*, const ShardSlot*> slot_of_;
  std::unordered_map<const ShardSlot*, const Sharding*> stated_;
  std::deque<OrderedOp> ops_;
  std::unordered_map<const DividedValue*, std::vector<size_t>> readers_;
};

}  // namespace

Result<MeshRef> mesh_of_graph(const Graph& graph) {
  MeshRef mesh;
  for (const MeshRef& one : meshes_of(graph)) {
    if ((one->axes.empty() && one->devices.empty()) || one->single_device()) continue;
    if (mesh == nullptr) mesh = one;
    if (one->axes != mesh->axes || one->devices != mesh->devices)
      return unsupported("the shardings of graph '{}' are of two meshes: '{}' = {}, '{}' = {}",
                         excerpt(graph.name()), excerpt(mesh->name), axes_text(*mesh),
                         excerpt(one->name), axes_text(*one));
  }
  return mesh;
}

Result<Propagation> propagate_shardings(const Graph& graph, const PropagateOptions& options) {
  if (!graph.is_static())
    return unsupported("sharding needs sizes: graph '{}' has symbols", excerpt(graph.name()))
        .with_hint("bind them");
  const std::vector<MeshRef> meshes = meshes_of(graph);
  if (meshes.empty())
    return bad_input("nothing is said of how the values of graph '{}' are divided",
                     excerpt(graph.name()))
        .with_hint("state the sharding of an input: %x: f32[8, 4] on @m [x, -]");
  MeshRef mesh = HONE_TRY(mesh_of_graph(graph));
  if (mesh == nullptr) mesh = meshes[0];
  Propagator propagator(mesh, options);
  HONE_TRY(propagator.add(graph));
  HONE_TRY(propagator.link_groups());
  propagator.run();
  Propagation made;
  made.graph = HONE_TRY(propagator.annotated(graph));
  made.mesh = mesh;
  made.conflicts = propagator.conflicts();
  return made;
}

}  // namespace hone

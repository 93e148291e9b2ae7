#include "shard/partition.h"

#include <algorithm>

#include "base/checked_math.h"
#include "base/text.h"
#include "ir/loop_state.h"
#include "ir/op_def.h"
#include "ir/op_facts.h"
#include "rewrite/passes.h"
#include "shard/data_flow.h"
#include "shard/division_choice.h"
#include "shard/local_op.h"
#include "shard/mesh_program.h"
#include "shard/node_division.h"
#include "shard/propagate.h"
#include "shard/sharding_rule.h"
#include "shard/whole_bytes.h"

namespace hone {
namespace {

size_t at_dim(int d) { return static_cast<size_t>(d); }

class Partitioner {
 public:
  Partitioner(const Graph& whole, MeshRef mesh, bool is_exact = false)
      : whole_(whole), mesh_(std::move(mesh)), is_exact_(is_exact) {
    made_.graph.set_name(whole.name());
  }

  // For a region, whose inputs and outputs are divided as the node around it says.
  Partitioner(const Graph& region, MeshRef mesh, std::vector<ShardLayout> inputs,
              std::vector<ShardLayout> outputs)
      : Partitioner(region, std::move(mesh)) {
    given_ = std::move(inputs);
    wanted_ = std::move(outputs);
  }

  // Ways between layouts are the cheapest by this price.
  Partitioner& priced(ReshardPrice price) {
    price_ = std::move(price);
    return *this;
  }

  Result<Partition> run() {
    made_.mesh = mesh_;
    values_.resize(whole_.value_count());
    const std::vector<bool> live = live_nodes(whole_);
    for (const NodeId n : whole_.nodes())
      if (live[n.index]) HONE_TRY(node(n));
    std::vector<ValueId> outputs;
    for (uint32_t i = 0; i < whole_.outputs().size(); ++i) {
      const ValueId v = whole_.outputs()[i];
      const Sharding* stated =
          whole_.shardings() == nullptr ? nullptr : whole_.shardings()->of_output(i);
      ShardLayout wanted = i < wanted_.size()  ? wanted_[i]
                           : stated != nullptr ? layout_of(*stated, v)
                                               : stated_layout(v);
      outputs.push_back(in_layout(v, wanted, fmt::format("output {}", i)));
      made_.outputs.push_back(std::move(wanted));
    }
    made_.graph.set_outputs(std::move(outputs));
    note_axes();
    for (Local& local : values_)
      made_.values.push_back(
          {.layout = std::move(local.layout),
           .kind = local.kind,
           .part = local.value.is_none() ? Type() : made_.graph.type(local.value)});
    return std::move(made_);
  }

 private:
  struct Local {
    ValueId value = {};
    ShardLayout layout = {};
    std::string_view kind = "";                               // of a partial value
    std::vector<std::pair<ShardLayout, ValueId>> moved = {};  // it, divided otherwise
  };

  std::vector<int64_t> sizes_of(ValueId v) const {
    const Ints dims = whole_.type(v).static_dims();
    return {dims.begin(), dims.end()};
  }

  ShardLayout whole_layout(ValueId v) const { return undivided(whole_.type(v)); }

  ShardLayout layout_of(const Sharding& sharding, ValueId v) const {
    ShardLayout layout;
    const std::vector<int64_t> sizes = sizes_of(v);
    for (size_t d = 0; d < sizes.size(); ++d)
      layout.dims.push_back(covering(mesh_parts(*mesh_, sharding.dims[d].axes), sizes[d]));
    return layout;
  }

  // The layout that the graph states or that follows.
  ShardLayout stated_layout(ValueId v) const {
    if (!given_.empty()) {
      const auto input = std::ranges::find(whole_.inputs(), v);
      if (input != whole_.inputs().end())
        return given_[static_cast<size_t>(input - whole_.inputs().begin())];
    }
    if (whole_.shardings() == nullptr) return whole_layout(v);
    const std::vector<const Sharding*> all = whole_.shardings()->of(v);
    return all.empty() ? whole_layout(v) : layout_of(*all[0], v);
  }

  // The stated one, and the axes along which devices hold summands.
  ShardLayout exact_layout(ValueId v) const {
    ShardLayout layout = stated_layout(v);
    if (whole_.shardings() == nullptr) return layout;
    const std::vector<const Sharding*> all = whole_.shardings()->of(v);
    if (all.empty()) return layout;
    for (const MeshPart& part : mesh_parts(*mesh_, all[0]->partial))
      if (part.size > 1) layout.partial.push_back(part);
    return layout;
  }

  Type part_type(ValueId v, const ShardLayout& layout) const {
    return local_type(whole_.type(v), layout);
  }

  // The number that the value has copies of: a part of them is fewer copies.
  std::optional<ValueId> repeated_number(ValueId v) const {
    const NodeId n = whole_.producer(v);
    if (!repeats_elements(whole_.opcode(n))) return std::nullopt;
    const ValueId scalar = whole_.operands(n)[0];
    if (whole_.type(scalar).rank() != 0 || !values_[scalar.index].layout.partial.empty())
      return std::nullopt;
    return scalar;
  }

  std::optional<ValueId> copied_scalar(ValueId v, const ShardLayout& wanted) {
    const std::optional<ValueId> number = repeated_number(v);
    if (!number || wanted == values_[v.index].layout) return std::nullopt;
    const NodeId n = whole_.producer(v);
    const ValueId scalar = *number;
    const Type types[] = {whole_.type(scalar)}, made[] = {part_type(v, wanted)};
    std::vector<SizeEntry> entries;
    for (int d = 0; d < made[0].rank(); ++d)
      add_size_entries(whole_.op(n), at_dim(d), whole_.type(v).dim(d), made[0].dim(d), entries);
    const std::optional<Op> op = local_op({whole_.op(n), types}, entries, made);
    if (!op) return std::nullopt;
    const ValueId operands[] = {values_[scalar.index].value};
    return program_.append(*op, operands);
  }

  // Nothing moves until devices have it so.
  bool is_at_hand(ValueId v, const ShardLayout& wanted) const {
    const Local& have = values_[v.index];
    return have.layout == wanted || repeated_number(v) ||
           std::ranges::any_of(have.moved, [&](const auto& one) { return one.first == wanted; });
  }

  // Sums of narrow reals are rounded when they are whole.
  Type held_type(ValueId v) const {
    return Type::get(made_.graph.type(values_[v.index].value).dtype(), whole_.type(v).dims());
  }

  ValueId in_layout(ValueId v, const ShardLayout& wanted, const std::string& node) {
    if (const std::optional<ValueId> copy = copied_scalar(v, wanted)) return *copy;
    Local& have = values_[v.index];
    if (have.layout == wanted) return have.value;
    for (const auto& [layout, moved] : have.moved)
      if (layout == wanted) return moved;
    const ValueId value = program_.cast(
        changed(v, have, wanted, exchanged_bytes(held_type(v)), node), whole_.type(v).dtype());
    HONE_CHECK(made_.graph.type(value) == part_type(v, wanted), "{} has the type {}, not {}",
               whole_.label(v), made_.graph.type(value).to_string(),
               part_type(v, wanted).to_string());
    have.moved.emplace_back(wanted, value);
    return value;
  }

  ValueId changed(ValueId v, const Local& have, const ShardLayout& wanted, int64_t element_bytes,
                  const std::string& node) {
    ValueId value = have.value;
    for (const ReshardStep& step :
         reshard_steps(have.layout, wanted, sizes_of(v), element_bytes, price_)) {
      value = program_.changed(value, step, have.kind);
      if (is_exchange(step.kind))
        made_.messages.push_back({exchange_of(*mesh_, step, element_bytes), whole_.label(v), node});
    }
    return value;
  }

  void define(ValueId v, ValueId local, ShardLayout layout, std::string_view kind = "") {
    values_[v.index] = {.value = local, .layout = std::move(layout), .kind = kind};
    const std::string_view name = whole_.name(v);
    if (!name.empty()) made_.graph.set_name(local, name);
  }

  Status node(NodeId n) {
    const Opcode opcode = whole_.opcode(n);
    if (is_parameter(opcode)) {
      const ValueId v = whole_.result(n);
      ShardLayout layout = stated_layout(v);
      made_.inputs.push_back(layout);
      define(v, made_.graph.add_parameter(part_type(v, layout)), layout);
      return {};
    }
    if (is_constant(opcode)) {
      const ValueId v = whole_.result(n);
      define(v, made_.graph.add_constant(whole_.constant(n)), whole_layout(v));
      return {};
    }
    if (!whole_.regions(n).empty()) return is_exact_ ? exact_regions(n) : stated_regions(n);
    const NodeDivider divider = HONE_TRY(NodeDivider::make(whole_, n));
    std::string reason;
    std::optional<NodeDivision> division =
        is_exact_ ? exact_division(divider, exact_layouts(n), reason)
                  : stated_division(
                        divider, said_of(n),
                        [&](const NodeDivision& one) { return price_around(n, one); }, reason);
    if (!division) return undivided_node(n, "its attributes say sizes of whole values");
    if (!divides(*division)) return undivided_node(n, reason);
    append_divided(n, divider, std::move(*division));
    if (!reason.empty()) note(n, reason);
    return {};
  }

  static bool divides(const NodeDivision& division) {
    return std::ranges::any_of(division.axes,
                               [](const MeshParts& parts) { return !parts.empty(); });
  }

  // The axes that divide no further, since sizes do not permit it.
  void note_axes() {
    const Shardings* all = whole_.shardings();
    if (all == nullptr) return;
    for (const auto& [value, sharding] : all->values)
      for (size_t d = 0; d < sharding.dims.size(); ++d) {
        const int64_t size = sizes_of(value)[d];
        MeshParts wanted = mesh_parts(*mesh_, sharding.dims[d].axes);
        std::erase_if(wanted, [](const MeshPart& part) { return part.size == 1; });
        const size_t taken = covering(wanted, size).size();
        if (taken == wanted.size()) continue;
        made_.whole.push_back(
            {whole_.label(value),
             fmt::format("the axis '{}' does not divide what is left of dim {}, {}",
                         excerpt(mesh_->axes[wanted[taken].axis].name), d,
                         ceil_div(size, count_of(covering(wanted, size))))});
      }
  }

  void note(NodeId n, const std::string& reason) {
    made_.whole.push_back({whole_.describe(n), reason});
  }

  // Operands as they are here, and results as they are stated.
  NodeLayouts said_of(NodeId n) const {
    NodeLayouts said;
    for (const ValueId v : whole_.operands(n))
      said.operands.push_back(v.is_none() ? ShardLayout() : values_[v.index].layout);
    for (const ValueId v : whole_.results(n)) said.results.push_back(stated_layout(v));
    return said;
  }

  std::vector<ShardLayout> exact_layouts(NodeId n) const {
    std::vector<ShardLayout> wanted;
    for (const ValueId v : whole_.results(n)) wanted.push_back(exact_layout(v));
    return wanted;
  }

  // The ways of operands to the node, and those of its results to what is stated of them.
  double price_around(NodeId n, const NodeDivision& division) const {
    double sum = 0;
    for (size_t i = 0; i < division.operands.size(); ++i) {
      const ValueId v = whole_.operands(n)[i];
      if (v.is_none() || is_at_hand(v, division.operands[i])) continue;
      sum += price_of_way(v, values_[v.index].layout, division.operands[i], held_type(v));
    }
    for (size_t i = 0; i < division.results.size(); ++i) {
      const ValueId v = whole_.result(n, i);
      sum +=
          price_of_way(v, division.results[i], stated_layout(v), division.made_as(whole_.type(v)));
    }
    return sum;
  }

  double price_of_way(ValueId v, const ShardLayout& from, const ShardLayout& to, Type held) const {
    const int64_t element_bytes = exchanged_bytes(held);
    double sum = 0;
    for (const ReshardStep& step : reshard_steps(from, to, sizes_of(v), element_bytes, price_))
      sum += price_of(step, element_bytes, price_);
    return sum;
  }

  // The number that changes no result: none if it does not matter.
  std::optional<ValueId> filling(NodeId n, const std::vector<ValueId>& locals, size_t operand) {
    const Op op = whole_.op(n);
    const DType dtype = made_.graph.type(locals[operand]).dtype();
    if (is_contraction(op.opcode())) return program_.number(dtype, int64_t{0});
    if (combines_by_kind(op.opcode()) || has_attr(op, "exclusive"))
      return program_.number(dtype, identity_of(combine_of(op.word("kind")), dtype));
    if (puts_around(op.opcode())) return locals[1];
    if (static_cast<int8_t>(operand) == op.def().traits.updates && !written_kind(op).empty())
      return program_.neutral(written_kind(op), dtype);
    return std::nullopt;
  }

  // Operand 0 gets what neighbours have.
  void fetch(NodeId n, const std::vector<Halo>& halos, std::vector<ValueId>& locals) {
    for (const Halo& halo : halos) {
      // Where nobody sends, there are zeros already.
      const bool has_zeros = is_contraction(whole_.opcode(n)) && !has_padding(halo.axes, halo.size);
      const std::optional<ValueId> fill = has_zeros ? std::nullopt : filling(n, locals, 0);
      locals[0] = program_.with_neighbours(locals[0], halo, fill);
    }
  }

  // Along dims whose elements are combined, padding must not count.
  void drop_padding(NodeId n, const NodeDivider& divider, const NodeDivision& division,
                    std::vector<ValueId>& locals) {
    const ShardingRule& rule = divider.rule();
    for (size_t f = 0; f < rule.factors.size(); ++f) {
      const Factor& factor = rule.factors[f];
      const bool is_mixed =
          factor.kind == FactorKind::reduction || divider.is_running(static_cast<int>(f));
      if (!is_mixed || !has_padding(division.axes[f], factor.size)) continue;
      for (size_t i = 0; i < locals.size(); ++i)
        for (size_t d = 0; d < rule.operands[i].size(); ++d)
          if (rule.operands[i][d] == DimFactors{static_cast<int>(f)})
            if (const std::optional<ValueId> fill = filling(n, locals, i))
              locals[i] =
                  program_.without_padding(locals[i], d, division.axes[f], factor.size, *fill);
    }
  }

  // Messages along the same axes are one.
  void tell(NodeId n, const NodeDivision& division) {
    const MeshExchange* last = nullptr;
    for (const MeshExchange& one : division.exchanges) {
      if (last == nullptr || last->axes != one.axes)
        made_.messages.push_back({one, whole_.label(whole_.operands(n)[0]), whole_.describe(n)});
      else
        made_.messages.back().bytes += one.bytes;
      last = &one;
    }
  }

  // The result of an op that needs to know the place of the device.
  std::optional<ValueId> by_place(const NodeDivider& divider, const NodeDivision& division,
                                  const std::vector<ValueId>& locals) {
    if (!division.ranges.empty())
      return computed_by_range(program_, division.op, locals, division.ranges);
    if (class_of(division.op.opcode()) == OpClass::generator)
      return program_.generated(division.op, locals, division.results[0]);
    for (size_t f = 0; f < division.axes.size(); ++f) {
      const MeshParts& axes = division.axes[f];
      if (!axes.empty() && divider.is_joined(static_cast<int>(f)))
        return program_.joined(locals, static_cast<size_t>(division.op.integer("axis")),
                               divider.stretches(axes));
      if (axes.empty() || !divider.is_running(static_cast<int>(f))) continue;
      const auto dim = static_cast<size_t>(division.op.integer("axis"));
      return program_.with_earlier(program_.append(division.op, locals), locals[0], dim, axes,
                                   division.op);
    }
    return std::nullopt;
  }

  void append_divided(NodeId n, const NodeDivider& divider, NodeDivision division) {
    std::vector<ValueId> locals;
    for (size_t i = 0; i < division.operands.size(); ++i) {
      const ValueId v = whole_.operands(n)[i];
      locals.push_back(v.is_none() ? v : in_layout(v, division.operands[i], whole_.describe(n)));
    }
    tell(n, division);
    drop_padding(n, divider, division, locals);
    fetch(n, division.halos, locals);
    for (size_t i = 0; i < locals.size(); ++i)
      if (!locals[i].is_none()) locals[i] = program_.cast(locals[i], division.types[i].dtype());
    // The operand that updates are added to counts once.
    if (const MeshParts& parts = division.results[0].partial;
        writes_by_index(division.op) && !parts.empty())
      locals[0] = program_.on_first(
          locals[0], parts, program_.neutral(division.kind, made_.graph.type(locals[0]).dtype()));
    if (const std::optional<ValueId> made = by_place(divider, division, locals))
      return define(whole_.result(n), *made, std::move(division.results[0]), division.kind);
    const Result<NodeId> made = made_.graph.append(division.op, locals);
    HONE_CHECK(made.ok(), "a part of {} does not fit: {}", whole_.describe(n),
               made.error().to_string());
    for (size_t i = 0; i < division.results.size(); ++i)
      define(whole_.result(n, i), made_.graph.result(*made, i), std::move(division.results[i]),
             division.kind);
  }

  // As the first region says.
  Status stated_regions(NodeId n) {
    const std::span<const GraphRef> regions = whole_.regions(n);
    const FlowLayouts layouts = flow_layouts(whole_, n, [&](const FlowEdge& edge) {
      const auto inner =
          std::ranges::find_if(edge, [](const FlowPlace& p) { return p.region >= 0; });
      const Graph& region = *regions[static_cast<size_t>(inner->region)];
      const Partitioner reader(region, mesh_);
      return reader.stated_layout(inner->is_result ? region.outputs()[inner->index]
                                                   : region.inputs()[inner->index]);
    });
    return with_regions(n, layouts, {regions.begin(), regions.end()});
  }

  // Operands and results of a node with regions: by its rule; else arrays that come out are divided
  // as results say, and others as they are. Axes may divide an array along one dim, and another one
  // along the next. None: that is not possible, for this reason.
  Result<std::optional<NodeLayouts>> exact_flow(NodeId n, std::string& reason) const {
    const std::vector<ShardLayout> wanted = exact_layouts(n);
    const NodeDivider divider = HONE_TRY(NodeDivider::make(whole_, n));
    std::optional<NodeDivision> division = exact_division(divider, wanted, reason);
    const bool is_partial = std::ranges::any_of(
        wanted, [](const ShardLayout& layout) { return !layout.partial.empty(); });
    if (is_partial || (division && division->results == wanted)) {
      if (!division || !divides(*division)) return std::optional<NodeLayouts>();
      return std::optional(
          NodeLayouts{std::move(division->operands), std::move(division->results)});
    }
    reason.clear();
    NodeLayouts flow = said_of(n);
    for (ShardLayout& layout : flow.operands) layout.partial.clear();
    flow.results = wanted;
    return std::optional(std::move(flow));
  }

  // In regions the rest follows.
  Status exact_regions(NodeId n) {
    std::string reason;
    const std::optional<NodeLayouts> flow = HONE_TRY(exact_flow(n, reason));
    if (!flow) return undivided_node(n, reason);
    const FlowLayouts layouts = flow_layouts(whole_, n, [&](const FlowEdge& edge) {
      const auto is_outer = [](const FlowPlace& p) { return p.region < 0; };
      auto outer = std::ranges::find_if(
          edge, [&](const FlowPlace& p) { return is_outer(p) && p.is_result; });
      if (outer == edge.end()) outer = std::ranges::find_if(edge, is_outer);
      HONE_CHECK(outer != edge.end(), "an array flows through regions alone");
      ShardLayout layout = (outer->is_result ? flow->results : flow->operands)[outer->index];
      if (outer->is_stacked) layout.dims.erase(layout.dims.begin());
      return layout;
    });
    std::vector<GraphRef> regions;
    for (size_t r = 0; r < whole_.regions(n).size(); ++r)
      regions.push_back(
          HONE_TRY(stated_region(*whole_.regions(n)[r], layouts.inputs[r], layouts.outputs[r])));
    if (!reason.empty()) note(n, reason);
    return with_regions(n, layouts, regions);
  }

  Result<GraphRef> stated_region(Graph region, const std::vector<ShardLayout>& inputs,
                                 const std::vector<ShardLayout>& outputs) const {
    auto stated = std::make_shared<Shardings>();
    for (uint32_t i = 0; i < inputs.size(); ++i)
      stated->add(region.inputs()[i], sharding_of(mesh_, inputs[i]));
    for (uint32_t i = 0; i < outputs.size(); ++i)
      stated->set_output(i, sharding_of(mesh_, outputs[i]));
    const bool says_nothing = stated->empty();
    region.set_shardings(std::move(stated));
    if (says_nothing) return std::make_shared<const Graph>(std::move(region));
    return std::make_shared<const Graph>(HONE_TRY(propagate_shardings(region)).graph);
  }

  Status with_regions(NodeId n, const FlowLayouts& layouts, const std::vector<GraphRef>& regions) {
    std::vector<ValueId> locals;
    for (size_t i = 0; i < layouts.operands.size(); ++i) {
      const ValueId v = whole_.operands(n)[i];
      locals.push_back(v.is_none() ? v : in_layout(v, layouts.operands[i], whole_.describe(n)));
    }
    std::vector<GraphRef> made;
    for (size_t r = 0; r < regions.size(); ++r) {
      Partition part =
          HONE_TRY(Partitioner(*regions[r], mesh_, layouts.inputs[r], layouts.outputs[r])
                       .priced(price_)
                       .run());
      made.push_back(std::make_shared<Graph>(std::move(part.graph)));
      for (ShardMessage& one : part.messages) {
        if (is_loop(whole_.opcode(n))) one.repeat(loop_trips(whole_, n).value());
        made_.messages.push_back(std::move(one));
      }
      made_.whole.insert(made_.whole.end(), part.whole.begin(), part.whole.end());
    }
    const NodeId node = HONE_TRY(made_.graph.append(whole_.op(n), locals, std::move(made)));
    for (size_t i = 0; i < layouts.results.size(); ++i)
      define(whole_.result(n, i), made_.graph.result(node, i), layouts.results[i]);
    return {};
  }

  // Each device computes all of it. Later nodes take their parts for nothing.
  Status undivided_node(NodeId n, const std::string& reason) {
    std::vector<ValueId> operands;
    bool was_divided = false;
    for (const ValueId v : whole_.operands(n)) {
      if (v.is_none()) {
        operands.push_back(v);
        continue;
      }
      const ShardLayout whole = whole_layout(v);
      was_divided = was_divided || values_[v.index].layout.dims != whole.dims;
      operands.push_back(in_layout(v, whole, whole_.describe(n)));
    }
    bool is_stated = false;
    for (const ValueId v : whole_.results(n))
      if (stated_layout(v) != whole_layout(v)) {
        is_stated = true;
        made_.made_whole.insert(whole_.label(v));
      }
    // A plan that says so gives its reason itself.
    const bool is_told = (was_divided || is_stated) && !(is_exact_ && reason.empty());
    if (is_told) note(n, reason.empty() ? "its results are whole" : reason);
    const std::span<const GraphRef> regions = whole_.regions(n);
    const NodeId made =
        HONE_TRY(made_.graph.append(whole_.op(n), operands, {regions.begin(), regions.end()}));
    for (size_t i = 0; i < whole_.results(n).size(); ++i)
      define(whole_.result(n, i), made_.graph.result(made, i), whole_layout(whole_.result(n, i)));
    return {};
  }

  const Graph& whole_;
  const MeshRef mesh_;
  std::vector<ShardLayout> given_ = {};   // of a region: of its inputs
  std::vector<ShardLayout> wanted_ = {};  // and outputs
  Partition made_;
  MeshProgram program_{made_.graph, *mesh_};
  std::vector<Local> values_;
  bool is_exact_ = false;  // results say all, and operands nothing
  ReshardPrice price_ = nullptr;
};

}  // namespace

namespace {

// A value of which devices hold summands would be computed with as if it were whole.
Status check_nothing_is_partial(const Graph& graph) {
  const auto refused = [](const Sharding& one, const std::string& what) -> Status {
    if (one.partial.empty()) return {};
    return unsupported("{} is stated as partial: devices hold summands of it", what)
        .with_hint("state it as whole or divided; sums between devices are found");
  };
  if (const Shardings* all = graph.shardings(); all != nullptr) {
    for (const auto& [value, one] : all->values)
      HONE_TRY(refused(one, fmt::format("'{}'", graph.label(value))));
    for (const auto& [output, one] : all->outputs)
      HONE_TRY(refused(one, fmt::format("output {}", output)));
  }
  for (NodeId n : graph.nodes())
    for (const GraphRef& region : graph.regions(n)) HONE_TRY(check_nothing_is_partial(*region));
  return {};
}

}  // namespace

Status check_can_partition(const Graph& graph, const Mesh& mesh) {
  for (const NodeId n : graph.nodes())
    if (talks_to_devices(graph, n))
      return unsupported("graph '{}' talks to devices itself", excerpt(graph.name()));
  if (!mesh.devices.empty() && !std::ranges::is_sorted(mesh.devices))
    return unsupported("the devices of the mesh '{}' are in another order", excerpt(mesh.name));
  if (mesh.device_count() > kMostPartitionDevices)
    return over_limit("the mesh '{}' has {} devices; programs are made for at most {}",
                      excerpt(mesh.name), mesh.device_count(), kMostPartitionDevices);
  return {};
}

Result<Graph> spelled_out(const Graph& graph) {
  const Graph wide = HONE_TRY(widen_composites(graph));
  return expand_composites(wide);
}

Result<Partition> partition_graph(const Graph& graph, const ReshardPrice& price) {
  HONE_TRY(check_nothing_is_partial(graph));
  const Propagation propagated = HONE_TRY(propagate_shardings(HONE_TRY(spelled_out(graph))));
  HONE_TRY(check_can_partition(graph, *propagated.mesh));
  return Partitioner(propagated.graph, propagated.mesh).priced(price).run();
}

Graph with_layouts(Graph graph, const Partition& partition) {
  HONE_CHECK(graph.value_count() == partition.values.size(), "the partition is of another graph");
  auto all = std::make_shared<Shardings>();
  for (const NodeId n : graph.nodes()) {
    if (is_constant(graph.opcode(n))) continue;
    for (const ValueId v : graph.results(n)) {
      const Partition::MadeValue& made = partition.values[v.index];
      all->add(v, sharding_of(partition.mesh, made.layout, made.kind));
    }
  }
  for (uint32_t i = 0; i < partition.outputs.size(); ++i)
    all->set_output(i, sharding_of(partition.mesh, partition.outputs[i]));
  graph.set_shardings(std::move(all));
  return graph;
}

Result<Partition> partition_exactly(const Graph& graph, const MeshRef& mesh,
                                    const ReshardPrice& price) {
  HONE_CHECK(graph.is_static(), "sizes are open");
  HONE_TRY(check_can_partition(graph, *mesh));
  return Partitioner(graph, mesh, true).priced(price).run();
}

}  // namespace hone

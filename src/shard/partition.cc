#include "shard/partition.h"

#include <algorithm>

#include "base/text.h"
#include "ir/op_facts.h"
#include "rewrite/expand.h"
#include "shard/data_flow.h"
#include "shard/local_op.h"
#include "shard/mesh_program.h"
#include "shard/propagate.h"
#include "shard/sharding_rule.h"

namespace hone {
namespace {

size_t at_dim(int d) { return static_cast<size_t>(d); }

// A list of axes, as far as they divide the size.
MeshParts dividing(const MeshParts& axes, int64_t size) {
  MeshParts made;
  for (const MeshPart& part : axes) {
    if (part.size == 1) continue;  // an axis of one device moves nothing
    if (part.size < 1 || size % (count_of(made) * part.size) != 0 || size == 0) break;
    made.push_back(part);
  }
  return made;
}

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

bool talks_to_devices(const Graph& graph) {
  for (const NodeId n : graph.nodes()) {
    if (class_of(graph.opcode(n)) == OpClass::collective) return true;
    for (const GraphRef& region : graph.regions(n))
      if (talks_to_devices(*region)) return true;
  }
  return false;
}

class Partitioner {
 public:
  Partitioner(const Graph& whole, MeshRef mesh) : whole_(whole), mesh_(std::move(mesh)) {
    made_.graph.set_name(whole.name());
  }

  // For a region, whose inputs and outputs are divided as the node around it says.
  Partitioner(const Graph& region, MeshRef mesh, std::vector<ShardLayout> inputs,
              std::vector<ShardLayout> outputs)
      : Partitioner(region, std::move(mesh)) {
    given_ = std::move(inputs);
    wanted_ = std::move(outputs);
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
    return std::move(made_);
  }

 private:
  struct Local {
    ValueId value = {};
    ShardLayout layout = {};
    std::string_view kind = "";  // of a partial value
  };

  std::vector<int64_t> sizes_of(ValueId v) const {
    const Ints dims = whole_.type(v).static_dims();
    return {dims.begin(), dims.end()};
  }

  static ShardLayout undivided(Type type) {
    return {.dims = std::vector<MeshParts>(at_dim(type.rank()))};
  }
  ShardLayout undivided(ValueId v) const { return undivided(whole_.type(v)); }

  ShardLayout layout_of(const Sharding& sharding, ValueId v) const {
    ShardLayout layout;
    const std::vector<int64_t> sizes = sizes_of(v);
    for (size_t d = 0; d < sizes.size(); ++d)
      layout.dims.push_back(dividing(mesh_parts(*mesh_, sharding.dims[d].axes), sizes[d]));
    return layout;
  }

  // The layout that the graph states or that follows.
  ShardLayout stated_layout(ValueId v) const {
    if (!given_.empty()) {
      const auto input = std::ranges::find(whole_.inputs(), v);
      if (input != whole_.inputs().end())
        return given_[static_cast<size_t>(input - whole_.inputs().begin())];
    }
    if (whole_.shardings() == nullptr) return undivided(v);
    const std::vector<const Sharding*> all = whole_.shardings()->of(v);
    return all.empty() ? undivided(v) : layout_of(*all[0], v);
  }

  Type local_type(ValueId v, const ShardLayout& layout) const {
    const Type type = whole_.type(v);
    Dims dims(type.dims().begin(), type.dims().end());
    for (size_t d = 0; d < dims.size(); ++d) dims[d] = dims[d].value() / count_of(layout.dims[d]);
    return type.with_dims(dims);
  }

  // A part of copies of one number is fewer copies.
  std::optional<ValueId> copied_scalar(ValueId v, const ShardLayout& wanted) {
    const NodeId n = whole_.producer(v);
    if (!repeats_elements(whole_.opcode(n)) || wanted == values_[v.index].layout)
      return std::nullopt;
    const ValueId scalar = whole_.operands(n)[0];
    if (whole_.type(scalar).rank() != 0 || !values_[scalar.index].layout.partial.empty())
      return std::nullopt;
    const Type types[] = {whole_.type(scalar)}, made[] = {local_type(v, wanted)};
    std::vector<SizeEntry> entries;
    for (int d = 0; d < made[0].rank(); ++d)
      add_entries(whole_.op(n), at_dim(d), whole_.type(v).dim(d), made[0].dim(d), entries);
    const std::optional<Op> op = local_op({whole_.op(n), types}, entries, made);
    if (!op) return std::nullopt;
    const ValueId operands[] = {values_[scalar.index].value};
    return program_.append(*op, operands);
  }

  ValueId in_layout(ValueId v, const ShardLayout& wanted, const std::string& node) {
    if (const std::optional<ValueId> copy = copied_scalar(v, wanted)) return *copy;
    const Local& have = values_[v.index];
    const Type type = whole_.type(v);
    const int64_t bytes =
        std::max<int64_t>(1, type.static_bytes() / std::max<int64_t>(1, type.static_elements()));
    ValueId value = have.value;
    for (const ReshardStep& step : reshard_steps(have.layout, wanted, sizes_of(v), bytes)) {
      value = program_.changed(value, step, have.kind);
      if (step.kind != ReshardKind::slice)
        made_.messages.push_back({step.kind, whole_.label(v), node, step.bytes});
    }
    HONE_CHECK(made_.graph.type(value) == local_type(v, wanted), "{} has the type {}, not {}",
               whole_.label(v), made_.graph.type(value).to_string(),
               local_type(v, wanted).to_string());
    return value;
  }

  void define(ValueId v, ValueId local, ShardLayout layout, std::string_view kind = "") {
    values_[v.index] = {local, std::move(layout), kind};
    const std::string_view name = whole_.name(v);
    if (!name.empty()) made_.graph.set_name(local, name);
  }

  Status node(NodeId n) {
    const Opcode opcode = whole_.opcode(n);
    if (is_parameter(opcode)) {
      const ValueId v = whole_.result(n);
      ShardLayout layout = stated_layout(v);
      made_.inputs.push_back(layout);
      define(v, made_.graph.add_parameter(local_type(v, layout)), layout);
      return {};
    }
    if (is_constant(opcode)) {
      const ValueId v = whole_.result(n);
      define(v, made_.graph.add_constant(whole_.constant(n)), undivided(v));
      return {};
    }
    if (!whole_.regions(n).empty()) return with_regions(n);
    // Elements follow from their places in the whole value.
    if (class_of(opcode) == OpClass::generator) return undivided_node(n, "it makes elements");
    const std::vector<Type> operands = whole_.operand_types(n), results = whole_.result_types(n);
    const ShardingRule rule = HONE_TRY(sharding_rule(Application{whole_.op(n), operands}, results));
    std::string_view kind;
    std::string reason;
    const std::vector<MeshParts> axes = factor_axes(n, rule, kind, reason);
    const bool is_divided =
        std::ranges::any_of(axes, [](const MeshParts& parts) { return !parts.empty(); });
    if (is_divided && divided_node(n, rule, axes, kind)) {
      if (!reason.empty()) note(n, reason);
      return {};
    }
    if (is_divided) reason = "its attributes say sizes of whole values";
    return undivided_node(n, reason);
  }

  void note(NodeId n, const std::string& reason) {
    made_.whole.push_back({whole_.describe(n), reason});
  }

  // The axes that the results, or the operands, have for a factor.
  MeshParts asked(NodeId n, const ShardingRule& rule, int factor, bool by_results) const {
    const auto look = [&](ValueId v, const TensorFactors& tensor, bool is_result) {
      const ShardLayout layout = is_result ? stated_layout(v) : values_[v.index].layout;
      for (size_t d = 0; d < tensor.size(); ++d) {
        MeshParts left = layout.dims[d];
        for (const int f : tensor[d]) {
          const int64_t size = rule.factors[at_dim(f)].size;
          const MeshParts own = f == tensor[d].back() ? dividing(left, size) : taken(left, size);
          if (f == factor) return own;
          if (count_of(own) != size) break;
        }
      }
      return MeshParts();
    };
    for (size_t i = 0; by_results && i < rule.results.size(); ++i)
      if (MeshParts found = look(whole_.result(n, i), rule.results[i], true); !found.empty())
        return found;
    for (size_t i = 0; !by_results && i < rule.operands.size(); ++i) {
      const ValueId v = whole_.operands(n)[i];
      if (v.is_none()) continue;
      if (MeshParts found = look(v, rule.operands[i], false); !found.empty()) return found;
    }
    return {};
  }

  static bool has(const std::vector<TensorFactors>& tensors, int factor) {
    return std::ranges::any_of(tensors, [&](const TensorFactors& tensor) {
      return std::ranges::any_of(tensor, [&](const DimFactors& dim) {
        return std::ranges::find(dim, factor) != dim.end();
      });
    });
  }

  // Data says where elements go: what moves must be of the part that is written.
  bool is_written_elsewhere(NodeId n, const ShardingRule& rule, int factor) const {
    const int8_t updates = whole_.op(n).def().traits.updates;
    return updates != 0 && !has({rule.operands[static_cast<size_t>(updates)]}, factor);
  }

  std::vector<MeshParts> factor_axes(NodeId n, const ShardingRule& rule, std::string_view& kind,
                                     std::string& reason) const {
    std::vector<MeshParts> axes(rule.factors.size());
    const std::string_view partial = kind_of_partial(whole_.op(n), whole_.type(whole_.result(n)));
    // Results say how they are divided; where they say nothing, operands stay as they are.
    for (const bool by_results : {true, false})
      for (size_t f = 0; f < axes.size(); ++f) {
        const int factor = static_cast<int>(f);
        if (!axes[f].empty()) continue;
        const MeshParts wanted = asked(n, rule, factor, by_results);
        if (wanted.empty()) continue;
        const bool is_sum = rule.factors[f].kind == FactorKind::reduction && !partial.empty() &&
                            !has(rule.results, factor);
        if (const std::string why = obstacle(n, rule, factor, is_sum); !why.empty()) {
          reason = why;
          continue;
        }
        axes[f] = without_clashes(wanted, axes);
        if (is_sum && !axes[f].empty()) kind = partial;
      }
    return axes;
  }

  // The factor is a window's: it shares a dim with the places of the window, where padding shifts
  // elements between the parts of devices.
  static bool meets_neighbours(const ShardingRule& rule, int factor) {
    const auto is_place = [&](int f) {
      return rule.factors[at_dim(f)].kind == FactorKind::permutation;
    };
    for (const TensorFactors& tensor : rule.operands)
      for (const DimFactors& dim : tensor)
        if (std::ranges::find(dim, factor) != dim.end() && std::ranges::any_of(dim, is_place))
          return true;
    return false;
  }

  // The reason that the factor cannot be divided; else nothing.
  std::string obstacle(NodeId n, const ShardingRule& rule, int factor, bool is_sum) const {
    const Factor& one = rule.factors[at_dim(factor)];
    if ((one.kind != FactorKind::pass && !is_sum) || one.is_blocked)
      return one.kind == FactorKind::permutation
                 ? "neighbours would exchange data along a dim that is divided"
                 : "it needs all of a dim that is divided";
    // Along a factor that one side alone has, a reshape moves elements between devices.
    if (regroups_dims(whole_.opcode(n)) &&
        (!has(rule.operands, factor) || !has(rule.results, factor)))
      return "it cuts and joins dims across the parts of devices";
    if (is_sum && meets_neighbours(rule, factor))
      return "neighbours would exchange data along a dim that is divided";
    if (is_written_elsewhere(n, rule, factor))
      return "data says where it writes along a dim that is divided";
    return "";
  }

  // The axes up to the first one that divides another factor.
  static MeshParts without_clashes(const MeshParts& wanted, const std::vector<MeshParts>& axes) {
    MeshParts made;
    for (const MeshPart& part : wanted) {
      for (const MeshParts& others : axes)
        for (const MeshPart& other : others)
          if (clashes(part, other)) return made;
      made.push_back(part);
    }
    return made;
  }

  // The axes of a tensor's dims: an inner factor counts where those before it are full.
  static ShardLayout layout_by(const TensorFactors& tensor, const ShardingRule& rule,
                               const std::vector<MeshParts>& axes, bool& fits) {
    ShardLayout layout;
    for (const DimFactors& dim : tensor) {
      MeshParts& parts = layout.dims.emplace_back();
      bool is_full = true;
      for (const int f : dim) {
        const MeshParts& own = axes[at_dim(f)];
        if (!own.empty() && !is_full) fits = false;
        parts.insert(parts.end(), own.begin(), own.end());
        is_full = is_full && count_of(own) == rule.factors[at_dim(f)].size;
      }
    }
    return layout;
  }

  bool divided_node(NodeId n, const ShardingRule& rule, const std::vector<MeshParts>& axes,
                    std::string_view kind) {
    bool fits = true;
    std::vector<ShardLayout> operands, results;
    for (const TensorFactors& tensor : rule.operands)
      operands.push_back(layout_by(tensor, rule, axes, fits));
    for (const TensorFactors& tensor : rule.results)
      results.push_back(layout_by(tensor, rule, axes, fits));
    if (!fits) return false;
    std::vector<Type> types, wanted;
    std::vector<SizeEntry> entries;
    const auto add = [&](ValueId v, const ShardLayout& layout) {
      const Type local = local_type(v, layout);
      for (int d = 0; d < local.rank(); ++d)
        if (!layout.dims[at_dim(d)].empty())
          add_entries(whole_.op(n), at_dim(d), whole_.type(v).dim(d), local.dim(d), entries);
      return local;
    };
    for (size_t i = 0; i < operands.size(); ++i) {
      const ValueId v = whole_.operands(n)[i];
      types.push_back(v.is_none() ? Type() : add(v, operands[i]));
    }
    for (size_t i = 0; i < results.size(); ++i)
      wanted.push_back(add(whole_.result(n, i), results[i]));
    const std::optional<Op> op = local_op({whole_.op(n), types}, entries, wanted);
    if (!op) return false;
    std::vector<ValueId> locals;
    for (size_t i = 0; i < operands.size(); ++i) {
      const ValueId v = whole_.operands(n)[i];
      locals.push_back(v.is_none() ? v : in_layout(v, operands[i], whole_.describe(n)));
    }
    const Result<NodeId> made = made_.graph.append(*op, locals);
    HONE_CHECK(made.ok(), "a part of {} does not fit: {}", whole_.describe(n),
               made.error().to_string());
    MeshParts partial;
    for (size_t f = 0; f < axes.size(); ++f)
      if (rule.factors[f].kind == FactorKind::reduction)
        partial.insert(partial.end(), axes[f].begin(), axes[f].end());
    for (size_t i = 0; i < results.size(); ++i) {
      results[i].partial = partial;
      define(whole_.result(n, i), made_.graph.result(*made, i), std::move(results[i]), kind);
    }
    return true;
  }

  static void add_entries(Op op, size_t d, Dim whole, Dim local, std::vector<SizeEntry>& entries) {
    for (size_t a = 0; a < op.attrs().size(); ++a) {
      const auto* sizes = std::get_if<Dims>(&op.attrs()[a]);
      if (sizes == nullptr || d >= sizes->size() || (*sizes)[d] != whole) continue;
      const bool is_known = std::ranges::any_of(entries, [&](const SizeEntry& one) {
        return one.attr == a && one.entry == d && one.local == local;
      });
      if (!is_known) entries.push_back({a, d, local});
    }
  }

  // An array is divided alike wherever it flows: as the first region says.
  Status with_regions(NodeId n) {
    const std::span<const ValueId> operands = whole_.operands(n);
    const std::span<const GraphRef> regions = whole_.regions(n);
    const ValueRange results = whole_.results(n);
    std::vector<ShardLayout> outside, after;
    for (const ValueId v : operands) outside.push_back(undivided(v));
    for (const ValueId v : results) after.push_back(undivided(v));
    std::vector<std::vector<ShardLayout>> inputs, outputs;
    for (const GraphRef& region : regions) {
      for (auto* list : {&inputs, &outputs}) list->emplace_back();
      for (const Type type : region->input_types()) inputs.back().push_back(undivided(type));
      for (const Type type : region->output_types()) outputs.back().push_back(undivided(type));
    }
    for (const FlowEdge& edge : data_flow(whole_.op(n), operands.size(), results.size())) {
      const auto inner =
          std::ranges::find_if(edge, [](const FlowPlace& p) { return p.region >= 0; });
      const Graph& region = *regions[static_cast<size_t>(inner->region)];
      const Partitioner reader(region, mesh_);
      const ShardLayout layout = reader.stated_layout(
          inner->is_result ? region.outputs()[inner->index] : region.inputs()[inner->index]);
      for (const FlowPlace& place : edge) {
        const auto r = static_cast<size_t>(std::max(place.region, 0));
        ShardLayout& own = place.region < 0 ? (place.is_result ? after : outside)[place.index]
                                            : (place.is_result ? outputs : inputs)[r][place.index];
        own = layout;
        if (place.is_stacked) own.dims.insert(own.dims.begin(), MeshParts());
      }
    }
    std::vector<ValueId> locals;
    for (size_t i = 0; i < operands.size(); ++i)
      locals.push_back(in_layout(operands[i], outside[i], whole_.describe(n)));
    std::vector<GraphRef> made;
    for (size_t r = 0; r < regions.size(); ++r) {
      Partition part = HONE_TRY(Partitioner(*regions[r], mesh_, inputs[r], outputs[r]).run());
      made.push_back(std::make_shared<Graph>(std::move(part.graph)));
      made_.messages.insert(made_.messages.end(), part.messages.begin(), part.messages.end());
      made_.whole.insert(made_.whole.end(), part.whole.begin(), part.whole.end());
    }
    const NodeId node = HONE_TRY(made_.graph.append(whole_.op(n), locals, std::move(made)));
    for (size_t i = 0; i < results.size(); ++i)
      define(results[i], made_.graph.result(node, i), after[i]);
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
      const ShardLayout whole = undivided(v);
      was_divided = was_divided || values_[v.index].layout.dims != whole.dims;
      operands.push_back(in_layout(v, whole, whole_.describe(n)));
    }
    if (was_divided) note(n, reason.empty() ? "its results are whole" : reason);
    const std::span<const GraphRef> regions = whole_.regions(n);
    const NodeId made =
        HONE_TRY(made_.graph.append(whole_.op(n), operands, {regions.begin(), regions.end()}));
    for (size_t i = 0; i < whole_.results(n).size(); ++i)
      define(whole_.result(n, i), made_.graph.result(made, i), undivided(whole_.result(n, i)));
    return {};
  }

  const Graph& whole_;
  const MeshRef mesh_;
  std::vector<ShardLayout> given_ = {};   // of a region: of its inputs
  std::vector<ShardLayout> wanted_ = {};  // and outputs
  Partition made_;
  MeshProgram program_{made_.graph, *mesh_};
  std::vector<Local> values_;
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

Result<Partition> partition_graph(const Graph& graph) {
  HONE_TRY(check_nothing_is_partial(graph));
  if (talks_to_devices(graph))
    return unsupported("graph '{}' talks to devices itself", excerpt(graph.name()));
  const Graph spelled = HONE_TRY(expand_composites(graph, is_composite));
  const Propagation propagated = HONE_TRY(propagate_shardings(spelled));
  const MeshRef mesh = meshes_of(propagated.graph)[0];
  if (!mesh->devices.empty() && !std::ranges::is_sorted(mesh->devices))
    return unsupported("the devices of the mesh '{}' are in another order", excerpt(mesh->name));
  if (mesh->device_count() > kMostPartitionDevices)
    return over_limit("the mesh '{}' has {} devices; programs are made for at most {}",
                      excerpt(mesh->name), mesh->device_count(), kMostPartitionDevices);
  return Partitioner(propagated.graph, mesh).run();
}

int64_t first_element(const Mesh& mesh, const MeshParts& axes, int64_t size, int64_t device) {
  int64_t place = 0;
  for (const MeshPart& part : axes) place = place * part.size + digit_of(mesh, part, device);
  return place * (size / count_of(axes));
}

}  // namespace hone

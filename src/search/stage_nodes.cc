#include "search/stage_nodes.h"

#include <algorithm>
#include <set>

#include "base/checked_math.h"
#include "compile/mesh_division.h"
#include "ir/op_facts.h"
#include "search/pipeline_index.h"
#include "shard/mesh_program.h"

namespace hone {
namespace {

int64_t size_of(Type type, size_t dim) { return type.dim(static_cast<int>(dim)).value(); }

// The elements [begin, end) that a device has along a dim; behind them may stand padding.
struct Reach {
  int64_t begin = 0, end = 0;
};

Reach reach_of(const Mesh& mesh, const MeshParts& axes, int64_t size, int64_t place) {
  const int64_t begin = std::min(size, first_element(mesh, axes, size, place));
  return {begin, std::min(size, begin + ceil_div(size, count_of(axes)))};
}

// The value of a stage, as devices of another one get it.
class Sender {
 public:
  Sender(NodesOnDevices& made, Type type, const Mesh& mesh, const ShardLayout& layout,
         std::span<const int32_t> devices, std::span<const ValueId> parts)
      : made_(made), type_(type), mesh_(mesh), layout_(layout), devices_(devices), parts_(parts) {}

  // Receivers take turns with the senders that have the same part.
  ValueId part(const Mesh& mesh, const ShardLayout& layout, int32_t device, int64_t place) {
    receiver_ = device;
    place_ = static_cast<size_t>(place);
    wanted_.clear();
    for (size_t d = 0; d < rank(); ++d)
      wanted_.push_back(reach_of(mesh, layout.dims[d], size_of(type_, d), place));
    std::vector<Reach> chunks;
    ValueId value = joined(chunks);
    for (size_t d = 0; d < rank(); ++d)
      value = padded(value, d, ceil_div(size_of(type_, d), count_of(layout.dims[d])));
    return value;
  }

 private:
  size_t rank() const { return static_cast<size_t>(type_.rank()); }

  // Along each dim in turn the parts of senders that have something of it.
  ValueId joined(std::vector<Reach>& chunks) {
    const size_t d = chunks.size();
    if (d == rank()) return cut(chunks);
    const int64_t size = size_of(type_, d), part = ceil_div(size, count_of(layout_.dims[d]));
    std::vector<ValueId> all;
    for (int64_t begin = wanted_[d].begin / part * part; begin < wanted_[d].end; begin += part) {
      chunks.push_back({begin, std::min(size, begin + part)});
      all.push_back(joined(chunks));
      chunks.pop_back();
    }
    return made_.joined(receiver_, all, d);
  }

  // The elements that are wanted of one part, cut where it is.
  ValueId cut(const std::vector<Reach>& chunks) {
    std::vector<size_t> have;
    for (size_t place = 0; place < devices_.size(); ++place) {
      bool has = true;
      for (size_t d = 0; d < rank() && has; ++d)
        has = reach_of(mesh_, layout_.dims[d], size_of(type_, d), static_cast<int64_t>(place))
                  .begin == chunks[d].begin;
      if (has) have.push_back(place);
    }
    const size_t sender = have[place_ % have.size()];
    ValueId value = parts_[sender];
    for (size_t d = 0; d < rank(); ++d)
      value = made_.stretch(devices_[sender], value, d,
                            std::max(wanted_[d].begin, chunks[d].begin) - chunks[d].begin,
                            std::min(wanted_[d].end, chunks[d].end) - chunks[d].begin);
    return value;
  }

  ValueId padded(ValueId value, size_t dim, int64_t size) {
    const Type type = made_.graph.type(value);
    const int64_t have = size_of(type, dim);
    if (have == size) return value;
    Dims low(rank(), 0), high = low;
    high[dim] = size - have;
    const ValueId zero = made_.constant(receiver_, Tensor::zeros(Type::scalar(type.dtype())));
    return made_.append(receiver_, Op::get(Opcode::pad, {{"low", low}, {"high", high}}),
                        {{value, zero}});
  }

  NodesOnDevices& made_;
  const Type type_;
  const Mesh& mesh_;
  const ShardLayout& layout_;
  const std::span<const int32_t> devices_;
  const std::span<const ValueId> parts_;
  int32_t receiver_ = 0;
  size_t place_ = 0;
  std::vector<Reach> wanted_;
};

Error not_there(std::string_view name) {
  return unsupported("the devices of a stage have no '{}' of their own", excerpt(name));
}

}  // namespace

StageNodes::StageNodes(const MicroBatches& all, std::span<const std::optional<int32_t>> stage_of,
                       const StageSource& source, std::span<const ShardedStage> stages,
                       std::span<const std::vector<int32_t>> devices_of, StageSharder& sharder)
    : all_(all),
      merged_(all.graph),
      stage_of_(stage_of),
      source_(source),
      sharded_(stages),
      devices_of_(devices_of),
      sharder_(sharder),
      stages_(stages.size()) {
  made_.graph.set_name(merged_.name());
  for (uint32_t i = 0; i < merged_.value_count(); ++i)
    values_.emplace(merged_.name(ValueId{i}), ValueId{i});
}

// ---- The program of a stage ---------------------------------------------------------------------

// Its own nodes, and those that nobody has and that it needs.
std::vector<NodeId> StageNodes::nodes_of(int32_t number) const {
  std::vector<bool> is_inside(merged_.node_count(), false);
  for (size_t i = merged_.node_count(); i-- > 0;) {
    const NodeId n = {static_cast<uint32_t>(i)};
    if (stage_of_[i] == number) is_inside[i] = true;
    if (!is_inside[i]) continue;
    for (const ValueId v : merged_.operands(n)) {
      if (v.is_none()) continue;
      const NodeId maker = merged_.producer(v);
      if (!is_leaf(merged_.opcode(maker)) && !stage_of_[maker.index]) is_inside[maker.index] = true;
    }
  }
  std::vector<NodeId> nodes;
  for (const NodeId n : merged_.nodes())
    if (is_inside[n.index]) nodes.push_back(n);
  return nodes;
}

// Values that other stages need, or that the graph gives out.
std::vector<ValueId> StageNodes::outputs_of(int32_t number) const {
  std::set<uint32_t> needed;
  for (const NodeId n : merged_.nodes())
    if (stage_of_[n.index] && stage_of_[n.index] != number)
      for (const ValueId v : merged_.operands(n))
        if (!v.is_none()) needed.insert(v.index);
  for (const ValueId v : merged_.outputs()) needed.insert(v.index);
  std::vector<ValueId> outputs;
  for (const uint32_t v : needed)
    if (stage_of_[merged_.producer(ValueId{v}).index] == number) outputs.push_back(ValueId{v});
  return outputs;
}

StageNodes::Said StageNodes::said_by(int32_t number) const {
  const Graph& graph = sharded_[index_at(number)].graph;
  Said said;
  if (graph.shardings() == nullptr) return said;
  for (const auto& [value, sharding] : graph.shardings()->values)
    said.values.emplace(graph.name(value), sharding);
  for (const auto& [output, sharding] : graph.shardings()->outputs)
    said.outputs.emplace(graph.name(graph.outputs()[output]), sharding);
  return said;
}

// The dim along which the value has the rows of all micro-batches, which no device divides.
int StageNodes::whole_dim(ValueId v) const {
  const NodeId n = merged_.producer(v);
  const MicroBatches::Origin& origin = all_.origins[n.index];
  const ValueId own = source_.graph.result(origin.node, merged_.result_index(v));
  const Type part = source_.graph.type(own), whole = merged_.type(v);
  for (int d = 0; origin.batch == MicroBatches::kShared && d < whole.rank(); ++d)
    if (part.dim(d) != whole.dim(d)) return d;
  return -1;
}

// Values are divided as those of the micro-batch that they come from.
Graph StageNodes::divided(Graph graph, int32_t number, std::span<const ValueId> outputs) const {
  const Said said = said_by(number);
  const auto sharding = [&](const auto& known, ValueId merged) -> std::optional<Sharding> {
    const NodeId origin = all_.origins[merged_.producer(merged).index].node;
    const ValueId own = source_.graph.result(origin, merged_.result_index(merged));
    const auto found = known.find(source_.graph.name(own));
    if (found == known.end()) return std::nullopt;
    Sharding made = found->second;
    if (const int dim = whole_dim(merged); dim >= 0) {
      made.dims[static_cast<size_t>(dim)].axes.clear();
      made.partial.clear();
    }
    return made;
  };
  auto all = std::make_shared<Shardings>();
  for (const NodeId n : graph.nodes())
    for (const ValueId v : graph.results(n)) {
      const auto found = values_.find(graph.name(v));
      if (is_constant(graph.opcode(n)) || found == values_.end()) continue;
      if (std::optional<Sharding> one = sharding(said.values, found->second))
        all->add(v, *std::move(one));
    }
  for (uint32_t i = 0; i < outputs.size(); ++i)
    if (std::optional<Sharding> one = sharding(said.outputs, outputs[i]))
      all->set_output(i, *std::move(one));
  graph.set_shardings(std::move(all));
  return graph;
}

Result<StageNodes::Stage> StageNodes::made_stage(int32_t number) {
  Stage made = {.outputs = outputs_of(number)};
  const MeshRef& mesh = sharded_[index_at(number)].mesh;
  const Graph own = HONE_TRY(extract_subgraph(merged_, nodes_of(number), made.outputs));
  made.subject =
      HONE_TRY(shard_subject(own, mesh->device_count() > 1 ? kLeastShardedConstant : INT64_MAX));
  made.subject.graph = divided(std::move(made.subject.graph), number, made.outputs);
  made.part = HONE_TRY(partition_exactly(made.subject.graph, mesh,
                                         sharder_.steps(mesh, devices_of_[index_at(number)])));
  return made;
}

Result<StageNodes::Stage*> StageNodes::stage(int32_t number) {
  std::unique_ptr<Stage>& made = stages_[index_at(number)];
  if (made == nullptr) {
    made = std::make_unique<Stage>(HONE_TRY(made_stage(number)));
    // The program stays where it is from here on.
    const Graph& program = made->part.graph;
    made->nodes = std::make_unique<DeviceNodes>(program, devices_of_[index_at(number)], made_);
    for (uint32_t i = 0; i < program.value_count(); ++i)
      if (!program.name(ValueId{i}).empty())
        made->local.emplace(program.name(ValueId{i}), ValueId{i});
  }
  return made.get();
}

// ---- Nodes of devices ---------------------------------------------------------------------------

Status StageNodes::add(int32_t number, std::span<const NodeId> nodes) {
  Stage& own = *HONE_TRY(stage(number));
  for (const NodeId n : nodes)
    for (const ValueId v : merged_.results(n)) {
      const auto local = own.local.find(merged_.name(v));
      if (local == own.local.end()) continue;  // nobody needs it
      HONE_TRY(add_value(number, local->second));
      if (std::ranges::find(own.outputs, v) != own.outputs.end()) HONE_TRY(output(number, v));
    }
  end_step();
  return {};
}

void StageNodes::end_step() {
  std::vector<NodeId>& step = steps_.emplace_back();
  for (; begin_ < made_.graph.node_count(); ++begin_)
    step.push_back(NodeId{static_cast<uint32_t>(begin_)});
}

Status StageNodes::add_value(int32_t number, ValueId local) {
  Stage& own = *HONE_TRY(stage(number));
  if (own.nodes->has(local)) return {};
  const Graph& program = own.part.graph;
  const NodeId n = program.producer(local);
  if (is_parameter(program.opcode(n)))
    return add_input(number, static_cast<size_t>(std::ranges::find(program.inputs(), local) -
                                                 program.inputs().begin()));
  for (const ValueId v : program.operands(n))
    if (!v.is_none()) HONE_TRY(add_value(number, v));
  return own.nodes->add(n);
}

Status StageNodes::add_input(int32_t number, size_t input) {
  Stage& own = *HONE_TRY(stage(number));
  const Graph& subject = own.subject.graph;
  const ValueId v = subject.inputs()[input], local = own.part.graph.inputs()[input];
  const std::string name(subject.name(v));
  const MeshPort port = port_of({name, subject.type(v)}, own.part.inputs[input], *own.part.mesh);
  const std::span<const int32_t> devices = own.nodes->devices();
  std::vector<ValueId> made;
  if (input >= own.subject.own_inputs) {
    const Tensor& whole = own.subject.constants[input - own.subject.own_inputs];
    for (size_t place = 0; place < devices.size(); ++place)
      made.push_back(
          made_.constant(devices[place], part_of(whole, port, static_cast<int64_t>(place))));
    own.nodes->define(local, std::move(made));
    return {};
  }
  const auto merged = values_.find(name);
  if (merged == values_.end()) return not_there(name);
  if (stage_of_[merged_.producer(merged->second).index])
    return receive(number, input, merged->second);
  const auto whole = static_cast<size_t>(std::ranges::find(merged_.inputs(), merged->second) -
                                         merged_.inputs().begin());
  for (size_t place = 0; place < devices.size(); ++place) {
    made.push_back(made_.parameter(devices[place], own.part.graph.type(local),
                                   fmt::format("{}@{}.{}", name, number, place)));
    inputs_.push_back({whole, port, static_cast<int64_t>(place)});
  }
  own.nodes->define(local, std::move(made));
  return {};
}

// A value of the merged graph, as the devices of its stage give it out.
Result<std::span<const ValueId>> StageNodes::output(int32_t number, ValueId v) {
  Stage& own = *HONE_TRY(stage(number));
  const auto found = std::ranges::find(own.outputs, v);
  if (found == own.outputs.end()) return not_there(merged_.name(v));
  const ValueId local = own.part.graph.outputs()[static_cast<size_t>(found - own.outputs.begin())];
  HONE_TRY(add_value(number, local));
  return own.nodes->of(local);
}

Status StageNodes::receive(int32_t number, size_t input, ValueId v) {
  const int32_t from = *stage_of_[merged_.producer(v).index];
  const std::span<const ValueId> parts = HONE_TRY(output(from, v));
  const Stage& maker = *HONE_TRY(stage(from));
  Stage& own = *HONE_TRY(stage(number));
  const auto place_of = std::ranges::find(maker.outputs, v) - maker.outputs.begin();
  Sender sender(made_, merged_.type(v), *maker.part.mesh,
                maker.part.outputs[static_cast<size_t>(place_of)], maker.nodes->devices(), parts);
  std::vector<ValueId> made;
  for (size_t place = 0; place < own.nodes->devices().size(); ++place)
    made.push_back(sender.part(*own.part.mesh, own.part.inputs[input], own.nodes->devices()[place],
                               static_cast<int64_t>(place)));
  own.nodes->define(own.part.graph.inputs()[input], std::move(made));
  return {};
}

// A part of a next state takes the place of the part of the state.
void StageNodes::add_donations(std::span<const PipelinePart> outputs) {
  Graph& graph = made_.graph;
  const auto device = [&](ValueId v) { return made_.device_of[graph.producer(v).index]; };
  std::map<std::pair<size_t, int32_t>, uint32_t> next;  // by whole output and device
  for (uint32_t i = 0; i < outputs.size(); ++i)
    next.emplace(std::pair(outputs[i].whole, device(graph.outputs()[i])), i);
  std::map<size_t, size_t> output_of;  // of the whole graph, by input
  for (const Donation& one : merged_.donations()) output_of.emplace(one.input, one.output);
  for (uint32_t i = 0; i < inputs_.size(); ++i) {
    const auto whole = output_of.find(inputs_[i].whole);
    if (whole == output_of.end()) continue;
    const ValueId v = graph.inputs()[i];
    const auto found = next.find(std::pair(whole->second, device(v)));
    if (found != next.end() && graph.type(graph.outputs()[found->second]) == graph.type(v))
      graph.add_donation(i, found->second);
  }
}

// ---- All of it ----------------------------------------------------------------------------------

Result<std::vector<int32_t>> StageNodes::finish(Graph& graph, std::vector<PipelinePart>& inputs,
                                                std::vector<PipelinePart>& outputs) {
  std::vector<ValueId> given;
  for (size_t i = 0; i < merged_.outputs().size(); ++i) {
    const ValueId v = merged_.outputs()[i];
    const std::optional<int32_t> maker = stage_of_[merged_.producer(v).index];
    const std::string name(merged_.name(v));
    if (!maker) {  // an input or a constant, which the first device hands out
      const MeshPort port =
          port_of({name, merged_.type(v)}, undivided(merged_.type(v)), *stage_mesh(1));
      const int32_t device = devices_of_[0][0];
      if (is_constant(merged_.opcode(merged_.producer(v)))) {
        given.push_back(made_.constant(device, merged_.constant(merged_.producer(v))));
      } else {
        given.push_back(
            made_.parameter(device, merged_.type(v), fmt::format("{}@output{}", name, i)));
        inputs_.push_back(
            {static_cast<size_t>(std::ranges::find(merged_.inputs(), v) - merged_.inputs().begin()),
             port, 0});
      }
      outputs.push_back({i, port, 0});
      continue;
    }
    const std::span<const ValueId> parts = HONE_TRY(output(*maker, v));
    const Stage& own = *HONE_TRY(stage(*maker));
    const auto at = std::ranges::find(own.outputs, v) - own.outputs.begin();
    const MeshPort port =
        port_of({name, merged_.type(v)}, own.part.outputs[static_cast<size_t>(at)], *own.part.mesh);
    for (size_t place = 0; place < parts.size(); ++place) {
      given.push_back(parts[place]);
      outputs.push_back({i, port, static_cast<int64_t>(place)});
    }
  }
  end_step();
  made_.graph.set_outputs(std::move(given));
  add_donations(outputs);
  HONE_TRY(verify(made_.graph));
  graph = std::move(made_.graph);
  inputs = std::move(inputs_);
  return std::move(made_.device_of);
}

}  // namespace hone

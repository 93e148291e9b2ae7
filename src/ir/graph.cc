#include "ir/graph.h"

#include <algorithm>

#include "base/checked_math.h"

namespace hone {

Result<NodeId> Graph::append(Op op, std::span<const ValueId> operands,
                             std::vector<GraphRef> regions) {
  Opcode code = op.opcode();
  if (code == Opcode::parameter || code == Opcode::constant)
    return bad_input("{} cannot be appended as an op: it has its own way into a graph", op.name());
  // An absent operand at the end is as if it were not there; one spelling keeps equal graphs equal.
  if (!operands.empty() && operands.back().is_none()) {
    const size_t least = static_cast<size_t>(operand_arity(op.def()).min);
    while (operands.size() > least && operands.back().is_none())
      operands = operands.first(operands.size() - 1);
  }
  constexpr size_t kInline = 8;  // most ops have few operands; avoids a heap allocation
  Type few[kInline];
  std::vector<Type> many;
  if (operands.size() > kInline) many.resize(operands.size());
  std::span<Type> types(operands.size() > kInline ? many.data() : few, operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].is_none()) continue;
    if (operands[i].index >= values_.size())
      return bad_input("{}: operand {} refers to value {}, but there are {}", op.name(), i,
                       operands[i].index, values_.size());
    types[i] = type(operands[i]);
  }
  std::vector<const Graph*> region_pointers;
  for (const GraphRef& region : regions) {
    if (region == nullptr) return bad_input("{}: a region is missing", op.name());
    region_pointers.push_back(region.get());
  }
  std::vector<Type> results = HONE_TRY(infer({op, types, region_pointers}));
  if (values_.size() + results.size() >= UINT32_MAX ||
      operands_.size() + operands.size() >= UINT32_MAX)
    return over_limit("graph '{}' has more than 2^32 values", name_);
  uint32_t payload = static_cast<uint32_t>(regions_.size());
  uint32_t region_count = static_cast<uint32_t>(regions.size());
  std::move(regions.begin(), regions.end(), std::back_inserter(regions_));
  return append_unchecked(op.canonical(), operands, results, payload, region_count);
}

NodeId Graph::append_unchecked(Op op, std::span<const ValueId> operands,
                               std::span<const Type> results, uint32_t payload,
                               uint32_t region_count) {
  NodeId id{static_cast<uint32_t>(nodes_.size())};
  nodes_.push_back({op, static_cast<uint32_t>(operands_.size()),
                    static_cast<uint32_t>(operands.size()), static_cast<uint32_t>(values_.size()),
                    static_cast<uint32_t>(results.size()), payload, region_count});
  operands_.insert(operands_.end(), operands.begin(), operands.end());
  for (Type type : results) values_.push_back({type, id.index, 0});
  return id;
}

namespace {
Op typed_leaf(Opcode opcode, Type type) {
  return Op::get(opcode,
                 {{"dtype", type.dtype()}, {"dims", Dims(type.dims().begin(), type.dims().end())}});
}
}  // namespace

ValueId Graph::add_parameter(Type type, std::string_view name) {
  NodeId n = append_unchecked(typed_leaf(Opcode::parameter, type), {}, {&type, 1}, 0, 0);
  ValueId v = result(n);
  inputs_.push_back(v);
  set_name(v, name);
  return v;
}

ValueId Graph::add_constant(Tensor value, std::string_view name) {
  Type type = value.type();
  uint32_t payload = static_cast<uint32_t>(constants_.size());
  constants_.push_back(std::move(value));
  NodeId n = append_unchecked(typed_leaf(Opcode::constant, type), {}, {&type, 1}, payload, 0);
  set_name(result(n), name);
  return result(n);
}

void Graph::set_outputs(std::vector<ValueId> outputs) {
  for (ValueId v : outputs)
    HONE_CHECK(v.index < values_.size(), "output {} of {} values", v.index, values_.size());
  outputs_ = std::move(outputs);
  // Most callers add no more nodes once they have set the outputs.
  nodes_.shrink_to_fit();
  values_.shrink_to_fit();
  operands_.shrink_to_fit();
  names_.shrink_to_fit();
}

void Graph::add_donation(uint32_t input, uint32_t output) {
  const auto behind = std::ranges::upper_bound(donations_, input, {}, &Donation::input);
  donations_.insert(behind, {input, output});
}

void Graph::set_shardings(std::shared_ptr<const Shardings> shardings) {
  shardings_ = std::move(shardings);
}

// names_ holds each name behind its length in two bytes.
void Graph::set_name(ValueId value, std::string_view name) {
  if (name.empty()) {
    values_[value.index].name = 0;
    return;
  }
  name = name.substr(0, UINT16_MAX);
  values_[value.index].name = static_cast<uint32_t>(names_.size());
  names_.push_back(static_cast<char>(name.size() & 0xff));
  names_.push_back(static_cast<char>(name.size() >> 8));
  names_.append(name);
}

std::string_view Graph::name(ValueId v) const {
  uint32_t at = values_[v.index].name;
  if (at == 0) return {};
  size_t size = static_cast<unsigned char>(names_[at]) |
                static_cast<size_t>(static_cast<unsigned char>(names_[at + 1])) << 8;
  return std::string_view(names_).substr(at + 2, size);
}

std::string Graph::label(ValueId v) const {
  if (v.is_none()) return "_";
  std::string_view known = name(v);
  return known.empty() ? fmt::format("%{}", v.index) : fmt::format("%{}", known);
}

std::string Graph::describe(NodeId n) const {
  if (results(n).size() == 0) return fmt::format("node {} ({})", n.index, op(n).name());
  return fmt::format("node '{}' ({})", label(result(n)), op(n).name());
}

void Graph::reserve(size_t nodes) {
  nodes_.reserve(nodes);
  values_.reserve(nodes);
  operands_.reserve(2 * nodes);
}

std::span<const GraphRef> Graph::regions(NodeId n) const {
  const Node& node = nodes_[n.index];
  if (node.region_count == 0) return {};
  return {regions_.data() + node.payload, node.region_count};
}

const Tensor& Graph::constant(NodeId n) const {
  HONE_CHECK(opcode(n) == Opcode::constant, "{} is no constant", describe(n));
  return constants_[nodes_[n.index].payload];
}

std::vector<Type> Graph::operand_types(NodeId n) const {
  std::vector<Type> types;
  types.reserve(operands(n).size());
  for (ValueId v : operands(n)) types.push_back(v.is_none() ? Type() : type(v));
  return types;
}

std::vector<Type> Graph::result_types(NodeId n) const {
  std::vector<Type> types;
  for (ValueId v : results(n)) types.push_back(type(v));
  return types;
}

std::vector<Type> Graph::input_types() const {
  std::vector<Type> types;
  for (ValueId v : inputs_) types.push_back(type(v));
  return types;
}

std::vector<Type> Graph::output_types() const {
  std::vector<Type> types;
  for (ValueId v : outputs_) types.push_back(type(v));
  return types;
}

bool Graph::is_static() const {
  return std::all_of(values_.begin(), values_.end(),
                     [](const ValueInfo& v) { return v.type.is_static(); }) &&
         std::none_of(nodes_.begin(), nodes_.end(),
                      [](const Node& n) { return n.op.has_symbols(); }) &&
         std::all_of(regions_.begin(), regions_.end(),
                     [](const GraphRef& region) { return region->is_static(); });
}

std::vector<Symbol> Graph::symbols() const {
  std::vector<Symbol> found;
  auto add = [&](Symbol s) {
    if (std::find(found.begin(), found.end(), s) == found.end()) found.push_back(s);
  };
  auto add_dims = [&](std::span<const Dim> dims) {
    for (Dim d : dims)
      if (!d.is_static()) std::ranges::for_each(d.symbols(), add);
  };
  for (const ValueInfo& value : values_)
    if (!value.type.is_static()) add_dims(value.type.dims());
  for (const Node& node : nodes_) {
    if (!node.op.has_symbols()) continue;
    for (const AttrValue& attr : node.op.attrs())
      if (const Dims* dims = std::get_if<Dims>(&attr)) add_dims(*dims);
  }
  for (const GraphRef& region : regions_) std::ranges::for_each(region->symbols(), add);
  return found;
}

size_t Graph::memory_bytes() const {
  auto size = [](const auto& v) { return v.capacity() * sizeof(v[0]); };
  return size(nodes_) + size(values_) + size(operands_) + size(names_) + size(constants_) +
         size(regions_) + size(inputs_) + size(outputs_) + size(donations_);
}

}  // namespace hone

#include "front/hlo/write/emit.h"

#include <algorithm>

#include "base/text.h"
#include "front/hlo/importer.h"
#include "front/hlo/write/literal_text.h"

namespace hone::hlo {

// ---- Attributes ---------------------------------------------------------------------------------

Attribute number_of(int64_t number) {
  return {.kind = Attribute::Kind::integer, .integer = number};
}

Attribute list_of(std::span<const int64_t> numbers) {
  Attribute made = {.kind = Attribute::Kind::list};
  for (const int64_t number : numbers) made.items.push_back(number_of(number));
  return made;
}

Attribute pairs_of(std::span<const int64_t> low, std::span<const int64_t> high) {
  Attribute made = {.kind = Attribute::Kind::list};
  for (size_t i = 0; i < low.size(); ++i) made.items.push_back(list_of(Ints{low[i], high[i]}));
  return made;
}

Attribute rows_of(std::span<const int64_t> numbers, int64_t each) {
  Attribute made = {.kind = Attribute::Kind::list};
  const auto length = static_cast<size_t>(each);
  for (size_t i = 0; i + length <= numbers.size(); i += length)
    made.items.push_back(list_of(numbers.subspan(i, length)));
  return made;
}

Attribute word_of(std::string_view word) { return {.kind = Attribute::Kind::word, .text = word}; }

Attribute record_of(std::initializer_list<std::pair<std::string_view, Attribute>> fields) {
  Attribute made = {.kind = Attribute::Kind::record};
  for (const auto& [key, value] : fields) {
    made.keys.push_back(key);
    made.items.push_back(value);
  }
  return made;
}

// ---- The program that grows ---------------------------------------------------------------------

Ids GraphToProgram::ops(std::string_view name, Ids operands, std::span<const Type> results,
                        AttributeList attributes, std::vector<Region> regions) {
  Instruction made;
  made.name = name;
  made.operands = std::move(operands);
  made.attributes = std::move(attributes);
  made.regions = std::move(regions);
  made.first_result = function_.values;
  Ids ids;
  for (const Type type : results) {
    made.results.push_back({.kind = ValueType::Kind::tensor, .type = type});
    ids.push_back(add_value());
  }
  if (function_.values >= kMostValues)
    throw Refusal{over_limit("the program has more than {} values", kMostValues)};
  region_->instructions.push_back(std::move(made));
  return ids;
}

uint32_t GraphToProgram::op(std::string_view name, Ids operands, Type result,
                            AttributeList attributes, std::vector<Region> regions) {
  return ops(name, std::move(operands), {&result, 1}, std::move(attributes), std::move(regions))[0];
}

// One number for all elements is written once.
uint32_t GraphToProgram::constant(const Tensor& tensor) {
  const Type type = tensor.type();
  const std::optional<Tensor> number = one_number(tensor);
  const Tensor& written = number ? *number : tensor;
  Attribute value = {.kind = Attribute::Kind::literal};
  value.text = program_.made.emplace_back(literal_text(written, language == Language::hlo));
  value.type = {.kind = ValueType::Kind::tensor, .type = written.type()};
  const uint32_t made = op("stablehlo.constant", {}, written.type(), {{"value", std::move(value)}});
  if (!number || type.rank() == 0) return made;
  return op("stablehlo.broadcast_in_dim", {made}, type, {{"broadcast_dimensions", list_of({})}});
}

void GraphToProgram::need_devices(int64_t count) {
  if (count > kMostDevices)
    throw Refusal{
        over_limit("{} devices are more than {}, the most of a program", count, kMostDevices)};
  int64_t& devices = program_.modules.back().grid.partitions;
  devices = std::max(devices, count);
}

Region GraphToProgram::region(std::span<const Type> parameters, const Make& make) {
  Region made;
  made.first_parameter = function_.values;
  Ids ids;
  for (const Type type : parameters) {
    made.parameters.push_back({.kind = ValueType::Kind::tensor, .type = type});
    made.names.emplace_back();
    ids.push_back(add_value());
  }
  Region* const around = std::exchange(region_, &made);
  made.results = make(ids);
  region_ = around;
  return made;
}

Ids GraphToProgram::inlined(const Graph& graph, std::span<const uint32_t> arguments) {
  std::vector<uint32_t> values(graph.value_count(), UINT32_MAX);
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const ValueId v = graph.inputs()[i];
    values[v.index] = sharded(graph, v, arguments[i], false);
  }
  const std::vector<bool> live = live_nodes(graph);
  for (const NodeId n : graph.nodes()) {
    if (!live[n.index] || graph.opcode(n) == Opcode::parameter) continue;
    Ids made;
    try {
      made = node(graph, n, values);
    } catch (Refusal& refusal) {
      throw Refusal{std::move(refusal.error).within(graph.describe(n))};
    }
    for (size_t i = 0; i < made.size(); ++i) {
      const ValueId v = graph.result(n, i);
      values[v.index] = sharded(graph, v, made[i], made.size() == 1);
    }
  }
  Ids outputs;
  for (const ValueId v : graph.outputs()) outputs.push_back(values[v.index]);
  return outputs;
}

Ids GraphToProgram::node(const Graph& graph, NodeId n, std::span<const uint32_t> values) {
  const Opcode opcode = graph.opcode(n);
  if (opcode == Opcode::constant) return {constant(graph.constant(n))};
  Ids operands;
  for (const ValueId v : graph.operands(n))
    if (!v.is_none()) operands.push_back(values[v.index]);
  Emit emit(*this, graph, n, operands);
  if (const WriteFunction write = export_of(opcode)) return write(emit);
  if (const OpRow* row = row_of(opcode)) return emit.same(row->name);
  if (!is_composite(opcode)) emit.unsupported("StableHLO and HLO have no form for it");
  Result<Graph> spelled_out = expansion(graph.op(n), graph.operand_types(n));
  if (!spelled_out.ok()) throw Refusal{std::move(spelled_out).error()};
  const bool is_static = spelled_out->is_static();
  if (language == Language::stablehlo && is_static && !is_spelling_)
    return composite(graph, n, *spelled_out, std::move(operands));
  return inlined(*spelled_out, operands);
}

// An op of hone that StableHLO lacks keeps its name: a function says what it is in ops of the
// language. Equal ones share it.
Ids GraphToProgram::composite(const Graph& graph, NodeId n, const Graph& spelled_out,
                              Ids operands) {
  const Op op = graph.op(n);
  const auto [found, is_new] =
      composites_.try_emplace({op, graph.operand_types(n)}, std::string_view());
  if (is_new) {
    Function& made = program_.modules.back().functions.emplace_back();
    made.name = kept(fmt::format("hone.{}_{}", op.name(), composites_.size()));
    made.is_private = true;
    GraphToProgram writer(program_, made, language);
    writer.is_spelling_ = true;
    Ids arguments;
    for (const ValueId v : spelled_out.inputs()) {
      made.body.parameters.push_back(
          {.kind = ValueType::Kind::tensor, .type = spelled_out.type(v)});
      made.body.names.emplace_back();
      arguments.push_back(writer.add_value());
    }
    made.body.results = writer.inlined(spelled_out, arguments);
    for (const ValueId v : spelled_out.outputs())
      made.results.push_back({.kind = ValueType::Kind::tensor, .type = spelled_out.type(v)});
    found->second = made.name;
  }
  const std::string attributes = op.attrs_to_string();
  const std::string text =
      fmt::format("{}{}{}", op.name(), attributes.empty() ? "" : " ", attributes);
  return ops("stablehlo.composite", std::move(operands), graph.result_types(n),
             {{"composite_attributes", record_of({{"op", word_of(kept(text))}})},
              {"decomposition", word_of(found->second)},
              {"name", word_of(kept(fmt::format("hone.{}", op.name())))}});
}

// ---- One node -----------------------------------------------------------------------------------

uint32_t Emit::converted(uint32_t value, Type type, DType dtype) {
  if (type.dtype() == dtype) return value;
  return op("stablehlo.convert", {value}, type.with_dtype(dtype));
}

uint32_t Emit::scalar(DType dtype, std::variant<int64_t, double> number) {
  const Type type = Type::scalar(dtype);
  if (const double* real = std::get_if<double>(&number))
    return writer_.constant(Tensor::from_reals(type, std::vector<double>{*real}));
  return writer_.constant(Tensor::from_integers(type, Ints{std::get<int64_t>(number)}));
}

Ids Emit::spelled(const Spelling& make) {
  Builder b("spelled");
  std::vector<Value> operands;
  for (const ValueId v : graph_.operands(node_))
    operands.push_back(v.is_none() ? Value() : b.parameter("", graph_.type(v)));
  const std::vector<Value> results = make(b, operands);
  Result<Graph> graph = b.finish(results);
  if (!graph.ok()) throw Refusal{std::move(graph).error()};
  return writer_.inlined(*graph, operands_);
}

// ---- The table ----------------------------------------------------------------------------------

#define HONE_HLO_EXPORT(opcode, function) Ids function(Emit& e);
#include "front/hlo/write/exports.def"

WriteFunction export_of(Opcode opcode) {
  switch (opcode) {
#define HONE_HLO_EXPORT(opcode, function) \
  case Opcode::opcode: return function;
#include "front/hlo/write/exports.def"
    default: return nullptr;
  }
}

// ---- Bodies -------------------------------------------------------------------------------------

Region combining_body(GraphToProgram& writer, std::string_view op, DType dtype) {
  const Type scalar = Type::scalar(dtype);
  return writer.region(std::vector<Type>{scalar, scalar}, [&](const Ids& in) -> Ids {
    return {writer.op(op, {in[0], in[1]}, scalar)};
  });
}

std::string_view combiner_of(std::string_view kind) { return row_of(combine_of(kind))->name; }

}  // namespace hone::hlo

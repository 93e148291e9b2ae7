#include "ir/contents.h"

#include <algorithm>
#include <numeric>

#include "ir/application.h"
#include "ir/op_def.h"
#include "ir/reference/evaluate.h"
#include "ir/reference/lanes.h"

namespace hone {
namespace {

// For one node; what takes more is left to the program.
constexpr double kMaxFlops = 1e8;
constexpr int64_t kMaxBytes = int64_t{1} << 28;
constexpr size_t kMaxExpansionNodes = 1024;

// The elements of the result are elements of operands, chosen by types, attributes and indices.
bool moves_elements(Op op) {
  const OpClass op_class = class_of(op.opcode());
  if (op.opcode() == Opcode::scatter) return op.word("combine") == "replace";
  return op_class == OpClass::movement || op_class == OpClass::indexed;
}

// True if operand i of such an op holds elements; else it holds indices.
bool is_data_operand(Opcode opcode, size_t i) {
  if (const int8_t updates = op_def(opcode).traits.updates)
    return i == 0 || i == static_cast<size_t>(updates);
  return class_of(opcode) != OpClass::indexed || i == 0;
}

// True if something is known of the result even if nothing is of an operand.
bool tolerates_unknown(Op op, size_t i) {
  switch (op.opcode()) {
    case Opcode::concat:
    case Opcode::select: return true;
    case Opcode::pad: return i == 1;
    case Opcode::dynamic_update:
    case Opcode::scatter: return moves_elements(op) && is_data_operand(op.opcode(), i);
    case Opcode::and_:
    case Opcode::or_: return true;
    default: return false;
  }
}

bool fits(Type type, int64_t most) { return type.is_static() && type.static_elements() <= most; }

Element element_at(const Tensor& tensor, int64_t i) {
  DType dtype = tensor.dtype();
  if (is_real(dtype)) {
    double number = tensor.real_at(i);
    int64_t integer = saturating_cast<int64_t>(number);
    return static_cast<double>(integer) == number ? held_by(dtype, integer) : std::nullopt;
  }
  int64_t image = tensor.integer_at(i);
  return dtype == DType::u64 && image < 0 ? std::nullopt : held_by(dtype, image);
}

// The op alone, run on the given operands.
std::optional<std::vector<Tensor>> run(Op op, std::span<const std::optional<Tensor>> operands) {
  Graph graph("contents");
  std::vector<ValueId> ids;
  std::vector<Tensor> inputs;
  for (const std::optional<Tensor>& operand : operands) {
    ids.push_back(operand ? graph.add_parameter(operand->type()) : ValueId());
    if (operand) inputs.push_back(*operand);
  }
  Result<NodeId> node = graph.append(op, ids);
  if (!node.ok()) return std::nullopt;
  std::vector<Type> types = graph.operand_types(*node), results = graph.result_types(*node);
  for (Type type : results)
    if (!fits(type, Contents::kMaxConstantElements)) return std::nullopt;
  if (flops({op, types}, results) > kMaxFlops) return std::nullopt;
  std::vector<ValueId> outputs;
  for (ValueId v : graph.results(*node)) outputs.push_back(v);
  graph.set_outputs(std::move(outputs));
  Result<std::vector<Tensor>> values =
      evaluate(graph, inputs, {.numerics = Numerics::rounded, .max_bytes = kMaxBytes});
  if (!values.ok()) return std::nullopt;
  return std::move(*values);
}

// `type` filled with the one element of `scalar`.
std::optional<Tensor> filled(const Tensor& scalar, Type type) {
  if (!fits(type, Contents::kMaxConstantElements)) return std::nullopt;
  Op op = Op::get(Opcode::broadcast,
                  {{"dims", Dims(type.dims().begin(), type.dims().end())}, {"map", Ints()}});
  std::optional<Tensor> operand = scalar.viewed_as(Type::scalar(scalar.dtype()));
  std::optional<std::vector<Tensor>> values = run(op, {&operand, 1});
  return values ? std::optional<Tensor>((*values)[0]) : std::nullopt;
}

}  // namespace

// ---- Questions ----------------------------------------------------------------------------------

std::optional<Dims> Contents::of(ValueId v) {
  Type type = graph_.type(v);
  if (is_real(type.dtype()) || !fits(type, kMaxElements)) return std::nullopt;
  std::optional<Elements> elements = elements_of(known(v), type);
  if (!elements) return std::nullopt;
  Dims dims;
  for (const Element& element : *elements) {
    if (!element) return std::nullopt;
    dims.push_back(*element);
  }
  return dims;
}

std::optional<Tensor> Contents::constant(ValueId v) {
  const Known& found = known(v);
  if (!found.is_pure || !found.value) return std::nullopt;
  return found.is_uniform ? filled(found.value, graph_.type(v)) : found.value;
}

Elements Contents::known_elements(ValueId v) {
  const Known& found = known(v);
  if (found.is_unknown()) return {};
  return elements_of(found, graph_.type(v)).value_or(Elements());
}

void Contents::assume(ValueId v, Elements elements) {
  HONE_CHECK(graph_.type(v).elements() == static_cast<int64_t>(elements.size()),
             "{} elements for {}", elements.size(), graph_.type(v).to_string());
  // Answers that followed from the lack of this knowledge are asked again. Other assumptions stay.
  if (known_.contains(v.index)) {
    remembered_ = 0;
    std::erase_if(known_, [](const auto& entry) { return !entry.second.is_assumed; });
  }
  Known known = {.elements = std::move(elements)};
  known = simplified(std::move(known), graph_.type(v));
  known.is_assumed = true;
  known_.insert_or_assign(v.index, std::move(known));
}

// ---- Walking ------------------------------------------------------------------------------------

bool Contents::is_opaque(NodeId n) const {
  Op op = graph_.op(n);
  if (op.opcode() == Opcode::parameter || !graph_.regions(n).empty()) return true;
  return op.def().traits.has_effect || class_of(op.opcode()) == OpClass::collective;
}

bool Contents::is_known(NodeId n) const {
  for (ValueId v : graph_.results(n))
    if (!known_.contains(v.index)) return false;
  return true;
}

// The operands that have to be looked at before the node can be; one by one, as the first that is
// unknown often settles it.
std::vector<ValueId> Contents::missing_operands(NodeId n) const {
  constexpr size_t kMany = 16;
  std::vector<ValueId> missing;
  if (graph_.opcode(n) == Opcode::constant || is_opaque(n)) return missing;
  Op op = graph_.op(n);
  const bool may_be_uniform = is_elementwise(op.opcode()) || moves_elements(op);
  if (!may_be_uniform && !fits(graph_.type(graph_.result(n)), kMaxConstantElements) &&
      op.opcode() != Opcode::reduce) {
    return missing;
  }
  std::span<const ValueId> operands = graph_.operands(n);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].is_none()) continue;
    const bool is_needed = !tolerates_unknown(op, i);
    auto at = known_.find(operands[i].index);
    if (at != known_.end()) {
      if (at->second.is_unknown() && is_needed) return {};
      continue;
    }
    missing.push_back(operands[i]);
    if (is_needed && operands.size() <= kMany) return missing;
  }
  return missing;
}

const Contents::Known& Contents::known(ValueId v) {
  std::vector<NodeId> open;
  if (!known_.contains(v.index)) open.push_back(graph_.producer(v));
  while (!open.empty()) {
    NodeId n = open.back();
    if (is_known(n)) {
      open.pop_back();
      continue;
    }
    std::vector<ValueId> missing = missing_operands(n);
    for (ValueId operand : missing) open.push_back(graph_.producer(operand));
    if (missing.empty()) remember(n, follow(n));
  }
  return known_.at(v.index);
}

void Contents::remember(NodeId n, std::vector<Known> results) {
  ValueRange values = graph_.results(n);
  results.resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    Known& result = results[i];
    if (graph_.opcode(n) != Opcode::constant) {
      const int64_t count =
          result.value ? result.value.elements() : static_cast<int64_t>(result.elements.size());
      if (count > kMaxRemembered - remembered_) result = {};
      if (!result.is_unknown()) remembered_ += count;
    }
    known_.try_emplace(values[i].index, std::move(result));
  }
}

std::vector<Contents::Known> Contents::follow(NodeId n) const {
  if (graph_.opcode(n) == Opcode::constant) {
    return {{.value = graph_.constant(n), .is_pure = true}};
  }
  if (is_opaque(n)) return {};
  static const Known kUnknown;
  Op op = graph_.op(n);
  Operands operands;
  bool is_pure = true;
  for (ValueId v : graph_.operands(n)) {
    if (v.is_none()) {
      operands.push_back(nullptr);
      continue;
    }
    auto at = known_.find(v.index);
    operands.push_back(at == known_.end() ? &kUnknown : &at->second);
    is_pure &= operands.back()->is_pure;
    if (operands.back()->is_unknown() && !tolerates_unknown(op, operands.size() - 1)) return {};
  }
  std::vector<Known> results = computed(n, operands);
  if (results.empty()) results = symbolic(n, operands);
  for (size_t i = 0; i < results.size(); ++i) {
    results[i].is_pure = is_pure;
    results[i] = simplified(std::move(results[i]), graph_.type(graph_.result(n, i)));
  }
  return results;
}

// ---- What is known of a value -------------------------------------------------------------------

// Integers that are all numbers become a tensor; nothing known at all becomes nothing.
Contents::Known Contents::simplified(Known known, Type type) const {
  if (known.value || known.elements.empty()) return known;
  if (std::ranges::none_of(known.elements, &Element::has_value)) return {};
  // Not reals: a dim has no negative zero.
  if (is_real(type.dtype()) ||
      !std::ranges::all_of(known.elements, [](const Element& e) { return e && e->is_static(); })) {
    return known;
  }
  std::vector<int64_t> numbers;
  for (const Element& element : known.elements) numbers.push_back(element->value());
  Type stored = known.is_uniform ? Type::scalar(type.dtype()) : type;
  known.value = Tensor::from_integers(stored, numbers);
  known.elements.clear();
  return known;
}

std::optional<Elements> Contents::elements_of(const Known& known, Type type) const {
  if (!fits(type, kMaxElements)) return std::nullopt;
  const size_t count = static_cast<size_t>(type.static_elements());
  if (known.is_unknown()) return Elements(count);
  if (known.is_uniform) return Elements(count, *single_element(known, type));
  if (!known.value) return known.elements;
  Elements elements;
  for (size_t i = 0; i < count; ++i) {
    elements.push_back(element_at(known.value, static_cast<int64_t>(i)));
  }
  return elements;
}

std::optional<Element> Contents::single_element(const Known& known, Type type) const {
  if (known.is_unknown()) return std::nullopt;
  if (!known.is_uniform && !type.elements().is(1)) return std::nullopt;
  return known.value ? element_at(known.value, 0) : known.elements[0];
}

// ---- Numbers ------------------------------------------------------------------------------------

// Computed by the reference evaluator, if all operands are numbers.
std::vector<Contents::Known> Contents::computed(NodeId n, const Operands& operands) const {
  Op op = graph_.op(n);
  bool all_uniform = !operands.empty() && is_elementwise(op.opcode());
  for (const Known* operand : operands) {
    if (operand == nullptr) continue;
    if (!operand->value) return {};
    all_uniform &= operand->is_uniform;
  }
  if (!all_uniform && op.has_symbols()) return {};
  std::vector<std::optional<Tensor>> values;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i] == nullptr) {
      values.emplace_back();
    } else if (!operands[i]->is_uniform || all_uniform) {
      if (!fits(operands[i]->value.type(), kMaxConstantElements)) return {};
      values.push_back(operands[i]->value);
    } else {
      values.push_back(filled(operands[i]->value, graph_.type(graph_.operands(n)[i])));
      if (!values.back()) return {};
    }
  }
  std::optional<std::vector<Tensor>> results = run(op, values);
  if (!results) return {};
  std::vector<Known> known;
  for (Tensor& result : *results) {
    known.push_back({.value = std::move(result), .is_uniform = all_uniform});
  }
  return known;
}

// ---- Dims ---------------------------------------------------------------------------------------

std::vector<Contents::Known> Contents::symbolic(NodeId n, const Operands& operands) const {
  Op op = graph_.op(n);
  if (is_composite(op.opcode())) return expanded(n, operands);
  if (moves_elements(op)) return {moved(n, operands)};
  if (op.opcode() == Opcode::reduce) return {reduced(n, *operands[0])};
  if (op.opcode() == Opcode::cumulative) return {accumulated(n, *operands[0])};
  if (is_elementwise(op.opcode())) return {elementwise(n, operands)};
  return {};
}

// `element` for each element of the type.
Contents::Known Contents::uniform(const Known& element, Type type) const {
  if (fits(type, 0)) return {};
  Known result = element;
  result.is_uniform = !fits(type, 1);
  if (result.value) {
    result.value = result.value.viewed_as(result.is_uniform ? Type::scalar(type.dtype()) : type);
  }
  return result;
}

Contents::Known Contents::moved(NodeId n, const Operands& operands) const {
  Op op = graph_.op(n);
  Type result = graph_.type(graph_.result(n));
  std::vector<size_t> data;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (is_data_operand(op.opcode(), i)) data.push_back(i);
  }
  // One element everywhere stays one element everywhere, whatever goes where.
  auto type_of = [&](size_t i) { return graph_.type(graph_.operands(n)[i]); };
  auto single = [&](size_t i) { return single_element(*operands[i], type_of(i)); };
  const bool is_single = std::ranges::all_of(data, [&](size_t i) {
    return single(i) && (data.size() == 1 || (*single(i) && single(i) == single(data[0])));
  });
  if (is_single) return uniform(*operands[data[0]], result);

  // Else the op is run on the numbers of the elements.
  if (op.has_symbols() || !fits(result, kMaxElements)) return {};
  Elements all;
  std::vector<std::optional<Tensor>> numbers;
  for (size_t i = 0; i < operands.size(); ++i) {
    Type type = type_of(i);
    if (!is_data_operand(op.opcode(), i)) {
      if (!operands[i]->value) return {};
      numbers.push_back(operands[i]->is_uniform ? filled(operands[i]->value, type)
                                                : operands[i]->value);
      if (!numbers.back() || !fits(type, kMaxConstantElements)) return {};
      continue;
    }
    std::optional<Elements> elements = elements_of(*operands[i], type);
    if (!elements) return {};
    Ints ids(elements->size());
    std::iota(ids.begin(), ids.end(), static_cast<int64_t>(all.size()));
    numbers.push_back(Tensor::from_integers(type.with_dtype(DType::i64), ids));
    all.insert(all.end(), elements->begin(), elements->end());
  }
  std::optional<std::vector<Tensor>> ids = run(op, numbers);
  if (!ids) return {};
  Known known;
  for (int64_t id : (*ids)[0].as<int64_t>()) known.elements.push_back(all[static_cast<size_t>(id)]);
  return known;
}

Element Contents::element_of(Op op, DType result, const Elements& x, DType from) const {
  if (op.opcode() == Opcode::select) {
    if (!x[0] || !x[0]->is_static()) return x[1] == x[2] ? x[1] : std::nullopt;
    return x[0]->is(0) ? x[2] : x[1];
  }
  if (op.opcode() == Opcode::compare) {
    return x[0] && x[1] ? compared(op.word("direction"), *x[0], *x[1]) : std::nullopt;
  }
  return x.size() == 1 ? unary_element(op.opcode(), from, result, x[0])
                       : binary_element(op.opcode(), result, x[0], x[1]);
}

Contents::Known Contents::elementwise(NodeId n, const Operands& operands) const {
  Op op = graph_.op(n);
  Type result = graph_.type(graph_.result(n));
  DType from = graph_.type(graph_.operands(n)[0]).dtype();
  const bool is_uniform =
      std::ranges::all_of(operands, [](const Known* operand) { return operand->is_uniform; });
  if (!is_uniform && !fits(result, kMaxElements)) return {};
  std::vector<Elements> x;
  for (size_t i = 0; i < operands.size(); ++i) {
    Type type = graph_.type(graph_.operands(n)[i]);
    x.push_back(is_uniform ? Elements{*single_element(*operands[i], type)}
                           : *elements_of(*operands[i], type));
  }
  Known known = {.is_uniform = is_uniform};
  Elements row(x.size());
  for (size_t i = 0; i < x[0].size(); ++i) {
    for (size_t k = 0; k < x.size(); ++k) row[k] = x[k][i];
    known.elements.push_back(element_of(op, result.dtype(), row, from));
  }
  return known;
}

namespace {

// The reduction of `count` times the same element.
Element repeated(std::string_view kind, DType dtype, const Element& x, Dim count) {
  if (!x) return std::nullopt;
  if (kind == "sum") {
    Element times = held_by(DType::i64, count);
    return times ? binary_element(Opcode::mul, dtype, x, held_by(dtype, *times)) : std::nullopt;
  }
  if (identity_of(kind) && *x == *identity_of(kind)) return x;
  return kind != "product" && provably_le(1, count) ? x : std::nullopt;
}

}  // namespace

Contents::Known Contents::reduced(NodeId n, const Known& operand) const {
  const std::string& kind = graph_.op(n).word("kind");
  Type type = graph_.type(graph_.operands(n)[0]), result = graph_.type(graph_.result(n));
  const Ints& axes = graph_.op(n).ints("axes");
  if (std::optional<Element> x = single_element(operand, type)) {
    Dim count = 1;
    for (int64_t axis : axes) count *= type.dim(static_cast<int>(axis));
    return uniform({.elements = {repeated(kind, type.dtype(), *x, count)}}, result);
  }
  std::optional<Elements> x = elements_of(operand, type);
  if (!x || x->empty() || !fits(result, kMaxElements)) return {};
  Ints dims = type.static_dims(), steps = row_major_strides(dims);
  // Strides from an element of the operand to its element of the result: 0 along reduced dims.
  Ints strides(dims.size(), 0);
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    if (std::ranges::find(axes, static_cast<int64_t>(i)) != axes.end()) continue;
    strides[i] = stride;
    stride *= dims[i];
  }
  std::vector<Elements> groups(static_cast<size_t>(stride));
  for (size_t i = 0; i < x->size(); ++i) {
    int64_t to = 0;
    for (size_t d = 0; d < dims.size(); ++d) {
      to += static_cast<int64_t>(i) / steps[d] % dims[d] * strides[d];
    }
    groups[static_cast<size_t>(to)].push_back((*x)[i]);
  }
  Known known;
  for (const Elements& group : groups) {
    Element sum = group[0];
    for (size_t i = 1; sum && i < group.size(); ++i) {
      sum = binary_element(combine_of(kind), type.dtype(), sum, group[i]);
    }
    known.elements.push_back(sum);
  }
  return known;
}

Contents::Known Contents::accumulated(NodeId n, const Known& operand) const {
  Op op = graph_.op(n);
  const std::string& kind = op.word("kind");
  Type type = graph_.type(graph_.operands(n)[0]);
  std::optional<Elements> x = elements_of(operand, type);
  if (!x) return {};
  Lanes lanes(type.static_dims(), op.integer("axis"));
  Known known = {.elements = Elements(x->size())};
  for (int64_t lane = 0; lane < lanes.count; ++lane) {
    Element sum = identity_of(kind);
    bool is_open = !sum;  // max and min begin with the first element
    for (int64_t i = 0; i < lanes.length; ++i) {
      int64_t place = op.flag("reverse") ? lanes.length - 1 - i : i;
      size_t at = static_cast<size_t>(lanes.first(lane) + place * lanes.step);
      if (op.flag("exclusive")) known.elements[at] = sum;
      sum = is_open ? (*x)[at] : binary_element(combine_of(kind), type.dtype(), sum, (*x)[at]);
      is_open = false;
      if (!op.flag("exclusive")) known.elements[at] = sum;
    }
  }
  return known;
}

std::vector<Contents::Known> Contents::expanded(NodeId n, const Operands& operands) const {
  std::vector<Type> types = graph_.operand_types(n);
  for (Type type : types)
    if (type && !fits(type, kMaxElements)) return {};
  for (Type type : graph_.result_types(n))
    if (!fits(type, kMaxElements)) return {};
  Result<Graph> graph = expansion(graph_.op(n), types);
  if (!graph.ok() || graph->node_count() > kMaxExpansionNodes) return {};
  Contents inside(*graph);
  size_t next = 0;
  for (const Known* operand : operands) {
    if (operand != nullptr) inside.known_.emplace(graph->inputs()[next++].index, *operand);
  }
  std::vector<Known> results;
  for (ValueId v : graph->outputs()) results.push_back(inside.known(v));
  return results;
}

}  // namespace hone

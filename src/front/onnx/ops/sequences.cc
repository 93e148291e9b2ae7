#include <algorithm>

#include "front/onnx/import.h"
#include "front/onnx/registry.h"

// Sequences and optionals of which import knows all there is to know: lists of values, and whether
// there is a value. They leave no trace in the graph. Others are refused where a tensor is needed.

namespace hone::onnx_io {
namespace {

constexpr size_t kMostElements = 4096;

using Slots = std::vector<Slot*>;

const Slots& sequence_of(Node& n, size_t i) {
  const Slot& slot = n.slot(i);
  if (slot.form != Slot::Form::sequence) n.bad("operand {} is not a sequence", i);
  return slot.elements;
}

Slot* tensor_at(Node& n, size_t i) {
  Slot& slot = n.slot(i);
  if (slot.form != Slot::Form::tensor) n.bad("operand {} is not a tensor", i);
  return &slot;
}

std::string result_name(Node& n, size_t i) {
  return n.wants(i) ? n.proto().output(static_cast<int>(i)) : std::string();
}

// The values of a sequence count like nodes: copies of long ones are bounded as nodes are.
void out_sequence(Node& n, Slots elements, size_t i = 0) {
  if (elements.size() > kMostElements)
    throw Failure{
        over_limit("a sequence of {} values, at most {} are kept", elements.size(), kMostElements)};
  n.frame().node_count() += static_cast<int64_t>(elements.size());
  n.out(i, n.flow().sequence(result_name(n, i), std::move(elements)));
}

// A number that must be known, in 0..count; negative ones count from the back.
size_t place(Node& n, size_t operand, size_t count, bool may_be_end) {
  const Ints numbers = n.integers(operand);
  if (numbers.size() != 1) n.bad("a position of {} numbers", numbers.size());
  const auto size = static_cast<int64_t>(count);
  const int64_t at = numbers[0] < 0 ? numbers[0] + size : numbers[0];
  if (at < 0 || at > size - (may_be_end ? 0 : 1))
    n.bad("position {} in a sequence of {}", numbers[0], count);
  return static_cast<size_t>(at);
}

std::vector<Value> values_of(Node& n, const Slots& slots) {
  std::vector<Value> values;
  for (Slot* slot : slots) values.push_back(n.flow().value_of(*slot));
  return values;
}

// How long the pieces along an axis are.
Dims piece_sizes(Node& n, Value x, int axis) {
  const Dim whole = x.dim(axis);
  if (n.has(1) && n.in(1).rank() == 1) {
    Dims sizes;
    Dim rest = whole;
    for (int64_t size : n.integers(1)) {
      if (size < 0) n.bad("a piece of size {}", size);
      sizes.emplace_back(size);
      rest = rest - size;
    }
    if (!rest.is(0)) n.bad("pieces that leave {} of {}", rest.to_string(), whole.to_string());
    return sizes;
  }
  int64_t piece = 1;
  if (n.has(1)) piece = n.integers(1)[0];
  if (piece < 1) n.bad("pieces of size {}", piece);
  if (!whole.is_static())
    n.unsupported("pieces of size {} of {}: how many there are varies", piece, whole.to_string());
  if (std::cmp_greater(whole.value() / piece, kMostElements))
    throw Failure{
        over_limit("{} pieces, at most {} are kept", whole.value() / piece, kMostElements)};
  Dims sizes(static_cast<size_t>(whole.value() / piece), piece);
  if (whole.value() % piece != 0) sizes.emplace_back(whole.value() % piece);
  return sizes;
}

}  // namespace

void map_sequence_construct(Node& n) {
  Slots elements;
  for (size_t i = 0; i < n.inputs(); ++i) elements.push_back(tensor_at(n, i));
  out_sequence(n, std::move(elements));
}

void map_sequence_empty(Node& n) {
  n.ignore("dtype");
  out_sequence(n, {});
}

void map_sequence_insert(Node& n) {
  Slots elements = sequence_of(n, 0);
  const size_t at = n.has(2) ? place(n, 2, elements.size(), true) : elements.size();
  elements.insert(elements.begin() + static_cast<int64_t>(at), tensor_at(n, 1));
  out_sequence(n, std::move(elements));
}

void map_sequence_erase(Node& n) {
  Slots elements = sequence_of(n, 0);
  if (elements.empty()) n.bad("nothing is there to erase");
  const size_t at = n.has(1) ? place(n, 1, elements.size(), false) : elements.size() - 1;
  elements.erase(elements.begin() + static_cast<int64_t>(at));
  out_sequence(n, std::move(elements));
}

void map_sequence_at(Node& n) {
  const Slots& elements = sequence_of(n, 0);
  n.out(0, elements[place(n, 1, elements.size(), false)]);
}

void map_sequence_length(Node& n) {
  const double length = static_cast<double>(sequence_of(n, 0).size());
  n.out(n.builder().scalar(DType::i64, length));
}

void map_split_to_sequence(Node& n) {
  Value x = n.in();
  n.require_rank(x, "the operand", 1);
  const int axis = n.axis("axis", x.rank(), 0);
  const bool keeps = n.flag("keepdims", true) || n.has(1);
  Slots elements;
  for (Value piece : split(x, axis, piece_sizes(n, x, axis)))
    elements.push_back(n.flow().define("", keeps ? piece : squeeze(piece, axis)));
  out_sequence(n, std::move(elements));
}

void map_concat_from_sequence(Node& n) {
  std::vector<Value> values = values_of(n, sequence_of(n, 0));
  if (values.empty()) n.bad("the sequence is empty");
  const bool is_new = n.flag("new_axis");
  const int axis = n.axis_in(n.integer("axis"), values[0].rank() + (is_new ? 1 : 0));
  if (is_new)
    for (Value& value : values) value = unsqueeze(value, axis);
  n.out(concat(values, axis));
}

// The body's nodes stand in line, once per element.
void map_sequence_map(Node& n) {
  const onnx::GraphProto& body = n.graph("body");
  const size_t count = sequence_of(n, 0).size();
  if (std::cmp_not_equal(body.input_size(), n.inputs()))
    n.bad("the body has {} inputs, {} are given", body.input_size(), n.inputs());
  if (std::cmp_not_equal(body.output_size(), n.outputs()))
    n.bad("the body has {} results, the node {}", body.output_size(), n.outputs());
  std::vector<Slots> results(n.outputs());
  for (size_t i = 0; i < count; ++i) {
    Frame inside(n.frame());
    for (size_t k = 0; k < n.inputs(); ++k) {
      Slot& slot = n.slot(k);
      const bool is_list = slot.form == Slot::Form::sequence;
      if (is_list && slot.elements.size() != count)
        n.bad("sequences of {} and {} values", count, slot.elements.size());
      inside.define(body.input(static_cast<int>(k)).name(), is_list ? slot.elements[i] : &slot);
    }
    import_graph(inside, n.flow(), body);
    for (size_t k = 0; k < results.size(); ++k)
      results[k].push_back(inside.find(body.output(static_cast<int>(k)).name()));
  }
  for (size_t k = 0; k < results.size(); ++k) out_sequence(n, std::move(results[k]), k);
}

void map_optional(Node& n) {
  n.ignore("type");
  if (n.has(0)) return n.out(0, &n.slot(0));
  n.out(0, n.flow().nothing(result_name(n, 0)));
}

void map_optional_has_element(Node& n) {
  const bool has = n.has(0) && n.slot(0).form != Slot::Form::nothing;
  n.out(n.builder().scalar(DType::boolean, has ? 1 : 0));
}

void map_optional_get_element(Node& n) {
  Slot& slot = n.slot(0);
  if (slot.form == Slot::Form::nothing) n.bad("the optional '{}' has no value", slot.name);
  n.out(0, &slot);
}

}  // namespace hone::onnx_io

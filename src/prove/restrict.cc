#include "prove/restrict.h"

#include <algorithm>
#include <optional>

#include "ir/op_facts.h"

namespace hone {
namespace {

// How windows along one dim read their operand.
struct Windows {
  int64_t count = 1;  // positions of one window
  int64_t stride = 1, dilation = 1, pad_low = 0;
};

struct Needed {
  DimSpan read;  // of the operand
  int64_t pad_low = 0, pad_high = 0;
};

// The elements of an operand of this size that the windows of a span read. Nothing: it cannot be
// told where padding begins.
std::optional<Needed> needed(const DimSpan& windows, const Windows& w, Dim size) {
  const Dim first = windows.start * w.stride - w.pad_low;
  const Dim end = (windows.limit - 1) * w.stride - w.pad_low + (w.count - 1) * w.dilation + 1;
  Needed found;
  if (provably_le(0, first)) {
    found.read.start = first;
  } else if (first.is_static()) {
    found.read.start = 0;
    found.pad_low = -first.value();
  } else {
    return std::nullopt;
  }
  const Dim beyond = end - size;
  if (provably_le(beyond, 0)) {
    found.read.limit = end;
  } else if (beyond.is_static()) {
    found.read.limit = size;
    found.pad_high = beyond.value();
  } else {
    return std::nullopt;
  }
  if (!provably_le(found.read.start, found.read.limit)) return std::nullopt;
  return found;
}

int64_t at(const Ints& list, size_t i, int64_t otherwise) {
  return list.empty() ? otherwise : list[i];
}

// The op with these values in the place of some of its attributes.
Op with(Op op, Attrs changed) {
  Attrs attrs;
  const std::span<const AttrSpec> specs = op.def().attrs;
  for (size_t i = 0; i < specs.size(); ++i) {
    const auto own = std::ranges::find(changed, specs[i].name, &Attrs::value_type::first);
    attrs.emplace_back(specs[i].name, own == changed.end() ? op.attrs()[i] : own->second);
  }
  return Op::get(op.opcode(), std::move(attrs)).canonical();
}

bool is_dilated(Op op) {
  return std::ranges::any_of(op.ints("input_dilation"), [](int64_t d) { return d != 1; });
}

}  // namespace

std::string to_string(const DimBox& box) {
  std::vector<std::string> spans;
  for (const DimSpan& span : box)
    spans.push_back(fmt::format("{}:{}", span.start.to_string(), span.limit.to_string()));
  return fmt::format("[{}]", fmt::join(spans, ", "));
}

Restriction::Restriction(const Graph& from, Graph& into, std::vector<ValueId> inputs)
    : from_(from), into_(into) {
  for (size_t i = 0; i < inputs.size(); ++i) known_.emplace(from.inputs()[i].index, inputs[i]);
}

DimBox Restriction::all_of(ValueId v) const {
  DimBox box;
  for (Dim dim : from_.type(v).dims()) box.push_back({0, dim});
  return box;
}

Result<ValueId> Restriction::append(Op op, std::span<const ValueId> operands) {
  return into_.result(HONE_TRY(into_.append(op, operands)));
}

Result<ValueId> Restriction::cut(ValueId value, const DimBox& box) {
  Dims start, limit;
  for (const DimSpan& span : box) start.push_back(span.start), limit.push_back(span.limit);
  return append(Op::get(Opcode::slice, {{"start", start}, {"limit", limit}}).canonical(),
                std::vector{value});
}

Result<ValueId> Restriction::whole(ValueId v) {
  if (const auto known = known_.find(v.index); known != known_.end()) return known->second;
  const NodeId n = from_.producer(v);
  ValueId value;
  if (is_constant(from_.opcode(n))) {
    value = into_.add_constant(from_.constant(n));
  } else {
    std::vector<ValueId> operands;
    for (ValueId operand : from_.operands(n)) operands.push_back(HONE_TRY(whole(operand)));
    value = into_.result(HONE_TRY(into_.append(from_.op(n), operands)), from_.result_index(v));
  }
  known_.emplace(v.index, value);
  return value;
}

Result<ValueId> Restriction::part(ValueId v, const DimBox& box) {
  if (box == all_of(v)) return whole(v);
  const NodeId n = from_.producer(v);
  const Opcode opcode = from_.opcode(n);
  if (class_of(opcode) == OpClass::elementwise) return elementwise(n, box);
  if (repeats_elements(opcode)) return broadcast(n, box);
  if (is_convolution(opcode)) return conv(n, box);
  if (combines_windows(opcode)) return windows(n, box);
  return cut(HONE_TRY(whole(v)), box);
}

Result<ValueId> Restriction::elementwise(NodeId n, const DimBox& box) {
  std::vector<ValueId> operands;
  for (ValueId v : from_.operands(n)) operands.push_back(HONE_TRY(part(v, box)));
  return append(from_.op(n), operands);
}

Result<ValueId> Restriction::broadcast(NodeId n, const DimBox& box) {
  const ValueId operand = from_.operands(n)[0];
  DimBox own = all_of(operand);
  Dims dims;
  for (const DimSpan& span : box) dims.push_back(span.size());
  const Ints& map = from_.op(n).ints("map");
  for (size_t i = 0; i < map.size(); ++i)
    if (!own[i].limit.is(1)) own[i] = box[static_cast<size_t>(map[i])];
  return append(with(from_.op(n), {{"dims", dims}}), std::vector{HONE_TRY(part(operand, own))});
}

Result<ValueId> Restriction::conv(NodeId n, const DimBox& box) {
  const Op op = from_.op(n);
  const ValueId input = from_.operands(n)[0], kernel = from_.operands(n)[1];
  DimBox read = all_of(input), weights = all_of(kernel);
  const bool has_all_features = box[1] == DimSpan{0, from_.type(kernel).dims()[0]};
  bool is_simple = op.word("order").empty() && !is_dilated(op) &&
                   (op.integer("groups") == 1 || has_all_features);
  read[0] = box[0];
  weights[0] = box[1];
  Ints low, high;
  for (size_t i = 0; i + 2 < box.size() && is_simple; ++i) {
    const Dim count = weights[i + 2].limit;
    const Windows windows = {.count = count.is_static() ? count.value() : 0,
                             .stride = at(op.ints("stride"), i, 1),
                             .dilation = at(op.ints("kernel_dilation"), i, 1),
                             .pad_low = at(op.ints("pad_low"), i, 0)};
    const std::optional<Needed> found = needed(box[i + 2], windows, read[i + 2].limit);
    is_simple = count.is_static() && found.has_value();
    if (!is_simple) break;
    read[i + 2] = found->read;
    low.push_back(found->pad_low);
    high.push_back(found->pad_high);
  }
  if (!is_simple) return cut(HONE_TRY(whole(from_.result(n))), box);
  const ValueId operands[] = {HONE_TRY(part(input, read)), HONE_TRY(part(kernel, weights))};
  return append(with(op, {{"pad_low", low}, {"pad_high", high}}), operands);
}

Result<ValueId> Restriction::windows(NodeId n, const DimBox& box) {
  const Op op = from_.op(n);
  const ValueId input = from_.operands(n)[0];
  DimBox read = all_of(input);
  Ints low, high;
  for (size_t i = 0; i < box.size(); ++i) {
    const Windows windows = {.count = op.ints("window")[i],
                             .stride = at(op.ints("stride"), i, 1),
                             .dilation = at(op.ints("window_dilation"), i, 1),
                             .pad_low = at(op.ints("pad_low"), i, 0)};
    const std::optional<Needed> found = needed(box[i], windows, read[i].limit);
    if (!found || is_dilated(op)) return cut(HONE_TRY(whole(from_.result(n))), box);
    read[i] = found->read;
    low.push_back(found->pad_low);
    high.push_back(found->pad_high);
  }
  return append(with(op, {{"pad_low", low}, {"pad_high", high}}), std::vector{
                                                                      HONE_TRY(part(input, read))});
}

}  // namespace hone

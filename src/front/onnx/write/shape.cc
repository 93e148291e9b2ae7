#include <algorithm>
#include <limits>

#include "front/onnx/write/registry.h"

namespace hone::onnx_io {

// Operand dims are spread with ones to the result's rank; Expand does the rest.
bool export_broadcast(Emit& e) {
  const Ints& map = e.op().ints("map");
  const Dims& dims = e.op().dims("dims");
  Ints missing;
  int64_t lead = map.empty() ? static_cast<int64_t>(dims.size()) : map.front();
  for (int64_t axis = lead; axis < static_cast<int64_t>(dims.size()); ++axis)
    if (std::find(map.begin(), map.end(), axis) == map.end()) missing.push_back(axis - lead);
  std::string value = e.in(0);
  if (const std::optional<NodeId> made = e.maker(0, Opcode::constant); made && !missing.empty()) {
    Dims spread(e.type(0).dims().begin(), e.type(0).dims().end());
    for (int64_t axis : missing) spread.insert(spread.begin() + axis, 1);
    value = e.constant(e.graph().constant(*made).viewed_as(e.type(0).with_dims(spread)));
  } else if (!missing.empty()) {
    value = e.unsqueeze(value, missing);
  }
  e.repeats(value);
  return e.result("Expand", {value, e.dims(dims)});
}

bool export_reshape(Emit& e) {
  const Dims& dims = e.op().dims("dims");
  Attributes attributes;
  for (Dim dim : dims)
    if (dim.range().low <= 0) attributes = {{"allowzero", int64_t{1}}};
  if (!attributes.empty() && e.opset() < 14)
    e.unsupported("sizes that may be 0 need opset 14, where Reshape takes them as they are");
  return e.result("Reshape", {e.in(0), e.dims(dims)}, attributes);
}

bool export_transpose(Emit& e) {
  return e.result("Transpose", {e.in(0)}, {{"perm", e.op().ints("permutation")}});
}

bool export_slice(Emit& e) {
  const Dims& start = e.op().dims("start");
  const Dims& limit = e.op().dims("limit");
  const Ints& stride = e.op().ints("stride");
  Dims starts, limits;
  Ints axes, steps;
  for (size_t i = 0; i < start.size(); ++i) {
    int64_t step = stride.empty() ? 1 : stride[i];
    if (start[i].is(0) && limit[i] == e.type(0).dim(static_cast<int>(i)) && step == 1) continue;
    starts.push_back(start[i]);
    limits.push_back(limit[i]);
    axes.push_back(static_cast<int64_t>(i));
    steps.push_back(step);
  }
  if (axes.empty()) return e.result_is(e.in(0));
  return e.result("Slice", {e.in(0), e.dims(starts), e.dims(limits), e.ints(axes), e.ints(steps)});
}

namespace {

// `count` zeros between neighbours along an axis: a new axis behind it, filled up, and merged.
std::string spread(Emit& e, const std::string& x, const std::string& fill, Dims& dims, size_t axis,
                   int64_t count) {
  int64_t behind = static_cast<int64_t>(axis) + 1;
  std::string split = e.unsqueeze(x, {behind});
  Ints pads(2 * (dims.size() + 1), 0);
  pads[dims.size() + 1 + axis + 1] = count;
  std::string padded = e.node("Pad", {split, e.ints(pads), fill});
  Dim size = dims[axis] * (count + 1);
  Dims merged = dims;
  merged[axis] = size;
  std::string flat = e.reshape(padded, merged);
  dims[axis] = size - count;
  return e.node("Slice", {flat, e.ints({0}), e.dims(std::vector<Dim>{dims[axis]}),
                          e.ints({static_cast<int64_t>(axis)})});
}

}  // namespace

bool export_pad(Emit& e) {
  const Dims& low = e.op().dims("low");
  const Dims& high = e.op().dims("high");
  const Ints& interior = e.op().ints("interior");
  std::string x = e.in(0);
  Dims dims(e.type(0).dims().begin(), e.type(0).dims().end());
  for (size_t axis = 0; axis < interior.size(); ++axis)
    if (interior[axis] != 0) x = spread(e, x, e.in(1), dims, axis, interior[axis]);
  Dims pads = low;
  pads.insert(pads.end(), high.begin(), high.end());
  return e.result("Pad", {x, e.dims(pads), e.in(1)});
}

bool export_concat(Emit& e) {
  return e.result("Concat", e.all(), {{"axis", e.op().integer("axis")}});
}

bool export_reverse(Emit& e) {
  const Ints& axes = e.op().ints("axes");
  if (axes.empty()) return e.result_is(e.in(0));
  Ints last(axes.size(), -1), before(axes.size(), std::numeric_limits<int64_t>::min());
  return e.result("Slice", {e.in(0), e.ints(last), e.ints(before), e.ints(axes), e.ints(last)});
}

bool export_iota(Emit& e) {
  Type type = e.result_type();
  auto axis = static_cast<int>(e.op().integer("axis"));
  DType dtype = type.dtype();
  const Dim count = type.dim(axis);
  std::string size = count.is_static() ? e.integer(count.value()) : e.squeeze(e.dim(count), {0});
  std::string line = e.node("Range", {e.integer(0), size, e.integer(1)});
  if (dtype != DType::i64) line = e.cast(line, dtype);
  if (type.rank() == 1) return e.result_is(line);
  Ints behind;
  for (int i = axis + 1; i < type.rank(); ++i) behind.push_back(i - axis);
  if (!behind.empty()) line = e.unsqueeze(line, behind);
  return e.result("Expand", {line, e.dims(type.dims())});
}

}  // namespace hone::onnx_io

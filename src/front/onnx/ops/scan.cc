#include <algorithm>

#include "front/onnx/body.h"
#include "front/onnx/checks.h"
#include "front/onnx/registry.h"

// Scan: the op of that name, with its axes and directions.

namespace hone::onnx_io {
namespace {

// Directions or axes, one for each; all 0 by default.
Ints listed(Node& n, std::string_view name, size_t count) {
  Ints numbers = n.ints(name);
  if (numbers.empty()) numbers.assign(count, 0);
  if (numbers.size() != count)
    n.bad("attribute '{}' has {} numbers, must have {}", name, numbers.size(), count);
  return numbers;
}

Ints moved(int rank, int from, int to) {
  Ints order;
  for (int axis = 0; axis < rank; ++axis)
    if (axis != from) order.push_back(axis);
  order.insert(order.begin() + to, from);
  return order;
}

struct ScanAxes {
  Ints input_axes, output_axes, input_reversed, output_reversed;

  // All goes from the last element to the first.
  bool is_backward() const {
    auto is_set = [](int64_t v) { return v != 0; };
    return std::all_of(input_reversed.begin(), input_reversed.end(), is_set) &&
           std::all_of(output_reversed.begin(), output_reversed.end(), is_set);
  }
};

std::vector<Value> scan_once(Node& n, const onnx::GraphProto& body, std::span<const Value> states,
                             std::vector<Value> scanned, const ScanAxes& axes) {
  std::vector<Type> types;
  const bool backward = axes.is_backward();
  for (Value state : states) types.push_back(state.type());
  for (size_t i = 0; i < scanned.size(); ++i) {
    n.require_rank(scanned[i], "a scanned value", 1);
    int axis = n.axis_in(axes.input_axes[i], scanned[i].rank());
    if (axis != 0) scanned[i] = transpose(scanned[i], moved(scanned[i].rank(), axis, 0));
    if (axes.input_reversed[i] != 0 && !backward) scanned[i] = reverse(scanned[i], {0});
    Dims dims = scanned[i].dims();
    dims.erase(dims.begin());
    types.push_back(Type::get(scanned[i].dtype(), dims));
  }
  Result<Region> region = import_region(n, body, types);
  if (!region.ok()) throw Failure{region.error()};
  const std::vector<Slot*>& captures = region->flow->captures();
  std::vector<Value> operands(states.begin(), states.end());
  for (Slot* slot : captures) operands.push_back(n.flow().value_of(*slot));
  const auto kept = static_cast<long>(operands.size());  // without what was found
  if (n.is_checked()) operands.push_back(nothing_found(n.builder()));
  size_t carried = operands.size();
  operands.insert(operands.end(), scanned.begin(), scanned.end());
  Graph step = *n.take(finish(*region, captures));
  std::vector<Type> parameters;
  for (size_t i = 0; i < carried; ++i) parameters.push_back(operands[i].type());
  parameters.insert(parameters.end(), types.begin() + static_cast<long>(states.size()),
                    types.end());
  auto state_count = static_cast<long>(states.size());
  GraphRef whole = n.builder().region("body", parameters, [&](Builder& inner, auto in) {
    std::vector<Value> arguments(in.begin(), in.begin() + state_count);
    arguments.insert(arguments.end(), in.begin() + static_cast<long>(carried), in.end());
    arguments.insert(arguments.end(), in.begin() + state_count, in.begin() + kept);
    std::vector<Value> results = inner.inlined(step, arguments);
    std::vector<Value> out(results.begin(), results.begin() + state_count);
    out.insert(out.end(), in.begin() + state_count, in.begin() + kept);
    keep_found(in.first(carried).subspan(static_cast<size_t>(kept)), results, out);
    out.insert(out.end(), results.begin() + state_count, results.end());
    return out;
  });
  std::vector<Value> all =
      n.builder().ops(Opcode::scan, operands,
                      {{"carried", static_cast<int64_t>(carried)}, {"reverse", backward}}, {whole});
  std::vector<Value> results(all.begin(), all.begin() + state_count);
  for (size_t i = 0; carried + i < all.size(); ++i) {
    Value stack = all[carried + i];
    if (axes.output_reversed[i] != 0 && !backward) stack = reverse(stack, {0});
    int axis = n.axis_in(axes.output_axes[i], stack.rank());
    results.push_back(axis == 0 ? stack : transpose(stack, moved(stack.rank(), 0, axis)));
  }
  all.resize(carried);
  lift_found(n, all, region->flow->checks());
  return results;
}

struct ScanCounts {
  size_t states, scanned, stacked;
};

ScanCounts scan_counts(Node& n, const onnx::GraphProto& body, size_t first) {
  int64_t scanned = n.integer("num_scan_inputs");
  int64_t given = static_cast<int64_t>(n.inputs() - first);
  if (scanned < 1 || scanned > given) n.bad("{} of {} operands are scanned", scanned, given);
  int64_t states = given - scanned;
  if (body.input_size() != given || body.output_size() < states)
    n.bad("{} operands are given, the body has {} inputs and {} outputs", given, body.input_size(),
          body.output_size());
  if (static_cast<size_t>(body.output_size()) < n.outputs())
    n.bad("{} results are wanted, the body has {}", n.outputs(), body.output_size());
  return {static_cast<size_t>(states), static_cast<size_t>(scanned),
          static_cast<size_t>(body.output_size() - states)};
}

}  // namespace

// Version 8 has a batch axis in front of everything: one scan for each element of the batch.
void map_scan_8(Node& n) {
  const onnx::GraphProto& body = n.graph("body");
  if (n.has(0)) n.unsupported("sequence lengths are given");
  ScanCounts counts = scan_counts(n, body, 1);
  ScanAxes axes = {Ints(counts.scanned, 0), Ints(counts.stacked, 0),
                   listed(n, "directions", counts.scanned), Ints(counts.stacked, 0)};
  std::vector<Value> operands;
  for (size_t i = 1; i < n.inputs(); ++i) operands.push_back(n.in(i));
  for (Value operand : operands) n.require_rank(operand, "an operand", 1);
  Dim batch = operands[0].dim(0);
  if (!batch.is_static() || batch.value() < 1 || batch.value() > 1024)
    n.unsupported("the batch size is {}; 1 to 1024 are handled", batch.to_string());
  std::vector<std::vector<Value>> parts;
  for (int64_t i = 0; i < batch.value(); ++i) {
    std::vector<Value> one;
    for (Value operand : operands) one.push_back(squeeze(slice(operand, 0, i, i + 1), 0));
    std::span<const Value> states(one.data(), counts.states);
    std::vector<Value> scanned(one.begin() + static_cast<long>(counts.states), one.end());
    std::vector<Value> results = scan_once(n, body, states, std::move(scanned), axes);
    parts.resize(results.size());
    for (size_t r = 0; r < results.size(); ++r) parts[r].push_back(unsqueeze(results[r], 0));
  }
  for (size_t r = 0; r < n.outputs(); ++r) n.out(r, concat(parts[r], 0));
}

void map_scan(Node& n) {
  const onnx::GraphProto& body = n.graph("body");
  ScanCounts counts = scan_counts(n, body, 0);
  ScanAxes axes = {listed(n, "scan_input_axes", counts.scanned),
                   listed(n, "scan_output_axes", counts.stacked),
                   listed(n, "scan_input_directions", counts.scanned),
                   listed(n, "scan_output_directions", counts.stacked)};
  std::vector<Value> operands = n.all_inputs();
  std::span<const Value> states(operands.data(), counts.states);
  std::vector<Value> scanned(operands.begin() + static_cast<long>(counts.states), operands.end());
  n.out_all(scan_once(n, body, states, std::move(scanned), axes));
}

}  // namespace hone::onnx_io

#include <algorithm>
#include <bit>
#include <numeric>

#include "front/hlo/device_dims.h"
#include "ir/op_def.h"

// Regions of programs whose values have device dims, and what devices run one after the other.

namespace hone::hlo {
namespace {

bool talks(const Graph& graph) {
  for (const NodeId n : graph.nodes()) {
    if (class_of(graph.opcode(n)) == OpClass::collective) return true;
    for (const GraphRef& region : graph.regions(n))
      if (talks(*region)) return true;
  }
  return false;
}

}  // namespace

std::vector<Differing> DeviceDims::in_turn(Application& at) {
  if (std::ranges::any_of(at.graph.regions(at.n), [](const GraphRef& one) { return talks(*one); }))
    refuse(at, unsupported("devices exchange values in what some of them may run, and others not"));
  const AxisSet axes = at.axes();
  int64_t devices = 1;
  for (const size_t axis : members(axes).order) devices *= mesh_->axes[axis].size;
  std::vector<Value> alike, different;
  for (const Differing& one : at.operands) {
    if (!one.value) continue;
    if (one.axes == 0) {
      alike.push_back(one.value);
      continue;
    }
    const Value whole = aligned(one, axes).value;
    Dims dims = {devices};
    for (int64_t i = std::popcount(axes); i < whole.rank(); ++i)
      dims.push_back(whole.dim(static_cast<int>(i)));
    different.push_back(reshape(whole, dims));
  }
  const std::span<const GraphRef> regions = at.graph.regions(at.n);
  const std::vector<Value> made =
      hone::scan(alike, different, [&](Builder& inner, std::span<const Value> in) {
        Importer::leave_on_failure(inner);
        std::vector<Value> operands, results(in.begin(), in.begin() + std::ssize(alike));
        size_t next_alike = 0, next = alike.size();
        for (const Differing& one : at.operands)
          operands.push_back(!one.value ? Value() : in[one.axes == 0 ? next_alike++ : next++]);
        for (const Value& one : inner.ops(at.op(), operands, {regions.begin(), regions.end()}))
          results.push_back(one);
        return results;
      });
  std::vector<Differing> results;
  for (size_t i = 0; i < at.graph.results(at.n).size(); ++i) {
    const Type type = with_device_dims(at.graph.type(at.graph.result(at.n, i)), axes);
    results.push_back(
        {reshape(made[alike.size() + i], {type.dims().begin(), type.dims().end()}), axes});
  }
  return results;
}

// A region for arguments that differ so. Its results differ as `results` ask, or more; they are
// told there.
GraphRef DeviceDims::region(Application& at, size_t which, std::span<const AxisSet> arguments,
                            std::vector<AxisSet>& results) {
  const Graph& graph = *at.graph.regions(at.n)[which];
  std::vector<Type> types;
  for (size_t i = 0; i < arguments.size(); ++i)
    types.push_back(with_device_dims(graph.type(graph.inputs()[i]), arguments[i]));
  results.resize(graph.outputs().size());
  return at.to.region(graph.name(), types, [&](Builder& inner, std::span<const Value> in) {
    Importer::leave_on_failure(inner);
    std::vector<Differing> given;
    for (size_t i = 0; i < in.size(); ++i) given.push_back({in[i], arguments[i]});
    Shardings said;
    std::vector<Value> made;
    const std::vector<Differing> all = run(inner, graph, given, said);
    for (size_t i = 0; i < all.size(); ++i) {
      results[i] |= all[i].axes;
      made.push_back(aligned(all[i], results[i]).value);
    }
    if (!said.empty()) inner.set_shardings(std::make_shared<const Shardings>(std::move(said)));
    return made;
  });
}

std::vector<Differing> DeviceDims::branch(Application& at) {
  if (at.operands[0].axes != 0) return in_turn(at);
  std::vector<AxisSet> arguments, results;
  for (size_t i = 1; i < at.operands.size(); ++i) arguments.push_back(at.operands[i].axes);
  (void)region(at, 0, arguments, results);
  const GraphRef otherwise = region(at, 1, arguments, results);
  const GraphRef then = region(at, 0, arguments, results);
  const std::vector<Value> made = at.to.ops(at.op(), aligned(at.operands, 0), {then, otherwise});
  std::vector<Differing> all;
  for (size_t i = 0; i < made.size(); ++i) all.push_back({made[i], results[i]});
  return all;
}

std::vector<Differing> DeviceDims::loop(Application& at) {
  std::vector<AxisSet> state;
  for (const Differing& one : at.operands) state.push_back(one.axes);
  GraphRef body;
  for (std::vector<AxisSet> before; before != state;) {
    before = state;
    body = region(at, 1, before, state);
  }
  std::vector<AxisSet> holds;
  const GraphRef condition = region(at, 0, state, holds);
  if (holds[0] != 0) return in_turn(at);
  std::vector<Value> initial;
  for (size_t i = 0; i < state.size(); ++i)
    initial.push_back(aligned(at.operands[i], state[i]).value);
  const std::vector<Value> made = at.to.ops(at.op(), initial, {condition, body});
  std::vector<Differing> all;
  for (size_t i = 0; i < made.size(); ++i) all.push_back({made[i], state[i]});
  return all;
}

// The time comes before device dims.
std::vector<Differing> DeviceDims::scan(Application& at) {
  const auto carried = static_cast<size_t>(at.op().integer("carried"));
  const auto time_to = [](Value v, int64_t from, int64_t to) {
    Ints order(static_cast<size_t>(v.rank()));
    std::iota(order.begin(), order.end(), 0);
    order.erase(order.begin() + from);
    order.insert(order.begin() + to, from);
    return transpose(v, order);
  };
  std::vector<AxisSet> arguments, results;
  for (const Differing& one : at.operands) arguments.push_back(one.axes);
  GraphRef body;
  for (bool is_new = true; is_new;) {
    results.assign(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(carried));
    body = region(at, 0, arguments, results);
    is_new = !std::equal(arguments.begin(),
                         arguments.begin() + static_cast<std::ptrdiff_t>(carried), results.begin());
    std::copy_n(results.begin(), carried, arguments.begin());
  }
  std::vector<Value> operands;
  for (size_t i = 0; i < at.operands.size(); ++i) {
    const Value whole = aligned(at.operands[i], arguments[i]).value;
    operands.push_back(i < carried ? whole : time_to(whole, std::popcount(arguments[i]), 0));
  }
  const std::vector<Value> made = at.to.ops(at.op(), operands, {body});
  std::vector<Differing> all;
  for (size_t i = 0; i < made.size(); ++i)
    all.push_back(
        {i < carried ? made[i] : time_to(made[i], 0, std::popcount(results[i])), results[i]});
  return all;
}

}  // namespace hone::hlo

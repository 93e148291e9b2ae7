#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "tests/base/says_testing.h"
#include "tests/grad/grad_testing.h"
#include "zoo/random/random_graph.h"

// Derivatives of collectives, by differences of the reference of several devices. All devices run
// one graph; what is derived is the sum of their losses.

namespace hone::HONE_FILE {
namespace {

using tested::refuses;
using tested::says;

using DeviceValues = std::vector<std::vector<Tensor>>;  // by device

DeviceValues evaluated_on(const Graph& graph, const DeviceValues& inputs) {
  Result<DeviceValues> outputs =
      evaluate_spmd(graph, inputs, {.numerics = Numerics::wide, .real_outputs_as_f64 = true});
  EXPECT_TRUE(outputs.ok()) << outputs.error().to_string();
  return outputs.ok() ? *outputs : DeviceValues();
}

Slope slope_of(const Graph& graph, size_t loss, const DeviceValues& inputs,
               const DeviceValues& direction) {
  const auto at = [&](double by) {
    DeviceValues to;
    for (size_t d = 0; d < inputs.size(); ++d) to.push_back(moved(inputs[d], direction[d], by));
    double sum = 0;
    for (const std::vector<Tensor>& own : evaluated_on(graph, to)) sum += own[loss].real_at(0);
    return sum;
  };
  const auto slope = [&](double step) {
    return (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step);
  };
  const double coarse = slope(1e-3), fine = slope(5e-4);
  const double scale = std::max({1.0, std::abs(coarse), std::abs(fine)});
  return {fine, std::abs(coarse - fine) <= 1e-8 * scale};
}

// True if the derivative could be compared: there is one, and the loss is smooth there.
bool check(const Graph& graph, size_t loss, const DeviceValues& inputs, uint64_t seed) {
  // Its derivative is 0, whatever the slope is.
  for (const NodeId n : graph.nodes())
    if (graph.opcode(n) == Opcode::stop_gradient) return false;
  Mask mask = differentiable_inputs(graph);
  for (size_t i = 0; i < mask.size(); ++i) {  // without those whose only ways are steps
    Mask one(mask.size(), false);
    one[i] = mask[i];
    mask[i] = mask[i] && changing_outputs(graph, one)[loss];
  }
  if (!any(mask)) return false;
  DeviceValues direction;
  for (size_t d = 0; d < inputs.size(); ++d)
    direction.push_back(random_direction(graph, mask, seed + d));
  const Slope slope = slope_of(graph, loss, inputs, direction);
  if (!slope.is_smooth) return false;
  const Result<Graph> derived = grad(graph, static_cast<uint32_t>(loss), mask);
  if (!derived.ok()) {  // a scatter of extremes
    EXPECT_THAT(derived, refuses(ErrorCode::unsupported, "(scatter)"));
    return false;
  }
  Product all;
  const DeviceValues made = evaluated_on(*derived, inputs);
  for (size_t d = 0; d < made.size(); ++d) {
    const Product own = product(std::span(made[d]).subspan(graph.outputs().size()), direction[d]);
    all.value += own.value;
    all.size += own.size;
  }
  EXPECT_NEAR(all.value, slope.value, 1e-6 * std::max(1.0, all.size))
      << print(graph) << print(*derived);
  return true;
}

void check_random(uint64_t first, uint64_t count) {
  constexpr Opcode kOps[] = {Opcode::all_reduce, Opcode::all_gather, Opcode::reduce_scatter,
                             Opcode::all_to_all, Opcode::permute};
  int checked[std::size(kOps)] = {};
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    const size_t op = seed % std::size(kOps);
    const auto devices = static_cast<int>(1 + seed / std::size(kOps) % 4);
    const Result<Graph> plain = in_f64(random_graph({.seed = seed,
                                                     .min_steps = 1,
                                                     .max_steps = 4,
                                                     .max_elements = 100,
                                                     .first = kOps[op],
                                                     .continuous = true,
                                                     .devices = devices}));
    if (!plain.ok()) continue;
    const std::optional<Graph> graph = with_loss(*plain, seed);
    if (!graph) continue;
    DeviceValues inputs;
    for (int d = 0; d < devices; ++d)
      inputs.push_back(random_graph_inputs(*graph, seed + 1000 * static_cast<uint64_t>(d)));
    if (check(*graph, graph->outputs().size() - 1, inputs, seed)) ++checked[op];
  }
  for (const int each : checked) EXPECT_GT(each, static_cast<int>(count) / 40);
}

TEST(CollectiveGrad, IsThatOfDifferencesOfAllDevices) { check_random(0, 200); }
TEST(CollectiveGrad, DISABLED_SweepRandomGraphs) { check_random(1'000, 4'000); }

DeviceValues random_values(const Graph& graph, uint64_t seed) {
  DeviceValues values;
  const Mask mask = differentiable_inputs(graph);
  for (uint64_t d = 0; d < 4; ++d) values.push_back(random_direction(graph, mask, 10 * seed + d));
  return values;
}

// Groups in any order, other axes, and rounds of a loop.
TEST(CollectiveGrad, OfGroupsAndLoops) {
  const char* const kGraphs[] = {
      "graph @g(%x: f64[4, 3]) {\n"
      "  %a = all_to_all %x {split_axis = 0, concat_axis = 1, group_size = 2, groups = [0, 3, 2, "
      "1]}\n"
      "  %t = tanh %a\n  %l = reduce %t {kind = sum, axes = [0, 1]}\n  return %l\n}\n",
      "graph @g(%x: f64[4, 3]) {\n"
      "  %a = reduce_scatter %x {kind = max, axis = 0, group_size = 4, groups = [2, 0, 3, 1]}\n"
      "  %t = exp %a\n  %l = reduce %t {kind = sum, axes = [0, 1]}\n  return %l\n}\n",
      "graph @g(%x: f64[4, 3]) {\n"
      "  %a = permute %x {pairs = [0, 2, 3, 1]}\n"
      "  %t = exp %a\n  %y = mul %t, %x\n"
      "  %l = reduce %y {kind = sum, axes = [0, 1]}\n  return %l\n}\n",
      "graph @g(%x: f64[4, 3], %s: f64[3]) {\n"
      "  %f, %ys = scan %s, %x {carried = 1}\n"
      "    body (%s: f64[3], %r: f64[3]) {\n"
      "      %a = all_reduce %s {kind = sum, group_size = 2}\n"
      "      %m = mul %a, %r\n      %t = tanh %m\n      return %t, %m\n    }\n"
      "  %l = reduce %f {kind = sum, axes = [0]}\n  return %l\n}\n"};
  for (const char* text : kGraphs) {
    const Graph graph = parse_graph(text).value();
    int checked = 0;  // some values may be nearly equally large
    for (uint64_t seed = 1; seed < 6; ++seed)
      checked += check(graph, 0, random_values(graph, seed), seed) ? 1 : 0;
    EXPECT_GT(checked, 0) << text;
  }
}

TEST(CollectiveGrad, TurnsCollectivesAround) {
  const auto derived = [](std::string_view collective) {
    const Graph graph = parse_graph(fmt::format("graph @g(%x: f64[4]) {{ %a = {}\n"
                                                "  %l = reduce %a {{kind = sum, axes = [0]}}\n"
                                                "  return %l }}",
                                                collective))
                            .value();
    return print(grad(graph, 0, {true}).value());
  };
  EXPECT_THAT(derived("all_gather %x {axis = 0, group_size = 2}"),
              says("reduce_scatter ... kind = sum"));
  EXPECT_THAT(derived("reduce_scatter %x {kind = sum, axis = 0, group_size = 2}"),
              says("all_gather"));
  EXPECT_THAT(derived("permute %x {pairs = [0, 1]}"), says("pairs = [1, 0]"));
  EXPECT_THAT(derived("permute %x {pairs = [0, 1], group_size = 2, groups = [0, 2, 1, 3]}"),
              says("pairs = [1, 0] ... groups = [0, 2, 1, 3]"));
}

TEST(CollectiveGrad, RefusesProducts) {
  const Graph graph = parse_graph(
                          "graph @g(%x: f64[]) { %p = all_reduce %x {kind = product, "
                          "group_size = 2} return %p }")
                          .value();
  EXPECT_THAT(grad(graph, 0, {true}),
              refuses(ErrorCode::unsupported, "node '%p' (all_reduce) ... by product"));
}

}  // namespace
}  // namespace hone::HONE_FILE

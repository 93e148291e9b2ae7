#include "tests/shard/mesh_testing.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "grad/grad.h"
#include "ir/functional.h"
#include "ir/op_facts.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "shard/mesh_program.h"
#include "shard/node_division.h"
#include "tests/grad/grad_testing.h"
#include "tests/shard/parts_testing.h"

namespace hone::tested {

namespace {

// The first elements along a dim; behind the end of the tensor, numbers that spoil what reads them.
Tensor resized(const Tensor& tensor, int dim, int64_t size) {
  Builder b;
  const Value x = b.parameter("x", tensor.type());
  const int64_t have = x.dim(dim).value();
  Ints low(static_cast<size_t>(x.rank())), high = low;
  high[static_cast<size_t>(dim)] = size - have;
  const double spoils = is_real(x.dtype()) ? std::numeric_limits<double>::quiet_NaN() : 1;
  const Value made = have >= size ? slice(x, dim, 0, size) : pad(x, low, high, spoils);
  return (*evaluate(*b.finish({made}), {{tensor}}))[0];
}

// Calls fn(dim, the first element of the device, the elements that it has, those of a part) for
// the divided dims.
template <class Fn>
void each_divided(Type whole, const Mesh& mesh, const ShardLayout& layout, int64_t device,
                  const Fn& fn) {
  for (size_t d = 0; d < layout.dims.size(); ++d) {
    const int64_t count = count_of(layout.dims[d]);
    if (count == 1) continue;
    const int dim = static_cast<int>(d);
    const int64_t size = whole.dim(dim).value(), part = (size + count - 1) / count;
    const int64_t first = first_element(mesh, layout.dims[d], size, device);
    fn(dim, first, std::min(part, size - first), part);
  }
}

}  // namespace

Tensor part_of(Tensor whole, const Mesh& mesh, const ShardLayout& layout, int64_t device) {
  const Type type = whole.type();
  each_divided(type, mesh, layout, device, [&](int dim, int64_t first, int64_t has, int64_t) {
    whole = rows_of(whole, dim, {.rows = type.dim(dim).value(), .first = first, .count = has});
  });
  return whole;
}

Tensor padded_part_of(Tensor whole, const Mesh& mesh, const ShardLayout& layout, int64_t device) {
  Tensor made = part_of(whole, mesh, layout, device);
  each_divided(whole.type(), mesh, layout, device,
               [&](int dim, int64_t, int64_t, int64_t part) { made = resized(made, dim, part); });
  return made;
}

Tensor without_padding(Tensor part, Type whole, const Mesh& mesh, const ShardLayout& layout,
                       int64_t device) {
  each_divided(whole, mesh, layout, device,
               [&](int dim, int64_t, int64_t has, int64_t) { part = resized(part, dim, has); });
  return part;
}

Graph parsed(std::string_view text) {
  Result<Graph> graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return graph.ok() ? *graph : Graph();
}

Partition partitioned(const Graph& graph) {
  Result<Partition> made = partition_graph(graph);
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  return made.ok() ? std::move(*made) : Partition();
}

std::string judge_mesh(const Graph& graph, const Partition& made, uint64_t seed) {
  return judge_mesh(graph, made, random_graph_inputs(graph, seed));
}

std::string judge_mesh(const Graph& graph, const Partition& made, std::span<const Tensor> inputs) {
  if (const Status good = verify(made.graph); !good.ok()) return good.error().to_string();
  const int64_t devices = made.mesh->device_count();
  std::vector<std::vector<Tensor>> given(static_cast<size_t>(devices));
  for (size_t device = 0; device < given.size(); ++device)
    for (size_t i = 0; i < inputs.size(); ++i)
      given[device].push_back(
          padded_part_of(inputs[i], *made.mesh, made.inputs[i], static_cast<int64_t>(device)));
  const Result<std::vector<Tensor>> want = evaluate(graph, inputs);
  if (!want.ok()) return "";  // the graph itself cannot run
  const Result<std::vector<std::vector<Tensor>>> have = evaluate_spmd(made.graph, given);
  if (!have.ok()) return have.error().to_string();
  for (size_t device = 0; device < have->size(); ++device)
    for (size_t i = 0; i < want->size(); ++i) {
      const Tensor part =
          part_of((*want)[i], *made.mesh, made.outputs[i], static_cast<int64_t>(device));
      const Tensor& padded = (*have)[device][i];
      if (padded.type() != local_type((*want)[i].type(), made.outputs[i]))
        return "an output has another type";
      const Tensor own = without_padding(padded, (*want)[i].type(), *made.mesh, made.outputs[i],
                                         static_cast<int64_t>(device));
      const std::string text = difference({&own, 1}, {&part, 1}, 1e-5);
      if (!text.empty()) return fmt::format("device {}, output {}: {}", device, i, text);
    }
  return "";
}

MeshRef random_mesh(Rng& rng) {
  constexpr std::array<std::array<int64_t, 3>, 6> kMeshes = {
      {{2, 1, 1}, {4, 1, 1}, {2, 2, 1}, {3, 2, 1}, {2, 4, 1}, {2, 2, 2}}};
  const auto& sizes = kMeshes[rng.below(kMeshes.size())];
  Mesh mesh = {"m", {}};
  for (size_t i = 0; i < sizes.size() && (i == 0 || sizes[i] > 1); ++i)
    mesh.axes.push_back({std::string(1, static_cast<char>('x' + i)), sizes[i]});
  return std::make_shared<const Mesh>(std::move(mesh));
}

Graph randomly_divided(Graph graph, const MeshRef& mesh, Rng& rng) {
  auto all = std::make_shared<Shardings>();
  for (const NodeId n : graph.nodes()) {
    if (is_constant(graph.opcode(n))) continue;
    std::vector<ShardLayout> results;
    std::string_view kind;
    if (is_parameter(graph.opcode(n))) {
      const std::vector<ShardLayout> options = layouts_of(graph.type(graph.result(n)), *mesh);
      results = {options[rng.below(options.size())]};
    } else {
      const Result<NodeDivider> divider = NodeDivider::make(graph, n);
      if (!divider.ok()) {
        ADD_FAILURE() << graph.describe(n) << ": " << divider.error().to_string();
        continue;
      }
      const std::vector<NodeDivision> options = divisions_of(*divider, *mesh);
      const NodeDivision& one = options[rng.below(options.size())];
      results = one.results;
      kind = one.kind;
    }
    for (size_t i = 0; i < results.size(); ++i)
      all->add(graph.result(n, i), sharding_of(mesh, results[i], kind));
  }
  for (uint32_t i = 0; i < graph.outputs().size(); ++i) {
    const std::vector<ShardLayout> options = layouts_of(graph.type(graph.outputs()[i]), *mesh);
    all->set_output(i, sharding_of(mesh, options[rng.below(options.size())]));
  }
  graph.set_shardings(std::move(all));
  return graph;
}

Graph randomly_stated(Graph graph, const MeshRef& mesh, Rng& rng) {
  auto all = std::make_shared<Shardings>();
  for (uint32_t i = 0; i < graph.value_count(); ++i) {
    const bool is_input = std::ranges::find(graph.inputs(), ValueId{i}) != graph.inputs().end();
    if (!is_input && rng.below(4) != 0) continue;
    Sharding made = {.mesh = mesh};
    std::vector<AxisPart> axes;
    for (const MeshAxis& axis : mesh->axes) {
      if (axis.size == 4 && rng.below(2) == 0) {
        axes.push_back({axis.name, 1, 2});
        axes.push_back({axis.name, 2, 2});
      } else {
        axes.push_back({axis.name});
      }
    }
    made.dims.resize(static_cast<size_t>(graph.type({i}).rank()));
    for (DimSharding& dim : made.dims) dim.is_open = rng.below(2) == 0;
    for (AxisPart& part : axes)
      if (!made.dims.empty() && rng.below(3) != 0)
        made.dims[rng.below(made.dims.size())].axes.push_back(std::move(part));
    all->add({i}, std::move(made));
  }
  if (!all->empty()) graph.set_shardings(std::move(all));
  return graph;
}

Graph derivative(uint64_t number) {
  constexpr std::array<std::string_view, kDerivatives> kLosses = {
      "graph @mlp(%x: f32[8, 6], %v: f32[6, 4], %w: f32[4, 2]) -> f32[] {\n"
      "  %h = dot %x, %v {lhs_contract = [1], rhs_contract = [0]}\n"
      "  %a = tanh %h\n"
      "  %y = dot %a, %w {lhs_contract = [1], rhs_contract = [0]}\n"
      "  %e = mul %y, %y\n"
      "  %l = reduce %e {kind = sum, axes = [0, 1]}\n"
      "  return %l\n}\n",
      "graph @conv(%x: f32[4, 2, 8], %w: f32[4, 2, 3]) -> f32[] {\n"
      "  %y = conv %x, %w {pad_low = [1], pad_high = [1]}\n"
      "  %a = tanh %y\n"
      "  %l = reduce %a {kind = sum, axes = [0, 1, 2]}\n"
      "  return %l\n}\n",
      "graph @loop(%x: f32[8, 4], %s: f32[3, 8, 4]) -> f32[] {\n"
      "  %a, %b = scan %x, %s {carried = 1} body (%c: f32[8, 4], %d: f32[8, 4]) {\n"
      "    %e = mul %c, %d\n"
      "    %f = tanh %e\n"
      "    return %f, %e\n"
      "  } : f32[8, 4], f32[3, 8, 4]\n"
      "  %l = reduce %a {kind = sum, axes = [0, 1]}\n"
      "  return %l\n}\n"};
  const Graph loss = parse_graph(kLosses[number % kDerivatives]).value();
  return grad(loss, 0, Mask(loss.inputs().size(), true)).value();
}

namespace {

std::optional<Graph> derivative_of(const Graph& graph, uint64_t seed) {
  if (!graph.is_static()) return std::nullopt;
  const std::optional<Graph> loss = with_loss(graph, seed);
  if (!loss) return std::nullopt;
  const auto last = static_cast<uint32_t>(loss->outputs().size() - 1);
  Result<Graph> made = grad(*loss, last, differentiable_inputs(*loss));
  return made.ok() ? std::optional(std::move(*made)) : std::nullopt;
}

}  // namespace

Graph random_graph_or_derivative(const RandomGraphOptions& options) {
  const uint64_t seed = options.seed;
  if (seed % 8 == 7) return derivative(seed / 8);
  Graph graph = random_graph(options);
  std::optional<Graph> derived = seed % 8 == 3 ? derivative_of(graph, seed) : std::nullopt;
  return derived ? *std::move(derived) : graph;
}

}  // namespace hone::tested

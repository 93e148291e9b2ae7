#include <gtest/gtest.h>

#include "ir/passes/passes.h"
#include "zoo/zoo.h"

// Parameters and multiply-adds of the full models against the figures of their papers.

namespace hone {
namespace {

struct Counts {
  double parameters = 0;
  double macs = 0;
};

double product(std::span<const int64_t> numbers) {
  double result = 1;
  for (int64_t n : numbers) result *= static_cast<double>(n);
  return result;
}

// Only trained numbers: not running means and variances, no plain scalars.
bool is_weight(const Graph& graph, NodeId n) {
  if (graph.opcode(n) != Opcode::constant || !is_real(graph.constant(n).dtype())) return false;
  std::string_view name = graph.name(graph.result(n));
  return !name.empty() && name.find("running_") == name.npos;
}

// Every element of the result is a sum of this many products. Kernels are [out, in, spatial...].
double terms(const Graph& graph, NodeId n) {
  Op op = graph.op(n);
  Ints dims = graph.type(graph.operands(n)[op.opcode() == Opcode::conv ? 1 : 0]).static_dims();
  if (op.opcode() == Opcode::conv) return product(std::span(dims).subspan(1));
  double count = 1;
  for (int64_t axis : op.ints("lhs_contract"))
    count *= static_cast<double>(dims[static_cast<size_t>(axis)]);
  return count;
}

// Of primitive ops. A scan's body counts once a step, a loop's once.
Counts count(const Graph& graph) {
  Counts counts;
  for (NodeId n : graph.nodes()) {
    if (is_weight(graph, n)) counts.parameters += product(graph.constant(n).type().static_dims());
    Opcode opcode = graph.opcode(n);
    if (opcode == Opcode::dot || opcode == Opcode::conv)
      counts.macs += product(graph.type(graph.result(n)).static_dims()) * terms(graph, n);
    double steps = 1;
    if (opcode == Opcode::scan)
      steps = static_cast<double>(graph.type(graph.operands(n).back()).static_dims()[0]);
    for (const GraphRef& region : graph.regions(n)) {
      Counts inner = count(*region);
      counts.parameters += inner.parameters;
      counts.macs += inner.macs * steps;
    }
  }
  return counts;
}

TEST(ZooPublished, FiguresAreMetWithinOnePercent) {
  std::string table = fmt::format("{:16} {:>9} {:>9} {:>9} {:>9}\n", "model", "params/M",
                                  "published", "MACs/G", "published");
  for (const ZooEntry& entry : zoo_entries()) {
    SCOPED_TRACE(entry.name);
    Result<Graph> graph = build_zoo_model(entry.name, {.batch = 1});
    ASSERT_TRUE(graph.ok()) << graph.error().to_string();
    Result<Graph> primitive = expand_composites(*graph);
    ASSERT_TRUE(primitive.ok()) << primitive.error().to_string();
    Counts counts = count(*primitive);
    ZooPublished published = entry.published;
    auto figure = [](double number, double unit) {
      return number == 0 ? std::string("-") : fmt::format("{:.3f}", number / unit);
    };
    table += fmt::format("{:16} {:9.3f} {:>9} {:9.3f} {:>9}\n", entry.name, counts.parameters / 1e6,
                         figure(published.parameters, 1e6), counts.macs / 1e9,
                         figure(published.macs, 1e9));
    if (published.parameters > 0) {
      EXPECT_NEAR(counts.parameters / published.parameters, 1, 0.01);
    }
    if (published.macs > 0) {
      EXPECT_NEAR(counts.macs / published.macs, 1, 0.01);
    }
  }
  std::fputs(table.c_str(), stdout);
}

// By hand: 784 inputs, three hidden layers of 512, ten outputs.
TEST(ZooPublished, CountsOfAPerceptronAreThoseOfAlgebra) {
  Counts counts = count(*build_zoo_model("mlp", {.batch = 2}));
  double weights = 784.0 * 512 + 2 * 512.0 * 512 + 512 * 10;
  EXPECT_EQ(counts.parameters, weights + 3 * 512 + 10);
  EXPECT_EQ(counts.macs, 2 * weights);
}

}  // namespace
}  // namespace hone

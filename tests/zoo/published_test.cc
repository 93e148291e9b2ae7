#include <gtest/gtest.h>

#include "rewrite/passes.h"
#include "zoo/zoo.h"

// Parameters and multiply-adds of the full models against the figures of their papers.

namespace hone::HONE_FILE {
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

// Counts of primitive ops. A scan's body counts once a step, a loop's once.
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

// Counted by hand: 784 inputs, three hidden layers of 512, ten outputs.
TEST(ZooPublished, CountsOfAPerceptronAreThoseOfAlgebra) {
  Counts counts = count(*build_zoo_model("mlp", {.batch = 2}));
  double weights = 784.0 * 512 + 2 * 512.0 * 512 + 512 * 10;
  EXPECT_EQ(counts.parameters, weights + 3 * 512 + 10);
  EXPECT_EQ(counts.macs, 2 * weights);
}

// ---- Derived ------------------------------------------------------------------------------------

// Counts from the definitions of the architectures, layer by layer: where nothing was found
// published, and where the published figure is rounded.

Counts counts_of(std::string_view name) {
  return count(*expand_composites(*build_zoo_model(name, {.batch = 1})));
}

// A linear layer with a bias.
double dense(double in, double out) { return in * out + out; }

TEST(ZooDerived, BertBase) {
  const double words = 30522, places = 512, kinds = 2, width = 768, hidden = 3072, layers = 12;
  const double length = 128, norm = 2 * width;
  const double layer =
      4 * dense(width, width) + dense(width, hidden) + dense(hidden, width) + 2 * norm;
  const Counts counts = counts_of("bert_base");
  EXPECT_EQ(counts.parameters,
            (words + places + kinds) * width + norm + layers * layer + dense(width, width));
  // Four projections, two products of the attention, the two layers behind; the pooler at the end.
  const double per_layer =
      length * (4 * width * width + 2 * width * hidden) + 2 * length * length * width;
  EXPECT_EQ(counts.macs, layers * per_layer + width * width);
}

TEST(ZooDerived, TinyLlama) {
  const double words = 32000, width = 2048, hidden = 5632, layers = 22;
  const double keys = width / 32 * 4;  // 4 of 32 heads have keys and values
  const double layer = 2 * width * width + 2 * width * keys + 3 * width * hidden + 2 * width;
  EXPECT_EQ(counts_of("llama").parameters, 2 * words * width + layers * layer + width);
}

TEST(ZooDerived, TransformerXl) {
  const double words = 267735, width = 410, hidden = 2100, layers = 16;
  // Queries, keys, values, places and output; two biases of the scores; two norms.
  const double layer =
      5 * width * width + 2 * width + dense(width, hidden) + dense(hidden, width) + 2 * 2 * width;
  EXPECT_EQ(counts_of("transformer_xl").parameters, words * width + words + layers * layer);
}

TEST(ZooDerived, LstmLanguageModel) {
  const double words = 10000, width = 1500;
  // Four gates from the input and from the state, with a bias each.
  const double layer = 2 * 4 * dense(width, width);
  EXPECT_EQ(counts_of("lstm").parameters, words * width + 2 * layer + dense(width, words));
}

TEST(ZooDerived, Dlrm) {
  // The 26 tables of the Criteo data have 33,762,577 rows together.
  const double width = 16, vectors = 26 + 1, pairs = vectors * (vectors - 1) / 2;
  const double bottom = dense(13, 512) + dense(512, 256) + dense(256, 64) + dense(64, width);
  const double top = dense(width + pairs, 512) + dense(512, 256) + dense(256, 1);
  EXPECT_EQ(counts_of("dlrm").parameters, 33762577 * width + bottom + top);
}

TEST(ZooDerived, YoloV3) {
  Counts sum;
  auto plain = [&](double kernel, double in, double out, double side) {
    sum.parameters += kernel * kernel * in * out;
    sum.macs += kernel * kernel * in * out * side * side;
    return out;
  };
  auto unit = [&](double kernel, double in, double out, double side) {
    sum.parameters += 2 * out;  // scale and shift of the norm
    return plain(kernel, in, out, side);
  };
  // Darknet-53 without its classifier.
  double side = 416, channels = unit(3, 3, 32, side);
  for (int blocks : {1, 2, 8, 8, 4}) {
    side /= 2;
    channels = unit(3, channels, 2 * channels, side);
    for (int i = 0; i < blocks; ++i) unit(3, unit(1, channels, channels / 2, side), channels, side);
  }
  // Heads at strides 32, 16 and 8: three boxes of 5 + 80 numbers at each place.
  double carried = 0;
  for (double width : {512, 256, 128}) {
    double x = 2 * width;  // the backbone's features
    if (carried > 0) {
      x += unit(1, carried, width, side);
      side *= 2;
    }
    for (int i = 0; i < 3; ++i) {
      x = unit(1, x, width, side);
      if (i < 2) x = unit(3, x, 2 * width, side);
    }
    carried = x;
    plain(1, unit(3, x, 2 * width, side), 255, side);
    sum.parameters += 255;
  }
  const Counts counts = counts_of("yolo_v3");
  // The sizes of the anchors are named numbers, too: three pairs for each of three scales.
  EXPECT_EQ(counts.parameters, sum.parameters + 3 * 3 * 2);
  EXPECT_EQ(counts.macs, sum.macs);
}

}  // namespace
}  // namespace hone::HONE_FILE

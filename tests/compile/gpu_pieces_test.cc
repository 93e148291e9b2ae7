#include <gtest/gtest.h>

#include <algorithm>

#include "compile/compilation.h"
#include "ir/op_facts.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "rewrite/passes.h"
#include "target/gpu_presets.h"

// Values that are too many for a kernel of a GPU are joined in pieces.

namespace hone::HONE_FILE {
namespace {

// exp of `count` values, side by side.
Graph joining(int count) {
  std::string inputs, names;
  for (int i = 0; i < count; ++i) {
    inputs += fmt::format("{}%x{}: f32[2, {}]", i == 0 ? "" : ", ", i, 1 + i % 3);
    names += fmt::format("{}%x{}", i == 0 ? "" : ", ", i);
  }
  return parse_graph(fmt::format("graph @g({}) {{ %c = concat {} {{axis = 1}} %y = exp %c return "
                                 "%y }}",
                                 inputs, names))
      .value();
}

size_t most_operands(const Graph& graph) {
  size_t most = 0;
  for (NodeId n : graph.nodes()) most = std::max(most, graph.operands(n).size());
  return most;
}

TEST(GpuPieces, HaveTheSameElements) {
  const Graph few = joining(256), many = joining(900);
  EXPECT_EQ(join_in_pieces(few).value().node_count(), few.node_count());
  const Graph pieces = join_in_pieces(many).value();
  EXPECT_EQ(most_operands(pieces), 256U);
  std::vector<Tensor> inputs;
  for (ValueId input : many.inputs()) {
    const Type type = many.type(input);
    const auto size = static_cast<size_t>(type.static_elements());
    inputs.push_back(Tensor::from_reals(
        type, std::vector<double>(size, 0.001 * static_cast<double>(inputs.size()))));
  }
  EXPECT_TRUE(evaluate(pieces, inputs).value()[0].same_bytes(evaluate(many, inputs).value()[0]));
}

TEST(GpuPieces, StayOnTheGpu) {
  for (const bool is_for_gpu : {false, true}) {
    CompileOptions options;
    options.prepare.is_for_gpu = is_for_gpu;
    Compilation code(joining(900), *preset_gpu("sm_80"), options);
    ASSERT_TRUE(code.kernels().ok());
    const bool is_on_gpu = std::ranges::all_of(code.reasons_for_cpu(), &std::string::empty);
    EXPECT_EQ(is_on_gpu, is_for_gpu);
  }
}

}  // namespace
}  // namespace hone::HONE_FILE

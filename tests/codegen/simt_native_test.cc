#include <gtest/gtest.h>

#include "codegen/gpu/gpu_code.h"
#include "program/tiles/simt.h"
#include "tests/codegen/native.h"
#include "tests/program/kernel_testing.h"
#include "tests/program/random_kernels.h"

// The second oracle: the form of a kernel for GPUs, compiled for this CPU, computes what the
// interpreter says of the kernel itself.

namespace hone::HONE_FILE {
namespace {

void check_native(const TileProgram& program, std::span<const Tensor> inputs, double slack) {
  SCOPED_TRACE(print(program));
  const TileProgram form = simt_form(program);
  SCOPED_TRACE(print(form));
  const Result<std::vector<Tensor>> expected = interpret(program, inputs);
  ASSERT_TRUE(expected.ok()) << expected.error().to_string();
  const Target host = host_target().value();
  EXPECT_EQ(compile_like_gpu(program, host, "kernel").value(),
            compile_tiles(form, host, "kernel").value());
  const Result<std::vector<Tensor>> actual = run_native(form, inputs, host, 3);
  ASSERT_TRUE(actual.ok()) << actual.error().to_string();
  expect_close(*actual, *expected, slack);
}

void check_contractions(uint64_t first, uint64_t count) {
  const Target host = host_target().value();
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    KernelBody body = body_of_all(RandomGemm(rng).graph());
    draw_layouts(body, {}, rng);
    donate_some(body, rng);
    const Schedule schedule = random_schedule(body, restricted(host, Isa::avx2), rng);
    const std::vector<Tensor> inputs = random_inputs(body.graph, rng);
    std::vector<Tensor> memory;
    for (size_t i = 0; i < inputs.size(); ++i) memory.push_back(stored(inputs[i], body.inputs[i]));
    if (const std::optional<PreparedInput> prepared = prepared_input(body, schedule))
      memory[prepared->parameter] = prepared->value(inputs[prepared->parameter]);
    check_native(build_kernel(body, schedule, "k").value(), memory, 16);
    if (testing::Test::HasFailure()) return;
  }
}

void check_nodes(uint64_t first, uint64_t count) {
  each_node_kernel(first, count, [](const NodeKernel& kernel) {
    if (!kernel.is_special) check_native(kernel.program.value(), kernel.inputs, 1);
  });
}

TEST(SecondOracle, ComputesContractions) { check_contractions(0, 12); }
TEST(SecondOracle, ComputesNodes) { check_nodes(0, 8); }
TEST(SecondOracle, DISABLED_SweepContractions) { check_contractions(1'000'000, 3'000); }
TEST(SecondOracle, DISABLED_SweepNodes) { check_nodes(100'000, 1'000); }

}  // namespace
}  // namespace hone::HONE_FILE

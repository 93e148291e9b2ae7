#include <gtest/gtest.h>

#include "codegen/gpu/gpu_code.h"
#include "program/tiles/serial.h"
#include "program/tiles/simt.h"
#include "tests/codegen/native.h"
#include "tests/program/kernel_testing.h"
#include "tests/program/random_kernels.h"
#include "zoo/random/generator.h"

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

// Just enough points for it: both results lie side by side, one of the operands backwards.
TEST(SecondOracle, ThreadsTakeNeighbours) {
  const TileProgram program =
      parse_tiles(
          "tiles @f(@x: f32[1024, 256], @w: f32[1024, 256]) "
          "-> (@y: f32[1024, 256], @z: f32[1024, 256]) { "
          "threads i in 1024 { threads j in 256 { %x = load @x[i, j] %w = load @w[i, 255 - j] "
          "%n = position i + 3*j: i32 %m = cast %n {dtype = f32} %y = mul %x, %m "
          "%z = sub %w, %m store @y[i, j] = %y store @z[i, j] = %z } } }")
          .value();
  const TileProgram form = simt_form(program);
  EXPECT_NE(print(form).find("unroll j_next in 4"), std::string::npos) << print(form);
  std::vector<Tensor> inputs;
  Rng rng(1);
  for (size_t i = 0; i < 2; ++i) inputs.push_back(random_tensor(program.buffers[i].type, rng));
  const std::vector<Tensor> expected = interpret(program, inputs).value();
  const std::vector<Tensor> of_form = interpret(form, inputs).value();
  const std::vector<Tensor> native =
      run_native(serial_form(form), inputs, host_target().value(), 3).value();
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(std::ranges::equal(of_form[i].bytes(), expected[i].bytes())) << "output " << i;
    EXPECT_TRUE(std::ranges::equal(native[i].bytes(), expected[i].bytes())) << "output " << i;
  }
}

TEST(SecondOracle, ComputesContractions) { check_contractions(0, 12); }
TEST(SecondOracle, ComputesNodes) { check_nodes(0, 8); }
TEST(SecondOracle, DISABLED_SweepContractions) { check_contractions(1'000'000, 3'000); }
TEST(SecondOracle, DISABLED_SweepNodes) { check_nodes(100'000, 1'000); }

}  // namespace
}  // namespace hone::HONE_FILE

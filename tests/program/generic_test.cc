#include "program/build/kernel.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/program/kernel_testing.h"

namespace hone {
namespace {

TEST(GenericKernels, ComputeWhatTheReferenceDoes) {
  std::set<Opcode> seen;
  each_node_kernel(0, legal_pairs().size(), [&](const NodeKernel& kernel) {
    seen.insert(kernel.opcode);
    check_program(kernel.program, kernel.inputs, kernel.expected);
  });
  for (int i = 0; i < kOpcodeCount; ++i) {
    const auto opcode = static_cast<Opcode>(i);
    EXPECT_EQ(seen.contains(opcode), is_kernel(opcode)) << name(opcode);
  }
}

TEST(GenericKernels, DISABLED_SweepRandomGraphs) {
  each_node_kernel(100'000, 20'000, [](const NodeKernel& kernel) {
    check_program(kernel.program, kernel.inputs, kernel.expected);
  });
}

TEST(GenericKernels, RefuseWhatIsNoKernel) {
  const Type f32 = Type::get(DType::f32, {2, 3});
  const Type types[] = {f32};
  const Op softmax = Op::get(Opcode::softmax, {{"axis", int64_t{1}}});
  Result<TileProgram> program = build_generic({softmax, types}, "k");
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().to_string(), "error: softmax is no kernel");
}

}  // namespace
}  // namespace hone

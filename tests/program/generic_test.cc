#include "program/build/kernel.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/base/says_testing.h"
#include "tests/program/kernel_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

void check_node_kernel(const NodeKernel& kernel) {
  if (!kernel.is_special) return check_program(kernel.program, kernel.inputs, kernel.expected);
  ASSERT_TRUE(kernel.program.ok()) << kernel.program.error().to_string();
  const Result<std::vector<Tensor>> actual = interpret(*kernel.program, kernel.inputs, {});
  ASSERT_TRUE(actual.ok()) << actual.error().to_string();
  expect_outputs(kernel, *actual);
}

TEST(GenericKernels, ComputeWhatTheReferenceDoes) {
  std::set<Opcode> seen;
  each_node_kernel(0, legal_pairs().size(), [&](const NodeKernel& kernel) {
    seen.insert(kernel.opcode);
    check_node_kernel(kernel);
  });
  for (int i = 0; i < kOpcodeCount; ++i) {
    const auto opcode = static_cast<Opcode>(i);
    EXPECT_EQ(seen.contains(opcode), is_kernel(opcode)) << name(opcode);
  }
}

TEST(GenericKernels, DISABLED_SweepRandomGraphs) {
  each_node_kernel(100'000, 20'000, check_node_kernel);
}

TEST(GenericKernels, RefuseWhatIsNoKernel) {
  const Type f32 = Type::get(DType::f32, {2, 3});
  const Type types[] = {f32};
  const Op softmax = Op::get(Opcode::softmax, {{"axis", int64_t{1}}});
  Result<TileProgram> program = build_generic({softmax, types}, "k");
  ASSERT_FALSE(program.ok());
  EXPECT_THAT(program.error().to_string(), says("softmax ... kernel"));
}

}  // namespace
}  // namespace hone::HONE_FILE

#include <gtest/gtest.h>

#include "tests/base/share_testing.h"
#include "tests/codegen/native.h"
#include "tests/program/kernel_testing.h"

namespace hone::HONE_FILE {
namespace {

void check_native(const NodeKernel& kernel) {
  const std::vector<Target> targets = host_targets();
  const Target& target = targets[kernel.seed % targets.size()];
  ASSERT_TRUE(kernel.program.ok()) << kernel.program.error().to_string();
  SCOPED_TRACE(print(*kernel.program));
  Result<std::vector<Tensor>> actual = run_native(*kernel.program, kernel.inputs, target, 2);
  ASSERT_TRUE(actual.ok()) << actual.error().to_string();
  expect_outputs(kernel, *actual);
}

TEST(NativeGenericKernels, ComputeWhatTheReferenceDoes) {
  each_node_kernel(0, tested::share_of(40, 2), check_native);
}

TEST(NativeGenericKernels, DISABLED_SweepRandomGraphs) {
  each_node_kernel(100'000, 2'000, check_native);
}

}  // namespace
}  // namespace hone::HONE_FILE

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/thread_pool.h"
#include "codegen/kernels.h"
#include "ir/text.h"
#include "planner/planner.h"
#include "program/lower/lower.h"
#include "rewrite/prepare.h"

namespace hone::HONE_FILE {
namespace {

// Kernels of little code stand before and behind one of much code.
Program program_for(const Target& target) {
  const Graph graph = prepare(parse_graph(R"(graph @g(%x: f32[64, 64], %w: f32[64, 64]) {
    %a = transpose %x {permutation = [1, 0]}
    %b = dot %a, %w {lhs_contract = [1], rhs_contract = [0]}
    %c = sort %b {axis = 0}
    %d = reduce %c {kind = max, axes = [0, 1]}
    return %d
  })")
                                  .value())
                          .value();
  return lower(graph, complete(graph, {}, target).value(), target).value();
}

TEST(CompileOrder, TheLongestKernelIsFirst) {
  const Target target = host_target().value();
  const Program program = program_for(target);
  ASSERT_GE(program.kernels.size(), 3u);
  std::vector<std::string> wanted, compiled;
  std::vector<const program::Kernel*> kernels;
  for (const program::Kernel& kernel : program.kernels) kernels.push_back(&kernel);
  const auto length = [&](const program::Kernel* k) { return kernel_key(*k, target).size(); };
  std::ranges::sort(
      kernels, [&](auto* a, auto* b) { return std::pair(length(b), a) < std::pair(length(a), b); });
  for (const program::Kernel* kernel : kernels) wanted.push_back(kernel->tiles.name);
  ASSERT_NE(kernels[0], &program.kernels[0]);  // else any order would do
  ThreadPool pool(1);
  const KernelOptions options = {
      .observer = [&](const std::string& kernel, const Span&) { compiled.push_back(kernel); }};
  const std::vector<KernelCode> code =
      compile_kernels(program.kernels, target, pool, options).value();
  EXPECT_EQ(compiled, wanted);
  EXPECT_TRUE(instantiate(program, {}, code).ok());  // each result stands where its kernel does
}

}  // namespace
}  // namespace hone::HONE_FILE

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "compile/compilation.h"
#include "tests/base/allocations.h"
#include "zoo/inputs.h"
#include "zoo/zoo.h"

// These hold from the second run of a compiled model on.

namespace hone::HONE_FILE {
namespace {

// A product that is large enough for two threads, and what follows it.
Graph large() { return build_zoo_model("mlp", {.batch = 256}).value(); }

Target two_cores() {
  Target target = host_target().value();
  target.cores = 2;
  return target;
}

std::shared_ptr<const Executable> compiled(const Graph& graph) {
  return Compilation(graph, two_cores()).executable().value();
}

TEST(Steady, TheModelIsDividedAmongThreads) {
  Compilation compilation(large(), two_cores());
  const Image& image = **compilation.image();
  EXPECT_EQ(image.threads, 2);
  const bool divides = std::ranges::any_of(image.kernels, [](const image::Kernel& kernel) {
    return std::ranges::any_of(kernel.phases, [](const image::Phase& phase) {
      return phase.is_parallel && phase.trips > 1;
    });
  });
  EXPECT_TRUE(divides);
}

TEST(Steady, EachCompilationGivesTheSameBits) {
  const Graph graph = large();
  const std::vector<Tensor> inputs = random_inputs(graph, 1).value();
  const std::vector<Tensor> first = compiled(graph)->run(inputs).value();
  const std::shared_ptr<const Executable> second = compiled(graph);
  for (int run = 0; run < 20; ++run) {
    const std::vector<Tensor> again = second->run(inputs).value();
    for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(again[i].same_bytes(first[i]));
  }
}

TEST(Steady, ThreadsRunOneExecutableAtOnce) {
  const Graph graph = large();
  const std::shared_ptr<const Executable> executable = compiled(graph);
  std::vector<std::vector<Tensor>> inputs, expected;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    inputs.push_back(random_inputs(graph, seed).value());
    expected.push_back(executable->run(inputs.back()).value());
  }
  EXPECT_FALSE(expected[0][0].same_bytes(expected[1][0]));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < inputs.size(); ++t)
    threads.emplace_back([&, t] {
      for (int run = 0; run < 20; ++run) {
        const Result<std::vector<Tensor>> outputs = executable->run(inputs[t]);
        if (!outputs.ok() || !(*outputs)[0].same_bytes(expected[t][0])) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Steady, RunsAllocateNothing) {
#ifndef HONE_COUNTS_ALLOCATIONS
  GTEST_SKIP() << "allocations cannot be counted here";
#endif
  const Graph graph = large();
  const std::shared_ptr<const Executable> executable = compiled(graph);
  const std::vector<Tensor> inputs = random_inputs(graph, 1).value();
  const std::vector<Tensor> expected = executable->run(inputs).value();
  std::vector<const void*> from;
  for (const Tensor& input : inputs) from.push_back(input.bytes().data());
  std::vector<std::vector<double>> memory;  // aligned to any element
  std::vector<void*> to;
  for (const Tensor& output : expected)
    to.push_back(memory.emplace_back(output.bytes().size() / sizeof(double) + 1).data());
  bool runs = true;
  const auto allocations_of_a_run = [&] {
    allocations = 0;
    is_counting = true;
    runs = executable->run(from, to).ok() && runs;
    is_counting = false;
    return allocations.load();
  };
  // A thread of the team may still be starting. It allocates its stack for signals once.
  for (int run = 0; run < 100 && allocations_of_a_run() != 0; ++run) continue;
  allocations = 0;
  is_counting = true;
  for (int run = 0; run < 10; ++run) runs = runs && executable->run(from, to).ok();
  is_counting = false;
  EXPECT_TRUE(runs);
  EXPECT_EQ(allocations, 0);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(std::memcmp(to[i], expected[i].bytes().data(), expected[i].bytes().size()), 0);
}

}  // namespace
}  // namespace hone::HONE_FILE

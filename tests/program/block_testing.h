#pragma once

#include <gtest/gtest.h>

#include "oracle/accuracy.h"
#include "program/tiles/serial.h"
#include "program/tiles/simt.h"
#include "target/gpu_presets.h"
#include "tests/program/kernel_testing.h"
#include "tests/program/random_kernels.h"

// Kernels by blocks of threads.

namespace hone {

inline const Target& any_gpu() {
  static const Target target = *preset_gpu("sm_80");
  return target;
}

inline const Target& hopper() {
  static const Target target = *preset_gpu("sm_90");
  return target;
}

// The tensors that callers give a kernel of the body.
inline std::vector<Tensor> memory_of(const KernelBody& body, std::span<const Tensor> inputs) {
  std::vector<Tensor> memory;
  for (size_t i = 0; i < inputs.size(); ++i) memory.push_back(stored(inputs[i], body.inputs[i]));
  return memory;
}

// Bit for bit the same, in whatever order warps run, whenever boxes come, and with each block as
// one thread.
inline void expect_same_in_any_order(const TileProgram& program, std::span<const Tensor> memory) {
  const Result<std::vector<Tensor>> first = interpret(program, memory);
  ASSERT_TRUE(first.ok()) << first.error().to_string();
  const TileProgram serial = serial_form(simt_form(program));
  const Status status = verify(serial);
  ASSERT_TRUE(status.ok()) << status.error().to_string() << print(serial);
  for (uint64_t seed : {0, 1, 2}) {
    const Result<std::vector<Tensor>> again =
        seed == 0 ? interpret(serial, memory)
                  : interpret(program, memory, {.seed = seed, .lands_late = seed == 2});
    ASSERT_TRUE(again.ok()) << again.error().to_string() << print(serial);
    for (size_t i = 0; i < first->size(); ++i)
      EXPECT_TRUE(std::ranges::equal((*again)[i].bytes(), (*first)[i].bytes())) << "seed " << seed;
  }
}

// Against the reference and the second oracle.
inline void check_block_kernel(const KernelBody& body, const Schedule& schedule,
                               const std::vector<Tensor>& inputs, double slack = 16,
                               const Target& gpu = any_gpu()) {
  const Status legal = check_schedule(body, schedule, gpu);
  ASSERT_TRUE(legal.ok()) << legal.error().to_string() << print(schedule);
  check_kernel(body, schedule, inputs, slack);
  if (testing::Test::HasFailure()) return;
  SCOPED_TRACE(print(schedule));
  expect_same_in_any_order(build_kernel(body, schedule, "k").value(), memory_of(body, inputs));
}

// Judges the product by the rule for f32, as a kernel with this text computes it.
inline Accuracy accuracy_of(const KernelBody& body, const std::string& text, bool cuts_sums) {
  std::vector<AccuracyRun> runs;
  for (uint64_t seed : {1, 2}) {
    Rng rng(seed);
    const std::vector<Tensor> inputs = random_inputs(body.graph, rng);
    const auto reference = [&](Numerics numerics) {
      return evaluate(body.graph, inputs, {.numerics = numerics, .real_outputs_as_f64 = true})
          .value()[0];
    };
    const Tensor actual =
        interpret(parse_tiles(text).value(), inputs, {.cuts_sums = cuts_sums}).value()[0];
    runs.push_back({actual, reference(Numerics::wide), reference(Numerics::fp32)});
  }
  return accuracy(runs).value();
}

}  // namespace hone

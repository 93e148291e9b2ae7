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
  std::vector<Tensor> memory = memory_of(body, inputs);
  if (const std::optional<PreparedInput> prepared = prepared_input(body, schedule))
    memory[prepared->parameter] = prepared->value(inputs[prepared->parameter]);
  expect_same_in_any_order(build_kernel(body, schedule, "k").value(), memory);
}

// Multiplies all numbers of an input by a power of two.
inline void scale(Tensor& input, int exponent) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < input.elements(); ++i)
    numbers.push_back(std::ldexp(input.real_at(i), exponent));
  input = Tensor::from_reals(input.type(), numbers);
}

// Gives each number of an input another exponent, with some chance.
inline void make_wild(Tensor& input, double chance, Rng& rng) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < input.elements(); ++i) {
    const double number = input.real_at(i);
    numbers.push_back(
        rng.chance(chance) ? std::ldexp(number, static_cast<int>(rng.between(-149, 50))) : number);
  }
  input = Tensor::from_reals(input.type(), numbers);
}

using ChangeInputs = std::function<void(std::vector<Tensor>& inputs, Rng& rng)>;

// Judges the product by the rule for f32, as a kernel with this text computes it.
inline Accuracy accuracy_of(const KernelBody& body, const std::string& text, bool cuts_sums,
                            const ChangeInputs& change = {}) {
  std::vector<AccuracyRun> runs;
  for (uint64_t seed : {1, 2}) {
    Rng rng(seed);
    std::vector<Tensor> inputs = random_inputs(body.graph, rng);
    if (change) change(inputs, rng);
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

// Products of f32 on tensor cores keep the rule for f32 for all numbers.
inline void expect_accurate_for_all_numbers(const KernelBody& body, const Schedule& schedule) {
  const std::string text = print(build_kernel(body, schedule, "k").value());
  const auto judge = [&](const std::string& what, const ChangeInputs& change) {
    for (bool cuts_sums : {false, true}) {
      const Accuracy result = accuracy_of(body, text, cuts_sums, change);
      EXPECT_TRUE(result.passed()) << what << ": " << result.to_string();
    }
  };
  // Results are normal, denormal, and too small; a factor is tame, wild, denormal, or huge.
  for (const auto& [left, right] : {std::pair(-75, -60),
                                    {-89, -60},
                                    {-100, -20},
                                    {-140, 10},
                                    {-70, -90},
                                    {-89, 18},
                                    {-110, 90},
                                    {18, 17},
                                    {60, 50}})
    judge(fmt::format("2^{} and 2^{}", left, right),
          [left = left, right = right](std::vector<Tensor>& inputs, Rng&) {
            scale(inputs[0], left);
            scale(inputs[1], right);
          });
  for (double chance : {0.002, 0.05, 1.0})
    judge(fmt::format("a share of {}", chance), [&](std::vector<Tensor>& inputs, Rng& rng) {
      for (Tensor& input : inputs) make_wild(input, chance, rng);
    });
}

}  // namespace hone

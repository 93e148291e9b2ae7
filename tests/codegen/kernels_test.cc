#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/kernels.h"
#include "ir/text.h"
#include "kernel/schedule_space.h"
#include "kernel/schedule_text.h"
#include "tests/base/share_testing.h"
#include "tests/codegen/native.h"
#include "tests/program/kernel_testing.h"
#include "tests/program/random_kernels.h"
#include "zoo/random/random_graph.h"

namespace hone::HONE_FILE {
namespace {

// Builds and compiles the kernel, runs it, and compares with the reference.
void check_native(const KernelBody& body, const Schedule& schedule,
                  const std::vector<Tensor>& inputs, const Target& target) {
  SCOPED_TRACE(print(body.graph) + print(schedule));
  const TileProgram program = build_kernel(body, schedule, "k").value();
  SCOPED_TRACE(print(program));
  std::vector<Tensor> memory;
  for (size_t i = 0; i < inputs.size(); ++i) memory.push_back(stored(inputs[i], body.inputs[i]));
  if (const std::optional<PreparedInput> prepared = prepared_input(body, schedule))
    memory[prepared->parameter] = prepared->value(inputs[prepared->parameter]);
  Result<std::vector<Tensor>> actual = run_native(program, memory, target, 2);
  ASSERT_TRUE(actual.ok()) << actual.error().to_string();
  const std::vector<Tensor> expected =
      evaluate(body.graph, inputs, {.numerics = Numerics::rounded}).value();
  for (size_t i = 0; i < expected.size(); ++i) {
    Tolerance tolerance = default_tolerance(expected[i].dtype());
    tolerance = {tolerance.relative * 16, tolerance.absolute * 16};
    Result<Comparison> comparison =
        compare((*actual)[i], stored(expected[i], body.outputs[i]), tolerance);
    ASSERT_TRUE(comparison.ok()) << comparison.error().to_string();
    EXPECT_TRUE(comparison->passed()) << comparison->to_string();
  }
}

// A kernel of a body that is row-major.
void check_on_specials(const KernelBody& body, const Schedule& schedule,
                       const std::vector<Tensor>& inputs, const Target& target) {
  SCOPED_TRACE(print(body.graph) + print(schedule));
  std::vector<Tensor> memory = inputs;
  if (const std::optional<PreparedInput> prepared = prepared_input(body, schedule))
    memory[prepared->parameter] = prepared->value(inputs[prepared->parameter]);
  const Result<std::vector<Tensor>> actual =
      run_native(build_kernel(body, schedule, "k").value(), memory, target, 2);
  ASSERT_TRUE(actual.ok()) << actual.error().to_string();
  expect_specials(body.graph, inputs, *actual);
}

void check_contractions(uint64_t first, uint64_t count) {
  const std::vector<Target> targets = host_targets();
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    KernelBody body = body_of_all(RandomGemm(rng).graph());
    const Specials specials = specials_of(seed);
    draw_layouts(body, specials, rng);
    donate_some(body, rng);
    const Target& target = targets[seed % targets.size()];
    const Schedule schedule = random_schedule(body, target, rng);
    const std::vector<Tensor> inputs = random_inputs(body.graph, rng, specials);
    if (specials.any())
      check_on_specials(body, schedule, inputs, target);
    else
      check_native(body, schedule, inputs, target);
    if (testing::Test::HasFailure()) return;
  }
}

void check_groups(uint64_t first, uint64_t count) {
  const std::vector<Target> targets = host_targets();
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const Specials specials = specials_of(seed);
    const Graph graph = random_graph({.seed = seed,
                                      .max_steps = 12,
                                      .max_elements = 64,
                                      .continuous = !specials.any(),
                                      .specials = specials});
    const Users users(graph);
    const std::vector<Tensor> values =
        all_values(graph, random_graph_inputs(graph, seed, specials));
    const std::vector<NodeId> nodes = random_group(graph, users, rng);
    if (nodes.empty()) continue;
    KernelBody body = body_of(graph, users, nodes, {});
    draw_layouts(body, specials, rng);
    donate_some(body, rng);
    std::vector<Tensor> inputs;
    for (ValueId input : ports_of(graph, users, nodes).inputs)
      inputs.push_back(values[input.index]);
    const Target& target = targets[seed % targets.size()];
    const Schedule schedule = random_schedule(body, target, rng);
    if (specials.any())
      check_on_specials(body, schedule, inputs, target);
    else
      check_native(body, schedule, inputs, target);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(NativeKernels, FusedGroupsComputeWhatTheReferenceDoes) { check_groups(0, 60); }
TEST(NativeKernels, ContractionsComputeWhatTheReferenceDoes) { check_contractions(0, 40); }
// Windows in lanes leave most lanes shut, whole registers of them. LLVM 19 reads such registers,
// and what lies beyond the image, if their masks are cut from wider ones.
TEST(NativeKernels, LanesBeyondAWindowAreNotRead) {
  const Graph graph = parse_graph(
                          "graph @g(%x: f32[1, 3, 32, 32]) -> f32[1, 3, 32, 32] { "
                          "%y = window_reduce %x {kind = max, window = [1, 1, 2, 2], "
                          "pad_high = [0, 0, 1, 1]} return %y }")
                          .value();
  const KernelBody body = body_of_all(graph);
  Rng rng(1);
  const std::vector<Tensor> inputs = random_inputs(graph, rng);
  for (int lanes : {8, 16, 32, 64}) {
    const std::string text =
        fmt::format("{{algorithm = nest, order = [0, 1, 2, 3], lanes = [5:{}]}}", lanes);
    TextParser parser(text, {});
    const Schedule schedule = parse_schedule(parser).value();
    for (const Target& target : host_targets()) check_native(body, schedule, inputs, target);
  }
}

Schedule schedule_of(std::string_view text) {
  TextParser parser(text, {});
  return parse_schedule(parser).value();
}

// Checks the kernel of a whole graph on all levels.
void check_schedules(std::string_view text, const std::vector<std::string>& schedules) {
  const Graph graph = parse_graph(text).value();
  const KernelBody body = body_of_all(graph);
  Rng rng(1);
  const std::vector<Tensor> inputs = random_inputs(graph, rng);
  for (const std::string& schedule : schedules)
    for (const Target& target : host_targets())
      check_native(body, schedule_of(schedule), inputs, target);
}

// Lanes apart, next to points in registers that are neighbours: where numbers are read, where they
// are written, whole blocks and parts of them, forward and back.
TEST(NativeKernels, BlocksAreTransposedInRegisters) {
  uint64_t number = 0;
  std::vector<std::string> schedules;
  for (int lanes : {4, 8, 16, 32})
    for (int unroll : {3, 4, 7, 9, 16, 20})
      for (int dim : {0, 1})
        if (tested::in_share(number++, 4))
          schedules.push_back(
              fmt::format("{{algorithm = nest, order = [0, 1], lanes = [{}:{}], unroll = [{}:{}]}}",
                          dim, lanes, 1 - dim, unroll));
  check_schedules(R"(graph @g(%x: f32[72, 50]) -> f32[50, 72] {
    %y = transpose %x {permutation = [1, 0]}
    return %y
  })",
                  schedules);
  check_schedules(R"(graph @g(%x: f32[72, 50], %z: i32[72, 50]) -> (f32[50, 72], i32[50, 72]) {
    %0 = transpose %x {permutation = [1, 0]}
    %1 = reverse %0 {axes = [1, 0]}
    %2 = transpose %z {permutation = [1, 0]}
    return %1, %2
  })",
                  schedules);
  // Two dims make one run.
  check_schedules(R"(graph @g(%x: f32[40, 3, 3]) -> f32[3, 3, 40] {
    %y = transpose %x {permutation = [1, 2, 0]}
    return %y
  })",
                  {"{algorithm = nest, order = [0, 1, 2], lanes = [2:16], unroll = [0:3, 1:3]}",
                   "{algorithm = nest, order = [2, 0, 1], lanes = [2:8], unroll = [0:3, 1:2]}"});
}

TEST(NativeKernels, TransposedBlocksTakeNoLaneAlone) {
  const KernelBody body = body_of_all(parse_graph(R"(graph @g(%x: f32[64, 64]) -> f32[64, 64] {
    %y = transpose %x {permutation = [1, 0]}
    return %y
  })")
                                          .value());
  for (int dim : {0, 1}) {
    const Schedule schedule = schedule_of(fmt::format(
        "{{algorithm = nest, order = [0, 1], lanes = [{}:16], unroll = [{}:16]}}", dim, 1 - dim));
    const TileProgram program = build_kernel(body, schedule, "k").value();
    const std::string text =
        compile_tiles(program, host_target().value(), "k", CodeForm::mlir).value();
    EXPECT_THAT(text, testing::HasSubstr("shufflevector"));
    EXPECT_THAT(text, testing::Not(testing::ContainsRegex("gather|scatter")));
  }
}

// Groups of fewer features than a vector has lanes, of more, and of no multiple; tiles go beyond
// the ends of images.
TEST(NativeKernels, WinogradTakesConvsInGroups) {
  struct Groups {
    int64_t count, channels, features;  // of each
  };
  const std::vector<Target> targets = host_targets();
  uint64_t seed = 0;
  for (const Groups& groups : {Groups{4, 4, 4}, {2, 20, 20}, {3, 5, 35}})
    for (std::string_view dtype : {"f32", "f16"})
      for (std::string_view image : {"23", "9, 14"})
        for (int round = 0; round < 2; ++round) {
          const std::string text = fmt::format(
              "graph @g(%x: {0}[2, {1}, {2}], %w: {0}[{3}, {4}, {5}]) {{ %y = conv %x, %w "
              "{{pad_low = [{6}], pad_high = [{6}], groups = {7}, winograd = 4}} return %y }}",
              dtype, groups.count * groups.channels, image, groups.count * groups.features,
              groups.channels, image == "23" ? "3" : "3, 3", image == "23" ? "1" : "1, 1",
              groups.count);
          if (!tested::in_share(++seed, 2)) continue;
          Rng rng(seed);
          KernelBody body = body_of_all(parse_graph(text).value());
          draw_layouts(body, {}, rng);
          const Target& target = targets[seed % targets.size()];
          const Schedule schedule = random_schedule_by(Algorithm::winograd, body, target, rng);
          if (HasFailure()) return;
          check_native(body, schedule, random_inputs(body.graph, rng), target);
        }
}

// LLVM 19 had the wrong truth table (codegen/bit_selects.h).
TEST(NativeKernels, SelectsOfBitsOfOneOperandAreRight) {
  for (std::string_view text :
       {"graph @g(%x: bf16[32]) -> bf16[32] { %y = log1p %x return %y }",
        "graph @g(%x: f32[32], %v: f32[32], %c: bool[32]) -> (f32[32], f32[32]) { "
        "%a = abs %v %s = sign %x %m = mul %a, %s %y = select %c, %x, %m %z = select %c, %m, %x "
        "return %y, %z }",
        "graph @g(%x: i32[32], %v: i32[32], %c: bool[32]) -> (i32[32], i32[32]) { "
        "%k = constant 65280 : i32[] %kk = broadcast %k {dims = [32], map = []} %n = not %kk "
        "%a = and %x, %kk %b = and %v, %n %o = or %a, %b "
        "%y = select %c, %x, %o %z = select %c, %o, %v return %y, %z }"})
    check_schedules(text, {"{algorithm = nest, order = [0], lanes = [0:2]}",
                           "{algorithm = nest, order = [0], lanes = [0:4]}",
                           "{algorithm = nest, order = [0], lanes = [0:8]}",
                           "{algorithm = nest, order = [0], lanes = [0:16]}",
                           "{algorithm = nest, order = [0], lanes = [0:32]}"});
}

// Code from the cache must be what would be made.
TEST(NativeKernels, KeysNameAllThatTheCodeDependsOn) {
  const auto kernel = [](std::string_view name, std::string_view op) {
    const Graph graph = parse_graph(fmt::format("graph @g(%x: f32[8]) -> f32[8] {{ "
                                                "%y = {} %x return %y }}",
                                                op))
                            .value();
    const KernelBody body = body_of_all(graph);
    TileProgram tiles = build_kernel(body, {}, std::string(name)).value();
    return program::Kernel{.hash = 7, .tiles = std::move(tiles)};
  };
  Target target = host_target().value();
  target.isa = Isa::avx512;
  target.extensions = {};
  const std::string key = kernel_key(kernel("k", "abs"), target);
  EXPECT_EQ(kernel_key(kernel("other", "abs"), target), key);
  EXPECT_NE(kernel_key(kernel("k", "neg"), target), key);
  EXPECT_NE(kernel_key(kernel("k", "abs"), restricted(target, Isa::avx2)), key);
  target.extensions.insert(Extension::avx512_bf16);
  EXPECT_NE(kernel_key(kernel("k", "abs"), target), key);
  EXPECT_THAT(key, testing::ContainsRegex("compiler [0-9.]+-[0-9a-f]+ llvm 19\\."));
}
TEST(NativeKernels, DISABLED_SweepGroups) { check_groups(1'000'000, 5'000); }
TEST(NativeKernels, DISABLED_SweepContractions) { check_contractions(1'000'000, 5'000); }

}  // namespace
}  // namespace hone::HONE_FILE

#include "compile/gpu_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/gpu/gpu_code.h"
#include "compile/compilation.h"
#include "ir/text.h"
#include "program/program.h"
#include "target/gpu_presets.h"

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;
using testing::Not;

// The code of a program with this kernel and these frames.
GpuCode code_of(std::string_view kernel, std::string_view frames) {
  const Result<Program> program =
      parse_program(fmt::format("program @p {{\n threads 1\n {}\n {}\n}}\n", kernel, frames));
  EXPECT_TRUE(program.ok()) << program.error().to_string();
  if (!program.ok()) return {};
  EXPECT_TRUE(verify(*program).ok()) << verify(*program).error().to_string();
  return compile_gpu_kernels(*program, *preset_gpu("sm_80"), default_pool(), {}).value();
}

// Large enough for threads that take four numbers at once.
constexpr std::string_view kWide =
    "tiles @f(@x: f32[1024, 256]) -> (@y: f32[1024, 256]) { threads i in 1024 { threads j in 256 { "
    "%x = load @x[i, j] %y = neg %x store @y[i, j] = %y } } }";

GpuKernel kernel_of(std::string_view frames) { return code_of(kWide, frames).gpu[0]; }

TEST(GpuKernels, PartsOfBuffersAreReadAtOnceFromWholePieces) {
  const auto of_view = [](int bytes) {
    return kernel_of(
        fmt::format("frame @main(%x: f32[262208]) -> (%y: f32[1024, 256]) {{\n"
                    "view %v: f32[1024, 256] = %x [{}]\n"
                    "0 @k = launch @f(%v) -> (%y)\n}}",
                    bytes));
  };
  EXPECT_THAT(of_view(64).ptx, HasSubstr(".v4"));
  EXPECT_THAT(of_view(4).ptx, Not(HasSubstr(".v4")));
  // The code says so itself: who loads it looks where its buffers lie.
  EXPECT_EQ(of_view(64).alignment, kGpuBufferAlignment);
  EXPECT_EQ(of_view(4).alignment, 1);
  // Another frame is given the part, and a second launch has a whole buffer.
  const auto of_call = [](int bytes) {
    return kernel_of(
        fmt::format("frame @one(%a: f32[1024, 256]) -> (%b: f32[1024, 256]) {{\n"
                    "0 @k = launch @f(%a) -> (%b)\n}}\n"
                    "frame @main(%x: f32[262208], %w: f32[1024, 256]) -> "
                    "(%y: f32[1024, 256], %z: f32[1024, 256]) {{\n"
                    "view %v: f32[1024, 256] = %x [{}]\n"
                    "0 @c = call @one(%v) -> (%y)\n"
                    "1 @k = launch @f(%w) -> (%z)\n}}",
                    bytes));
  };
  EXPECT_THAT(of_call(16).ptx, HasSubstr(".v4"));
  EXPECT_THAT(of_call(8).ptx, Not(HasSubstr(".v4")));
  EXPECT_EQ(of_call(16).alignment, kGpuBufferAlignment);
  EXPECT_EQ(of_call(8).alignment, 1);
}

// The second step of 24 bytes does not begin at a multiple of 16, one of 32 does.
TEST(GpuKernels, StepsOfAScanAreCopiedFromWholePieces) {
  const auto reason = [](int rows) {
    return code_of(
               fmt::format("tiles @f(@x: f32[{0}, 2]) -> (@y: f32[{0}, 2]) {{ "
                           "block @b: f32[2] blocks i in {0} {{ "
                           "threads t in 1 {{ copy 2 @b[2*t] = @x[i, 2*t] }} group wait 0 barrier "
                           "threads u in 2 {{ %x = load @b[u] store @y[i, u] = %x }} }} }}",
                           rows),
               fmt::format("frame @step(%s: f32[2], %x: f32[{0}, 2]) -> (%y: f32[{0}, 2]) {{\n"
                           "0 @k = launch @f(%x) -> (%y)\n}}\n"
                           "frame @main(%s: f32[2], %xs: f32[5, {0}, 2]) -> "
                           "(%ys: f32[5, {0}, 2]) {{\n"
                           "0 @l = scan [5] do @step(%s over %xs) -> (%s over %ys)\n}}",
                           rows))
        .on_cpu[0];
  };
  EXPECT_EQ(reason(4), "");
  EXPECT_THAT(reason(3), HasSubstr("any element"));
}

// A kernel for which no thread of a GPU has room is for the CPU beside it, with the reason.
TEST(GpuKernels, WhatDoesNotFitAGpuRunsOnTheCpu) {
  const auto reason = [](int numbers) {
    const GpuCode code =
        code_of(fmt::format("tiles @f(@x: f32[4]) -> (@y: f32[4]) {{ scratch @t: f32[{}] "
                            "threads i in 4 {{ %x = load @x[i] store @t[i] = %x %t = load @t[i] "
                            "store @y[i] = %t }} }}",
                            numbers),
                "frame @main(%x: f32[4]) -> (%y: f32[4]) {\n0 @k = launch @f(%x) -> (%y)\n}");
    EXPECT_EQ(code.gpu[0].phases.empty(), code.code[0].object != nullptr);
    return code.on_cpu[0];
  };
  EXPECT_EQ(reason(4'194'304), "");
  EXPECT_THAT(reason(6'000'000), HasSubstr("24000000 bytes of scratch"));
}

// Blocks share a sort, a cumulative sum and a scatter, but not if sizes are open or threads would
// share bytes. A large kernel of these is for the CPU.
TEST(GpuKernels, WhatFewThreadsWouldTakeLongForRunsOnTheCpu) {
  const auto reason = [](std::string_view graph) {
    Compilation compilation(parse_graph(graph).value(), *preset_gpu("sm_80"));
    EXPECT_TRUE(compilation.kernels().ok());
    const auto reasons = compilation.reasons_for_cpu();
    return reasons.empty() ? std::string() : std::string(reasons[0]);
  };
  EXPECT_THAT(reason("graph @g(%x: f32[60000], %p: i4[60000]) { %y, %q = sort %x, %p {axis = 0} "
                     "return %y, %q }"),
              HasSubstr("few threads of a GPU"));
  for (const char* shared :
       {"graph @g(%x: f32[1000000]) { %y = cumulative %x {axis = 0, kind = sum} return %y }",
        "graph @g(%x: f32[60000]) { %y = sort %x {axis = 0} return %y }",
        "graph @g(%x: f32[100000, 16]) { %y = sort %x {axis = 1} return %y }",
        "graph @g(%x: f32[1000000], %i: i32[100000, 1], %u: f32[100000]) { %y = scatter %x, %i, %u "
        "{window_dims = [], inserted_dims = [0], index_map = [0], index_vector_dim = 1, "
        "combine = add} return %y }",
        "graph @g(%x: f32[1000000]) { %y = exp %x return %y }"})
    EXPECT_EQ(reason(shared), "") << shared;
}

}  // namespace
}  // namespace hone::HONE_FILE

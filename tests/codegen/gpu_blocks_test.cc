#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "program/tiles/interpret.h"
#include "program/tiles/serial.h"
#include "program/tiles/simt.h"
#include "tests/base/says_testing.h"
#include "tests/codegen/native.h"
#include "tests/codegen/ptx_facts.h"
#include "tests/program/block_programs.h"
#include "tests/program/kernel_testing.h"

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;
using testing::Not;

size_t count(const std::string& text, std::string_view word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

TEST(GpuBlocks, RowsStayInRegistersAndWarpsExchangeThem) {
  const TileProgram program = parse_tiles(kBlockSoftmax).value();
  for (int64_t capability : {80, 90}) {
    const GpuKernel kernel = compile_for_gpu(program, capability, "k").value();
    expect_facts(kernel, program, capability);
    const GpuPhase& phase = kernel.phases[0];
    EXPECT_EQ(phase.trip_of, TripOf::block);
    EXPECT_EQ(phase.block_threads, 128);
    EXPECT_EQ(phase.shared_bytes, 32);
    EXPECT_THAT(kernel.ptx, Not(HasSubstr(".local")));
    EXPECT_THAT(kernel.ptx, HasSubstr(".extern .shared"));
    EXPECT_THAT(kernel.ptx, HasSubstr("ld.shared.f32"));
    EXPECT_EQ(count(kernel.ptx, "shfl.sync.bfly"), 10U);  // two combinations of five steps
    EXPECT_EQ(count(kernel.ptx, "bar.sync"), 3U);         // and one at the end of a row
    EXPECT_EQ(count(kernel.ptx, "ld.global.nc.f32"), 8U);
  }
}

TEST(GpuBlocks, TilesLieInTheMemoryOfABlock) {
  const TileProgram program = parse_tiles(kBlockProduct).value();
  const GpuKernel kernel = compile_for_gpu(program, 80, "k").value();
  expect_facts(kernel, program, 80);
  EXPECT_EQ(kernel.phases[0].block_threads, 256);
  EXPECT_EQ(kernel.phases[0].shared_bytes, 16 * 17 * 4 + 16 * 16 * 4);
  EXPECT_THAT(kernel.ptx, Not(HasSubstr(".local")));
  EXPECT_EQ(count(kernel.ptx, "bar.sync"), 3U);
  EXPECT_EQ(count(kernel.ptx, "st.shared"), 2U);
}

// Types of all widths go from lane to lane.
TEST(GpuBlocks, LanesExchangeNumbersOfAnyType) {
  for (std::string_view type : {"f64", "f32", "f16", "bf16", "i64", "i32", "i16", "u8"}) {
    const TileProgram program =
        parse_tiles(fmt::format("tiles @k(@x: {0}[4, 64]) -> (@y: {0}[4, 64]) {{ own @o: {0}[] "
                                "blocks i in 4 {{ threads t in 64 {{ %x = load @x[i, t] "
                                "store @o[] = %x }} combine @o[] by max threads u in 64 {{ "
                                "%m = load @o[] store @y[i, u] = %m }} }} }}",
                                type))
            .value();
    expect_compiles(program, 80);
    const GpuKernel kernel = compile_for_gpu(program, 80, "k").value();
    EXPECT_EQ(count(kernel.ptx, "shfl.sync.bfly"), type.ends_with("64") ? 10U : 5U) << type;
  }
}

// The second oracle has the bits of the interpreter.
TEST(GpuBlocks, ACpuTakesThreadsInTurns) {
  const TileProgram program = parse_tiles(kBlockProduct).value();
  Rng rng(1);
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < 2; ++i) {
    std::vector<int64_t> integers(static_cast<size_t>(program.buffers[i].type.static_elements()));
    for (int64_t& one : integers) one = rng.between(-1'000'000, 1'000'000);
    inputs.push_back(Tensor::from_integers(program.buffers[i].type, integers));
  }
  const Target host = host_target().value();
  const TileProgram serial = serial_form(simt_form(program));
  EXPECT_EQ(compile_like_gpu(program, host, "kernel").value(),
            compile_tiles(serial, host, "kernel").value());
  const std::vector<Tensor> actual = run_native(serial, inputs, host, 3).value();
  EXPECT_TRUE(std::ranges::equal(actual[0].bytes(), interpret(program, inputs).value()[0].bytes()));
  EXPECT_THAT(compile_tiles(program, host, "kernel"),
              tested::refuses(ErrorCode::unsupported, "blocks ... CPU"));
}

TEST(GpuBlocks, RowsOnACpuAreCloseToTheInterpreter) {
  const TileProgram program = parse_tiles(kBlockSoftmax).value();
  Rng rng(1);
  std::vector<double> reals(3000);
  for (double& one : reals) one = rng.uniform(-3, 3);
  const std::vector<Tensor> inputs = {Tensor::from_reals(program.buffers[0].type, reals)};
  const TileProgram serial = serial_form(simt_form(program));
  expect_close(run_native(serial, inputs, host_target().value(), 2).value(),
               interpret(program, inputs).value());
}

}  // namespace
}  // namespace hone::HONE_FILE

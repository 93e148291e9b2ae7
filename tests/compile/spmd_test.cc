#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compile/compilation.h"
#include "compile/honec.h"
#include "compile/library.h"
#include "ir/text.h"
#include "program/run.h"
#include "runtime/executable.h"
#include "runtime/honec.h"
#include "tests/base/says_testing.h"
#include "tests/program/spmd_testing.h"
#include "transport/threads.h"

// Compiled models of several devices.

namespace hone::HONE_FILE {
namespace {

using tested::DeviceTensors;
using tested::draw_spmd;
using tested::judge;
using tested::refuses;
using tested::run_by_threads;
using tested::RunDevice;
using tested::same_bits;
using tested::says;
using tested::SpmdCase;

RunDevice by_code(const Executable& code, const DeviceTensors& inputs) {
  return [&code, &inputs](const DevicePlace& place) {
    return code.run(inputs[static_cast<size_t>(place.device)], {.place = place});
  };
}

void check_random(uint64_t first, uint64_t count) {
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    const SpmdCase drawn = draw_spmd(seed, 4, true);
    Compilation compilation(drawn.graph, host_target().value(), {.plan_seed = seed});
    const auto code = compilation.executable();
    ASSERT_TRUE(code.ok()) << code.error().to_string();
    for (int run = 0; run < 2; ++run) {  // what the first one worked out is used by the second
      const Result<DeviceTensors> made =
          run_by_threads(drawn.devices, by_code(**code, drawn.inputs));
      ASSERT_TRUE(made.ok()) << made.error().to_string();
      ASSERT_EQ(judge(drawn, *made), "") << print(**compilation.program());
    }
  }
}

TEST(CompiledSpmd, RandomProgramsGiveTheResultsOfTheReference) { check_random(0, 12); }
TEST(CompiledSpmd, DISABLED_SweepRandomPrograms) { check_random(1'000, 300); }

constexpr std::string_view kMean =
    "graph @mean(%x: f32[4, 6]) {\n"
    "  %d = device_index\n"
    "  %s = all_reduce %x {kind = sum, group_size = 2}\n"
    "  %g = all_gather %s {axis = 1, group_size = 2, groups = [1, 0]}\n"
    "  return %d, %g\n"
    "}\n";

TEST(CompiledSpmd, ACompiledFileKeepsCollectives) {
  const Graph graph = parse_graph(kMean).value();
  Compilation compilation(graph, host_target().value(), {});
  const HonecProgram program = {compilation.image().value()};
  const auto bytes =
      std::make_shared<const std::string>(honec_bytes({&program, 1}, "1.2.3").value().joined());
  const HonecFile file = HonecFile::parse(bytes, std::as_bytes(std::span(*bytes))).value();
  const auto read = Executable::load(file.image(0).value()).value();
  const Type type = Type::get(DType::f32, {4, 6});
  const DeviceTensors inputs = {{Tensor::from_reals(type, std::vector<double>(24, 1.5))},
                                {Tensor::from_reals(type, std::vector<double>(24, 2))}};
  const DeviceTensors from_file = run_by_threads(2, by_code(*read, inputs)).value();
  const DeviceTensors made =
      run_by_threads(2, by_code(*compilation.executable().value(), inputs)).value();
  EXPECT_EQ(same_bits(made, from_file), "");
  EXPECT_EQ(made[1][0].real_at(0), 1);
  EXPECT_EQ(made[0][1].real_at(47), 3.5);
}

TEST(CompiledSpmd, RefusesOtherNumbersOfDevices) {
  Compilation compilation(parse_graph(kMean).value(), host_target().value(), {});
  const auto code = compilation.executable().value();
  const std::vector<Tensor> inputs = {Tensor::zeros(Type::get(DType::f32, {4, 6}))};
  EXPECT_THAT(code->run(inputs),
              refuses(ErrorCode::bad_input, "image 'mean', command 's' ... 2 devices"));
  const HonecProgram program = {compilation.image().value()};
  EXPECT_THAT(library_sources({&program, 1}, "mean", "1.2.3"),
              refuses(ErrorCode::unsupported, "C library ... 'mean'"));
}

TEST(CompiledSpmd, AFailureEndsAllDevices) {
  Compilation compilation(parse_graph(kMean).value(), host_target().value(), {});
  const auto code = compilation.executable().value();
  const std::vector<Tensor> inputs = {Tensor::zeros(Type::get(DType::f32, {4, 6}))};
  CancelToken cancelled;
  cancelled.cancel();
  EXPECT_THAT(run_by_threads(2,
                             [&](const DevicePlace& place) {
                               RunOptions options = {.place = place};
                               if (place.device == 1) options.cancel = &cancelled;
                               return code->run(inputs, options);
                             }),
              refuses(ErrorCode::interrupted, "stopped"));
}

}  // namespace
}  // namespace hone::HONE_FILE

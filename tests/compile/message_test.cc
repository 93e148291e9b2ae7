#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/thread_pool.h"
#include "codegen/kernels.h"
#include "compile/honec.h"
#include "ir/text.h"
#include "planner/planner.h"
#include "program/lower/join.h"
#include "program/lower/lower.h"
#include "rewrite/prepare.h"
#include "runtime/executable.h"
#include "runtime/honec.h"
#include "shard/cut.h"
#include "tests/base/says_testing.h"
#include "tests/program/spmd_testing.h"

// Native code and compiled files of devices that run programs of their own.

namespace hone::HONE_FILE {
namespace {

using tested::DeviceTensors;
using tested::refuses;
using tested::run_by_threads;
using tested::same_bits;
using tested::says;

// Two devices that take turns, in a loop too.
constexpr std::string_view kTurns =
    "graph @turns(%x: f32[4, 6], %s: f32[6]) -> (f32[4, 6], f32[6]) {\n"
    "  %a = mul %x, %x\n"
    "  %b = neg %a\n"
    "  %f, %ys = scan %s, %b {carried = 1}\n"
    "    body (%s: f32[6], %r: f32[6]) { %t = add %s, %r return %t, %t }\n"
    "  %c = add %ys, %a\n"
    "  %d = sub %c, %b\n"
    "  return %d, %f\n"
    "}\n";

struct Devices {
  DevicePrograms programs;
  std::vector<Image> images;
};

Devices turns() {
  const Target target = host_target().value();
  const Graph graph = prepare(parse_graph(kTurns).value()).value();
  std::vector<int32_t> of(graph.node_count(), 0);
  for (NodeId n : graph.nodes())
    if (const std::string_view name = graph.name(graph.result(n)); name == "b" || name == "c")
      of[n.index] = 1;
  const GraphCut cut = cut_graph(graph, of, 2).value();
  std::vector<Program> pieces;
  for (const CutPiece& piece : cut.pieces) {
    const Graph ready = prepare(piece.graph).value();
    pieces.push_back(lower(ready, complete(ready, {}, target).value(), target).value());
  }
  Devices made = {join_pieces(graph, cut, pieces).value(), {}};
  ThreadPool pool(1);
  for (const Program& program : made.programs.programs) {
    const auto code = compile_kernels(program.kernels, target, pool).value();
    made.images.push_back(instantiate(program, {}, code).value());
  }
  return made;
}

DeviceTensors inputs() {
  std::vector<double> x(24), s(6);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i) - 7;
  for (size_t i = 0; i < s.size(); ++i) s[i] = static_cast<double>(i);
  return {{Tensor::from_reals(Type::get(DType::f32, {4, 6}), x),
           Tensor::from_reals(Type::get(DType::f32, {6}), s)},
          {}};
}

Result<DeviceTensors> run_all(const std::vector<std::shared_ptr<const Executable>>& code) {
  const DeviceTensors in = inputs();
  return run_by_threads(2, [&](const DevicePlace& place) {
    const auto d = static_cast<size_t>(place.device);
    return code[d]->run(in[d], {.place = place});
  });
}

TEST(CompiledMessages, NativeCodeAndCompiledFilesExchangeThem) {
  const Devices made = turns();
  std::vector<std::shared_ptr<const Executable>> native, from_file;
  for (const Image& image : made.images) {
    native.push_back(Executable::load(image).value());
    const HonecProgram program = {&image};
    const auto bytes =
        std::make_shared<const std::string>(honec_bytes({&program, 1}, "1.2.3").value().joined());
    const HonecFile file = HonecFile::parse(bytes, std::as_bytes(std::span(*bytes))).value();
    from_file.push_back(Executable::load(file.image(0).value()).value());
  }
  for (int run = 0; run < 2; ++run) {  // what the first one worked out is used by the second
    const DeviceTensors results = run_all(native).value();
    ASSERT_EQ(results[0].size(), 2U);
    EXPECT_EQ(same_bits(results, run_all(from_file).value()), "");
    // All numbers are small integers. Column 0 of %x is -7, -1, 5, 11.
    const double squares[] = {49, 1, 25, 121};
    double sum = 0;
    for (int64_t row = 0; row < 4; ++row) {
      sum -= squares[row];
      EXPECT_EQ(results[0][0].real_at(6 * row), sum + 2 * squares[row]);
    }
    EXPECT_EQ(results[0][1].real_at(0), sum);
  }
}

TEST(CompiledMessages, RefuseOtherNumbersOfDevices) {
  const Devices made = turns();
  const auto code = Executable::load(made.images[0]).value();
  EXPECT_THAT(code->run(inputs()[0]),
              refuses(ErrorCode::bad_input, "image 'turns.0', command ... device 1 ... 1"));
  Image wrong = made.images[0];
  for (image::Command& command : wrong.commands)
    if (auto* receive = std::get_if<image::Receive>(&command.kind))
      receive->to = {.region = image::Place::Region::input, .bytes = 4};
  EXPECT_THAT(Executable::load(wrong), says("writes to input 0"));
}

}  // namespace
}  // namespace hone::HONE_FILE

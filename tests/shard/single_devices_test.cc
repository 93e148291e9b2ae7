#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "front/hlo/hlo.h"
#include "ir/model.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "shard/partition.h"
#include "tests/base/says_testing.h"
#include "tests/shard/mesh_testing.h"

// Values on one device of several: whole for all who read them, and what this device computes.

namespace hone::HONE_FILE {
namespace {

using tested::refuses;
using testing::ElementsAre;

// `x` is divided by the mesh, and `%n` is the number of the device as four integers.
Result<Model> with_number(std::string_view body, std::string_view mesh = "<[\"x\"=4]>") {
  return parse_hlo(
      fmt::format("sdy.mesh @m = {}\n"
                  "sdy.mesh @one = <[], device_ids=[1]>\n"
                  "sdy.mesh @two = <[], device_ids=[2]>\n"
                  "sdy.mesh @six = <[], device_ids=[6]>\n"
                  "func.func @main(%x: tensor<4xi32> {{sdy.sharding = #sdy.sharding<@m, "
                  "[{{\"x\"}}]>}}) -> tensor<4xi32> {{\n"
                  "  %id = stablehlo.partition_id : tensor<ui32>\n"
                  "  %i = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>\n"
                  "  %n = stablehlo.broadcast_in_dim %i, dims = [] : (tensor<i32>) -> "
                  "tensor<4xi32>\n{}}}\n",
                  mesh, body),
      "p");
}

// The result for [10, 20, 30, 40], which one device and all of them compute.
std::vector<int64_t> computed(const Result<Model>& model) {
  if (!model.ok()) {
    ADD_FAILURE() << model.error().to_string();
    return {};
  }
  const Graph& graph = *single_graph(*model);
  const std::vector<Tensor> inputs = {
      Tensor::from_integers(graph.type(graph.inputs()[0]), std::vector<int64_t>{10, 20, 30, 40})};
  const Partition made = tested::partitioned(graph);
  EXPECT_EQ(made.mesh->device_count(), 4);
  EXPECT_EQ(tested::judge_mesh(graph, made, inputs), "") << print(graph);
  const Tensor result = evaluate(graph, inputs).value()[0];
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < result.elements(); ++i) numbers.push_back(result.integer_at(i));
  return numbers;
}

constexpr std::string_view kOnTwo =
    " {sdy.sharding = #sdy.sharding_per_value<[<@two, []>]>} : tensor<4xi32>\n";
constexpr std::string_view kOnOne =
    " {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : tensor<4xi32>\n";

TEST(SingleDevices, ComputeWhatIsOnThem) {
  EXPECT_THAT(computed(with_number(fmt::format("  %0 = stablehlo.add %x, %n{}"
                                               "  return %0 : tensor<4xi32>\n",
                                               kOnTwo))),
              ElementsAre(12, 22, 32, 42));
  // A value goes from one device to another one.
  EXPECT_THAT(computed(with_number(fmt::format("  %0 = stablehlo.add %x, %n{}"
                                               "  %1 = stablehlo.multiply %0, %n{}"
                                               "  return %1 : tensor<4xi32>\n",
                                               kOnOne, kOnTwo))),
              ElementsAre(22, 42, 62, 82));
  // The number goes, too; who reads it where it was has its own.
  EXPECT_THAT(computed(with_number(
                  fmt::format("  %0 = sdy.sharding_constraint %n <@two, []> : tensor<4xi32>\n"
                              "  %1 = stablehlo.add %0, %n{}"
                              "  %2 = stablehlo.add %1, %x : tensor<4xi32>\n"
                              "  return %2 : tensor<4xi32>\n",
                              kOnOne))),
              ElementsAre(13, 23, 33, 43));
}

TEST(SingleDevices, CountByTheNumbersOfTheMesh) {
  EXPECT_THAT(computed(with_number(fmt::format("  %0 = stablehlo.add %x, %n{}"
                                               "  return %0 : tensor<4xi32>\n",
                                               kOnTwo),
                                   "<[\"y\"=2, \"x\"=2], device_ids=[0, 2, 4, 6]>")),
              ElementsAre(12, 22, 32, 42));
}

TEST(SingleDevices, RunLoops) {
  const std::string loop =
      "  %c = stablehlo.constant dense<0> : tensor<i32>\n"
      "  %0:2 = stablehlo.while(%k = %c, %s = %x) : tensor<i32>, tensor<4xi32> attributes "
      "{sdy.sharding = #sdy.sharding_per_value<[<@two, []>, <@two, []>]>}\n"
      "    cond {\n"
      "      %p = stablehlo.compare LT, %k, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "      stablehlo.return %p : tensor<i1>\n"
      "    } do {\n"
      "      %one = stablehlo.constant dense<1> : tensor<i32>\n"
      "      %q = stablehlo.add %k, %one : tensor<i32>\n"
      "      %r = stablehlo.add %s, %n : tensor<4xi32>\n"
      "      stablehlo.return %q, %r : tensor<i32>, tensor<4xi32>\n"
      "    }\n"
      "  return %0#1 : tensor<4xi32>\n";
  EXPECT_THAT(computed(with_number(loop)), ElementsAre(14, 24, 34, 44));
}

TEST(SingleDevices, AreReadFromHlo) {
  EXPECT_THAT(computed(parse_hlo("HloModule m, num_partitions=4\n\nENTRY main {\n"
                                 "  x = s32[4] parameter(0), sharding={devices=[4]<=[4]}\n"
                                 "  n = u32[] partition-id()\n"
                                 "  i = s32[] convert(n)\n"
                                 "  b = s32[4] broadcast(i), dimensions={}\n"
                                 "  ROOT r = s32[4] add(x, b), sharding={maximal device=3}\n}\n",
                                 "p")),
              ElementsAre(13, 23, 33, 43));
}

TEST(SingleDevices, MustBeKnownOfWhatDiffers) {
  const Result<Model> nobodys =
      with_number(fmt::format("  %0 = stablehlo.add %x, %n{}"
                              "  %1 = stablehlo.add %0, %n : tensor<4xi32>\n"
                              "  return %1 : tensor<4xi32>\n",
                              kOnTwo));
  EXPECT_THAT(nobodys, refuses(ErrorCode::unsupported, "p:5:... 'x', which is not manual"));
  EXPECT_THAT(nobodys.error().hint(), testing::HasSubstr("device_ids"));
  EXPECT_THAT(with_number("  %0 = sdy.sharding_constraint %n <@six, []> : tensor<4xi32>\n"
                          "  return %0 : tensor<4xi32>\n"),
              refuses(ErrorCode::bad_input, "p:5:... device 6 ... 'six' ... 'm' [x = 4]"));
}

// A value on one device takes no axes from others, and gives none.
TEST(SingleDevices, HaveWholeValuesBesideAMesh) {
  const Graph graph = tested::parsed(
      "graph @g(%x: f32[8, 4] on @m [x, -], %y: f32[8, 4] on @one [-, -]) -> f32[8, 4] "
      "mesh @m = [x = 2], @one = [] devices [1] {\n"
      "  %z = add %x, %y\n"
      "  %r = tanh %z : f32[8, 4] on @one [-, -]\n"
      "  return %r\n"
      "}\n");
  const Partition made = tested::partitioned(graph);
  EXPECT_EQ(made.mesh->name, "m");
  EXPECT_EQ(tested::judge_mesh(graph, made, 1), "");
  EXPECT_EQ(made.graph.input_types()[0].to_string(), "f32[4, 4]");
  EXPECT_EQ(made.graph.input_types()[1].to_string(), "f32[8, 4]");
  EXPECT_EQ(made.graph.type(made.graph.outputs()[0]).to_string(), "f32[8, 4]");
}

}  // namespace
}  // namespace hone::HONE_FILE

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/functional.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "shard/batch_inputs.h"
#include "shard/batch_part.h"
#include "tests/base/says_testing.h"
#include "tests/shard/parts_testing.h"
#include "zoo/inputs.h"

// Batches whose rows are added up.

namespace hone::HONE_FILE {
namespace {

using tested::by_parts;
using tested::difference;
using tested::judge_parts;
using tested::refuses;
using testing::ElementsAre;
using testing::HasSubstr;

Graph parsed(std::string_view text) {
  Result<Graph> graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return graph.ok() ? *graph : Graph();
}

std::string part_of(std::string_view text, const BatchShare& share) {
  const Graph graph = parsed(text);
  std::vector<int> inputs(graph.inputs().size(), kWhole);
  inputs[0] = 0;
  const Result<BatchPart> part = batch_part(graph, std::move(inputs), share);
  return part.ok() ? print(part->graph) : part.error().to_string();
}

void expect_right(const Graph& graph, std::span<const Tensor> inputs, const std::vector<int>& dims,
                  int64_t rows) {
  for (int64_t devices : {1, 2, 3, 8}) {
    bool is_refused = false;
    EXPECT_EQ(judge_parts(graph, inputs, dims, rows, devices, is_refused), "");
    EXPECT_FALSE(is_refused);
  }
}

TEST(BatchSums, AddUpWhatEachDeviceHas) {
  EXPECT_EQ(part_of(R"(
graph @mean(%x: f32[8, 3]) -> f32[3] {
  %s = reduce %x {kind = sum, axes = [0]} : f32[3]
  %n = constant 0.125 : f32[]
  %k = broadcast %n {dims = [3], map = []} : f32[3]
  %m = mul %s, %k : f32[3]
  return %m
}
)",
                    {8, 2, 3, 3}),
            R"(graph @mean(%x: f32[3, 3]) -> f32[3] {
  %1 = reduce %x {kind = sum, axes = [0]} : f32[3]
  %s = all_reduce %1 {kind = sum, group_size = 3} : f32[3]
  %n = constant 0.125 : f32[]
  %k = broadcast %n {dims = [3], map = []} : f32[3]
  %m = mul %s, %k : f32[3]
  return %m
}
)");
}

// One message for two gradients of a weight.
TEST(BatchSums, StayInPartsWhereTheyMeet) {
  EXPECT_EQ(part_of(R"(
graph @meet(%x: f32[4, 2]) -> f32[2, 2] {
  %a = dot %x, %x {lhs_contract = [0], rhs_contract = [0]} : f32[2, 2]
  %t = transpose %a {permutation = [1, 0]} : f32[2, 2]
  %y = tanh %x : f32[4, 2]
  %b = dot %y, %x {lhs_contract = [0], rhs_contract = [0]} : f32[2, 2]
  %s = add %t, %b : f32[2, 2]
  return %s
}
)",
                    {4, 0, 2, 2}),
            R"(graph @meet(%x: f32[2, 2]) -> f32[2, 2] {
  %1 = dot %x, %x {lhs_contract = [0], rhs_contract = [0]} : f32[2, 2]
  %2 = transpose %1 {permutation = [1, 0]} : f32[2, 2]
  %y = tanh %x : f32[2, 2]
  %4 = dot %y, %x {lhs_contract = [0], rhs_contract = [0]} : f32[2, 2]
  %5 = add %2, %4 : f32[2, 2]
  %s = all_reduce %5 {kind = sum, group_size = 2} : f32[2, 2]
  return %s
}
)");
}

// The sum is whole, and a device takes its rows of it.
TEST(BatchSums, AreCutWhereTheyMeetRows) {
  const Graph graph = parsed(R"(
graph @met(%x: f32[4, 4], %y: f32[4]) -> f32[4] {
  %s = reduce %x {kind = sum, axes = [0]} : f32[4]
  %z = add %s, %y : f32[4]
  return %z
}
)");
  expect_right(graph, random_inputs(graph, 3).value(), {0, 0}, 4);
}

TEST(BatchSums, MoveFewElements) {
  EXPECT_THAT(part_of(R"(
graph @few(%x: f32[4, 2]) -> f32[4, 2] {
  %s = reduce %x {kind = sum, axes = [0]} : f32[2]
  %b = broadcast %s {dims = [4, 2], map = [1]} : f32[4, 2]
  %y = sub %x, %b : f32[4, 2]
  return %y
}
)",
                      {4, 0, 2, 2}),
              HasSubstr("%s = all_reduce %1 {kind = sum, group_size = 2} : f32[2]"));
}

TEST(BatchSums, RoundNumbersOf16BitsOnce) {
  EXPECT_THAT(
      part_of(R"(
graph @half(%x: f16[4, 2], %y: f16[4, 2]) -> f16[2, 2] {
  %s = dot %x, %y {lhs_contract = [0], rhs_contract = [0]} : f16[2, 2]
  return %s
}
)",
              {4, 0, 2, 2}),
      testing::AllOf(HasSubstr("all_reduce"), HasSubstr("f32[2, 2]"), HasSubstr("%s = cast %")));
}

// A table of which data names rows, as of an embedding's gradient: it counts once, as do others
// that the rows are added to.
TEST(BatchSums, CountATableOnce) {
  const Graph graph = parsed(R"(
graph @table(%i: i64[7, 1], %u: f32[7, 3], %t: f32[5, 3]) -> (f32[5, 3], f32[5, 3]) {
  %z = constant 0 : f32[]
  %zeros = broadcast %z {dims = [5, 3], map = []} : f32[5, 3]
  %a = scatter %t, %i, %u {combine = add, window_dims = [1], inserted_dims = [0],
                           index_map = [0], index_vector_dim = 1} : f32[5, 3]
  %b = scatter %zeros, %i, %u {combine = add, window_dims = [1], inserted_dims = [0],
                               index_map = [0], index_vector_dim = 1} : f32[5, 3]
  return %a, %b
}
)");
  std::vector<Tensor> inputs = *random_inputs(graph, 5);
  inputs[0] = Tensor::from_integers(inputs[0].type(), std::vector<int64_t>{0, 4, 2, 2, 9, -3, 0});
  expect_right(graph, inputs, {0, kWhole, kWhole}, 7);
  EXPECT_TRUE(batch_part(graph, {0, 0, kWhole}, {7, 0, 4, 2})->depends_on_first);
}

TEST(BatchSums, OfConvolutions) {
  Builder b("conv");
  const Value x = b.parameter("x", DType::f32, {5, 3, 6, 6});
  const Value g = b.parameter("g", DType::f32, {5, 4, 4, 4});
  // The gradient of a 3 x 3 kernel: the batch is what is summed over.
  const Value w = conv(transpose(x, {1, 0, 2, 3}), transpose(g, {1, 0, 2, 3}));
  const Graph graph = *b.finish({w});
  expect_right(graph, *random_inputs(graph, 1), {0, 0}, 5);
}

TEST(BatchSums, InALoopAreMadeInEachStep) {
  Builder b("loop");
  const Value x = b.parameter("x", DType::f32, {3, 4, 2});  // time, batch, features
  const Value state = b.full(DType::f32, {2}, 0);
  const std::vector<Value> all =
      scan({{state}}, {{x}}, [](Builder&, std::span<const Value> in) -> std::vector<Value> {
        const Value next = in[0] * 0.5 + reduce_sum(in[1], {0});
        return {next, in[1] - next};
      });
  const Graph graph = *b.finish({all[0], all[1]});
  const std::vector<Tensor> inputs = *random_inputs(graph, 3);
  for (int64_t devices : {2, 4}) {  // as many rows for each
    bool is_refused = false;
    EXPECT_EQ(judge_parts(graph, inputs, {1}, 4, devices, is_refused), "");
    EXPECT_FALSE(is_refused);
  }
}

// In the loop there is no message: one sum of the states of all devices comes after it.
TEST(BatchSums, AStateThatStepsOnlyAddToIsAddedUpOnce) {
  Builder b("loop");
  const Value x = b.parameter("x", DType::f32, {3, 4, 2});  // time, batch, features
  const Value w = b.parameter("w", DType::f32, {2, 2});
  // The gradient of a weight that all steps share, beside a state of rows and a whole one.
  const std::vector<Value> all =
      scan({{b.full(DType::f32, {2, 2}, 0), b.full(DType::f32, {4, 2}, 0), w}}, {{x}},
           [](Builder&, std::span<const Value> in) -> std::vector<Value> {
             const Value h = tanh(in[1] + in[3]);
             return {in[0] + matmul(transpose(h, {1, 0}), in[3]), h, in[2] * 0.5};
           });
  const Graph graph = *b.finish({all[0], all[1], all[2]});
  const BatchPart part = batch_part(graph, {1, kWhole}, {4, 0, 2, 2}).value();
  const std::string text = print(part.graph);
  const size_t at = text.find("all_reduce");
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_EQ(text.find("all_reduce", at + 1), std::string::npos) << text;
  EXPECT_LT(text.find("scan"), at) << text;
  EXPECT_LT(text.find("tanh"), at) << text;
  EXPECT_TRUE(part.has_sums);
  EXPECT_THAT(part.outputs, testing::ElementsAre(kWhole, 0, kWhole));
  const std::vector<Tensor> inputs = *random_inputs(graph, 3);
  for (const int64_t devices : {2, 4}) {
    bool is_refused = false;
    EXPECT_EQ(judge_parts(graph, inputs, {1, kWhole}, 4, devices, is_refused), "");
    EXPECT_FALSE(is_refused);
  }
}

// It counts once, though each device has it at first (cli.devices runs it); and data may end the
// loop.
TEST(BatchSums, AStateThatIsNotZeroAtFirstCountsOnce) {
  const Graph graph = parsed(R"(
graph @rounds(%x: f32[4, 3], %t: f32[3]) -> (f32[3], f32[]) {
  %one = constant 1 : f32[]
  %a, %b, %n = while %x, %t, %one
    condition(%x: f32[4, 3], %s: f32[3], %n: f32[]) {
      %c = compare %n, 20 {direction = lt}
      return %c
    }
    body(%x: f32[4, 3], %s: f32[3], %n: f32[]) {
      %w = broadcast %n {dims = [4, 3], map = []}
      %d = mul %x, %w
      %e = reduce %d {kind = sum, axes = [0]}
      %u = add %s, %e
      %m = mul %n, 3
      return %x, %u, %m
    }
  return %b, %n
}
)");
  const std::string text = print(batch_part(graph, {0, kWhole}, {4, 0, 2, 2})->graph);
  EXPECT_THAT(text, HasSubstr("all_reduce")) << text;
  EXPECT_GT(text.find("kind = sum, group_size"), text.find("kind = max, group_size")) << text;
}

// Devices exchange what decides, too.
TEST(BatchSums, WhereDataDecidesWhatRuns) {
  const Graph graph = parsed(R"(
graph @g(%x: f32[4, 3], %p: bool[], %q: bool[]) -> (f32[3], f32[3]) {
  %y = if %p, %x
    then(%a: f32[4, 3]) { %s = reduce %a {kind = sum, axes = [0]} : f32[3] return %s }
    else(%a: f32[4, 3]) { %z = constant [1, 2, 3] : f32[3] return %z }
  %w = if %q, %x
    then(%a: f32[4, 3]) { %s = reduce %a {kind = sum, axes = [0]} : f32[3] return %s }
    else(%a: f32[4, 3]) { %z = constant [1, 2, 3] : f32[3] return %z }
  return %y, %w
}
)");
  std::vector<Tensor> inputs = *random_inputs(graph, 1);
  inputs[1] = Tensor::scalar(DType::boolean, 1);
  inputs[2] = Tensor::scalar(DType::boolean, 0);
  bool is_refused = false;
  EXPECT_EQ(judge_parts(graph, inputs, {0, kWhole, kWhole}, 4, 2, is_refused), "");
  EXPECT_FALSE(is_refused);
  const BatchPart part = batch_part(graph, {0, kWhole, kWhole}, {4, 0, 2, 2}).value();
  EXPECT_TRUE(part.has_sums);
  EXPECT_THAT(print(part.graph), HasSubstr("{kind = max, group_size = 2} : i32[]"));
}

// Rounds go on until the sum of the batch is large.
TEST(BatchSums, InRoundsThatDataEnds) {
  const Graph graph = parsed(R"(
graph @g(%x: f32[4, 3]) -> (f32[4, 3], f32[]) {
  %one = constant 1 : f32[]
  %y, %n = while %x, %one
    condition(%a: f32[4, 3], %s: f32[]) {
      %most = constant 100 : f32[]
      %c = compare %s, %most {direction = lt} : bool[]
      return %c
    }
    body(%a: f32[4, 3], %s: f32[]) {
      %d = mul %a, %a : f32[4, 3]
      %t = reduce %d {kind = sum, axes = [0, 1]} : f32[]
      %u = add %s, %t : f32[]
      return %a, %u
    }
  return %y, %n
}
)");
  bool is_refused = false;
  EXPECT_EQ(judge_parts(graph, *random_inputs(graph, 4), {0}, 4, 2, is_refused), "");
  EXPECT_FALSE(is_refused);
}

TEST(BatchSums, OfSpecialNumbersAreThoseOfOneDevice) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const Graph graph = parsed(R"(
graph @sums(%x: f32[5, 6], %k: i64[5, 2]) -> (f32[6], f32[5, 6], i64[2]) {
  %s = reduce %x {kind = sum, axes = [0]} : f32[6]
  %b = broadcast %s {dims = [5, 6], map = [1]} : f32[5, 6]
  %y = mul %x, %b : f32[5, 6]
  %c = reduce %k {kind = sum, axes = [0]} : i64[2]
  return %s, %y, %c
}
)");
  const std::vector<double> row = {inf, nan, 1e30, -0.0, 1e-40, 1};
  const std::vector<double> last = {-inf, 1, 1e30, -0.0, 1e-40, inf};
  std::vector<double> all;
  for (int i = 0; i < 5; ++i)
    for (size_t k = 0; k < 6; ++k) all.push_back(i == 0 ? row[k] : i == 4 ? last[k] : 0.5);
  const std::vector<int64_t> counts = {INT64_MAX, 1, 1, 2, 1, 3, 1, 4, 1, 5};  // one sum wraps
  const std::vector<Tensor> inputs = {Tensor::from_reals(Type::get(DType::f32, {5, 6}), all),
                                      Tensor::from_integers(Type::get(DType::i64, {5, 2}), counts)};
  const std::vector<Tensor> whole = *evaluate(graph, inputs);
  for (int64_t devices : {2, 3, 5}) {
    const auto parts = by_parts(graph, inputs, {0, 0}, 5, devices);
    ASSERT_TRUE(parts.ok()) << parts.error().to_string();
    EXPECT_EQ(difference(parts->outputs, whole, 1e-6), "");
  }
}

}  // namespace
}  // namespace hone::HONE_FILE

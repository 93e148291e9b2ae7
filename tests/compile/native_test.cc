#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>

#include "compile/native_model.h"
#include "ir/text.h"
#include "oracle/accuracy_runs.h"
#include "tests/base/share_testing.h"
#include "tests/codegen/native.h"
#include "zoo/inputs.h"
#include "zoo/random/random_graph.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

using testing::ElementsAre;

// A graph with inputs, and what the reference makes of them.
struct Known {
  struct Run {
    std::vector<Tensor> inputs, wide, fp32;
  };
  std::shared_ptr<Graph> graph;
  std::vector<Run> runs;
};

Known known(Graph graph) {
  Known known = {std::make_shared<Graph>(std::move(graph)), {}};
  for (uint64_t seed = 1; seed <= kAccuracyRuns; ++seed) {
    const std::vector<Tensor> inputs = random_inputs(*known.graph, seed).value();
    auto reference = [&](Numerics numerics) {
      return evaluate(*known.graph, inputs, {.numerics = numerics, .real_outputs_as_f64 = true})
          .value();
    };
    known.runs.push_back({inputs, reference(Numerics::wide), reference(Numerics::fp32)});
  }
  return known;
}

// Compiles the graph once, and holds all outputs of all runs against the reference.
void check(const Known& known, const Target& target, std::optional<uint64_t> plan_seed = {}) {
  const auto model =
      NativeModel::make(model_of(*known.graph), target, {.plan_seed = plan_seed}).value();
  std::vector<std::vector<AccuracyRun>> outputs(known.graph->outputs().size());
  for (const auto& [inputs, wide, fp32] : known.runs) {
    Result<std::vector<Tensor>> actual = model->run(inputs);
    ASSERT_TRUE(actual.ok()) << actual.error().to_string();
    for (size_t i = 0; i < wide.size(); ++i) outputs[i].push_back({(*actual)[i], wide[i], fp32[i]});
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    Result<Accuracy> result = accuracy(outputs[i]);
    ASSERT_TRUE(result.ok()) << result.error().to_string();
    EXPECT_TRUE(result->passed()) << "output " << i << ": " << result->to_string();
  }
}

Graph tiny(const std::string& name) {
  return build_zoo_model(name, {.size = ZooSize::tiny}).value();
}

std::vector<std::string> zoo_names() {
  std::vector<std::string> names;
  for (const ZooEntry& entry : zoo_entries()) names.emplace_back(entry.name);
  return names;
}

class NativeZoo : public testing::TestWithParam<std::string> {};

// The place of the model in the zoo.
uint64_t number_of(const std::string& model) {
  const std::vector<std::string> names = zoo_names();
  return static_cast<uint64_t>(std::ranges::find(names, model) - names.begin());
}

TEST_P(NativeZoo, IsAsAccurateAsFp32) {
  if (!tested::in_share(number_of(GetParam()), 2)) return;
  check(known(tiny(GetParam())), host_target().value());
}

// Other seeds every day.
uint64_t seed_of_today() {
  const auto today = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::days>(today).count());
}

TEST_P(NativeZoo, ComputesTheSameUnderRandomPlans) {
  if (!tested::in_share(number_of(GetParam()), 14)) return;
  const Known model = known(tiny(GetParam()));
  const Target host = host_target().value();
  const Target target = restricted(host, std::min(host.isa, Isa::avx2));
  for (uint64_t seed : {2 * seed_of_today(), 2 * seed_of_today() + 1}) {
    SCOPED_TRACE(seed);
    check(model, target, seed);
  }
}

TEST_P(NativeZoo, DISABLED_SweepRandomPlans) {
  const Known model = known(tiny(GetParam()));
  for (const Target& target : host_targets()) {
    for (uint64_t seed = 100; seed < 120; ++seed) {
      SCOPED_TRACE(fmt::format("{} seed {}", name(target.isa), seed));
      check(model, target, seed);
    }
  }
}

TEST_P(NativeZoo, DISABLED_SweepFullSize) {
  const Known model = known(build_zoo_model(GetParam()).value());
  for (const Target& target : host_targets()) {
    SCOPED_TRACE(name(target.isa));
    check(model, target);
  }
}

// Made for one machine and loaded on another.
TEST(Native, CodeSaysWhatItNeeds) {
  const Graph graph = build_zoo_model("mlp", {.size = ZooSize::tiny}).value();
  for (const Target& target : host_targets()) {
    Compilation compilation(graph, target);
    const Image& image = *compilation.image().value();
    for (const image::Kernel& kernel : image.kernels)
      EXPECT_EQ(kernel.needs, target.instructions());
    EXPECT_TRUE(Executable::load(image, {.machine = target.instructions()}).ok());
    if (target.isa == Isa::v2) continue;
    const auto refused = Executable::load(image, {.machine = Instructions{}});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code(), ErrorCode::unsupported);
  }
}

// A step of an optimizer, and an output that is not made of the input where it lies.
TEST(Native, OutputsLieInWhatIsGivenUp) {
  const Graph graph = parse_graph(R"(
    graph @g(%w: f32[70, 9] donate 1, %m: f32[70, 9] donate 0, %g: f32[70, 9],
             %old: f32[9, 70] donate 2) {
      %rate = constant 0.5 : f32[]
      %b = broadcast %rate {dims = [70, 9], map = []}
      %p = mul %m, %b
      %n = add %p, %g
      %s = mul %n, %b
      %v = sub %w, %s
      %t = transpose %g {permutation = [1, 0]}
      return %n, %v, %t
    })")
                          .value();
  for (const Target& target : host_targets()) {
    const auto executable = Compilation(graph, target).executable().value();
    EXPECT_THAT(executable->donors(), ElementsAre(1, 0, 3));
    std::vector<Tensor> inputs = random_inputs(graph, 1).value();
    const Tensor gradient = inputs[2];
    for (int step = 0; step < 3; ++step) {
      const std::vector<Tensor> expected = executable->run(inputs).value();
      std::vector<Tensor> given;
      std::vector<const std::byte*> places;
      for (const Tensor& input : inputs) {
        given.push_back(Tensor::copy_of(input.type(), input.bytes()));
        places.push_back(given.back().bytes().data());
      }
      const std::vector<Tensor> actual = executable->run_donating(std::move(given)).value();
      for (size_t i = 0; i < actual.size(); ++i) {
        EXPECT_EQ(actual[i].bytes().data(), places[*executable->donors()[i]]);
        EXPECT_TRUE(actual[i].same_bytes(expected[i])) << "output " << i;
      }
      inputs = {actual[1], actual[0], gradient, actual[2]};
    }
  }
}

TEST(Native, RunsGiveTheSameBits) {
  const Graph graph = build_zoo_model("squeezenet", {.size = ZooSize::tiny}).value();
  const std::vector<Tensor> inputs = random_inputs(graph, 1).value();
  Compilation compilation(graph, host_target().value());
  const std::shared_ptr<const Executable> executable = compilation.executable().value();
  const std::vector<Tensor> first = executable->run(inputs).value();
  for (int run = 0; run < 20; ++run) {
    const std::vector<Tensor> again = executable->run(inputs).value();
    for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(again[i].same_bytes(first[i]));
  }
}

// Whatever was there before.
TEST(Native, NothingLiesBehindTheLastElementOfHalfAByte) {
  const Graph graph = parse_graph(R"(
    graph @g(%x: i4[3]) -> i4[3] {
      %y = reverse %x {axes = [0]}
      return %y
    })")
                          .value();
  const Tensor x = Tensor::from_integers(Type::get(DType::i4, {3}), std::vector<int64_t>{1, 2, 3});
  const auto executable = Compilation(graph, host_target().value()).executable().value();
  std::array<std::byte, 2> bytes;
  bytes.fill(std::byte{0xff});
  const void* input = x.bytes().data();
  void* output = bytes.data();
  ASSERT_TRUE(executable->run({&input, 1}, {&output, 1}).ok());
  EXPECT_EQ(bytes[0], std::byte{0x23});
  EXPECT_EQ(bytes[1], std::byte{0x01});
}

INSTANTIATE_TEST_SUITE_P(All, NativeZoo, testing::ValuesIn(zoo_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hone::HONE_FILE

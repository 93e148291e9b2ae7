#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "front/hlo/hlo.h"
#include "front/hlo/write/write.h"
#include "ir/application.h"
#include "ir/reference/evaluate_model.h"
#include "ir/text.h"
#include "rewrite/passes.h"
#include "tests/base/says_testing.h"
#include "zoo/random/random_graph.h"
#include "zoo/zoo.h"

// Graphs are written as StableHLO and as HLO, read back, and compute the same bits.

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

using Print = Result<std::string> (*)(const Model&);
constexpr std::pair<std::string_view, Print> kLanguages[] = {{"StableHLO", print_stablehlo},
                                                             {"HLO", print_hlo}};

// Every element with all its bits; NaN are alike.
std::string elements_of(const Tensor& tensor) {
  std::string text = tensor.type().to_string();
  for (int64_t i = 0; i < tensor.elements(); ++i)
    text += is_real(tensor.dtype()) ? fmt::format(" {}", tensor.real_at(i))
                                    : fmt::format(" {}", tensor.integer_at(i));
  return text;
}

// Without composites, whose steps the reference rounds otherwise than those of their expansion.
Graph spelled_out(const Graph& graph) {
  for (const Pass& pass : parse_passes("expand").value()) return pass.run(graph).value();
  return graph;
}

bool contains(const Graph& graph, Opcode opcode) {
  for (const NodeId n : graph.nodes()) {
    if (graph.opcode(n) == opcode) return true;
    for (const GraphRef& region : graph.regions(n))
      if (contains(*region, opcode)) return true;
  }
  return false;
}

void expect_same_bits(const Graph& graph, const Graph& again, std::span<const Tensor> inputs,
                      Numerics numerics) {
  const Result<std::vector<Tensor>> want = evaluate(graph, inputs, {.numerics = numerics});
  if (!want.ok()) return;
  const Result<std::vector<Tensor>> got = evaluate(again, inputs, {.numerics = numerics});
  ASSERT_TRUE(got.ok()) << got.error().to_string();
  ASSERT_EQ(got->size(), want->size());
  for (size_t i = 0; i < want->size(); ++i)
    ASSERT_EQ(elements_of((*got)[i]), elements_of((*want)[i])) << "output " << i;
}

// Returns false if a language has no form for the graph.
bool comes_back(const Graph& graph, uint64_t seed, std::map<std::string, int>& refused) {
  const Graph plain = spelled_out(graph);
  bool whole = true;
  for (const auto& [language, print_model] : kLanguages) {
    SCOPED_TRACE(language);
    const Result<std::string> text = print_model(model_of(graph));
    if (!text.ok()) {
      EXPECT_EQ(text.error().code(), ErrorCode::unsupported) << text.error().to_string();
      ++refused[text.error().to_string().substr(0, 120)];
      whole = false;
      continue;
    }
    const Result<Model> model = parse_hlo(*text, "written");
    EXPECT_TRUE(model.ok()) << model.error().to_string() << "\n" << *text << print(graph);
    if (!model.ok()) return false;
    const Graph& again = *single_graph(*model);
    EXPECT_EQ(again.input_types(), graph.input_types());
    EXPECT_EQ(again.output_types(), graph.output_types());
    const std::vector<Tensor> inputs = random_graph_inputs(graph, seed);
    expect_same_bits(plain, again, inputs, Numerics::wide);
    // A reduction of segments is one op, which the languages lack: its steps are rounded there.
    if (!contains(plain, Opcode::segment_reduce))
      expect_same_bits(plain, again, inputs, Numerics::rounded);
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << *text << print(graph);
      return false;
    }
  }
  return whole;
}

void check_random(uint64_t first, uint64_t count, uint64_t least) {
  std::map<std::string, int> refused;
  uint64_t whole = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    whole +=
        comes_back(random_graph({.seed = seed, .repeats_outputs = true}), seed, refused) ? 1 : 0;
    if (testing::Test::HasFailure()) break;
  }
  for (const auto& [why, times] : refused) std::printf("%d times: %s\n", times, why.c_str());
  EXPECT_GE(whole, least);
}

TEST(HloWrite, RandomGraphsComeBackWithTheSameBits) { check_random(0, 150, 150); }
TEST(HloWrite, DISABLED_SweepRandomGraphsComeBack) { check_random(1000, 2000, 2000); }

// The symbols come back as they were. They are bound before a run.
void check_symbolic(uint64_t first, uint64_t count, uint64_t least) {
  std::map<std::string, int> refused;
  uint64_t whole = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = random_graph({.seed = seed, .symbolic = true});
    const Result<std::string> text = print_stablehlo(model_of(graph));
    if (!text.ok()) {
      ASSERT_EQ(text.error().code(), ErrorCode::unsupported) << text.error().to_string();
      ++refused[text.error().to_string().substr(0, 120)];
      continue;
    }
    const Result<Model> model = parse_hlo(*text, "written");
    if (!model.ok() && model.error().code() == ErrorCode::unsupported) {
      ++refused["read: " + model.error().to_string().substr(0, 160)];
      continue;
    }
    ASSERT_TRUE(model.ok()) << model.error().to_string() << "\n" << *text << print(graph);
    EXPECT_EQ(single_graph(*model)->input_types(), graph.input_types());
    Bindings bindings;
    for (Symbol s : graph.symbols()) {
      const int64_t step = s.multiple_of(), low = std::max<int64_t>(s.min(), 1);
      bindings.emplace(s.name(), std::min((low + step - 1) / step * step, s.max()));
    }
    const Graph bound = specialize(graph, bindings).value();
    const Result<Graph> again = specialize(*single_graph(*model), bindings);
    ASSERT_TRUE(again.ok()) << again.error().to_string() << "\n" << *text << print(graph);
    const std::vector<Tensor> inputs = random_graph_inputs(bound, seed);
    expect_same_bits(spelled_out(bound), *again, inputs, Numerics::wide);
    if (testing::Test::HasFailure()) FAIL() << *text << print(graph);
    ++whole;
  }
  for (const auto& [why, times] : refused) std::printf("%d times: %s\n", times, why.c_str());
  EXPECT_GE(whole, least);
}

TEST(HloWrite, RandomGraphsOfOpenSizesComeBack) { check_symbolic(0, 100, 80); }
TEST(HloWrite, DISABLED_SweepRandomGraphsOfOpenSizesComeBack) { check_symbolic(1000, 1000, 850); }

TEST(HloWrite, KeepsDonations) {
  const Graph graph = parse_graph(
                          "graph @g(%x: f32[2] donate 0) -> f32[2] {\n"
                          "  %y = neg %x\n  return %y\n}\n")
                          .value();
  const Model model = parse_hlo(print_stablehlo(model_of(graph)).value(), "p").value();
  EXPECT_TRUE(std::ranges::equal(single_graph(model)->donations(), graph.donations()));
}

// An op that StableHLO lacks keeps its name, and equal ones share the function that spells it out.
TEST(HloWrite, NamesComposites) {
  const Graph graph = parse_graph(
                          "graph @main(%x: f32[2, 3], %y: f32[2, 3]) -> f32[2, 3] {\n"
                          "  %a = softmax %x {axis = 1}\n  %b = softmax %y {axis = 1}\n"
                          "  %c = softmax %b {axis = 0}\n"
                          "  %d = add %a, %c\n  return %d\n}\n")
                          .value();
  const std::string text = print_stablehlo(model_of(graph)).value();
  const auto count = [&](std::string_view part) {
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(count("\"stablehlo.composite\"("), 3u) << text;
  EXPECT_EQ(count("name = \"hone.softmax\""), 3u);
  EXPECT_EQ(count("op = \"softmax {axis = 0}\""), 1u);
  EXPECT_EQ(count("func.func private @hone.softmax_"), 2u);
  const Result<Model> again = parse_hlo(text, "written");
  ASSERT_TRUE(again.ok()) << again.error().to_string() << text;
  const std::vector<Tensor> inputs = {
      Tensor::from_reals(Type::get(DType::f32, {2, 3}), std::vector<double>{1, 2, 3, 4, 5, 7}),
      Tensor::from_reals(Type::get(DType::f32, {2, 3}), std::vector<double>{0, -1, 3, 2, 5, 1})};
  expect_same_bits(spelled_out(graph), *single_graph(*again), inputs, Numerics::wide);
  EXPECT_EQ(print_hlo(model_of(graph)).value().find("composite"), std::string::npos);
}

TEST(HloWrite, RefusesOpenSizesInHlo) {
  const Graph graph = parse_graph(
                          "graph @g(%x: f32[N]) -> f32[N] where N in 1..8 {\n"
                          "  %y = neg %x\n  return %y\n}\n")
                          .value();
  EXPECT_THAT(print_hlo(model_of(graph)),
              refuses(ErrorCode::unsupported, "HLO ... open ... --dim"));
}

TEST(HloWrite, KeepsTheNamesOfInputsAndOutputs) {
  const Graph graph = parse_graph(
                          "graph @g(%x: f32[2], %y: f32[2]) -> (f32[2], f32[2]) {\n"
                          "  %sum = add %x, %y\n  %all = mul %sum, %y\n  return %all, %sum\n}\n")
                          .value();
  for (const auto& [language, print_model] : kLanguages) {
    SCOPED_TRACE(language);
    const Model model = parse_hlo(print_model(model_of(graph)).value(), "p").value();
    EXPECT_EQ(model.inputs, model_of(graph).inputs);
    EXPECT_EQ(model.outputs, model_of(graph).outputs);
  }
}

}  // namespace
}  // namespace hone::HONE_FILE

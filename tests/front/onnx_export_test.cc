#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>

#include "front/onnx/onnx.h"
#include "front/onnx/proto.h"
#include "ir/reference/evaluate_model.h"
#include "ir/text.h"
#include "oracle/compare.h"
#include "rewrite/passes.h"
#include "tests/base/says_testing.h"
#include "zoo/inputs.h"
#include "zoo/random/random_graph.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;

std::filesystem::path file_for_test(std::string_view name = "model.onnx") {
  const testing::TestInfo& info = *testing::UnitTest::GetInstance()->current_test_info();
  std::filesystem::path folder = std::filesystem::path(testing::TempDir()) /
                                 fmt::format("onnx_export_{}_{}", info.name(), getpid());
  std::filesystem::create_directories(folder);
  return folder / name;
}

// Written and read again.
Result<Model> round_trip(const Model& model, const ExportOptions& options = {},
                         const ImportOptions& import = {}) {
  const std::filesystem::path path = file_for_test();
  HONE_TRY(save_onnx(path, model, options));
  Result<Model> again = load_onnx(path, import);
  std::filesystem::remove_all(path.parent_path());
  return again;
}

void expect_equal(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected,
                  Tolerance tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    // Results are rounded to their types.
    const Tolerance own = default_tolerance(expected[i].dtype());
    const Tolerance least = {std::max(own.relative, tolerance.relative),
                             std::max(own.absolute, tolerance.absolute)};
    Result<Comparison> comparison = compare(actual[i], expected[i], least);
    ASSERT_TRUE(comparison.ok()) << comparison.error().to_string();
    EXPECT_TRUE(comparison->passed()) << "output " << i << ": " << comparison->to_string();
  }
}

// `model` computes what `graph` computes.
void expect_same_values(const Model& model, const Graph& graph, Tolerance tolerance) {
  Result<std::vector<Tensor>> inputs = random_inputs(graph, 1);
  ASSERT_TRUE(inputs.ok()) << inputs.error().to_string();
  Result<std::vector<Tensor>> expected = evaluate(graph, *inputs);
  ASSERT_TRUE(expected.ok()) << expected.error().to_string();
  Result<std::vector<Tensor>> actual = evaluate_model(model, *inputs);
  ASSERT_TRUE(actual.ok()) << actual.error().to_string();
  expect_equal(*actual, *expected, tolerance);
}

// A generated graph and one that is read from a file have one content hash only if it is the same
// bytes.
Graph with_plain_constants(const Graph& graph) {
  Graph plain(graph.name());
  std::vector<ValueId> map(graph.value_count());
  auto of = [&](ValueId v) { return v.is_none() ? v : map[v.index]; };
  for (NodeId n : graph.nodes()) {
    const ValueId first = graph.results(n).size() > 0 ? graph.result(n) : ValueId::none();
    if (graph.opcode(n) == Opcode::parameter) {
      map[first.index] = plain.add_parameter(graph.type(first), graph.name(first));
    } else if (graph.opcode(n) == Opcode::constant) {
      const Tensor& tensor = graph.constant(n);
      map[first.index] = plain.add_constant(Tensor::copy_of(tensor.type(), tensor.bytes()));
    } else {
      std::vector<ValueId> operands;
      for (ValueId v : graph.operands(n)) operands.push_back(of(v));
      std::vector<GraphRef> regions;
      for (const GraphRef& region : graph.regions(n))
        regions.push_back(std::make_shared<Graph>(with_plain_constants(*region)));
      const NodeId copy = plain.append(graph.op(n), operands, regions).value();
      for (size_t i = 0; i < graph.results(n).size(); ++i)
        map[graph.result(n, i).index] = plain.result(copy, i);
    }
  }
  std::vector<ValueId> outputs;
  for (ValueId v : graph.outputs()) outputs.push_back(of(v));
  plain.set_outputs(outputs);
  for (Donation d : graph.donations()) plain.add_donation(d.input, d.output);
  return plain;
}

Graph after(Graph graph, std::string_view passes) {
  const std::vector<Pass> list = parse_passes(passes).value();
  for (const Pass& pass : list) graph = pass.run(graph).value();
  return graph;
}

// The same nodes, whatever they are called. ONNX has no op for some composites, so all are spelled
// out; constants are folded, and equal and dead nodes are left out.
bool is_same_graph(const Graph& a, const Graph& b) {
  constexpr std::string_view kPasses = "expand,fold,cse,dce";
  return structural_hash(after(with_plain_constants(a), kPasses)) ==
         structural_hash(after(with_plain_constants(b), kPasses));
}

// Every element, signs of zeros and NaN too.
std::string print_elements(const Tensor& tensor) {
  std::string text;
  for (int64_t i = 0; i < tensor.elements(); ++i)
    text += is_real(tensor.dtype()) ? fmt::format("{} ", tensor.real_at(i))
                                    : fmt::format("{:#x} ", tensor.integer_at(i));
  return text;
}

Graph tiny(std::string_view name, bool symbolic = false) {
  return build_zoo_model(name, {.size = ZooSize::tiny, .symbolic_batch = symbolic}).value();
}

// ---- The zoo -----------------------------------------------------------------------------------

class ZooExport : public testing::TestWithParam<std::string> {};

TEST_P(ZooExport, ComesBackAsItWas) {
  const Graph graph = tiny(GetParam());
  for (int opset : {17, 18, 19, 20, 21}) {
    Result<Model> model = round_trip(model_of(graph), {.opset = opset});
    ASSERT_TRUE(model.ok()) << model.error().to_string();
    expect_same_values(*model, graph, {1e-6, 1e-7});
    const Graph* again = single_graph(*model);
    ASSERT_NE(again, nullptr) << "it is in several segments";
    EXPECT_EQ(graph.input_types(), again->input_types()) << opset;
    EXPECT_EQ(graph.output_types(), again->output_types()) << opset;
    EXPECT_TRUE(std::ranges::equal(graph.donations(), again->donations())) << opset;
    for (size_t i = 0; i < graph.inputs().size(); ++i)
      EXPECT_EQ(graph.name(graph.inputs()[i]), again->name(again->inputs()[i]));
    for (size_t i = 0; i < graph.outputs().size(); ++i)
      EXPECT_EQ(graph.name(graph.outputs()[i]), again->name(again->outputs()[i]));
  }
}

TEST_P(ZooExport, KeepsSymbols) {
  const Graph graph = tiny(GetParam(), true);
  Result<Model> model = round_trip(model_of(graph));
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  expect_same_values(*model, graph, {1e-6, 1e-7});
  const Graph* again = single_graph(*model);
  ASSERT_NE(again, nullptr) << "it is in several segments";
  // Names, bounds and multiples, as expressions of them.
  EXPECT_EQ(graph.input_types(), again->input_types());
  EXPECT_EQ(graph.output_types(), again->output_types());
}

TEST_P(ZooExport, PrimitivesComputeTheSame) {
  const Graph graph = tiny(GetParam());
  // Scatters add from opset 16 on.
  const int opset = GetParam() == "graph_network" ? 16 : 13;
  Result<Model> model = round_trip(model_of(graph), {.opset = opset, .primitives = true});
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  ASSERT_NE(single_graph(*model), nullptr) << "it is in several segments";
  expect_same_values(*model, graph, {1e-5, 1e-6});
}

std::vector<std::string> zoo_names() {
  std::vector<std::string> names;
  for (const ZooEntry& entry : zoo_entries()) names.emplace_back(entry.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooExport, testing::ValuesIn(zoo_names()),
                         [](const auto& info) { return info.param; });

TEST(OnnxExport, ZooMostlyComesBackNodeByNode) {
  std::string others;
  int same = 0;
  for (const ZooEntry& entry : zoo_entries()) {
    const Graph graph = tiny(entry.name);
    Result<Model> model = round_trip(model_of(graph));
    ASSERT_TRUE(model.ok()) << model.error().to_string();
    const bool is_same = is_same_graph(graph, *single_graph(*model));
    same += is_same ? 1 : 0;
    if (!is_same) others += fmt::format(" {}", entry.name);
  }
  std::printf("%d of %zu models by the same nodes; in other spellings:%s\n", same,
              zoo_entries().size(), others.c_str());
  // A product by a transposed matrix comes back as a transpose and a product, which is how PyTorch
  // writes it: models of transformers and of recurrent layers.
  EXPECT_GE(same, 20);
}

// ---- Random graphs -----------------------------------------------------------------------------

// "node '%7' (rng_bits)" and the reason, without what is particular.
std::string refused_op(const Error& error) {
  const std::string text = error.to_string();
  const size_t open = text.rfind(" ("), close = text.rfind(')');
  return open == std::string::npos ? text : text.substr(open + 2, close - open - 2);
}

// At least `least` of the graphs have nothing that ONNX lacks.
void check_random(uint64_t first, uint64_t count, bool symbolic, int least) {
  std::map<std::string, int> refused;
  int exported = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = random_graph({.seed = seed, .symbolic = symbolic});
    const std::filesystem::path path = file_for_test();
    Result<std::vector<std::filesystem::path>> saved = save_onnx(path, model_of(graph));
    if (!saved.ok()) {
      ASSERT_EQ(saved.error().code(), ErrorCode::unsupported) << saved.error().to_string();
      ++refused[refused_op(saved.error())];
      continue;
    }
    Result<Model> model = load_onnx(path);
    ASSERT_TRUE(model.ok()) << model.error().to_string();
    if (!graph.is_static()) {
      Bindings bindings;
      for (Symbol s : graph.symbols()) {
        const int64_t step = s.multiple_of(), least = std::max<int64_t>(s.min(), 1);
        bindings.emplace(s.name(), std::min((least + step - 1) / step * step, s.max()));
      }
      graph = specialize(graph, bindings).value();
    }
    const std::vector<Tensor> inputs = random_graph_inputs(graph, seed);
    Result<std::vector<Tensor>> expected = evaluate(graph, inputs);
    if (!expected.ok()) continue;
    Result<std::vector<Tensor>> actual = evaluate_model(*model, inputs);
    ASSERT_TRUE(actual.ok()) << actual.error().to_string();
    expect_equal(*actual, *expected, {1e-4, 1e-5});
    ++exported;
    if (testing::Test::HasFailure()) FAIL() << print(graph);
  }
  std::string text;
  for (const auto& [op, times] : refused) text += fmt::format(" {} {}", times, op);
  std::printf("%d of %llu graphs; refused:%s\n", exported, static_cast<unsigned long long>(count),
              text.c_str());
  EXPECT_GE(exported, least);
  std::filesystem::remove_all(file_for_test().parent_path());
}

TEST(OnnxExport, RandomGraphs) { check_random(0, 600, false, 150); }
TEST(OnnxExport, RandomGraphsWithSymbols) { check_random(0, 300, true, 50); }
TEST(OnnxExport, DISABLED_SweepRandomGraphs) { check_random(10'000, 20'000, false, 5'000); }

// ---- Forms of single ops ------------------------------------------------------------------------

TEST(OnnxExport, BitPatternsAreComputed) {
  const std::vector<double> numbers = {0,     -0.0,     1,         -1.5,  3.140625, 6e-8,
                                       -6e-8, 5e-324,   -1e-310,   1e-40, 65504,    -1e30,
                                       1e300, INFINITY, -INFINITY, NAN};
  for (const auto& [real, integer] :
       {std::pair{"f16", "u16"}, std::pair{"bf16", "i16"}, std::pair{"f32", "i32"},
        std::pair{"f64", "u64"}, std::pair{"f16", "bf16"}}) {
    SCOPED_TRACE(fmt::format("{} {}", real, integer));
    Result<Graph> graph =
        parse_graph(fmt::format("graph @g(%x: {0}[16]) {{\n"
                                "  %y = bitcast %x {{dtype = {1}}}\n"
                                "  %z = bitcast %y {{dtype = {0}}}\n"
                                "  %w = bitcast %z {{dtype = {1}}}\n"
                                "  return %y, %z, %w\n}}\n",
                                real, integer));
    ASSERT_TRUE(graph.ok()) << graph.error().to_string();
    const std::vector<Tensor> inputs = {Tensor::from_reals(graph->input_types()[0], numbers)};
    for (int opset : {17, 21}) {
      Result<Model> model = round_trip(model_of(*graph), {.opset = opset});
      ASSERT_TRUE(model.ok()) << model.error().to_string();
      Result<std::vector<Tensor>> actual = evaluate_model(*model, inputs);
      Result<std::vector<Tensor>> expected = evaluate(*graph, inputs);
      ASSERT_TRUE(actual.ok() && expected.ok());
      for (size_t i = 0; i < expected->size(); ++i)
        EXPECT_EQ(print_elements((*actual)[i]), print_elements((*expected)[i])) << i;
    }
  }
}

TEST(OnnxExport, AnglesOfZerosAndInfinities) {
  const std::vector<double> numbers = {0, -0.0, 1, -2, INFINITY, -INFINITY, NAN};
  std::vector<double> ys, xs;
  for (double y : numbers)
    for (double x : numbers) ys.push_back(y), xs.push_back(x);
  Result<Graph> graph =
      parse_graph("graph @g(%y: f32[49], %x: f32[49]) {\n  %a = atan2 %y, %x\n  return %a\n}\n");
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  Result<Model> model = round_trip(model_of(*graph));
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  const Type type = graph->input_types()[0];
  const std::vector<Tensor> inputs = {Tensor::from_reals(type, ys), Tensor::from_reals(type, xs)};
  const Tensor actual = (*evaluate_model(*model, inputs))[0];
  for (int64_t i = 0; i < 49; ++i) {
    const double want = std::atan2(ys[static_cast<size_t>(i)], xs[static_cast<size_t>(i)]);
    const double got = actual.real_at(i);
    if (std::isnan(want))
      EXPECT_TRUE(std::isnan(got)) << i;
    else
      EXPECT_TRUE(std::abs(got - want) < 1e-6 && std::signbit(got) == std::signbit(want))
          << i << ": " << got << ", want " << want;
  }
}

TEST(OnnxExport, AConvolutionWithoutSpatialDims) {
  Result<Graph> graph = parse_graph(
      "graph @g(%x: f32[2, 4], %w: f32[6, 2]) {\n"
      "  %y = conv %x, %w {groups = 2}\n  return %y\n}\n");
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  Result<Model> model = round_trip(model_of(*graph));
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  expect_same_values(*model, *graph, {1e-6, 1e-7});
}

TEST(OnnxExport, AWhileKeepsItsState) {
  Result<Graph> graph = parse_graph(
      "graph @g(%n: i64[], %x: f32[3], %limit: f32[]) {\n"
      "  %i, %y, %l = while %n, %x, %limit condition (%i: i64[], %x: f32[3], %l: f32[]) {\n"
      "    %most = reduce %x {kind = max, axes = [0]}\n"
      "    %small = compare %most, %l {direction = lt}\n"
      "    %few = compare %i, 8 {direction = lt}\n"
      "    %go = and %small, %few\n"
      "    return %go\n"
      "  } body (%i: i64[], %x: f32[3], %l: f32[]) {\n"
      "    %next = add %i, 1\n"
      "    %twice = add %x, %x\n"
      "    return %next, %twice, %l\n"
      "  }\n"
      "  return %i, %y\n}\n");
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  Result<Model> model = round_trip(model_of(*graph));
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  EXPECT_TRUE(is_same_graph(*graph, *single_graph(*model))) << print(*single_graph(*model));
  for (double limit : {0.0, 5.0, 1e9}) {
    const Tensor x = Tensor::from_reals(Type::get(DType::f32, {3}), std::vector<double>{1, 2, 3});
    const std::vector<Tensor> inputs = {Tensor::scalar(DType::i64, 2), x,
                                        Tensor::scalar(DType::f32, limit)};
    expect_equal(*evaluate_model(*model, inputs), *evaluate(*graph, inputs), {0, 0});
  }
}

// ---- Metadata, data files, options -------------------------------------------------------------

constexpr std::string_view kCache =
    "graph @cache(%x: f32[N, 4], %cache: f32[N, T, 4] donate 1) -> (f32[N, 4], f32[N, T, 4]) "
    "where N in 1..8, T in 16..64 step 8 {\n"
    "  %y = add %x, %x : f32[N, 4]\n"
    "  %next = add %cache, %cache : f32[N, T, 4]\n"
    "  return %y, %next\n"
    "}\n";

TEST(OnnxExport, ADonatedCacheAndBoundsSurvive) {
  Result<Graph> graph = parse_graph(kCache);
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  Result<Model> model = round_trip(model_of(*graph));
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  const Graph* again = single_graph(*model);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->input_types(), graph->input_types());
  EXPECT_TRUE(std::ranges::equal(again->donations(), graph->donations()));
}

// The dividend can be negative here, and ONNX's Div rounds toward zero.
TEST(OnnxExport, SizesAreRoundedDown) {
  Result<Graph> graph = parse_graph(
      "graph @half(%x: f32[N, M], %c: f32[]) -> (f32[(N - M)/2 + 5]) where N in 0..9, M in 0..9 {\n"
      "  %y = broadcast %c {dims = [(N - M)/2 + 5], map = []}\n"
      "  return %y\n"
      "}\n");
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  Result<Model> model = round_trip(model_of(*graph));
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  for (int64_t n = 0; n <= 9; ++n) {
    const std::vector<Tensor> inputs = {Tensor::zeros(Type::get(DType::f32, {n, 9 - n})),
                                        Tensor::zeros(Type::scalar(DType::f32))};
    Result<std::vector<Tensor>> results = evaluate_model(*model, inputs);
    ASSERT_TRUE(results.ok()) << n << ": " << results.error().to_string();
    EXPECT_EQ((*results)[0].type().dim(0), Dim(n)) << n;  // (2n - 9)/2 + 5, rounded down
  }
}

std::string with_metadata(std::string_view key, std::string_view value) {
  onnx::ModelProto proto;
  proto.set_ir_version(8);
  proto.add_opset_import()->set_version(17);
  onnx::GraphProto& graph = *proto.mutable_graph();
  graph.set_name("g");
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type("Neg");
  node.add_input("x");
  node.add_output("y");
  for (onnx::ValueInfoProto* info : {graph.add_input(), graph.add_output()}) {
    info->set_name(info == &graph.input(0) ? "x" : "y");
    info->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
    info->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_param("N");
  }
  onnx::StringStringEntryProto& entry = *proto.add_metadata_props();
  entry.set_key(std::string(key));
  entry.set_value(std::string(value));
  return proto.SerializeAsString();
}

Result<Model> parse_with(std::string_view key, std::string_view value) {
  const std::string bytes = with_metadata(key, value);
  return parse_onnx(std::as_bytes(std::span(bytes)), "test.onnx", ".");
}

TEST(OnnxExport, RefusesMalformedMetadata) {
  auto error = [](std::string_view key, std::string_view value) {
    Result<Model> model = parse_with(key, value);
    return model.ok() ? std::string() : model.error().to_string();
  };
  EXPECT_EQ(error("hone.symbols", "N 1 64 1"), "");
  EXPECT_EQ(error("hone.donations", "0 0"), "");
  EXPECT_EQ(error("hone.other", "what 1"), "");
  EXPECT_THAT(error("hone.symbols", "N 1 64"), HasSubstr("has 3 fields, want 4"));
  EXPECT_THAT(error("hone.symbols", "N 9 8 1"), HasSubstr("has no value: 9 to 8"));
  EXPECT_THAT(error("hone.symbols", "N 1 7 8"), HasSubstr("has no value"));
  EXPECT_THAT(error("hone.symbols", "N 0 7 0"), HasSubstr("has no value"));
  EXPECT_THAT(error("hone.symbols", "N -1 7 1"), HasSubstr("number from 0 on"));
  EXPECT_THAT(error("hone.symbols", "1N 1 7 1"), says("1N"));
  EXPECT_THAT(error("hone.symbols", "N 1 7 1; N 1 8 1"), HasSubstr("twice"));
  EXPECT_THAT(error("hone.donations", "0"), HasSubstr("has 1 fields, want 2"));
  EXPECT_THAT(error("hone.donations", "1 0"), HasSubstr("there are 1 and 1"));
  EXPECT_THAT(error("hone.donations", "0 0; 0 0"), HasSubstr("twice"));
}

TEST(OnnxExport, WeightsMayStandInAFileOfTheirOwn) {
  const Graph graph = tiny("mlp");
  const std::filesystem::path path = file_for_test("apart.onnx");
  Result<std::vector<std::filesystem::path>> written =
      save_onnx(path, model_of(graph), {.external_data = true});
  ASSERT_TRUE(written.ok()) << written.error().to_string();
  std::filesystem::path data = path;
  data += ".data";
  EXPECT_EQ(*written, (std::vector<std::filesystem::path>{data, path}));
  Result<Model> model = load_onnx(path);
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  expect_same_values(*model, graph, {1e-6, 1e-7});
  std::filesystem::remove_all(path.parent_path());
}

// Weights of `sizes`, which nobody holds in memory, and what the file says of them.
struct LargeWeights {
  std::vector<Tensor> tensors;
  Graph graph{"large"};

  explicit LargeWeights(const Ints& sizes) {
    std::vector<ValueId> outputs;
    for (int64_t size : sizes) {
      const uint64_t seed = tensors.size() + 1;
      const auto fill = [seed](std::span<std::byte> bytes) {
        std::ranges::fill(bytes, static_cast<std::byte>(seed));
        for (size_t i = 0; i < bytes.size(); i += 4096) bytes[i] = static_cast<std::byte>(i >> 12);
        bytes.back() = std::byte{0xa5};
      };
      tensors.push_back(Tensor::lazy(Type::get(DType::u8, {size}), seed, fill));
      const ValueId weight = graph.add_constant(tensors.back());
      const Op slice = Op::get(Opcode::slice, {{"start", Dims{size - 1}}, {"limit", Dims{size}}});
      outputs.push_back(graph.result(graph.append(slice, std::vector{weight}).value()));
    }
    graph.set_outputs(outputs);
  }

  // All bytes of the constants, in their order.
  void expect_in(const Graph& other) const {
    size_t next = 0;
    for (NodeId n : other.nodes()) {
      if (other.opcode(n) != Opcode::constant) continue;
      ASSERT_LT(next, tensors.size());
      std::vector<std::byte> scratch;
      const std::span<const std::byte> want = tensors[next++].bytes_once(scratch);
      EXPECT_EQ(other.constant(n).type(),
                Type::get(DType::u8, {static_cast<int64_t>(want.size())}));
      EXPECT_TRUE(std::ranges::equal(want, other.constant(n).bytes())) << next;
    }
    EXPECT_EQ(next, tensors.size());
  }
};

void check_large(const Ints& sizes) {
  const LargeWeights weights(sizes);
  const std::filesystem::path path = file_for_test();
  Result<std::vector<std::filesystem::path>> written = save_onnx(path, model_of(weights.graph));
  ASSERT_TRUE(written.ok()) << written.error().to_string();
  EXPECT_EQ(written->size(), 2U);
  EXPECT_LT(std::filesystem::file_size(path), 4096U);
  Result<Model> model = load_onnx(path);
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  for (const Tensor& tensor : weights.tensors) EXPECT_FALSE(tensor.is_materialized());
  weights.expect_in(*single_graph(*model));
  std::filesystem::remove_all(path.parent_path());
}

// Several GB are written: not in every run.
TEST(OnnxExport, DISABLED_SweepWeightsOfMoreThan2GBStandApart) {
  check_large({512 << 20, 512 << 20, 512 << 20, (512 << 20) + 1, 12345});
}
TEST(OnnxExport, DISABLED_SweepOneWeightOfMoreThan2GB) {
  check_large({(int64_t{1} << 31) + 4097, 1024});
}
// A message could not hold the tensor and what stands around it.
TEST(OnnxExport, DISABLED_SweepAWeightOfAlmost2GB) { check_large({(int64_t{1} << 31) - 4096}); }

TEST(OnnxExport, RefusesOpsetsThatItDoesNotWrite) {
  for (int opset : {16, 22})
    EXPECT_FALSE(save_onnx("x.onnx", model_of(tiny("mlp")), {.opset = opset}).ok());
}

TEST(OnnxExport, SaysWhatOnnxCannot) {
  Result<Graph> graph = parse_graph(
      "graph @g(%k: u64[], %c: u64[]) -> u32[4] {\n"
      "  %r = rng_bits %k, %c {dtype = u32, dims = [4]}\n  return %r\n}\n");
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  auto saved = save_onnx(file_for_test(), model_of(*graph));
  ASSERT_FALSE(saved.ok());
  EXPECT_EQ(saved.error().code(), ErrorCode::unsupported);
  EXPECT_THAT(saved.error().to_string(), HasSubstr("random"));
}

}  // namespace
}  // namespace hone::HONE_FILE

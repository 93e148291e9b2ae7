#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "ir/text.h"
#include "session/evaluation.h"
#include "session/native.h"
#include "session/source.h"
#include "tests/base/says_testing.h"
#include "tests/front/onnx_file.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::ElementsAre;
using testing::HasSubstr;

// A session as Python would have it: words of its own, notices kept.
struct Listener {
  std::vector<std::string> lines = {};
  Face face = {.labels = {.size = "sizes", .shape = "shapes"},
               .notice = [this](std::string_view line) { lines.emplace_back(line); }};
};

Model text_model(std::string_view text) { return parse_source(text, "test").value().model; }

constexpr std::string_view kDouble =
    "graph @double(%x: f32[N, 2]) -> f32[N, 2] where N in 1..8 { %y = add %x, %x return %y }";

std::string error_of(const Graph& graph, const Sizes& sizes) {
  return size_bindings(graph, sizes).error().to_string();
}

TEST(Source, ReadsAZooModelAnOnnxFileAndBytes) {
  const Source zoo = load_source("zoo:mlp,size=tiny,symbolic-batch").value();
  EXPECT_THAT(output_names(zoo.model), ElementsAre("logits"));
  const std::filesystem::path file =
      std::filesystem::path(testing::TempDir()) / "hone_session_test.onnx";
  ASSERT_EQ(save_source(zoo.model, file).value(), std::vector{file});
  const Source onnx = load_source(file.string(), {.sizes = {.dims = {{"N", 3}}}}).value();
  EXPECT_EQ(onnx.model.inputs[0].type.dim(0), Dim(3));
  EXPECT_TRUE(onnx.open.sizes.dims.empty());
  const std::string bytes = read_file(file, 1 << 24).value();
  EXPECT_EQ(parse_source(bytes, "bytes").value().model.inputs.size(), 1U);
  EXPECT_EQ(text_model(kDouble).name, "double");
  std::filesystem::remove(file);
}

TEST(Source, TellsFilesByWhatIsInThem) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const Model model = text_model(kDouble);
  for (const char* extension : {".onnx", ".hone"}) {
    const std::filesystem::path file = folder.path() / fmt::format("model{}", extension);
    ASSERT_TRUE(save_source(model, file).ok());
    for (const char* other : {"model.bin", "model", "other.onnx", "other.hone"}) {
      const std::filesystem::path renamed = folder.path() / other;
      std::filesystem::copy_file(file, renamed, std::filesystem::copy_options::overwrite_existing);
      const Result<Source> source = load_source(renamed.string());
      ASSERT_TRUE(source.ok()) << source.error().to_string();
      EXPECT_EQ(source->model.inputs[0].name, "x");
    }
  }
  const std::filesystem::path other = folder.path() / "notes.txt";
  ASSERT_TRUE(write_file_atomic(other, "no model").ok());
  const Error error = load_source(other.string()).error();
  EXPECT_EQ(error.code(), ErrorCode::bad_input);
  EXPECT_THAT(error.to_string(), HasSubstr("notes.txt"));
  EXPECT_THAT(error.hint(), testing::AllOf(HasSubstr(".onnx"), HasSubstr(".hone")));
}

TEST(Source, SaysWhatIsWrongWithAName) {
  const std::pair<std::string, std::string> cases[] = {
      {"zoo:resnet81", "did you mean 'resnet18'?"},
      {"zoo:mlp,size=small", "size: 'small' is not one of tiny, full"},
      {"zoo:mlp,batch=0", "batch: 0 is outside 1..65536"},
      {"zoo:mlp,batch", "'batch' needs a value: batch=N"},
      {"zoo:mlp,unroll=1", "'unroll' takes no value"},
      {"zoo:mlp,seed=1,seed=2", "'seed' is given twice"},
      {"zoo:mlp,sed=1", "did you mean 'seed'?"},
      {"nowhere.hone", "nowhere.hone"},
      {"nowhere.onnx", "nowhere.onnx"},
  };
  for (const auto& [name, words] : cases)
    EXPECT_THAT(load_source(name).error().to_string(), HasSubstr(words)) << name;
}

TEST(Sizes, ThatNobodyTellsAreSomeThatTheModelTakes) {
  onnx_testing::File file;
  file.graph.input("x", DType::f32, {"n", "m"});
  file.graph.constant(
      "rows", Tensor::from_integers(Type::get(DType::i64, {2}), std::vector<int64_t>{-1, 6}));
  file.graph.node("Reshape", {"x", "rows"}, {"y"});
  file.graph.outputs({"y"});
  const Source source = parse_source(file.proto.SerializeAsString(), "test").value();
  const RunInputs inputs =
      resolve_inputs(signature_of(source.model), source.open, 0, Engine::reference).value();
  const Tensor& x = inputs.tensors[0];
  EXPECT_GT(x.elements(), 0);
  EXPECT_EQ(x.elements() % 6, 0) << x.type().to_string();
  EXPECT_TRUE(evaluate_model(source.model, inputs.tensors).ok());
}

TEST(Sizes, BindDimsAndShapes) {
  const Graph graph = signature_of(text_model(kDouble));
  const std::string dims[] = {"N=4"}, shapes[] = {"x=3x2"};
  EXPECT_EQ(size_bindings(graph, parse_sizes(dims, {}).value()).value(), (Bindings{{"N", 4}}));
  EXPECT_EQ(size_bindings(graph, parse_sizes({}, shapes).value()).value(), (Bindings{{"N", 3}}));
  Listener listener;
  EXPECT_EQ(all_size_bindings(graph, {}, listener.face).value(), (Bindings{{"N", 1}}));
  EXPECT_THAT(listener.lines, ElementsAre("N=1 (the smallest; sizes or shapes sets others)"));
  EXPECT_EQ(size_text({{"M", 2}, {"N", 1}}, {.size = "--dim"}), "--dim M=2 --dim N=1");
}

TEST(Sizes, SayWhatIsWrong) {
  const Graph graph = signature_of(text_model(kDouble));
  EXPECT_THAT(error_of(graph, {.dims = {{"M", 1}}}), says("size ... symbol"));
  EXPECT_THAT(error_of(graph, {.dims = {{"N", 9}}}), HasSubstr("size N=9: N = 9 is outside"));
  EXPECT_THAT(error_of(graph, {.shapes = {{"z", {1, 2}}}}), HasSubstr("it has x"));
  EXPECT_THAT(error_of(graph, {.shapes = {{"x", {1}}}}), HasSubstr("rank 1 instead of 2"));
  EXPECT_THAT(error_of(graph, {.dims = {{"N", 2}}, .shapes = {{"x", {3, 2}}}}),
              HasSubstr("size 3 is not 2"));
  for (const std::string text : {"N", "=4", "N=four", "N=-1"})
    EXPECT_EQ(parse_sizes({&text, 1}, {}).error().code(), ErrorCode::usage) << text;
  for (const std::string text : {"x", "x=2x", "x=-1"})
    EXPECT_EQ(parse_sizes({}, {&text, 1}).error().code(), ErrorCode::usage) << text;
}

TEST(Inputs, AreGivenOrRandom) {
  const Graph graph = signature_of(text_model(
      "graph @g(%x: f16[N], %y: f32[2]) -> f32[2] where N in 1..8 { %z = add %y, %y return %z }"));
  Listener listener;
  std::vector<GivenInput> given = {
      {"x", Tensor::from_reals(Type::get(DType::f32, {3}), std::vector<double>{1, 2, 3})}};
  const RunInputs inputs =
      resolve_inputs(graph, {.inputs = given}, 7, Engine::native, listener.face).value();
  EXPECT_EQ(inputs.bindings, (Bindings{{"N", 3}}));
  EXPECT_TRUE(inputs.chosen.empty());
  EXPECT_EQ(inputs.tensors[0].dtype(), DType::f16);
  EXPECT_THAT(listener.lines, ElementsAre("the tensor: rounded to f16", "random input y, seed 7"));

  given.push_back(given[0]);
  EXPECT_THAT(resolve_inputs(graph, {.inputs = given}, 0, Engine::native).error().what(),
              HasSubstr("'x' is given twice"));
  given = {{"x", Tensor::from_integers(Type::get(DType::i32, {3}), std::vector<int64_t>{1, 2, 3})}};
  EXPECT_THAT(resolve_inputs(graph, {.inputs = given}, 0, Engine::native).error().what(),
              HasSubstr("holds f16, the tensor holds i32"));
  EXPECT_THAT(input_index(graph, "w").error().to_string(), HasSubstr("it has x, y"));
}

TEST(Inputs, OfFilesAreReadOnceTheirHeadersFit) {
  const Graph graph =
      signature_of(text_model("graph @g(%x: f32[N]) -> f32[N] where N in 1..8 { return %x }"));
  int reads = 0;
  const auto given = [&](std::string_view name, DType dtype, int64_t size) {
    const Type type = Type::get(dtype, {size});
    const auto read = [&reads, type]() -> Result<Tensor> { return ++reads, Tensor::zeros(type); };
    return Given{
        .inputs = {{.name = std::string(name), .tensor = {}, .header = type, .read = read}}};
  };
  for (const Given& wrong :
       {given("x", DType::i32, 3), given("x", DType::f32, 9), given("w", DType::f32, 3)})
    EXPECT_FALSE(resolve_inputs(graph, wrong, 0, Engine::native).ok());
  EXPECT_EQ(reads, 0);
  EXPECT_TRUE(resolve_inputs(graph, given("x", DType::f64, 3), 0, Engine::native).ok());
  EXPECT_EQ(reads, 1);
}

TEST(Inputs, AreReadAndMadeOnlyIfTheRunMayHaveThem) {
  const Graph graph =
      signature_of(text_model("graph @g(%x: f32[1048576]) -> f32[1048576] { return %x }"));
  Face face;
  face.labels.memory = "memory";
  face.memory_limit = (8 << 20) - 1;
  const Result<RunInputs> refused = resolve_inputs(graph, {}, 0, Engine::native, face);
  EXPECT_EQ(refused.error().code(), ErrorCode::limit);
  EXPECT_THAT(refused.error().what(), HasSubstr("(8388608 bytes)"));
  EXPECT_THAT(refused.error().hint(), HasSubstr("memory 8"));
  face.memory_limit = 8 << 20;
  EXPECT_EQ(resolve_inputs(graph, {}, 0, Engine::native, face)->memory_left.native, 0);
  EXPECT_FALSE(resolve_inputs(graph, {}, 0, Engine::reference, face).ok());
}

NativeOptions host_options() {
  NativeOptions options;
  options.target = host_target().value();
  return options;
}

TEST(Session, RunsNativelyAsTheReferenceDoes) {
  const Source source = load_source("zoo:mlp,size=tiny,symbolic-batch").value();
  const Graph signature = signature_of(source.model);
  const RunInputs inputs =
      resolve_inputs(signature, {.sizes = {.dims = {{"N", 2}}}}, 1, Engine::reference).value();
  NativeOptions options = host_options();
  ASSERT_TRUE(set_threads(options, 1).ok());
  const auto native = native_model(source.model, inputs, options).value();
  const Tensor got = native->run(inputs.tensors).value()[0];
  for (std::string_view mode : {"wide", "rounded", "fp32"}) {
    const Tensor want =
        evaluate_on(source.model, inputs, {.numerics = numerics_of(mode)}).value()[0];
    ASSERT_EQ(got.type(), want.type());
    for (int64_t i = 0; i < want.elements(); ++i)
      EXPECT_NEAR(got.real_at(i), want.real_at(i), 1e-5) << mode;
  }
}

constexpr std::string_view kLoop = R"(
model @grow(%start: f32[]) -> (%end: f32[], %history: f32[H]) where H in 0..1000 {
  %empty, %yes, %trips = run graph @initial() {
    %0 = constant [] : f32[0]
    %1 = constant true : bool[]
    %2 = constant 3 : i64[]
    return %0, %1, %2
  }
  %end, %history = loop trip %trips while %yes with %state = %start grow %empty {
    %next, %row, %more = run %state graph @step(%s: f32[]) {
      %n = add %s, %s
      %row = reshape %s {dims = [1]}
      %more = compare %n, 100 {direction = lt}
      return %n, %row, %more
    }
    yield %next grow %row while %more
  }
})";

TEST(Session, RunsModelsOfSeveralSegments) {
  const Model model = text_model(kLoop);
  ASSERT_EQ(single_graph(model), nullptr);
  const RunInputs inputs = resolve_inputs(signature_of(model), {}, 0, Engine::native).value();
  const std::vector<Tensor> got = run_native(model, inputs, host_options()).value();
  const std::vector<Tensor> want = evaluate_on(model, inputs, {}).value();
  ASSERT_EQ(got.size(), want.size());
  EXPECT_EQ(got[0].type(), want[0].type());
}

TEST(Session, StopsWhenItIsCancelled) {
  const Model model = text_model(kDouble);
  const RunInputs inputs = resolve_inputs(signature_of(model), {}, 0, Engine::native).value();
  CancelToken cancel;
  cancel.cancel();
  const Face face = {.cancel = &cancel};
  EXPECT_EQ(run_native(model, inputs, host_options(), face).error().code(), ErrorCode::interrupted);
  EXPECT_EQ(evaluate_on(model, inputs, {}, face).error().code(), ErrorCode::interrupted);
}

TEST(Session, RefusesAPlanOfOtherSizesInTheWordsOfTheFace) {
  const Model model = text_model(kDouble);
  NativeOptions options = host_options();
  const Graph sized = specialize(*single_graph(model), {{"N", 2}}).value();
  Compilation compilation(sized, options.target);
  options.plans.push_back({*compilation.plan().value(), "two.plan"});
  const Face face = {.labels = {.size = "sizes", .compile = "hone.compile"}};
  const Graph signature = signature_of(model);
  const RunInputs two =
      resolve_inputs(signature, {.sizes = {.dims = {{"N", 2}}}}, 0, Engine::native).value();
  EXPECT_TRUE(run_native(model, two, options, face).ok());
  const RunInputs three =
      resolve_inputs(signature, {.sizes = {.dims = {{"N", 3}}}}, 0, Engine::native).value();
  EXPECT_THAT(run_native(model, three, options, face).error().to_string(),
              says("other sizes ... hone.compile ... N=3"));
  EXPECT_THAT(set_threads(options, 1000000).error().what(), HasSubstr("the target's cores"));
}

}  // namespace
}  // namespace hone::HONE_FILE

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "ir/model_text.h"
#include "tests/front/onnx_file.h"
#include "tests/ir/segment_models.h"

// Models of several segments, whose sizes depend on data: written as ONNX and as text, read again,
// and run beside the model that was written.

namespace hone::onnx_testing::HONE_FILE {
namespace {

using testing::HasSubstr;

using Feeds = std::vector<std::vector<Tensor>>;  // the inputs of each run

Result<Model> written_and_read(const Model& model, const ExportOptions& options) {
  const testing::TestInfo& info = *testing::UnitTest::GetInstance()->current_test_info();
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) /
                                     fmt::format("segments_{}_{}.onnx", info.name(), getpid());
  HONE_TRY(save_onnx(path, model, options));
  Result<Model> again = load_onnx(path);
  std::filesystem::remove(path);
  return again;
}

void expect_same_runs(const Model& model, const Model& again, const Feeds& feeds) {
  ASSERT_EQ(model.inputs.size(), again.inputs.size());
  ASSERT_EQ(model.outputs.size(), again.outputs.size());
  for (size_t i = 0; i < model.inputs.size(); ++i)
    EXPECT_EQ(model.inputs[i].name, again.inputs[i].name);
  for (size_t i = 0; i < model.outputs.size(); ++i)
    EXPECT_EQ(model.outputs[i].name, again.outputs[i].name);
  ModelRunner one(model), two(again);
  for (size_t run = 0; run < feeds.size(); ++run) {
    SCOPED_TRACE(run);
    Result<std::vector<Tensor>> expected = one.run(feeds[run]), actual = two.run(feeds[run]);
    ASSERT_TRUE(expected.ok()) << expected.error().to_string();
    ASSERT_TRUE(actual.ok()) << actual.error().to_string();
    for (size_t i = 0; i < expected->size(); ++i) {
      EXPECT_EQ((*expected)[i].type(), (*actual)[i].type());
      EXPECT_EQ(numbers((*expected)[i]), numbers((*actual)[i]));
    }
  }
}

void expect_comes_back(const Model& model, const Feeds& feeds) {
  ASSERT_TRUE(verify(model).ok());
  ASSERT_EQ(single_graph(model), nullptr) << "the test wants several segments";
  for (int opset : {17, 21}) {
    SCOPED_TRACE(opset);
    Result<Model> again = written_and_read(model, {.opset = opset});
    ASSERT_TRUE(again.ok()) << again.error().to_string();
    expect_same_runs(model, *again, feeds);
  }
  if (first_deferred(model) != nullptr) return;
  Result<std::string> text = print(model);
  ASSERT_TRUE(text.ok()) << text.error().to_string();
  Result<Model> again = parse_model(*text);
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_EQ(*print(*again), *text);
  expect_same_runs(model, *again, feeds);
}

Model parsed(std::string_view text) {
  Result<Model> model = parse_model(text);
  EXPECT_TRUE(model.ok()) << model.error().to_string();
  return model.ok() ? *model : Model();
}

Tensor vector_of(const Numbers& values) {
  return reals({static_cast<int64_t>(values.size())}, values);
}
Tensor count(int64_t number) { return integers({}, {number}); }
Tensor flag(bool value) { return integers({}, {value ? 1 : 0}, DType::boolean); }

// ---- Sizes that depend on data -----------------------------------------------------------------

TEST(OnnxExportSegments, NonZeroInTheMiddle) {
  File file;
  file.graph.input("x", DType::f32, {"n", "3"});
  file.graph.node("Relu", {"x"}, {"positive"});
  file.graph.node("NonZero", {"positive"}, {"places"});
  file.graph.node("Transpose", {"places"}, {"indices"}, {{"perm", Ints{1, 0}}});
  file.graph.node("GatherND", {"x", "indices"}, {"found"});
  file.graph.node("Exp", {"found"}, {"y"});
  file.graph.node("Shape", {"y"}, {"how_many"});
  file.graph.node("ReduceSum", {"y"}, {"sum"}, {{"keepdims", 0}});
  file.graph.outputs({"y", "how_many", "sum", "indices"});
  expect_comes_back(file.model(), {{reals({2, 3}, {1, -2, 3, 0, 5, -6})},
                                   {reals({1, 3}, {-1, -2, -3})},
                                   {reals({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9})},
                                   {reals({0, 3}, {})}});
}

TEST(OnnxExportSegments, UniqueAndASliceUpToAComputedEnd) {
  File file;
  file.graph.input("x", DType::f32, {"n"});
  file.graph.input("end", DType::i64, {"1"});
  file.graph.constant("start", integers({1}, {1}));
  file.graph.node("Unique", {"x"}, {"different", "", "inverse", "counts"});
  file.graph.node("Slice", {"different", "start", "end"}, {"part"});
  file.graph.node("Concat", {"part", "x"}, {"y"}, {{"axis", 0}});
  file.graph.outputs({"y", "inverse", "counts"});
  expect_comes_back(file.model(), {{vector_of({3, 1, 3, 2}), integers({1}, {2})},
                                   {vector_of({5, 5, 5}), integers({1}, {9})},
                                   {vector_of({1, 2, 3, 4, 5, 6}), integers({1}, {-1})}});
}

// The written file has names like those that import makes up.
TEST(OnnxExportSegments, SizesThatAreAnInput) {
  File file;
  file.graph.input("x", DType::f32, {"2", "1"});
  file.graph.input("repeats", DType::i64, {"2"});
  file.graph.node("Tile", {"x", "repeats"}, {"y"});
  file.graph.outputs({"y"});
  const Tensor x = reals({2, 1}, {1, 2});
  expect_comes_back(
      file.model(),
      {{x, integers({2}, {1, 3})}, {x, integers({2}, {4, 2})}, {x, integers({2}, {0, 5})}});
}

TEST(OnnxExportSegments, ADetector) {
  Feeds feeds;
  for (int64_t good : {0, 1, 7, 40}) {
    Numbers boxes, scores;
    for (int i = 0; i < 256; ++i) {
      boxes.insert(boxes.end(), {2.0 * i, 0, 2.0 * i + (i % 3 == 0 ? 2.8 : 1), 1});
      scores.push_back(i < good ? 0.9 - i / 1000.0 : 0.1);
    }
    feeds.push_back({reals({1, 256, 4}, boxes), reals({1, 1, 256}, scores)});
  }
  expect_comes_back(detector_file().model(), feeds);
}

TEST(OnnxExportSegments, ACrop) {
  expect_comes_back(parsed(kPositives), {{vector_of({-1, 2, 0, 3.5, -4, 1})},
                                         {vector_of({-1, -2, 0, -3.5, -4, -1})},
                                         {vector_of({1, 2, 3, 4, 5, 6})}});
}

TEST(OnnxExportSegments, CropsAlongTwoAxesByNarrowCounts) {
  expect_comes_back(
      parsed(R"(
model @corner(%x: f32[4, 5], %rows: u8[], %columns: i32[]) -> (%y: f32[R, C]) where R in 0..4,
    C in 0..5 {
  %y, %r, %c = run %x, %rows, %columns crop %y[0] to %r, %y[1] to %c
    graph @room(%x: f32[4, 5], %rows: u8[], %columns: i32[]) {
      %y = neg %x
      return %y, %rows, %columns
    }
}
)"),
      {{reals({4, 5}, Numbers(20, 2)), integers({}, {3}, DType::u8), integers({}, {2}, DType::i32)},
       {reals({4, 5}, Numbers(20, 3)), integers({}, {0}, DType::u8),
        integers({}, {5}, DType::i32)}});
}

// ---- If ----------------------------------------------------------------------------------------

TEST(OnnxExportSegments, AnIfOfUnequalSizes) {
  expect_comes_back(
      if_file(false, "Slice", {"x", "start", "end"}).model(),
      {{flag(true), reals({3}, {-1, 2, -3})}, {flag(false), reals({3}, {-1, 2, -3})}});
}

TEST(OnnxExportSegments, AnIfThatGivesWhatItSees) {
  expect_comes_back(
      parsed(R"(
model @choose(%p: bool[], %x: f32[4]) -> (%y: f32[K]) where K in 1..4 {
  %y = if %p {
    %a = run %x graph @half(%x: f32[4]) {
      %a = slice %x {start = [0], limit = [2]}
      return %a
    }
    yield %a
  } else {
    yield %x
  }
}
)"),
      {{flag(true), vector_of({1, 2, 3, 4})}, {flag(false), vector_of({1, 2, 3, 4})}});
}

// The positive elements, or, where there are none, the first `end` of all: an If in an If, both
// branches of several segments.
File nested_if_file() {
  File file;
  file.graph.input("x", DType::f32, {"n"});
  file.graph.input("short", DType::boolean, {});
  file.graph.constant("zero", reals({}, {0}));
  file.graph.constant("none", integers({}, {0}));
  file.graph.constant("one", integers({1}, {1}));
  file.graph.constant("start", integers({1}, {0}));
  file.graph.node("Greater", {"x", "zero"}, {"positive"});
  file.graph.node("Cast", {"positive"}, {"ones"}, {{"to", 7}});
  file.graph.node("ReduceSum", {"ones"}, {"total"}, {{"keepdims", 0}});
  file.graph.node("Greater", {"total", "none"}, {"any"});
  onnx::NodeProto& outer = file.graph.node("If", {"any"}, {"chosen"});
  GraphText yes = subgraph(outer, "then_branch");
  yes.node("Compress", {"x", "positive"}, {"found"}, {{"axis", 0}});
  yes.node("Neg", {"found"}, {"turned"});
  yes.outputs({"turned"});
  GraphText no = subgraph(outer, "else_branch");
  onnx::NodeProto& inner = no.node("If", {"short"}, {"all"});
  GraphText cut = subgraph(inner, "then_branch");
  cut.node("Slice", {"x", "start", "one"}, {"first"});
  cut.outputs({"first"});
  GraphText whole = subgraph(inner, "else_branch");
  whole.node("Identity", {"x"}, {"same"});
  whole.outputs({"same"});
  no.outputs({"all"});
  file.graph.node("Mul", {"chosen", "chosen"}, {"y"});
  file.graph.outputs({"y"});
  return file;
}

TEST(OnnxExportSegments, IfsInIfs) {
  Feeds feeds;
  for (bool is_short : {false, true})
    for (const Numbers& x : {Numbers{1, -2, 3}, Numbers{-1, -2, -3, -4}, Numbers{5}})
      feeds.push_back({vector_of(x), flag(is_short)});
  expect_comes_back(nested_if_file().model(), feeds);
}

// ---- Loop --------------------------------------------------------------------------------------

TEST(OnnxExportSegments, ALoopThatItsBodyEnds) {
  LoopFile file;
  file.graph.constant("limit", integers({}, {2}));
  file.body.node("Add", {"v_in", "v_in"}, {"twice"});
  file.body.node("Less", {"i", "limit"}, {"goes_on_out"});
  file.finish("goes_on_out", "twice");
  expect_comes_back(file.model(), {{count(100)}, {count(2)}, {count(0)}});
}

TEST(OnnxExportSegments, ALoopThatGrows) {
  LoopFile file("");
  file.body.node("Concat", {"v_in", "v0"}, {"longer"}, {{"axis", 0}});
  file.body.node("Identity", {"goes_on"}, {"goes_on_out"});
  file.finish("goes_on_out", "longer");
  expect_comes_back(file.model(), {{count(3)}, {count(0)}, {count(7)}});
}

// Its body has segments of its own, reads values from outside, and yields one that it does not
// make.
TEST(OnnxExportSegments, ALoopOfSegments) {
  LoopFile file("");
  file.graph.input("x", DType::f32, {"n"});
  file.body.node("Cast", {"i"}, {"level"}, {{"to", 1}});
  file.body.node("Greater", {"x", "level"}, {"above"});
  file.body.node("Compress", {"x", "above"}, {"part"}, {{"axis", 0}});
  file.body.node("Concat", {"v_in", "part"}, {"longer"}, {{"axis", 0}});
  file.body.node("Shape", {"longer"}, {"length"});
  file.graph.constant("enough", integers({1}, {9}));
  file.graph.constant("first", integers({1}, {0}));
  file.body.node("Less", {"length", "enough"}, {"fits"});
  file.body.node("Squeeze", {"fits", "first"}, {"goes_on_out"});
  file.finish("goes_on_out", "longer");
  expect_comes_back(file.model(), {{count(4), vector_of({3, 1, 0.5, -1})},
                                   {count(100), vector_of({1e3, 1e3})},
                                   {count(0), vector_of({1})}});
}

std::string replaced(std::string text, std::string_view old, std::string_view by) {
  return text.replace(text.find(old), old.size(), by);
}

TEST(OnnxExportSegments, ALoopThatKeepsRows) {
  auto feed = [](int64_t trips, double start) {
    return std::vector{integers({}, {trips}, DType::i32), reals({}, {start})};
  };
  // Counted in another type, behind a row that is there before.
  const std::string loop = replaced(replaced(std::string(kLoop), "%trips: i64[]", "%trips: i32[]"),
                                    "constant [] : f32[0, 2]", "constant [7, 8] : f32[1, 2]");
  expect_comes_back(parsed(loop), {feed(3, 5), feed(1000, 40), feed(0, 7)});
}

TEST(OnnxExportSegments, ACarriedValueThatDoubles) {
  expect_comes_back(parsed(kGrowingState), {{count(2), vector_of({1, 2})},
                                            {count(0), vector_of({1, 2, 3})},
                                            {count(5), vector_of({4})}});
}

// ---- Deferred ----------------------------------------------------------------------------------

// The broadcast depends on which of n and m is 1. Before it a size depends on data, and after it
// there are constants, subgraphs and tensors in attributes.
File deferred_file() {
  File file;
  file.graph.input("x", DType::f32, {"n"});
  file.graph.input("y", DType::f32, {"m"});
  file.graph.input("flag", DType::boolean, {});
  file.graph.constant("zero", reals({}, {0}));
  file.graph.constant("three", reals({1}, {3}));
  file.graph.node("Greater", {"x", "zero"}, {"positive"});
  file.graph.node("Compress", {"x", "positive"}, {"found"}, {{"axis", 0}});
  file.graph.node("Add", {"found", "y"}, {"sum"}).set_name("join");
  file.graph.node("Constant", {}, {"two"}, {{"value", reals({1}, {2})}});
  onnx::NodeProto& node = file.graph.node("If", {"flag"}, {"chosen"});
  GraphText yes = subgraph(node, "then_branch");
  yes.constant("half", reals({1}, {0.5}));
  yes.node("Mul", {"sum", "half"}, {"sum_half"});
  yes.outputs({"sum_half"});
  GraphText no = subgraph(node, "else_branch");
  no.node("Mul", {"sum", "three"}, {"half"});
  no.outputs({"half"});
  file.graph.node("Sub", {"chosen", "two"}, {"z"});
  file.graph.node("Size", {"found"}, {"count"});
  file.graph.outputs({"z", "count"});
  return file;
}

void set_opset(File& file, int opset) { file.proto.mutable_opset_import(0)->set_version(opset); }

TEST(OnnxExportSegments, WhatIsDeferredIsWrittenAsItWasRead) {
  Feeds feeds;
  for (bool yes : {true, false}) {
    feeds.push_back({vector_of({1, -2, 3}), vector_of({7}), flag(yes)});
    feeds.push_back({vector_of({1, -2, 3}), vector_of({7, 8}), flag(yes)});
    feeds.push_back({vector_of({-1, -2, 3}), vector_of({7, 8, 9}), flag(yes)});
  }
  for (int opset : {17, 20}) {
    File file = deferred_file();
    set_opset(file, opset);
    const Model model = file.model();
    ASSERT_NE(first_deferred(model), nullptr);
    Result<Model> again = written_and_read(model, {.opset = opset});
    ASSERT_TRUE(again.ok()) << again.error().to_string();
    expect_same_runs(model, *again, feeds);
  }
}

TEST(OnnxExportSegments, ADeferredBodyOfALoop) {
  LoopFile file("");
  file.graph.input("x", DType::f32, {"n"});
  file.graph.input("y", DType::f32, {"m"});
  file.body.node("Add", {"x", "y"}, {"sum"});
  file.body.node("Concat", {"v_in", "sum"}, {"longer"}, {{"axis", 0}});
  file.body.node("Identity", {"goes_on"}, {"goes_on_out"});
  file.finish("goes_on_out", "longer");
  const Model model = file.model();
  ASSERT_NE(first_deferred(model), nullptr);
  Result<Model> again = written_and_read(model, {.opset = 17});
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  expect_same_runs(model, *again,
                   {{count(3), vector_of({2}), vector_of({1, 4})},
                    {count(1), vector_of({2, 3}), vector_of({5, 6})},
                    {count(0), vector_of({2, 3}), vector_of({5})}});
}

TEST(OnnxExportSegments, AxesThatAreAnInput) {
  File file;
  file.graph.input("x", DType::f32, {"2", "3"});
  file.graph.input("axes", DType::i64, {"1"});
  file.graph.node("ReduceSum", {"x", "axes"}, {"y"}, {{"keepdims", 0}});
  file.graph.outputs({"y"});
  const Model model = file.model();
  Result<Model> again = written_and_read(model, {.opset = 17});
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  const Tensor x = reals({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_same_runs(model, *again, {{x, integers({1}, {0})}, {x, integers({1}, {-1})}});
}

std::string export_error(const Model& model) {
  Result<Model> again = written_and_read(model, {});
  if (again.ok()) return "";
  EXPECT_EQ(again.error().code(), ErrorCode::unsupported);
  return again.error().to_string();
}

TEST(OnnxExportSegments, NodesOfAnotherOpsetAreNamed) {
  const std::string error = export_error(deferred_file().model());
  EXPECT_THAT(error, HasSubstr("node 'join' (Add)"));
  EXPECT_THAT(error, HasSubstr("is of opset 17, not 21"));
  EXPECT_THAT(error, HasSubstr("--dim"));
}

TEST(OnnxExportSegments, CallsThatAreDeferredAreNamed) {
  File file = deferred_file();
  set_opset(file, 21);
  onnx::FunctionProto& function = *file.proto.add_functions();
  function.set_name("negated");
  function.set_domain("local");
  function.add_input("a");
  function.add_output("b");
  function.add_opset_import()->set_version(21);
  onnx::NodeProto& neg = *function.add_node();
  neg.set_op_type("Neg");
  neg.add_input("a");
  neg.add_output("b");
  onnx::OperatorSetIdProto& opset = *file.proto.add_opset_import();
  opset.set_domain("local");
  opset.set_version(1);
  onnx::NodeProto& call = file.graph.node("negated", {"z"}, {"w"});
  call.set_domain("local");
  call.set_name("turn");
  file.graph.outputs({"w"});
  EXPECT_THAT(export_error(file.model()),
              HasSubstr("node 'turn' calls the local function 'negated'"));
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE

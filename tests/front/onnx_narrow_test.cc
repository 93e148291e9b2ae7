#include <gmock/gmock.h>

#include "ir/model_text.h"
#include "tests/base/says_testing.h"
#include "tests/front/onnx_file.h"

// Open sizes of which nodes do not take all numbers, and branches that fit some sizes alone.

namespace hone::onnx_testing::HONE_FILE {
namespace {

using tested::says;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Result<Numbers> try_run(const Model& model, const std::vector<Tensor>& inputs) {
  return numbers(HONE_TRY(evaluate_model(model, inputs))[0]);
}
std::string run_error(const Model& model, const std::vector<Tensor>& inputs) {
  const Result<Numbers> result = try_run(model, inputs);
  return result.ok() ? "" : result.error().to_string();
}

Tensor ones(const Ints& dims) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  return reals(dims, Numbers(static_cast<size_t>(count), 1));
}
Tensor flag(bool value) { return integers({}, {value}, DType::boolean); }

std::string ranges(const Model& model) {
  std::string text;
  for (const ModelValue& input : model.inputs)
    for (Dim dim : input.type.dims())
      for (Symbol s : dim.symbols())
        text += fmt::format("{} {}..{} {}; ", s.name(), s.min(), s.max(), s.multiple_of());
  return text;
}

// y is a sum over windows of x: f32[1, 1, n] with `padding` on each side.
File window_file(int64_t window, int64_t padding) {
  File file;
  file.graph.input("x", DType::f32, {"1", "1", "n"});
  file.graph.constant("w", ones({1, 1, window}));
  file.graph.node("Conv", {"x", "w"}, {"y"}, {{"pads", Ints{padding, padding}}}).set_name("stft");
  file.graph.outputs({"y"});
  return file;
}

TEST(OnnxNarrow, AWindowTakesLongInputsAlone) {
  const File file = window_file(256, 32);
  Strings notes;
  ImportOptions import;
  import.notice = [&](std::string_view note) { notes.emplace_back(note); };
  const Model model = file.model(import);
  EXPECT_EQ(ranges(model), "n 191..16777216 1; ");  // no window fits 191, which is not a fault
  EXPECT_EQ(run(model, {ones({1, 1, 192})}), (Numbers{192}));
  EXPECT_THAT(run_error(model, {ones({1, 1, 190})}), HasSubstr("190 is outside of 191..16777216"));
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes[0], HasSubstr("n in 191..16777216, since otherwise conv: the window of spatial "
                                  "dim 0 spans 256"));
  EXPECT_THAT(notes[0], HasSubstr("node 'stft' (Conv)"));
  EXPECT_THAT(file.error({.dims = {{"n", 100}}}), says("256 ... padded input ... 164"));
}

TEST(OnnxNarrow, SeveralSizesOfANodeAreFoundAtOnce) {
  File file;
  file.graph.input("x", DType::f32, {"n", "c", "h", "w"});
  file.graph.constant("k", ones({2, 3, 5, 4}));
  file.graph.node("Conv", {"x", "k"}, {"y"});
  file.graph.outputs({"y"});
  const Model model = file.model();
  EXPECT_EQ(model.inputs[0].type.to_string(), "f32[n, 3, h, w]");
  EXPECT_THAT(ranges(model), HasSubstr("h 4.."));
  EXPECT_THAT(ranges(model), HasSubstr("w 3.."));
  EXPECT_THAT(ranges(model), HasSubstr("n 0.."));
}

TEST(OnnxNarrow, NodesOneAfterTheOtherNeedMore) {
  File file = window_file(4, 0);
  file.graph.constant("v", ones({1, 1, 7}));
  file.graph.node("MaxPool", {"y"}, {"p"}, {{"kernel_shape", Ints{2}}, {"strides", Ints{2}}});
  file.graph.node("Conv", {"p", "v"}, {"z"});
  file.graph.proto.mutable_output(0)->set_name("z");
  const Model model = file.model();
  EXPECT_EQ(ranges(model), "n 15..16777216 1; ");
  EXPECT_EQ(run(model, {ones({1, 1, 17})}), (Numbers{28}));
}

TEST(OnnxNarrow, SizesThatMustBeEqualAreOne) {
  File file;
  file.graph.input("x", DType::f32, {"n", "2"});
  file.graph.input("y", DType::f32, {"m", "3"});
  file.graph.node("Concat", {"x", "y"}, {"z"}, {{"axis", 1}});
  file.graph.outputs({"z"});
  const Model model = file.model();
  EXPECT_EQ(model.inputs[1].type.to_string(), "f32[n, 3]");
  EXPECT_EQ(model.outputs[0].type.to_string(), "f32[n, 5]");
  EXPECT_EQ(run(model, {ones({1, 2}), ones({1, 3})}), Numbers(5, 1));
  EXPECT_THAT(run_error(model, {ones({1, 2}), ones({2, 3})}), HasSubstr("size 2 is not n"));
}

TEST(OnnxNarrow, AReshapeTakesMultiples) {
  File file;
  file.graph.input("x", DType::f32, {"n"});
  file.graph.constant("target", integers({2}, {-1, 6}));
  file.graph.node("Reshape", {"x", "target"}, {"y"});
  file.graph.outputs({"y"});
  const Model model = file.model();
  EXPECT_EQ(ranges(model), "n 0..16777216 6; ");
  EXPECT_EQ(run(model, {ones({12})}), Numbers(12, 1));
}

// ---- Sizes that models mean ---------------------------------------------------------------------

TEST(OnnxNarrow, SizesThatAreTooLargeTogetherHaveLowerBounds) {
  File file;
  file.graph.input("x", DType::f32, {"b", "n", "1"});
  file.graph.input("y", DType::f32, {"b", "1", "m"});
  file.graph.node("MatMul", {"x", "y"}, {"z"});
  file.graph.outputs({"z"});
  const Model model = file.model();
  ASSERT_NE(single_graph(model), nullptr);
  EXPECT_EQ(ranges(model), "b 0..1048576 1; n 0..1048576 1; b 0..1048576 1; m 0..1048576 1; ");
  EXPECT_EQ(run(model, {ones({1, 2, 1}), ones({1, 1, 3})}), Numbers(6, 1));
  // A number leaves room for the others.
  EXPECT_THAT(ranges(file.model({.dims = {{"b", 1}}})), HasSubstr("n 0..16777216"));
}

// The mask is added to scores of all places, past and new.
File masked_file() {
  File file;
  file.graph.input("q", DType::f32, {"new", "2"});
  file.graph.input("past", DType::f32, {"past_length", "2"});
  file.graph.input("mask", DType::f32, {"1", "total"});
  file.graph.node("Concat", {"past", "q"}, {"keys"}, {{"axis", 0}});
  file.graph.node("Transpose", {"keys"}, {"turned"}, {{"perm", Ints{1, 0}}});
  file.graph.node("MatMul", {"q", "turned"}, {"scores"});
  file.graph.node("Add", {"scores", "mask"}, {"y"});
  file.graph.outputs({"y", "keys"});
  return file;
}

TEST(OnnxNarrow, ASizeIsWhatTheFileComputes) {
  const Model model = masked_file().model();
  ASSERT_NE(single_graph(model), nullptr);
  EXPECT_EQ(model.inputs[2].type.to_string(), "f32[1, new + past_length]");
  EXPECT_EQ(run(model, {ones({1, 2}), ones({2, 2}), ones({1, 3})}), Numbers(3, 3));
  EXPECT_THAT(run_error(model, {ones({1, 2}), ones({2, 2}), ones({1, 4})}), HasSubstr("mask"));
  // Whoever means a mask of 1 says so.
  const Model one = masked_file().model({.shapes = {{"mask", {1, 1}}}});
  EXPECT_EQ(run(one, {ones({1, 2}), ones({2, 2}), ones({1, 1})}), Numbers(3, 3));
}

TEST(OnnxNarrow, ATableIsAsLongAsSizesMayBe) {
  File file;
  file.graph.input("x", DType::f32, {"b", "n", "2"});
  file.graph.constant("places", ones({1, 8, 2}));
  file.graph.constant("zero", integers({1}, {0}));
  file.graph.constant("one", integers({1}, {1}));
  file.graph.node("Shape", {"x"}, {"shape"});
  file.graph.node("Gather", {"shape", "one"}, {"length"});
  file.graph.node("Slice", {"places", "zero", "length", "one"}, {"first"}).set_name("cut");
  file.graph.node("Add", {"x", "first"}, {"y"});
  file.graph.outputs({"y"});
  Strings notes;
  const Model model =
      file.model({.notice = [&](std::string_view note) { notes.emplace_back(note); }});
  ASSERT_NE(single_graph(model), nullptr);
  EXPECT_EQ(ranges(model), "b 0..16777216 1; n 0..8 1; ");
  EXPECT_EQ(run(model, {ones({1, 8, 2})}), Numbers(16, 2));
  EXPECT_THAT(run_error(model, {ones({1, 9, 2})}), HasSubstr("9 is outside of 0..8"));
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes[0], HasSubstr("node 'cut' (Slice)"));
}

// ---- Sizes that no ranges describe -------------------------------------------------------------

TEST(OnnxNarrow, NothingIsCutOffThatANodeTakes) {
  File file;
  file.graph.input("x", DType::f32, {"n"});
  file.graph.constant("c", ones({256}));
  file.graph.node("Add", {"x", "c"}, {"y"});
  file.graph.outputs({"y"});
  const Model model = file.model();
  EXPECT_EQ(ranges(model), "n 0..16777216 1; ");
  EXPECT_EQ(run(model, {ones({1})}), Numbers(256, 2));
  EXPECT_EQ(run(model, {ones({256})}), Numbers(256, 2));
  EXPECT_THAT(run_error(model, {ones({3})}), HasSubstr("3"));
}

TEST(OnnxNarrow, SizesThatDependOnDataStayOutOfIt) {
  // As many of x as are above 0, beside y.
  File file;
  file.graph.input("x", DType::f32, {"n"});
  file.graph.input("y", DType::f32, {"m"});
  file.graph.constant("zero", reals({}, {0}));
  file.graph.node("Greater", {"x", "zero"}, {"positive"});
  file.graph.node("Compress", {"x", "positive"}, {"found"}, {{"axis", 0}});
  file.graph.node("Add", {"found", "y"}, {"z"});
  file.graph.outputs({"z"});
  const Model model = file.model();
  EXPECT_EQ(ranges(model), "n 0..16777216 1; m 0..16777216 1; ");
  EXPECT_EQ(run(model, {ones({3}), ones({3})}), Numbers(3, 2));
}

// ---- Sizes that inputs tell
// ----------------------------------------------------------------------

// y = op(x, shape, ...), where x: f32[dims] is open and the shape is an input.
File shaped_file(const std::string& op, const Strings& dims, const Strings& more) {
  File file;
  file.proto.mutable_opset_import(0)->set_version(18);
  file.graph.input("x", DType::f32, dims);
  file.graph.input("shape", DType::i64, {"2"});
  Strings operands = {"x", "shape"};
  operands.insert(operands.end(), more.begin(), more.end());
  file.graph.node(op, operands, {"y"});
  file.graph.outputs({"y"});
  return file;
}

TEST(OnnxOpenSizes, Col2ImMakesTheImageThatAnInputAsksFor) {
  File file = shaped_file("Col2Im", {"1", "4", "blocks"}, {"block"});
  file.graph.constant("block", integers({2}, {2, 2}));
  const Model model = file.model();
  EXPECT_EQ(run(model, {reals({1, 4, 1}, {1, 2, 3, 4}), integers({2}, {2, 2})}),
            (Numbers{1, 2, 3, 4}));
  // Two blocks side by side, which share a column.
  EXPECT_EQ(run(model, {ones({1, 4, 2}), integers({2}, {2, 3})}), (Numbers{1, 2, 1, 1, 2, 1}));
  EXPECT_THAT(run_error(model, {ones({1, 4, 3}), integers({2}, {2, 3})}), HasSubstr("Col2Im"));
  EXPECT_THAT(run_error(model, {ones({1, 4, 1}), integers({2}, {1, 2})}), HasSubstr("Col2Im"));
}

TEST(OnnxOpenSizes, CenterCropPadMakesTheSizesThatAnInputAsksFor) {
  const Model model = shaped_file("CenterCropPad", {"n", "m"}, {}).model();
  const Tensor x = reals({3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run(model, {x, integers({2}, {1, 2})}), (Numbers{3, 4}));
  EXPECT_EQ(run(model, {x, integers({2}, {1, 4})}), (Numbers{0, 3, 4, 0}));
  EXPECT_EQ(run(model, {x, integers({2}, {4, 1})}), (Numbers{1, 3, 5, 0}));
  EXPECT_NE(run_error(model, {x, integers({2}, {-1, 2})}), "");
}

// ---- Branches ----------------------------------------------------------------------------------

// y = flag ? conv(x, [1, 1, then]) : conv(x, [1, 1, else])
File branch_file(const Ints& on_true, const Ints& on_false, const std::string& length) {
  File file;
  file.graph.input("flag", DType::boolean, {});
  file.graph.input("x", DType::f32, {"1", "1", length});
  onnx::NodeProto& node = file.graph.node("If", {"flag"}, {"y"});
  for (const auto& [name, window] :
       {std::pair("then_branch", on_true), {"else_branch", on_false}}) {
    GraphText branch = subgraph(node, name);
    branch.constant("w", ones(window));
    branch.node("Conv", {"x", "w"}, {"out"}).set_name(std::string(name) + "_conv");
    branch.outputs({"out"});
  }
  file.graph.node("Identity", {"y"}, {"z"});
  file.graph.outputs({"z"});
  return file;
}

TEST(OnnxBranches, NeedRangesOfTheirOwn) {
  const Model model = branch_file({1, 1, 9}, {1, 1, 3}, "n").model();
  EXPECT_EQ(ranges(model), "n 2..16777216 1; ");  // neither takes less
  EXPECT_EQ(run(model, {flag(false), ones({1, 1, 4})}), Numbers(2, 3));
  EXPECT_EQ(run(model, {flag(true), ones({1, 1, 10})}), Numbers(2, 9));
  EXPECT_THAT(run_error(model, {flag(true), ones({1, 1, 7})}), HasSubstr("7"));
  EXPECT_EQ(model.outputs[0].name, "z");
}

TEST(OnnxBranches, ThatCannotBeTypedFailWhenTheyAreReached) {
  for (const std::string length : {"8", "n"}) {
    const Model model = branch_file({1, 1, 3}, {1, 1, 3, 3}, length).model();
    EXPECT_EQ(run(model, {flag(true), ones({1, 1, 8})}), Numbers(6, 3)) << length;
    EXPECT_THAT(run_error(model, {flag(false), ones({1, 1, 8})}),
                HasSubstr("node 'else_branch_conv' (Conv)"));
  }
}

TEST(OnnxBranches, OfDifferentRanksAreChosenByData) {
  File file;
  file.graph.input("flag", DType::boolean, {});
  file.graph.input("x", DType::f32, {"1"});
  file.graph.node("Not", {"flag"}, {"other"});
  file.graph.constant("zero", reals({}, {0}));
  onnx::NodeProto& node = file.graph.node("If", {"other"}, {"step"});
  GraphText yes = subgraph(node, "then_branch");
  yes.node("Identity", {"zero"}, {"none"});
  yes.outputs({"none"});
  GraphText no = subgraph(node, "else_branch");
  no.node("Neg", {"x"}, {"negative"});
  no.outputs({"negative"});
  file.graph.constant("y", reals({2}, {1, 2}));
  file.graph.node("Add", {"y", "step"}, {"z"});
  file.graph.outputs({"z"});
  const Model model = file.model();
  EXPECT_EQ(run(model, {flag(false), reals({1}, {5})}), (Numbers{1, 2}));
  EXPECT_EQ(run(model, {flag(true), reals({1}, {5})}), (Numbers{-4, -3}));
}

TEST(OnnxBranches, AreChosenByWhatAnInputWillBe) {
  const File file = branch_file({1, 1, 9}, {1, 1, 3, 3}, "n");
  EXPECT_EQ(single_graph(file.model()), nullptr);
  const Model model = file.model({.known = {{"flag", flag(true)}}});
  ASSERT_NE(single_graph(model), nullptr) << *print(model);
  EXPECT_EQ(model.inputs.size(), 2U);  // it stays an input
  EXPECT_EQ(run(model, {flag(true), ones({1, 1, 10})}), Numbers(2, 9));
  EXPECT_THAT(file.error({.known = {{"flag", flag(false)}}}), HasSubstr("else_branch_conv"));
  // A value that is not a single integer or bool decides nothing.
  EXPECT_EQ(single_graph(file.model({.known = {{"flag", reals({}, {1})}}})), nullptr);
}

TEST(OnnxBranches, OneOfThemHasToBeTyped) {
  const File file = branch_file({1, 1, 3, 3}, {1, 1, 3, 3}, "8");
  EXPECT_THAT(file.error(), HasSubstr("node 'then_branch_conv' (Conv)"));
}

TEST(OnnxBranches, ThatFitSomeSizesAreChosenByTheSizes) {
  // Exporters write "squeeze if the dim is 1" for squeeze: ranks that go with sizes.
  File file;
  file.graph.input("x", DType::f32, {"2", "n"});
  file.graph.node("Shape", {"x"}, {"shape"});
  file.graph.constant("one", integers({}, {1}));
  file.graph.constant("axis", integers({1}, {1}));
  file.graph.node("Gather", {"shape", "one"}, {"length"}, {{"axis", 0}});
  file.graph.node("Equal", {"length", "one"}, {"is_one"});
  onnx::NodeProto& node = file.graph.node("If", {"is_one"}, {"y"});
  GraphText yes = subgraph(node, "then_branch");
  yes.node("Squeeze", {"x", "axis"}, {"squeezed"});
  yes.outputs({"squeezed"});
  GraphText no = subgraph(node, "else_branch");
  no.node("Identity", {"x"}, {"same"});
  no.outputs({"same"});
  file.graph.constant("flat", integers({1}, {-1}));
  file.graph.node("Reshape", {"y", "flat"}, {"z"});
  file.graph.outputs({"z"});
  const Model model = file.model();
  EXPECT_EQ(run(model, {ones({2, 1})}), Numbers(2, 1));
  EXPECT_EQ(run(model, {ones({2, 3})}), Numbers(6, 1));
  for (int64_t n : {1, 3}) {
    const Model bound = file.model({.dims = {{"n", n}}});
    EXPECT_NE(single_graph(bound), nullptr);  // the condition is a number
    EXPECT_EQ(run(bound, {ones({2, n})}), Numbers(static_cast<size_t>(2 * n), 1));
  }
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE

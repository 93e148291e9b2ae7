#include <gmock/gmock.h>

#include "tests/front/onnx_file.h"

// Sequences and optionals that import can follow.

namespace hone::onnx_testing::HONE_FILE {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Tensor kX = reals({2, 3}, {1, 2, 3, 4, 5, 6});

File split_file() {
  File file;
  file.graph.input("x", DType::f32, {"n", "3"});
  file.graph.node("SplitToSequence", {"x"}, {"s"}, {{"axis", 1}, {"keepdims", 0}});
  file.graph.constant("first", integers({}, {0}));
  file.graph.constant("last", integers({}, {-1}));
  return file;
}

TEST(OnnxSequences, ElementsAreFoundAndCounted) {
  File file = split_file();
  file.graph.node("SequenceAt", {"s", "last"}, {"y"});
  file.graph.node("SequenceLength", {"s"}, {"n"});
  file.graph.outputs({"y", "n"});
  EXPECT_THAT(run(file, {kX}), ElementsAre(3, 6));
  EXPECT_THAT(run(file, {kX}, 1), ElementsAre(3));
}

TEST(OnnxSequences, AreBuiltAndJoined) {
  File file = split_file();
  file.graph.node("SequenceErase", {"s", "first"}, {"t"});
  file.graph.node("SequenceAt", {"s", "first"}, {"a"});
  file.graph.node("SequenceInsert", {"t", "a"}, {"u"});
  file.graph.node("Identity", {"u"}, {"v"});
  file.graph.node("ConcatFromSequence", {"v"}, {"y"}, {{"axis", 1}, {"new_axis", 1}});
  file.graph.outputs({"y"});
  EXPECT_THAT(run(file, {kX}), ElementsAre(2, 3, 1, 5, 6, 4));
}

TEST(OnnxSequences, AreMapped) {
  File file = split_file();
  onnx::NodeProto& node = file.graph.node("SequenceMap", {"s", "a"}, {"t"});
  GraphText body = subgraph(node, "body");
  body.input("e", DType::f32, {"n"});
  body.input("b", DType::f32, {"n"});
  body.node("Add", {"e", "b"}, {"sum"});
  body.outputs({"sum"});
  file.graph.node("ConcatFromSequence", {"t"}, {"y"}, {{"axis", 0}});
  file.graph.outputs({"y"});
  file.graph.input("a", DType::f32, {"n"});
  EXPECT_THAT(run(file, {kX, reals({2}, {10, 20})}), ElementsAre(11, 24, 12, 25, 13, 26));
}

TEST(OnnxSequences, OptionalsAreValuesOrNone) {
  File file;
  file.graph.input("x", DType::f32, {"2"});
  file.graph.node("Optional", {"x"}, {"o"});
  file.graph.node("OptionalGetElement", {"o"}, {"e"});
  file.graph.node("OptionalHasElement", {"o"}, {"has"});
  file.graph.node("Optional", {}, {"none"});
  file.graph.node("OptionalHasElement", {"none"}, {"hasnt"});
  file.graph.node("Neg", {"e"}, {"y"});
  file.graph.outputs({"y", "has", "hasnt"});
  const Tensor x = reals({2}, {1, -2});
  EXPECT_THAT(run(file, {x}), ElementsAre(-1, 2));
  EXPECT_THAT(run(file, {x}, 1), ElementsAre(1));
  EXPECT_THAT(run(file, {x}, 2), ElementsAre(0));
}

TEST(OnnxSequences, AreRefusedWhereATensorIsNeeded) {
  File file = split_file();
  file.graph.node("Neg", {"s"}, {"y"});
  file.graph.outputs({"y"});
  EXPECT_THAT(file.error(), HasSubstr("'s' is a sequence here"));
  File unread = split_file();
  unread.graph.node("SequenceConstruct", {"x"}, {});
  unread.graph.node("Optional", {}, {});
  unread.graph.node("Neg", {"x"}, {"y"});
  unread.graph.outputs({"y"});
  EXPECT_EQ(unread.error(), "");
  File branches = split_file();
  branches.graph.input("flag", DType::boolean, {});
  onnx::NodeProto& node = branches.graph.node("If", {"flag"}, {"y"});
  for (const char* name : {"then_branch", "else_branch"}) {
    GraphText branch = subgraph(node, name);
    branch.node("NonZero", {"x"}, {"places"});  // so that it is a segment
    branch.node("SequenceConstruct", {"places"}, {"list"});
    branch.outputs({"list"});
  }
  branches.graph.outputs({"y"});
  EXPECT_THAT(branches.error(), HasSubstr("'list' is a sequence here"));
  File whole = split_file();
  whole.graph.outputs({"s"});
  EXPECT_THAT(whole.error(), HasSubstr("'s' is a sequence here"));
  File far = split_file();
  far.graph.constant("three", integers({}, {3}));
  far.graph.node("SequenceAt", {"s", "three"}, {"y"});
  far.graph.outputs({"y"});
  EXPECT_THAT(far.error(), HasSubstr("position 3 in a sequence of 3"));
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE

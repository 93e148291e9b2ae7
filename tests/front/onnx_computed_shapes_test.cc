#include <gmock/gmock.h>

#include "compile/native_model.h"
#include "target/target.h"
#include "tests/front/onnx_file.h"
#include "tests/front/shape_files.h"

// Shapes that files compute from sizes and from data: by hand, and random ones, which a judge of
// its own evaluates (shape_judge.h).

namespace hone::onnx_testing::HONE_FILE {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// `op` of x with a target that joins `parts`: numbers, or the input `n`.
struct Joined : File {
  Joined(std::string_view op, const Ints& dims, const std::vector<std::string>& parts) {
    Strings texts;
    for (int64_t dim : dims) texts.push_back(std::to_string(dim));
    graph.input("x", DType::f32, texts);
    graph.input("n", DType::i64, {"1"});
    Strings names;
    for (const std::string& part : parts) {
      names.push_back(part);
      if (part == "n") continue;
      names.back() = fmt::format("c{}", names.size());
      graph.constant(names.back(), integers({1}, {std::stoll(part)}));
    }
    graph.node("Concat", names, {"target"}, {{"axis", 0}});
    graph.node(op, {"x", "target"}, {"y"}).set_name("last");
    graph.outputs({"y"});
  }
  Result<std::vector<Tensor>> run_native(const std::vector<Tensor>& inputs) const {
    return HONE_TRY(NativeModel::make(model(), host_target().value()))->run(inputs);
  }
  // The result of both ways to run it: the dims of the result, or the error.
  std::string run(const Tensor& x, int64_t n) const {
    std::vector<std::string> said;
    const std::vector<Tensor> inputs = {x, integers({1}, {n})};
    for (const auto& outputs : {evaluate_model(model(), inputs), run_native(inputs)}) {
      if (!outputs.ok()) EXPECT_EQ(outputs.error().code(), ErrorCode::bad_input);
      said.push_back(outputs.ok() ? (*outputs)[0].type().to_string() : outputs.error().to_string());
    }
    const std::string place = "node 'last'";
    if (said[0].find(place) == std::string::npos) EXPECT_EQ(said[0], said[1]);
    EXPECT_EQ(said[0].find(place) == std::string::npos, said[1].find(place) == std::string::npos);
    return said[0];
  }
};

TEST(OnnxComputedShapes, KeepConstantsBesideSizesOfData) {
  const Tensor one = reals({1, 1}, {7}), six = reals({6}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(Joined("Expand", {1, 1}, {"2", "n"}).run(one, 5), "f32[2, 5]");
  EXPECT_EQ(Joined("Expand", {1, 1}, {"n", "2"}).run(one, 5), "f32[5, 2]");
  EXPECT_EQ(Joined("Expand", {1, 1}, {"2", "n", "4"}).run(one, 3), "f32[2, 3, 4]");
  EXPECT_EQ(Joined("Reshape", {6}, {"2", "n"}).run(six, 3), "f32[2, 3]");
  EXPECT_EQ(Joined("Reshape", {6}, {"n", "2"}).run(six, 3), "f32[3, 2]");
  EXPECT_EQ(Joined("Reshape", {8}, {"2", "n", "1", "n"}).run(reals({8}, Numbers(8, 1)), 2),
            "f32[2, 2, 1, 2]");
  EXPECT_EQ(Joined("Tile", {1, 1}, {"2", "n"}).run(one, 3), "f32[2, 3]");
}

TEST(OnnxComputedShapes, MustHaveTheElementsOfTheInput) {
  const Tensor six = reals({6}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(Joined("Reshape", {6}, {"n", "3"}).run(six, 3),
              AllOf(HasSubstr("node 'last' (Reshape)"), HasSubstr("3"), HasSubstr("2")));
  EXPECT_THAT(Joined("Reshape", {6}, {"n", "n"}).run(six, 3),
              AllOf(HasSubstr("node 'last' (Reshape)"), HasSubstr("9"), HasSubstr("6")));
  EXPECT_THAT(Joined("Reshape", {6}, {"n", "n"}).run(six, 2), HasSubstr("node 'last' (Reshape)"));
  EXPECT_THAT(Joined("Reshape", {6}, {"4", "n"}).run(six, -1), HasSubstr("node 'last' (Reshape)"));
}

TEST(OnnxComputedShapes, MustFitWhatIsExpanded) {
  const Tensor x = reals({3, 1}, {1, 2, 3});
  EXPECT_EQ(Joined("Expand", {3, 1}, {"n", "2"}).run(x, 3), "f32[3, 2]");
  EXPECT_EQ(Joined("Expand", {3, 1}, {"n", "2"}).run(x, 1), "f32[3, 2]");
  EXPECT_THAT(Joined("Expand", {3, 1}, {"n", "2"}).run(x, 5), HasSubstr("node 'last' (Expand)"));
}

// Its length depends on data.
struct Found : File {
  Found() {
    graph.input("mask", DType::boolean, {"4"});
    graph.node("NonZero", {"mask"}, {"places"});  // [1, found]
  }
  std::string run(int64_t found, const std::string& output) {
    graph.outputs({output});
    Ints mask(4, 0);
    std::fill_n(mask.begin(), found, 1);
    const auto outputs = evaluate_model(model(), std::vector{integers({4}, mask, DType::boolean)});
    graph.proto.clear_output();
    return outputs.ok() ? (*outputs)[0].type().to_string() : outputs.error().to_string();
  }
};

TEST(OnnxComputedShapes, SqueezeOneAlone) {
  Found file;
  file.graph.constant("axis", integers({1}, {1}));
  file.graph.node("Squeeze", {"places", "axis"}, {"y"}).set_name("squeeze");
  EXPECT_EQ(file.run(1, "y"), "i64[1]");
  EXPECT_THAT(file.run(2, "y"), HasSubstr("i64[1, 1]"));
}

TEST(OnnxComputedShapes, SplitIntoAllThatThereIs) {
  Found file;
  file.graph.constant("parts", integers({2}, {1, 2}));
  file.graph.node("Split", {"places", "parts"}, {"a", "b"}, {{"axis", 1}}).set_name("split");
  EXPECT_EQ(file.run(3, "b"), "i64[1, 2]");
  EXPECT_THAT(file.run(4, "b"), HasSubstr("3"));
  EXPECT_THAT(file.run(2, "b"), HasSubstr("3"));
}

TEST(OnnxComputedShapes, TakeAsManyAsThereAre) {
  Found file;
  file.graph.constant("k", integers({1}, {3}));
  file.graph.node("TopK", {"places", "k"}, {"y", "at"}).set_name("top");
  EXPECT_EQ(file.run(3, "y"), "i64[1, 3]");
  EXPECT_EQ(file.run(4, "y"), "i64[1, 3]");
  EXPECT_THAT(file.run(2, "y"), HasSubstr("node 'top' (TopK)"));
}

// ---- Random files -------------------------------------------------------------------------------

shape_files::Tally judged(uint64_t first, int count, bool is_native) {
  shape_files::Tally tally;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(count); ++seed) {
    const shape_files::ShapeFile file = shape_files::random_file(seed);
    tally.add(seed, file, shape_files::judged(file, is_native));
  }
  return tally;
}

void expect_right(const shape_files::Tally& tally, int files) {
  std::string text = tally.to_string();
  for (const std::string& reason : tally.reasons) text += "\n" + reason;
  EXPECT_EQ(tally.wrong, 0) << text;
  // Most are judged, some are errors, and few of those with a result are refused.
  EXPECT_GT(tally.right, 2 * files) << text;
  EXPECT_GT(tally.errors, files / 10) << text;
  EXPECT_LE(tally.refused, files / 20 + 1) << text;
}

TEST(OnnxComputedShapes, RandomFilesComputeWhatTheJudgeSays) {
  expect_right(judged(1'000'000, 150, /*is_native=*/false), 150);
}

TEST(OnnxComputedShapes, RandomFilesComputeItAsNativeCode) {
  expect_right(judged(2'000'000, 12, /*is_native=*/true), 12);
}

// All by the reference, and one in ten as native code.
TEST(OnnxComputedShapes, DISABLED_SweepOfRandomFiles) {
  const shape_files::Tally all = judged(0, 3000, /*is_native=*/false);
  fmt::print("computed shapes: {}\n", all.to_string());
  for (const std::string& reason : all.reasons) fmt::print("{}\n", reason);
  expect_right(all, 3000);
  const shape_files::Tally native = judged(0, 300, /*is_native=*/true);
  fmt::print("computed shapes, native: {}\n", native.to_string());
  expect_right(native, 300);
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE

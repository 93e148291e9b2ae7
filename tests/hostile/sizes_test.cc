#include <sys/resource.h>

#include "tests/hostile/hostile_testing.h"

// Ranks, element counts and sizes: lies, overflows and bombs. A small file must not take much.

namespace hone::hostile::HONE_FILE {
namespace {

const std::string kX = input_text("x", {"2", "3"});
const std::string kY = output_text("y");

constexpr int64_t kHuge = int64_t{1} << 62, kLarge = int64_t{1} << 40;

std::string tensor_text(std::string_view content) {
  return model_text(fmt::format("initializer {{ name: 'w' {} }} ", content) + kY +
                    node_text("Identity", "w", "y"));
}

TEST(HostileSizes, Tensors) {
  std::string many_dims;
  for (int i = 0; i < 100'000; ++i) many_dims += "1, ";
  many_dims += "1";
  expect_errors({
      {"fewer raw bytes than elements", tensor_text("data_type: 1 dims: 4 raw_data: 'abcd'"), kBad,
       "raw_data holds 4 bytes, but f32[4] needs 16"},
      {"more raw bytes than elements", tensor_text("data_type: 1 dims: 1 raw_data: 'abcdefgh'"),
       kBad, "raw_data holds 8 bytes, but f32[1] needs 4"},
      {"raw bytes of a part of an element", tensor_text("data_type: 1 dims: 1 raw_data: 'abc'"),
       kBad, "raw_data holds 3 bytes, but f32[1] needs 4"},
      {"fewer numbers than elements", tensor_text("data_type: 1 dims: 3 float_data: [1, 2]"), kBad,
       "float_data holds 2 numbers, but f32[3] needs 3"},
      {"no data", tensor_text("data_type: 1 dims: 1000000"), kBad, "(h.onnx, initializer 'w'"},
      {"numbers of another type", tensor_text("data_type: 1 dims: 2 int64_data: [1, 2]"), kBad,
       "int64_data"},
      {"a negative dim", tensor_text("data_type: 1 dims: -1"), kBad, "-1"},
      {"a product that wraps to 0",
       tensor_text("data_type: 1 dims: [4294967296, 4294967296] raw_data: ''"), kLimit, "2^40"},
      {"a product that wraps to 4",
       tensor_text("data_type: 2 dims: [4611686018427387905, 4] raw_data: 'abcd'"), kLimit, "2^40"},
      {"a product with a zero in it",
       tensor_text("data_type: 1 dims: [9223372036854775807, 9223372036854775807, 0]"), kLimit, ""},
      {"a giant rank", tensor_text("data_type: 1 float_data: 1 dims: [" + many_dims + "]"), kLimit,
       "rank 100001 ... 16"},
      {"an element type that does not exist", tensor_text("data_type: 99 raw_data: 'a'"), kBad,
       "type 99"},
      {"a negative element type", tensor_text("data_type: -1 raw_data: 'a'"), kBad, "type -1"},
      {"no element type", tensor_text("dims: 1 raw_data: 'a'"), kBad, "element type"},
      {"a string", tensor_text("data_type: 8 dims: 1 string_data: 'a'"), kRuns, "evaluated"},
      {"too few strings", tensor_text("data_type: 8 dims: 2 string_data: 'a'"), kBad,
       "string_data ... 1 strings ... 2"},
      {"endlessly many strings", tensor_text("data_type: 8 dims: 9223372036854775807"), kLimit, ""},
      {"strings in raw data", tensor_text("data_type: 8 dims: 1 raw_data: 'a'"), kBad,
       "string_data holds 0 strings"},
      {"a segment",
       tensor_text("data_type: 1 dims: 2 raw_data: 'aaaabbbb' segment { begin: 1 end: "
                   "9223372036854775807 }"),
       kUnsupported, "segments"},
  });
}

TEST(HostileSizes, DeclaredTypes) {
  std::vector<std::string> ones(1000, "1");
  auto relu = [&](const std::string& input, const std::string& output = kY) {
    return model_text(input + output + node_text("Relu", "x", "y"));
  };
  std::string w = reals_text("x", {2}, {1, 2});
  expect_errors({
      {"a giant rank", relu(input_text("x", ones)), kLimit, "rank 1000 ... 16"},
      {"a product above all", relu(input_text("x", {"4294967296", "4294967296", "4294967296"})),
       kLimit, "2^40"},
      {"one dim above all", relu(input_text("x", {"9223372036854775807"})), kLimit, "2^40"},
      {"an element type that does not exist", relu(input_text("x", {"2"}, 77)), kBad, "type 77"},
      {"no type", relu("input { name: 'x' }"), kBad, "type"},
      {"no shape", relu("input { name: 'x' type { tensor_type { elem_type: 1 } } }"), kUnsupported,
       "rank"},
      {"a sequence",
       relu("input { name: 'x' type { sequence_type { elem_type { tensor_type { elem_type: 1 } } } "
            "} }"),
       kUnsupported, "a sequence"},
      {"an output of another shape", relu(kX, value_text("output", "y", 1, {"2", "4"})), kRuns,
       "evaluated"},
      {"an output of another rank", relu(kX, value_text("output", "y", 1, {"6"})), kRuns,
       "evaluated"},
      {"an output of another element type", relu(kX, value_text("output", "y", 7, {"2", "3"})),
       kBad, "value 'y'"},
      {"an initializer against the declared input",
       model_text(input_text("x", {"3"}) + w + kY + node_text("Relu", "x", "y")), kBad,
       "value 'x'"},
      {"an initializer of another element type than its input",
       model_text(input_text("x", {"2"}, 7) + w + kY + node_text("Relu", "x", "y")), kBad,
       "value 'x'"},
      {"a value of another size than declared",
       model_text(kX + kY + node_text("Relu", "x", "m") + node_text("Relu", "m", "y") +
                  value_text("value_info", "m", 1, {"2", "4"})),
       kRuns, "evaluated"},
      {"a value of another rank than declared",
       model_text(kX + kY + node_text("Relu", "x", "m") + node_text("Relu", "m", "y") +
                  value_text("value_info", "m", 1, {"6"})),
       kRuns, "evaluated"},
      {"a value of a subgraph of another size than declared",
       model_text(
           kX + input_text("c", {}, 9) + kY +
           node_text("If", "c", "y",
                     graph_text("then_branch", node_text("Neg", "x", "m") +
                                                   node_text("Abs", "m", "t") + output_text("t") +
                                                   value_text("value_info", "m", 1, {"7"})) +
                         graph_text("else_branch", node_text("Neg", "x", "e") + output_text("e")))),
       kRuns, "evaluated"},
      {"a value of another element type than declared",
       model_text(kX + kY + node_text("Relu", "x", "m") + node_text("Relu", "m", "y") +
                  value_text("value_info", "m", 7, {"2", "3"})),
       kBad, "value 'm'"},
  });
}

// Dims in between bind only what says something about this run.
TEST(HostileSizes, DeclaredDimsThatDoNotMatter) {
  const std::string chain = kY + node_text("Relu", "x", "m") + node_text("Relu", "m", "y");
  const std::string small = value_text("value_info", "m", 1, {"1", "3"});
  // Nothing reads the value.
  EXPECT_TRUE(import_text(model_text(kX + kY + node_text("Relu", "x", "m") +
                                     node_text("Neg", "x", "y") + small))
                  .ok());
  // The user says what the size is.
  const std::string open = model_text(input_text("x", {"'n'", "3"}) + chain + small);
  EXPECT_TRUE(import_text(open).ok());
  ImportOptions import;
  import.dims = {{"n", 5}};
  EXPECT_TRUE(import_text(open, import).ok());
  import = {.shapes = {{"x", {5, 3}}}};
  EXPECT_TRUE(import_text(open, import).ok());
  // A number that is none.
  EXPECT_TRUE(
      import_text(model_text(kX + chain + value_text("value_info", "m", 1, {"-1", "3"}))).ok());
}

// Ops asked for sizes that no memory holds: an error, whether in the import or when they run.
TEST(HostileSizes, Bombs) {
  auto op = [&](std::string_view name, std::string_view operands, const std::string& constants,
                const std::string& attributes = "", int opset = 17) {
    return model_text(kX + kY + constants + node_text(name, operands, "y", attributes), "", opset);
  };
  std::string image = input_text("i", {"1", "1", "4", "4"});
  std::string scalar = input_text("s", {}, 7);
  expect_errors({
      {"Tile", op("Tile", "x t", integers_text("t", {kLarge, 1})), kLimit, "node 'y' (Tile)"},
      {"Tile by what wraps", op("Tile", "x t", integers_text("t", {kHuge, kHuge})), kLimit,
       "node 'y' (Tile)"},
      {"Tile a negative number of times", op("Tile", "x t", integers_text("t", {-1, INT64_MIN})),
       kBad, "node 'y' (Tile)"},
      {"Expand", op("Expand", "x t", integers_text("t", {kHuge, 2, 3})), kLimit,
       "node 'y' (Expand)"},
      {"Expand to a negative size", op("Expand", "x t", integers_text("t", {-5, 2, 3})), kBad,
       "node 'y' (Expand)"},
      {"ConstantOfShape", op("ConstantOfShape", "t", integers_text("t", {kLarge + 1})), kLimit,
       "node 'y' (ConstantOfShape)"},
      {"ConstantOfShape within the limit of elements",
       op("ConstantOfShape", "t", integers_text("t", {kLarge})), kLimit, "bytes"},
      {"ConstantOfShape that wraps",
       op("ConstantOfShape", "t", integers_text("t", {int64_t{1} << 32, int64_t{1} << 32})), kLimit,
       "node 'y' (ConstantOfShape)"},
      {"ConstantOfShape of a negative size", op("ConstantOfShape", "t", integers_text("t", {-1})),
       kBad, "node 'y' (ConstantOfShape)"},
      {"ConstantOfShape of a giant rank",
       op("ConstantOfShape", "t", integers_text("t", std::vector<int64_t>(1000, 1))), kLimit,
       "rank 1000"},
      {"Range",
       op("Range", "a b c",
          integers_text("a", {0}, true) + integers_text("b", {kHuge}, true) +
              integers_text("c", {1}, true)),
       kBad, "node 'y' (Range)"},
      {"Range over all there is",
       op("Range", "a b c",
          integers_text("a", {INT64_MIN}, true) + integers_text("b", {INT64_MAX}, true) +
              integers_text("c", {1}, true)),
       kBad, "node 'y' (Range)"},
      {"Range without a step",
       op("Range", "a b c",
          integers_text("a", {0}, true) + integers_text("b", {5}, true) +
              integers_text("c", {0}, true)),
       kBad, "the step is 0"},
      {"Pad", op("Pad", "x t", integers_text("t", {kHuge, 0, 0, 0})), kBad, "node 'y' (Pad)"},
      {"Pad by what wraps",
       op("Pad", "x t", integers_text("t", {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX})), kBad,
       "node 'y' (Pad)"},
      {"Pad away more than there is",
       op("Pad", "x t", integers_text("t", {INT64_MIN, 0, INT64_MIN, 0})), kBad, "node 'y' (Pad)"},
      {"Pad with too few numbers", op("Pad", "x t", integers_text("t", {1, 1})), kBad,
       "node 'y' (Pad)"},
      {"Reshape", op("Reshape", "x t", integers_text("t", {kHuge, 4})), kBad, "node 'y' (Reshape)"},
      {"Reshape to what wraps to 6",
       op("Reshape", "x t", integers_text("t", {int64_t{1} << 32, int64_t{1} << 32, 6})), kLimit,
       "node 'y' (Reshape)"},
      {"Reshape with two sizes left open", op("Reshape", "x t", integers_text("t", {-1, -1})), kBad,
       "leaves two dims open"},
      {"Reshape to a negative size", op("Reshape", "x t", integers_text("t", {-7, 1})), kBad,
       "has the size -7"},
      {"Reshape to a giant rank",
       op("Reshape", "x t", integers_text("t", std::vector<int64_t>(4000, 1))), kLimit,
       "rank 4000"},
      {"Resize to sizes", op("Resize", "i - - t", image + integers_text("t", {1, 1, kHuge, kHuge})),
       kLimit, "node 'y' (Resize)"},
      {"Resize by scales", op("Resize", "i - t", image + reals_text("t", {4}, {1, 1, 1e30, 1e30})),
       kLimit, "node 'y' (Resize)"},
      {"Resize by a negative scale",
       op("Resize", "i - t", image + reals_text("t", {4}, {1, 1, -1, 1})), kBad,
       "node 'y' (Resize)"},
      {"Resize by too few scales", op("Resize", "i - t", image + reals_text("t", {2}, {1, 1})),
       kBad, "node 'y' (Resize)"},
      {"OneHot",
       op("OneHot", "s d v", scalar + integers_text("d", {kHuge}) + reals_text("v", {2}, {0, 1})),
       kLimit, "node 'y' (OneHot)"},
      {"OneHot of a negative depth",
       op("OneHot", "s d v", scalar + integers_text("d", {-3}) + reals_text("v", {2}, {0, 1})),
       kBad, "node 'y' (OneHot)"},
      {"TopK of more than there is", op("TopK", "x k", integers_text("k", {kHuge})), kLimit,
       "node 'y' (TopK)"},
      {"TopK of a negative number", op("TopK", "x k", integers_text("k", {-1})), kBad,
       "node 'y' (TopK)"},
      {"Split into what does not add up", op("Split", "x k", integers_text("k", {kHuge, kHuge})),
       kLimit, "node 'y' (Split)"},
      {"Upsample by scales",
       op("Upsample", "i t", image + reals_text("t", {4}, {1, 1, 1e18, 1e18}), "", 9), kLimit,
       "node 'y' (Upsample)"},
      {"CenterCropPad", op("CenterCropPad", "x t", integers_text("t", {kHuge, kHuge}), "", 18),
       kLimit, "node 'y' (CenterCropPad)"},
      {"HannWindow", op("HannWindow", "t", integers_text("t", {kHuge}, true)), kLimit,
       "node 'y' (HannWindow)"},
      {"MelWeightMatrix",
       op("MelWeightMatrix", "a b c d e",
          integers_text("a", {kHuge}, true) + integers_text("b", {kHuge}, true) +
              integers_text("c", {8000}, true) + reals_text("d", {}, {0}) +
              reals_text("e", {}, {4000})),
       kLimit, "node 'y' (MelWeightMatrix)"},
      {"DFT",
       op("DFT", "f n", input_text("f", {"1", "4", "1"}) + integers_text("n", {kHuge}, true)),
       kLimit, "node 'y' (DFT)"},
      {"ConstantFill by a negative dim", op("RandomNormal", "", "", ints_text("shape", {kHuge, 8})),
       kUnsupported, "RandomNormal"},
  });
}

// Lists that the model computes, each element of which would take ops of its own.
TEST(HostileSizes, LongListsOfSizes) {
  std::string inputs = kX + kY + input_text("few", {"33"}, 7) + input_text("some", {"4096"}, 7) +
                       input_text("many", {"1000000000000"}, 7) + integers_text("zero", {0}) +
                       input_text("n", {"'n'"}) + input_text("f", {"1", "4", "1"});
  auto op = [&](std::string_view name, std::string_view operands, std::string_view more = "") {
    return model_text(inputs + node_text(name, operands, "y", more), "", 18);
  };
  std::vector<Case> cases;
  for (std::string list : {"few", "some", "many"}) {
    std::string words = "elements ... 32";
    cases.push_back({"ConstantOfShape", op("ConstantOfShape", list), kLimit, words});
    cases.push_back({"Expand", op("Expand", "x " + list), kLimit, words});
    cases.push_back({"Reshape", op("Reshape", "x " + list), kLimit, words});
    cases.push_back({"Slice", op("Slice", "x " + list + " " + list), kLimit, words});
    cases.push_back({"Pad", op("Pad", "x " + list), kLimit, words});
    cases.push_back({"Tile", op("Tile", "x " + list), kLimit, words});
    cases.push_back({"Unsqueeze", op("Unsqueeze", "x " + list), kLimit, "node 'y' (Unsqueeze)"});
    cases.push_back({"Squeeze", op("Squeeze", "x " + list), kBad, "axes for rank 2"});
  }
  for (std::string list : {"some", "many"}) {
    cases.push_back({"Split", op("Split", "x " + list), kUnsupported, "at most 256 sizes"});
    cases.push_back({"DFT", op("DFT", "f " + list), kUnsupported, "at most 256 sizes"});
  }
  cases.push_back({"Split into many parts", op("Split", "n", int_text("num_outputs", 1 << 20)),
                   kBad, "num_outputs is 1048576"});
  expect_errors(cases);
}

// Doubles its elements with each node: 2^60 in the end.
TEST(HostileSizes, DoublingChains) {
  for (std::string start : {kX, reals_text("x", {2, 3}, {1, 2, 3, 4, 5, 6})}) {
    std::string nodes, value = "x";
    for (int i = 0; i < 60; ++i) {
      std::string next = fmt::format("v{}", i);
      nodes += node_text("Concat", value + " " + value, next, int_text("axis", 0));
      value = next;
    }
    expect_error(model_text(start + nodes + output_text(value)), kLimit, "2^40");
  }
}

// Dims whose expressions would grow with each node: sums squared again and again.
TEST(HostileSizes, GrowingExpressions) {
  std::string nodes;
  std::string value = "x";
  for (int i = 0; i < 40; ++i) {
    std::string flat = fmt::format("f{}", i), wide = fmt::format("w{}", i),
                next = fmt::format("v{}", i);
    nodes += node_text("Concat", value + " z", flat, int_text("axis", 0));
    nodes += node_text("Shape", flat, wide);
    nodes += node_text("Expand", flat + " sq", "");
    nodes.resize(nodes.rfind("node {"));
    nodes += node_text("Mul", wide + " " + wide, wide + "_2");
    nodes += node_text("ConstantOfShape", wide + "_2", next);
    value = next;
  }
  ExpectQuick quick;
  Result<Model> model = import_text(
      model_text(input_text("x", {"'a'"}) + input_text("z", {"'b'"}) + nodes + output_text(value)));
  if (!model.ok()) EXPECT_THAT(model.error().to_string(), testing::HasSubstr("node '"));
}

TEST(HostileSizes, Strings) {
  ImportOptions options;
  options.limits.name_bytes = 1000;
  std::string name(2000, 'n');
  expect_error(model_text(kX + kY + node_text("Relu", "x", "y", "name: '" + name + "'")), kLimit,
               "2000 bytes ... 1000", options);
  expect_error(model_text(kX + kY + node_text(name, "x", "y")), kLimit, "2000 bytes ... 1000",
               options);
  // Prefixes of nested calls make names longer with each level: not without end.
  std::string functions, call = "f0";
  std::string long_name(100'000, 'q');
  for (int i = 0; i < 60; ++i) {
    std::string inner = i == 59 ? node_text("Neg", "a", "b")
                                : node_text(fmt::format("f{}", i + 1), "a", "b",
                                            "domain: 'own' name: '" + long_name + "'");
    functions += fmt::format(
        "functions {{ name: 'f{}' domain: 'own' input: 'a' output: 'b' opset_import {{ version: 17 "
        "}} opset_import {{ domain: 'own' version: 1 }} {} }} ",
        i, inner);
  }
  ExpectQuick quick;
  (void)import_text(model_text(kX + kY + node_text("f0", "x", "y", "domain: 'own'"), functions));
}

TEST(HostileSizes, ManyNodes) {
  ImportOptions options;
  options.limits.nodes = 1000;
  std::string nodes, value = "x";
  for (int i = 0; i < 1001; ++i) {
    std::string next = fmt::format("v{}", i);
    nodes += node_text("Neg", value, next);
    value = next;
  }
  expect_error(model_text(kX + nodes + output_text(value)), kLimit, "more than 1000 nodes",
               options);
}

TEST(HostileSizes, Truncation) {
  // The opset comes last: no part is a model.
  std::string bytes =
      parse_text("ir_version: 8 opset_import { version: 17 } graph { name: 'g' " + kX + kY +
                 integers_text("t", {2, 1}) + node_text("Tile", "x t", "m") +
                 node_text("Softmax", "m", "y", int_text("axis", -1)) + "}")
          .SerializeAsString();
  ASSERT_TRUE(parse_onnx(std::as_bytes(std::span(bytes)), "h.onnx", "/nowhere").ok());
  for (size_t size = 0; size < bytes.size(); ++size) {
    std::string_view part(bytes.data(), size);
    Result<Model> model = parse_onnx(std::as_bytes(std::span(part)), "h.onnx", "/nowhere");
    ASSERT_FALSE(model.ok()) << size;
    EXPECT_THAT(model.error().to_string(), testing::HasSubstr("h.onnx"));
  }
}

// After all of the above, which runs in one process.
TEST(HostileSizes, ZMemory) {
  rusage usage = {};
  ASSERT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  EXPECT_LT(usage.ru_maxrss, 1 << 20);  // in KB
}

}  // namespace
}  // namespace hone::hostile::HONE_FILE

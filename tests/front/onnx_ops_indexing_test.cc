#include <gmock/gmock.h>

#include <algorithm>
#include <limits>

#include "tests/front/onnx_testing.h"

// Gathers, scatters and selections, where the standard's node tests do not go.

namespace hone::onnx_testing::HONE_FILE {
namespace {

using testing::HasSubstr;

const NodeOptions kSymbolic = {.symbolic = true};
const Tensor kTable = reals({3, 2}, {1, 2, 3, 4, 5, 6});

TEST(OnnxIndexing, IndicesCountFromTheBack) {
  Tensor index = integers({2}, {-1, 0}, DType::i32);
  EXPECT_EQ(numbers(run_node("Gather", 13, {kTable, index}, {}, kSymbolic)), Numbers({5, 6, 1, 2}));
  EXPECT_EQ(numbers(run_node("Gather", 1, {kTable, integers({}, {1})}, {{"axis", 1}})),
            Numbers({2, 4, 6}));
  Tensor elements = integers({1, 2}, {-1, 1});
  EXPECT_EQ(numbers(run_node("GatherElements", 13, {kTable, elements}, {}, kSymbolic)),
            Numbers({5, 4}));
  EXPECT_EQ(numbers(run_node("GatherND", 13, {kTable, constant(integers({2, 2}, {-1, -1, 0, 1}))},
                             {}, kSymbolic)),
            Numbers({6, 2}));
  EXPECT_THAT(import_error("Gather", 13, {kTable, index}, {{"axis", 2}}),
              HasSubstr("axis 2 is outside rank 2"));
  EXPECT_THAT(import_error("GatherND", 13, {kTable, integers({1, 3}, {0, 0, 0})}),
              HasSubstr("length 3 into 2 dims"));
}

TEST(OnnxIndexing, GatherNDHasBatchDims) {
  Tensor x = reals({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  for (NodeOptions options : {NodeOptions(), kSymbolic})
    EXPECT_EQ(numbers(run_node("GatherND", 12, {x, integers({2, 1}, {1, 0})}, {{"batch_dims", 1}},
                               options)),
              Numbers({3, 4, 5, 6}));
  EXPECT_THAT(import_error("GatherND", 12, {x, integers({2, 1}, {1, 0})}, {{"batch_dims", 2}}),
              HasSubstr("batch_dims is 2"));
}

TEST(OnnxIndexing, ScattersCombine) {
  Tensor x = reals({3}, {1, 2, 3}), updates = reals({3}, {10, 20, 4});
  Tensor index = integers({3}, {-1, 0, 0});
  auto scatter = [&](const char* how, int version) {
    return numbers(
        run_node("ScatterElements", version, {x, index, updates}, {{"reduction", how}}, kSymbolic));
  };
  EXPECT_EQ(scatter("add", 16), Numbers({25, 2, 13}));
  EXPECT_EQ(scatter("mul", 16), Numbers({80, 2, 30}));
  EXPECT_EQ(scatter("max", 18), Numbers({20, 2, 10}));
  EXPECT_EQ(scatter("min", 18), Numbers({1, 2, 3}));
  EXPECT_THAT(import_error("ScatterElements", 16, {x, index, updates}, {{"reduction", "max"}}),
              HasSubstr("reduction is 'max'"));
  Tensor rows = integers({2, 1}, {-1, 0}), values = reals({2, 2}, {7, 8, 9, 0});
  EXPECT_EQ(numbers(run_node("ScatterND", 11, {kTable, rows, values}, {}, kSymbolic)),
            Numbers({9, 0, 3, 4, 7, 8}));
  EXPECT_EQ(numbers(run_node("Scatter", 9, {x, integers({1}, {1}), reals({1}, {5})})),
            Numbers({1, 5, 3}));
}

TEST(OnnxIndexing, ScatterElementsMayCoverAPart) {
  EXPECT_EQ(
      numbers(run_node("ScatterElements", 13, {kTable, integers({1, 1}, {2}), reals({1, 1}, {9})})),
      Numbers({1, 2, 3, 4, 9, 6}));
}

TEST(OnnxIndexing, TensorScatterWritesWhereItIsTold) {
  Tensor cache = reals({2, 3, 1}, {0, 0, 0, 0, 0, 0});
  Tensor update = reals({2, 2, 1}, {1, 2, 3, 4}), first = integers({2}, {1, 2});
  EXPECT_EQ(numbers(run_node("TensorScatter", 24, {cache, update, integers({2}, {1, 0})})),
            Numbers({0, 1, 2, 3, 4, 0}));
  EXPECT_EQ(numbers(run_node("TensorScatter", 24, {cache, update, first}, {{"mode", "circular"}})),
            Numbers({0, 1, 2, 4, 0, 3}));
  EXPECT_THAT(import_error("TensorScatter", 24, {cache, update}, {{"axis", 0}}),
              HasSubstr("axis 0 is the batch"));
}

TEST(OnnxIndexing, OneHotAndTopKTakeMeasuredSizes) {
  Tensor values = reals({2}, {0, 1});
  for (bool is_known : {true, false}) {
    Operand depth = reals({1}, {3}), k = integers({1}, {2});
    depth.is_constant = k.is_constant = is_known;
    EXPECT_EQ(numbers(run_node("OneHot", 11, {integers({3}, {-1, 1, 7}), depth, values})),
              Numbers({0, 0, 1, 0, 1, 0, 0, 0, 0}));
    std::vector<Tensor> top =
        run_outputs("TopK", 24, {reals({4}, {3, 9, 1, 9}), k}, {{"sorted", 0}}, {.outputs = 2});
    EXPECT_EQ(numbers(top[0]), Numbers({9, 9}));
    EXPECT_EQ(numbers(top[1]), Numbers({1, 3}));
  }
  EXPECT_EQ(numbers(run_node("TopK", 1, {reals({3}, {3, 9, 1})}, {{"k", 1}}, {.outputs = 2})),
            Numbers({9}));
  Operand two = constant(integers({1}, {2}));
  NodeOptions options = {.outputs = 2, .symbolic = true};
  EXPECT_EQ(numbers(run_node("TopK", 11, {reals({3}, {3, 9, 1}), two}, {{"largest", 0}}, options)),
            Numbers({1, 3}));
  EXPECT_THAT(import_error("TopK", 10, {reals({1}, {3}), two}, {}, {.outputs = 2}),
              HasSubstr("k is 2, axis 0 has 1 elements"));
}

// ---- Selection ----------------------------------------------------------------------------------

TEST(OnnxSelection, NonZeroAndCompressWithSymbols) {
  Tensor x = reals({2, 3}, {0, 5, 0, 7, 0, 9});
  for (NodeOptions options : {NodeOptions(), kSymbolic}) {
    Tensor found = run_node("NonZero", 13, {x}, {}, options);
    EXPECT_EQ(found.type(), type_of(DType::i64, {2, 3}));
    EXPECT_EQ(numbers(found), Numbers({0, 1, 1, 1, 0, 2}));
    Tensor mask = integers({2}, {0, 1}, DType::boolean);
    EXPECT_EQ(numbers(run_node("Compress", 11, {x, mask}, {}, options)), Numbers({5}));
    EXPECT_EQ(numbers(run_node("Compress", 11, {x, mask}, {{"axis", -1}}, options)),
              Numbers({5, 0}));
  }
  EXPECT_EQ(run_node("NonZero", 13, {reals({}, {4})}).type(), type_of(DType::i64, {1, 1}));
  EXPECT_EQ(run_node("NonZero", 13, {reals({0, 2}, {})}).type(), type_of(DType::i64, {2, 0}));
}

TEST(OnnxSelection, UniqueGivesAllResults) {
  NodeOptions options = {.outputs = 4, .symbolic = true};
  Tensor x = reals({6}, {2, 1, 1, 3, 4, 3});
  std::vector<Tensor> y = run_outputs("Unique", 11, {x}, {{"sorted", 0}}, options);
  EXPECT_EQ(numbers(y[0]), Numbers({2, 1, 3, 4}));
  EXPECT_EQ(numbers(y[1]), Numbers({0, 1, 3, 4}));
  EXPECT_EQ(numbers(y[2]), Numbers({0, 1, 1, 2, 3, 2}));
  EXPECT_EQ(numbers(y[3]), Numbers({1, 2, 2, 1}));
  Tensor rows = reals({3, 3}, {2, 3, 4, 1, 0, 0, 1, 0, 0});
  y = run_outputs("Unique", 11, {rows}, {{"axis", 0}}, options);
  EXPECT_EQ(numbers(y[0]), Numbers({1, 0, 0, 2, 3, 4}));
  EXPECT_EQ(numbers(y[1]), Numbers({1, 0}));
  EXPECT_EQ(numbers(y[2]), Numbers({1, 0, 0}));
  EXPECT_EQ(numbers(y[3]), Numbers({2, 1}));
}

// Two far clusters of overlapping unit squares.
Tensor squares() {
  return reals({1, 5, 4}, {0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 0, 1, 1, 0, 10, 1, 11, 0, 10.1, 1, 11.1});
}

TEST(OnnxSelection, NonMaxSuppressionKeepsTheBestOfEachCluster) {
  Tensor boxes = squares();
  Tensor scores = reals({1, 2, 5}, {0.9, 0.75, 0.6, 0.95, 0.5, 0.1, 0.2, 0.3, 0, 0.7});
  Tensor limit = integers({1}, {3}), iou = reals({1}, {0.5}), least = reals({1}, {0.25});
  for (bool is_constant : {false, true}) {
    Operand most = limit;
    most.is_constant = is_constant;
    Tensor y = run_node("NonMaxSuppression", 11, {boxes, scores, most, iou, least});
    EXPECT_EQ(numbers(y), Numbers({0, 0, 3, 0, 0, 0, 0, 1, 4, 0, 1, 2}));
  }
  // Without a limit nothing is selected.
  EXPECT_EQ(run_node("NonMaxSuppression", 11, {boxes, scores}).type(), type_of(DType::i64, {0, 3}));
  EXPECT_THAT(import_error("NonMaxSuppression", 11, {scores, boxes, limit}),
              HasSubstr("boxes of type f32[1, 2, 5]"));
}

double overlap(const Numbers& boxes, size_t a, size_t b) {
  auto shared = [&](size_t axis) {
    double low = std::max(boxes[4 * a + axis], boxes[4 * b + axis]);
    return std::max(std::min(boxes[4 * a + axis + 2], boxes[4 * b + axis + 2]) - low, 0.0);
  };
  auto area = [&](size_t i) {
    return (boxes[4 * i + 2] - boxes[4 * i]) * (boxes[4 * i + 3] - boxes[4 * i + 1]);
  };
  double both = shared(0) * shared(1);
  return both / (area(a) + area(b) - both);
}

TEST(OnnxSelection, NonMaxSuppressionIsTheNaiveOne) {
  constexpr size_t kBoxes = 60, kRows = 6, kClasses = 3, kMost = 9;
  Numbers boxes, scores, want;
  // Numbers without a pattern that exact quarters and eighths keep free of rounding.
  auto drawn = [state = uint64_t{1}](uint64_t below) mutable {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>((state >> 33) % below);
  };
  for (size_t i = 0; i < 2 * kBoxes; ++i) {
    double y = drawn(40) / 4, x = drawn(40) / 4;
    for (double v : {y, x, y + 1 + drawn(12) / 4, x + 1 + drawn(12) / 4}) boxes.push_back(v);
  }
  for (size_t i = 0; i < kRows * kBoxes; ++i) scores.push_back(drawn(128) / 128);
  for (size_t row = 0; row < kRows; ++row) {
    const Numbers own(boxes.begin() + static_cast<int64_t>(row / kClasses * kBoxes * 4),
                      boxes.end());
    std::vector<size_t> order, kept;
    for (size_t i = 0; i < kBoxes; ++i)
      if (scores[row * kBoxes + i] > 0.25) order.push_back(i);
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      double x = scores[row * kBoxes + a], y = scores[row * kBoxes + b];
      return x != y ? x > y : a < b;
    });
    for (size_t i : order) {
      auto hides = [&](size_t k) { return overlap(own, i, k) > 0.3; };
      if (kept.size() < kMost && std::none_of(kept.begin(), kept.end(), hides)) kept.push_back(i);
    }
    for (size_t i : kept)
      for (size_t v : {row / kClasses, row % kClasses, i}) want.push_back(static_cast<double>(v));
  }
  std::vector<Operand> operands = {
      reals({2, kBoxes, 4}, boxes), reals({2, kClasses, kBoxes}, scores),
      constant(integers({1}, {kMost})), constant(reals({1}, {0.3})), constant(reals({1}, {0.25}))};
  for (NodeOptions options : {NodeOptions(), kSymbolic})
    EXPECT_EQ(numbers(run_node("NonMaxSuppression", 11, operands, {}, options)), want);
  EXPECT_GT(want.size(), kRows * 9);
}

// Boxes that do not touch are chosen by their scores alone: NaN first, the lower of equals first.
TEST(OnnxSelection, NonMaxSuppressionOrdersSpecialScores) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const Numbers special = {-0.0, 0.5, kNan, -kInf, 0.0, kInf, -2, -kNan, 0.5, -1, -kInf, 1e-40};
  Numbers boxes;
  for (size_t i = 0; i < special.size(); ++i) {
    const double at = 10 * static_cast<double>(i);
    for (double v : {at, at, at + 1, at + 1}) boxes.push_back(v);
  }
  const auto count = static_cast<int64_t>(special.size());
  const auto chosen = [&](DType scores, int64_t most, std::optional<double> least) {
    std::vector<Operand> operands = {reals({1, count, 4}, boxes),
                                     Tensor::from_reals(type_of(scores, {1, 1, count}), special),
                                     constant(integers({1}, {most})), constant(reals({1}, {0.5}))};
    if (least) operands.push_back(constant(reals({1}, {*least})));
    Numbers found;
    const Numbers rows = numbers(run_node("NonMaxSuppression", 11, operands));
    for (size_t i = 2; i < rows.size(); i += 3) found.push_back(rows[i]);
    return found;
  };
  const Numbers in_order = {2, 7, 5, 1, 8, 11, 0, 4, 9, 6, 3, 10};
  for (DType scores : {DType::f32, DType::f64}) {
    EXPECT_EQ(chosen(scores, count, {}), in_order);
    EXPECT_EQ(chosen(scores, 5, {}), Numbers(in_order.begin(), in_order.begin() + 5));
    // NaN is above no threshold.
    EXPECT_EQ(chosen(scores, count, -1.0), Numbers({5, 1, 8, 11, 0, 4}));
    EXPECT_EQ(chosen(scores, count, kInf), Numbers());
  }
}

TEST(OnnxSelection, StringsAreRefused) {
  EXPECT_THAT(import_error("StringSplit", 20, {kTable}, {}, {.outputs = 2}), HasSubstr("strings"));
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE

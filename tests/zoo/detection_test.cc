#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "ir/reference/evaluate.h"
#include "zoo/inputs.h"
#include "zoo/zoo.h"

// Non-maximum suppression against the same written as one would by hand.

namespace hone::HONE_FILE {
namespace {

struct Detection {
  std::array<double, 4> box;  // x and y of two corners
  double score;
  int64_t kind;
  int64_t place;
};

double area(const std::array<double, 4>& box) {
  return std::max(0.0, box[2] - box[0]) * std::max(0.0, box[3] - box[1]);
}

double overlap(const std::array<double, 4>& a, const std::array<double, 4>& b) {
  double shared = area(
      {std::max(a[0], b[0]), std::max(a[1], b[1]), std::min(a[2], b[2]), std::min(a[3], b[3])});
  return shared / (area(a) + area(b) - shared);
}

// Row n of detections [batch, places, 5 + classes].
std::vector<Detection> read(const Tensor& detections, int64_t n) {
  Ints dims = detections.type().static_dims();
  std::vector<Detection> result;
  for (int64_t i = 0; i < dims[1]; ++i) {
    auto at = [&](int64_t j) { return detections.real_at((n * dims[1] + i) * dims[2] + j); };
    Detection d = {{at(0), at(1), at(2), at(3)}, 0, 0, i};
    for (int64_t kind = 0; kind < dims[2] - 5; ++kind)
      if (at(5 + kind) > at(5 + d.kind)) d.kind = kind;
    d.score = at(4) * at(5 + d.kind);
    result.push_back(d);
  }
  return result;
}

std::vector<Detection> suppressed(std::vector<Detection> all, size_t candidates, size_t limit) {
  std::sort(all.begin(), all.end(), [](const Detection& a, const Detection& b) {
    return a.score != b.score ? a.score > b.score : a.place < b.place;
  });
  all.resize(std::min(all.size(), candidates));
  std::vector<Detection> kept;
  for (const Detection& d : all) {
    bool dropped = d.score <= 0.25;
    for (const Detection& k : kept)
      dropped = dropped || (k.kind == d.kind && overlap(k.box, d.box) > 0.5);
    if (!dropped && kept.size() < limit) kept.push_back(d);
  }
  return kept;
}

// Checks all outputs for two images; how many boxes are kept in each.
std::array<size_t, 2> check_suppression(uint64_t seed, int64_t image) {
  Graph graph = *build_zoo_model("yolo_v3",
                                 {.size = ZooSize::tiny, .seed = seed, .batch = 2, .image = image});
  Result<std::vector<Tensor>> outputs = evaluate(graph, *random_inputs(graph, seed));
  EXPECT_TRUE(outputs.ok());
  const Tensor &boxes = (*outputs)[0], &scores = (*outputs)[1], &kinds = (*outputs)[2];
  int64_t limit = scores.type().static_dims()[1];
  std::array<size_t, 2> counts;
  for (int64_t n = 0; n < 2; ++n) {
    std::vector<Detection> kept = suppressed(read((*outputs)[4], n), 32, 28);
    counts[static_cast<size_t>(n)] = kept.size();
    EXPECT_EQ((*outputs)[3].integer_at(n), static_cast<int64_t>(kept.size()));
    for (size_t i = 0; i < kept.size(); ++i) {
      int64_t at = n * limit + static_cast<int64_t>(i);
      EXPECT_NEAR(scores.real_at(at), kept[i].score, 1e-6);
      EXPECT_EQ(kinds.integer_at(at), kept[i].kind);
      for (int64_t j = 0; j < 4; ++j)
        EXPECT_NEAR(boxes.real_at(at * 4 + j), kept[i].box[static_cast<size_t>(j)], 1e-4);
    }
    for (int64_t i = static_cast<int64_t>(kept.size()); i < limit; ++i) {
      EXPECT_EQ(scores.real_at(n * limit + i), 0);
      EXPECT_EQ(kinds.integer_at(n * limit + i), -1);
    }
  }
  return counts;
}

TEST(Suppression, IsThatOfPlainLoops) {
  bool full = false, short_of_limit = false, unequal = false;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    auto [first, second] = check_suppression(seed, seed % 2 == 0 ? 32 : 64);
    full |= first == 28;
    short_of_limit |= first < 28;
    unequal |= first != second;
  }
  EXPECT_TRUE(full && short_of_limit && unequal);  // all cases were seen
}

}  // namespace
}  // namespace hone::HONE_FILE

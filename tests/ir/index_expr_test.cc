#include <gtest/gtest.h>

#include "ir/access.h"

namespace hone::HONE_FILE {
namespace {

const std::vector<IterDim> kDims = {{"i", 10}, {"j", 4}, {"k", 3}};
const IndexExpr i = IndexExpr::iter(0);
const IndexExpr j = IndexExpr::iter(1);
const IndexExpr k = IndexExpr::iter(2);

std::string text(const IndexExpr& e) { return e.to_string(kDims); }

TEST(IndexExprTest, IsASumOfDistinctAtoms) {
  EXPECT_EQ(text(i * 2 + j - 3), "2*i + j - 3");
  EXPECT_EQ(text(i + j - i), "j");
  EXPECT_EQ(text(i - i), "0");
  EXPECT_EQ(text(IndexExpr(0) - j), "-j");
  EXPECT_EQ(text(IndexExpr(int64_t{1} << 40)), "1099511627776");
  Dim n = Symbol::get("N", 1, 8);
  EXPECT_EQ(text(i * n + (n + 1) * Dim(1)), "N*i + N + 1");
  EXPECT_EQ(text(j * (n + 1)), "(N + 1)*j");
}

TEST(IndexExprTest, DivisionTakesOutMultiples) {
  EXPECT_EQ(text(floordiv(i * 4 + j, 4)), "i + floordiv(j, 4)");
  EXPECT_EQ(text(mod(i * 4 + j, 4)), "mod(j, 4)");
  EXPECT_EQ(text(floordiv(i * 6 + 9, 3)), "2*i + 3");
  EXPECT_EQ(text(mod(i * 6 + 9, 3)), "0");
  EXPECT_EQ(text(floordiv(i, 1)), "i");
  EXPECT_EQ(text(mod(i, 1)), "0");
  EXPECT_EQ(text(floordiv(IndexExpr(-7), 2)), "-4");
  EXPECT_EQ(text(mod(IndexExpr(-7), 2)), "1");
  EXPECT_EQ(text(mod(mod(i, 32) + j, 8)), "mod(i + j, 8)");
  EXPECT_EQ(text(mod(mod(i, 4) * 2 + 1, 8)), "mod(2*i + 1, 8)");
  EXPECT_EQ(text(mod(mod(i, 12), 8)), "mod(mod(i, 12), 8)");
  EXPECT_EQ(text(mod(mod(mod(i * 4, 32), 16), 4)), "0");
  EXPECT_EQ(text(floordiv(i, 2) - floordiv(i, 2)), "0");
  EXPECT_EQ(text(floordiv(i, 2) * 2 + mod(i, 2)), "2*floordiv(i, 2) + mod(i, 2)");
}

TEST(IndexExprTest, ValueAtAPoint) {
  Ints point = {7, 2, 1};
  EXPECT_EQ((i * 3 - j + 5).at(point), 24);
  EXPECT_EQ(floordiv(j - i, 3).at(point), -2);
  EXPECT_EQ(mod(j - i, 3).at(point), 1);
}

TEST(IndexExprTest, BoundsOverABox) {
  std::vector<Range> box = {{2, 5}, {0, 3}, {1, 1}};
  EXPECT_EQ((i * 2 - j + k).over(box), (Range{2, 11}));
  EXPECT_EQ(floordiv(i, 2).over(box), (Range{1, 2}));
  EXPECT_EQ(mod(i, 8).over(box), (Range{2, 5}));
  EXPECT_EQ(mod(i, 4).over(box), (Range{0, 3}));
  EXPECT_EQ((i - i).over(box), (Range{0, 0}));
}

TEST(IndexExprTest, Coefficients) {
  IndexExpr e = i * 3 - j + floordiv(k, 2);
  EXPECT_EQ(e.coefficient(0), 3);
  EXPECT_EQ(e.coefficient(1), -1);
  EXPECT_EQ(e.coefficient(2), std::nullopt);
  EXPECT_EQ(j.coefficient(0), 0);
  EXPECT_TRUE(e.mentions(2));
  EXPECT_FALSE(j.mentions(2));
}

std::vector<Range> narrowed(const IndexExpr& e, Range target, std::vector<Range> box) {
  return e.narrow(target, box) ? box : std::vector<Range>{};
}

TEST(IndexExprTest, NarrowsABox) {
  std::vector<Range> whole = {{0, 9}, {0, 3}, {0, 2}};
  // 2i + 1 in 4 ... 8: i in 2 ... 3.
  EXPECT_EQ(narrowed(i * 2 + 1, {4, 8}, whole), (std::vector<Range>{{2, 3}, {0, 3}, {0, 2}}));
  // 9 - i in 0 ... 2
  EXPECT_EQ(narrowed(IndexExpr(9) - i, {0, 2}, whole),
            (std::vector<Range>{{7, 9}, {0, 3}, {0, 2}}));
  // i + j = 11 leaves i = 8 ... 9 and j = 2 ... 3.
  EXPECT_EQ(narrowed(i + j, {11, 11}, whole), (std::vector<Range>{{8, 9}, {2, 3}, {0, 2}}));
  EXPECT_EQ(narrowed(floordiv(i, 4), {1, 1}, whole), (std::vector<Range>{{4, 7}, {0, 3}, {0, 2}}));
  // Remainders 2 ... 3 of 4: first at 2, last at 7.
  EXPECT_EQ(narrowed(mod(i, 4), {2, 3}, whole), (std::vector<Range>{{2, 7}, {0, 3}, {0, 2}}));
  EXPECT_TRUE(narrowed(i * 2, {3, 3}, whole).empty());
  EXPECT_TRUE(narrowed(mod(i * 2 + 1, 2) + 5, {0, 4}, whole).empty());
  EXPECT_TRUE(narrowed(mod(j, 8), {5, 6}, whole).empty());
  EXPECT_TRUE(narrowed(IndexExpr(3), {4, 5}, whole).empty());
}

// Nothing that solves the constraint may be cut off.
TEST(IndexExprTest, NarrowingKeepsAllSolutions) {
  const std::vector<IndexExpr> exprs = {i * 3 - j * 2 + k, mod(i * 3 + j, 5),
                                        floordiv(i * 5 - k, 3) + j, mod(i - j * 4, 6) * 2 - k,
                                        floordiv(mod(i * 7, 10), 3)};
  for (const IndexExpr& e : exprs) {
    for (int64_t low = -8; low < 30; ++low) {
      Range target = {low, low + 2};
      std::vector<Range> box = {{1, 9}, {0, 3}, {0, 2}};
      bool feasible = e.narrow(target, box);
      for (int64_t a = 1; a < 10; ++a) {
        for (int64_t b = 0; b < 4; ++b) {
          for (int64_t c = 0; c < 3; ++c) {
            int64_t value = e.at(Ints{a, b, c});
            if (value < target.low || value > target.high) continue;
            EXPECT_TRUE(feasible && a >= box[0].low && a <= box[0].high && b >= box[1].low &&
                        b <= box[1].high && c >= box[2].low && c <= box[2].high)
                << text(e) << " = " << value << " at " << a << ", " << b << ", " << c;
          }
        }
      }
    }
  }
}

TEST(RegionTest, EmptyRegions) {
  EXPECT_FALSE(Region::whole(Type::scalar(DType::f32)).empty());
  EXPECT_TRUE(Region::none(0).empty());
  EXPECT_TRUE(Region::none(2).empty());
  EXPECT_EQ(Region::whole(Type::get(DType::f32, {3, 0})), Region::none(2));
  Region part{{{1, 2}, {0, 0}}};
  EXPECT_TRUE(part.contains(Region::none(2)));
  EXPECT_TRUE(part.contains(Region{{{2, 2}, {0, 0}}}));
  EXPECT_FALSE(part.contains(Region{{{0, 2}, {0, 0}}}));
  EXPECT_FALSE(Region::none(2).contains(part));
}

}  // namespace
}  // namespace hone::HONE_FILE

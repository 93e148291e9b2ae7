#include "report/memory_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;
using testing::Not;

size_t count_of(std::string_view word, std::string_view text) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

TEST(MemoryPlot, ShowsBuffersAtTheirOffsets) {
  const MemoryProblem problem = {
      .buffers = {{.begin = 0, .end = 5, .size = 30}, {.begin = 5, .end = 10, .size = 60}},
      .capacity = {120}};
  const std::string_view ids[] = {"<a&b>", "\x1b[2J"};
  const std::string svg = plot_memory(problem, {0, 40}, ids);
  EXPECT_THAT(svg, HasSubstr("<title>&lt;a&amp;b&gt;: [0, 5), 30 bytes at 0</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>\\x1b[2J: [5, 10), 60 bytes at 40</title>"));
  EXPECT_THAT(svg, HasSubstr("height 100, capacity 120, moments 0 to 10"));
  // The second: the right half, from a third to five sixths of the capacity.
  EXPECT_THAT(svg, HasSubstr("x=\"640.00\" y=\"120.00\" width=\"600.00\" height=\"240.00\""));
  EXPECT_EQ(count_of("stroke-dasharray", svg), 1U);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST(MemoryPlot, GapsAreGapsAndSpacesAreApart) {
  const MemoryProblem problem = {
      .buffers = {{.begin = 0, .end = 9, .size = 8, .gaps = {{2, 3}, {4, 6, 2, 4}}},
                  {.begin = 0, .end = 9, .size = 8, .space = 2},
                  {.begin = 3, .end = 3, .size = 8}}};
  const std::string svg = plot_memory(problem, {0, 0, 0});
  EXPECT_EQ(count_of("<title>0: ", svg), 4U);
  EXPECT_EQ(count_of("<title>1: ", svg), 1U);
  EXPECT_EQ(count_of("<title>2: ", svg), 0U);
  EXPECT_THAT(svg, HasSubstr("space 1: height 0<"));
  EXPECT_THAT(svg, HasSubstr("space 2: height 8, moments 0 to 9"));
}

TEST(MemoryPlot, ACapacityFarAboveIsNoLine) {
  const MemoryProblem problem = {.buffers = {{.begin = 0, .end = 5, .size = 30}},
                                 .capacity = {1000}};
  const std::string svg = plot_memory(problem, {0});
  EXPECT_THAT(svg, HasSubstr("height 30, capacity 1000"));
  EXPECT_THAT(svg, Not(HasSubstr("stroke-dasharray")));
}

TEST(MemoryPlot, LargeOnesStaySmall) {
  MemoryProblem problem;
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < 250'000; ++i) {
    problem.buffers.push_back({.begin = i, .end = i + 2, .size = 1 + i % 5});
    offsets.push_back(i % 3 * 5);
  }
  const std::string svg = plot_memory(problem, offsets);
  EXPECT_LT(svg.size(), 10'000'000U);
  EXPECT_THAT(svg.substr(0, 2000), HasSubstr("without the 50000 smallest rectangles"));
  EXPECT_THAT(svg, Not(HasSubstr("<title>")));
  EXPECT_EQ(count_of("<path", svg), 24U);
}

TEST(MemoryPlot, OfNothingIsEmpty) { EXPECT_THAT(plot_memory({}, {}), HasSubstr("height 0")); }

}  // namespace
}  // namespace hone::HONE_FILE

#include <gtest/gtest.h>

#include "ir/text.h"
#include "rewrite/passes.h"

namespace hone::HONE_FILE {
namespace {

std::string widened(std::string_view text) {
  return print(widen_composites(parse_graph(text).value()).value());
}

TEST(Widen, CompositesOfHalvesComputeInF32) {
  EXPECT_EQ(widened("graph @g(%x: f16[2, 4]) -> (f16[2, 4]) {\n"
                    "  %y = softmax %x {axis = 1} : f16[2, 4]\n"
                    "  return %y\n"
                    "}\n"),
            "graph @g(%x: f16[2, 4]) -> f16[2, 4] {\n"
            "  %1 = cast %x {dtype = f32} : f32[2, 4]\n"
            "  %2 = softmax %1 {axis = 1} : f32[2, 4]\n"
            "  %y = cast %2 {dtype = f16} : f16[2, 4]\n"
            "  return %y\n"
            "}\n");
}

TEST(Widen, OthersStay) {
  for (const char* text : {"graph @g(%x: f32[4]) -> f32[4] {\n"
                           "  %y = softmax %x {axis = 0} : f32[4]\n"
                           "  return %y\n"
                           "}\n",
                           "graph @g(%x: f16[4]) -> f16[4] {\n"
                           "  %y = exp %x : f16[4]\n"
                           "  return %y\n"
                           "}\n"})
    EXPECT_EQ(widened(text), text);
}

}  // namespace
}  // namespace hone::HONE_FILE

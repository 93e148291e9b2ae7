#include "kernel/kernel_text.h"

#include <gmock/gmock.h>

#include "ir/text.h"
#include "kernel/facts.h"
#include "kernel/schedule_space.h"
#include "tests/base/says_testing.h"
#include "tests/program/random_kernels.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;

constexpr std::string_view kLayer =
    "kernel {\n"
    "  inputs = [[0, 1], [1/16, 0, 1%16]]\n"
    "  outputs = [[0, 1]]\n"
    "}\n"
    "graph @layer(%x: f32[4, 8], %w: f32[8, 16]) -> f32[4, 16] {\n"
    "  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}\n"
    "  %y = max %h, 0\n"
    "  return %y\n"
    "}\n";

// Parses what is printed; both are the same kernel with the same names.
void expect_same(const KernelBody& body) {
  const std::string text = print(body);
  const Result<KernelBody> again = parse_kernel(text, "again");
  ASSERT_TRUE(again.ok()) << again.error().to_string() << "\n" << text;
  EXPECT_EQ(print(*again), text);
  EXPECT_EQ(kernel_hash(*again), kernel_hash(body)) << text;
  EXPECT_EQ(again->inputs, body.inputs);
  EXPECT_EQ(again->outputs, body.outputs);
  EXPECT_EQ(again->in_place, body.in_place);
  EXPECT_EQ(again->window, body.window);
}

std::string error_of(std::string_view text) {
  const Result<KernelBody> body = parse_kernel(text, "k");
  return body.ok() ? "" : body.error().to_string();
}

std::string replaced(std::string_view from, std::string_view to) {
  std::string text(kLayer);
  const size_t at = text.find(from);
  HONE_CHECK(at != std::string::npos, "no '{}'", from);
  return text.replace(at, from.size(), to);
}

TEST(KernelText, IsReadBackAsItIs) {
  const Result<KernelBody> body = parse_kernel(kLayer, "k");
  ASSERT_TRUE(body.ok()) << body.error().to_string();
  EXPECT_EQ(body->graph.inputs().size(), 2u);
  EXPECT_EQ(body->inputs[1].parts.size(), 3u);
  expect_same(*body);
}

TEST(KernelText, HasUpdatesInPlaceDonationsAndWindows) {
  const std::string_view update =
      "kernel { in_place = true inputs = [[0, 1], [0, 1], []] outputs = [[0, 1]] }\n"
      "graph @g(%c: f32[8, 4] donate 0, %u: f32[1, 4], %i: i64[]) -> f32[8, 4] {\n"
      "  %n = constant 0 : i64[]\n"
      "  %y = dynamic_update %c, %u, %i, %n\n"
      "  return %y\n}";
  const Result<KernelBody> body = parse_kernel(update, "k");
  ASSERT_TRUE(body.ok()) << body.error().to_string();
  EXPECT_TRUE(body->in_place);
  expect_same(*body);
  KernelBody stage = parse_kernel(kLayer, "k").value();
  stage.window = {2, 16};
  expect_same(stage);
}

TEST(KernelText, OfRandomKernelsIsReadBackAsItIs) {
  Rng rng(1);
  int kernels = 0;
  for (int attempt = 0; attempt < 200; ++attempt) {
    const Graph graph =
        attempt % 4 == 0 ? RandomGemm(rng).graph() : random_graph({.seed = rng.next()});
    const Users users(graph);
    const std::vector<NodeId> group =
        attempt % 4 == 0 ? op_nodes(graph) : random_group(graph, users, rng);
    if (group.empty()) continue;
    KernelBody body = body_of(graph, group, {});
    if (body.outputs.empty()) continue;
    donate_some(body, rng);
    ASSERT_TRUE(check(body).ok()) << check(body).error().to_string() << print(body);
    expect_same(body);
    ++kernels;
  }
  EXPECT_GT(kernels, 100);
}

TEST(KernelText, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(error_of(""), says("'kernel' ... end of the text"));
  EXPECT_THAT(error_of(replaced("inputs", "input")), HasSubstr("a kernel has no 'input' (k:2:3)"));
  EXPECT_THAT(error_of(replaced("  outputs = [[0, 1]]\n", "")), HasSubstr("the outputs of"));
  EXPECT_THAT(error_of(replaced("outputs", "inputs")), says("inputs ... twice ... k:3:3"));
  EXPECT_THAT(error_of(replaced("[0, 1], ", "")), HasSubstr("2 parameters and 1 layouts"));
  EXPECT_THAT(error_of(replaced("[0, 1]]\n}", "[1]]\n}")), HasSubstr("leaves out dim 0"));
  EXPECT_THAT(error_of(replaced("1/16, 0", "1/3, 0")), says("half"));
  EXPECT_THAT(error_of(replaced("[0, 1], ", "[0, 1, ")), HasSubstr("(k:"));
  EXPECT_THAT(error_of(replaced("}\ngraph", "  in_place = true\n}\ngraph")),
              says("update ... in place"));
  EXPECT_THAT(error_of(replaced("}\ngraph", "  window = [2]\n}\ngraph")),
              says("window ... 1 dims ... 2"));
  EXPECT_THAT(error_of(replaced("}\ngraph", "  window = [5, 1]\n}\ngraph")),
              HasSubstr("5 points along dim 0"));
  EXPECT_THAT(error_of(replaced("return %y", "return %x")), HasSubstr("(k:"));
  EXPECT_THAT(error_of(replaced("%x: f32[4, 8]", "%x: f32[4, 8] donate 0")), HasSubstr("(k:"));
  EXPECT_THAT(error_of(std::string(kLayer) + "x"), says("end of the text"));
}

TEST(KernelText, OfWhatIsNoKernelIsRefused) {
  const auto kernel = [](std::string_view graph) {
    return error_of(fmt::format("kernel {{ inputs = [[0]] outputs = [[0]] }}\n{}", graph));
  };
  EXPECT_THAT(kernel("graph @g(%x: f32[4]) -> f32[4] { return %x }"), says("output %x"));
  EXPECT_THAT(kernel("graph @g(%x: f32[4]) -> f32[4] { %y = softmax %x {axis = 0} return %y }"),
              HasSubstr("softmax is a composite"));
  EXPECT_NE(kernel("graph @g(%x: f32[4]) -> f32[4] { %y = exp %x %z = sort %y {axis = 0} "
                   "return %z }"),
            "");
}

// Whatever the text says: an error, or a body that all that looks at bodies can take.
TEST(KernelText, ThatIsChangedAtRandomIsReadOrRefused) {
  Rng rng(3);
  Target target;
  target.caches = {{.bytes = 1 << 20}};
  constexpr std::string_view kPieces[] = {"0",
                                          "1",
                                          "-1",
                                          "[",
                                          "]",
                                          ",",
                                          "16",
                                          "in_place = true ",
                                          "window = [1, 1] ",
                                          "%x",
                                          "%w",
                                          "f32",
                                          "i64[]",
                                          "donate 0 ",
                                          "999999999999",
                                          "{",
                                          "}"};
  int good = 0;
  for (int attempt = 0; attempt < 3000; ++attempt) {
    std::string text(kLayer);
    for (uint64_t changes = 1 + rng.below(3); changes > 0; --changes) {
      const size_t at = rng.below(text.size());
      text.replace(at, rng.below(4), rng.chance(0.7) ? rng.pick(kPieces) : "");
    }
    const Result<KernelBody> body = parse_kernel(text, "k");
    if (!body.ok()) continue;
    ++good;
    const KernelFacts facts(*body);
    const ScheduleSpace space(*body, facts, target);
    (void)check_schedule(*body, facts, plain_nest(facts.space.parallel), target).ok();
    expect_same(*body);
  }
  EXPECT_GT(good, 20);
}

}  // namespace
}  // namespace hone::HONE_FILE

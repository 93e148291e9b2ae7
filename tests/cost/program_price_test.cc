#include "cost/program_price.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "cost/analytic.h"
#include "cost/task_seconds.h"
#include "planner/planner.h"
#include "tests/program/lower_testing.h"

namespace hone::HONE_FILE {
namespace {

// A kernel costs a second, a copied byte a millisecond, a command a microsecond.
class RoundNumbers : public Cost {
 public:
  class Second : public PricedKernel {
    void price(std::span<const Schedule>, double, std::span<double> seconds) override {
      std::ranges::fill(seconds, 1);
    }
  };
  std::string version() const override { return "round"; }
  std::unique_ptr<PricedKernel> kernel(std::shared_ptr<const KernelFacts>, int64_t) const override {
    return std::make_unique<Second>();
  }
  double copy(double bytes) const override { return 1e-3 * bytes; }
  double command() const override { return 1e-6; }
};

Program lowered(std::string_view text) {
  const Graph graph = prepared(text);
  return lower(graph, complete(graph, {}, two_cores()).value(), two_cores()).value();
}
ProgramPrice priced(std::string_view text) { return price(lowered(text), RoundNumbers()).value(); }

TEST(ProgramPrice, AddsUpCommands) {
  const ProgramPrice sum = priced(
      "graph @g(%x: f32[8]) { %a = sort %x {axis = 0} %b = cumulative %a {kind = sum, axis = 0}\n"
      "  return %b, %x }\n");
  EXPECT_EQ(sum.kernel, std::vector<double>({1, 1}));
  EXPECT_DOUBLE_EQ(sum.launches, 2);
  EXPECT_DOUBLE_EQ(sum.copies, 0.032);
  EXPECT_DOUBLE_EQ(sum.commands, 3e-6);
  EXPECT_DOUBLE_EQ(sum.total(), 2.032003);
}

TEST(ProgramPrice, CountsRoundsAndTheDearerBranch) {
  const ProgramPrice scan = priced(
      "graph @g(%x: f32[8], %xs: f32[5, 2]) {\n"
      "  %f = scan %x, %xs {carried = 1} body (%s: f32[8], %r: f32[2]) {\n"
      "    %t = sort %s {axis = 0} return %t }\n"
      "  return %f }\n");
  EXPECT_DOUBLE_EQ(scan.launches, 5);
  EXPECT_DOUBLE_EQ(scan.copies, 6 * 0.032);  // the first state, and each next one
  // An update in place leaves the state where it is.
  const ProgramPrice update = priced(
      "graph @g(%x: f32[8], %xs: f32[5, 2]) {\n"
      "  %f = scan %x, %xs {carried = 1} body (%s: f32[8], %r: f32[2]) {\n"
      "    %k = constant 3 : i32[] %t = dynamic_update %s, %r, %k return %t }\n"
      "  return %f }\n");
  EXPECT_DOUBLE_EQ(update.launches, 5);
  EXPECT_DOUBLE_EQ(update.copies, 0.032);
  const ProgramPrice branch = priced(
      "graph @g(%p: bool[], %x: f32[8]) {\n"
      "  %y = if %p, %x then (%u: f32[8]) { return %u }\n"
      "    else (%u: f32[8]) { %s = sort %u {axis = 0} return %s }\n"
      "  return %y }\n");
  EXPECT_DOUBLE_EQ(branch.launches, 1);
  EXPECT_DOUBLE_EQ(branch.copies, 0);
}

TEST(ProgramPrice, SymbolsHaveTheirValueOrTheirLargest) {
  const Program program = lowered(
      "graph @g(%x: f32[N]) -> (f32[N], f32[N]) where N in 1..1000000 {\n"
      "  %y = exp %x return %y, %x }\n");
  const AnalyticCost cost(two_cores());
  const ProgramPrice small = price(program, cost, {{"N", 8}}).value();
  const ProgramPrice large = price(program, cost, {{"N", 1000000}}).value();
  EXPECT_LT(100 * small.launches, large.launches);
  EXPECT_LT(100 * small.copies, large.copies);
  EXPECT_DOUBLE_EQ(price(program, cost).value().total(), large.total());
}

TEST(ProgramPrice, NeedsToKnowWhatKernelsWereBuiltFrom) {
  const Program program = parse_program(print(lowered("graph @g(%x: f32[8]) { %y = exp %x "
                                                      "return %y }\n")))
                              .value();
  EXPECT_THAT(price(program, RoundNumbers()).error().to_string(),
              testing::HasSubstr("nobody knows what kernel 'exp' was built from"));
}

// The tasks of the graph, each with the lists that it runs, are the whole.
TEST(ProgramPrice, IsTheSumOfItsTasks) {
  const Program program = lowered(
      "graph @g(%x: f32[8], %p: bool[]) {\n"
      "  %a = exp %x\n"
      "  %f, %q = scan %a, %p {carried = 2, length = [3]} body (%s: f32[8], %r: bool[]) {\n"
      "    %i = if %r, %s then (%u: f32[8]) { %b = exp %u return %b }\n"
      "      else (%u: f32[8]) { %n = sort %u {axis = 0} return %n }\n"
      "    return %i, %r\n  }\n"
      "  return %f\n}\n");
  const RoundNumbers cost;
  const ProgramPrice whole = price(program, cost).value();
  std::unordered_map<uint64_t, double> launches;
  for (size_t k = 0; k < program.kernels.size(); ++k)
    launches.emplace(task_kernel(program.kernels[k]), whole.kernel[k]);
  const std::vector<TaskSeconds> tasks = task_seconds(tasks_of(program), launches, cost).value();
  TaskSeconds sum;
  for (const TaskSeconds& task : tasks) sum += task;
  EXPECT_DOUBLE_EQ(sum.launches, whole.launches);
  EXPECT_DOUBLE_EQ(sum.copies, whole.copies);
  EXPECT_DOUBLE_EQ(sum.commands, whole.commands);
  EXPECT_GT(sum.total(), 0);
}

}  // namespace
}  // namespace hone::HONE_FILE

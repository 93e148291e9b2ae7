#include "tests/program/lower_testing.h"

#include "ir/reference/evaluate.h"
#include "oracle/compare.h"
#include "program/run.h"
#include "tests/program/image_runner.h"
#include "tests/program/kernel_testing.h"

namespace hone {

std::vector<Tensor> evaluated(const Graph& graph, const std::vector<Tensor>& inputs) {
  Result<std::vector<Tensor>> values = evaluate(graph, inputs, {.numerics = Numerics::rounded});
  EXPECT_TRUE(values.ok()) << values.error().to_string();
  return values.ok() ? *values : std::vector<Tensor>();
}

void expect_same(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    Result<Comparison> comparison =
        compare(actual[i], expected[i], default_tolerance(expected[i].dtype()));
    ASSERT_TRUE(comparison.ok()) << comparison.error().to_string();
    EXPECT_TRUE(comparison->passed()) << "output " << i << ": " << comparison->to_string();
  }
}

void check_lowered(const Graph& graph, const Plan& plan, const std::vector<Tensor>& inputs,
                   Numbers numbers) {
  const std::vector<Tensor> expected = evaluated(graph, inputs);
  const auto expect_right = [&](const Result<std::vector<Tensor>>& actual) {
    ASSERT_TRUE(actual.ok()) << actual.error().to_string();
    if (numbers == Numbers::special)
      expect_specials(graph, inputs, *actual);
    else
      expect_same(*actual, expected);
  };
  Result<Program> program = lower(graph, plan, two_cores());
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  const std::string text = print(*program);
  SCOPED_TRACE(text.substr(0, 20'000));
  Result<Program> again = parse_program(text);
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_EQ(print(*again), text);
  Status status = verify(*again);
  ASSERT_TRUE(status.ok()) << status.error().to_string();
  for (std::optional<uint64_t> seed : {std::optional<uint64_t>(), std::optional<uint64_t>(1)})
    expect_right(run(*again, inputs, {.order_seed = seed}));
  Result<Image> image = instantiate(*program, {}, nameless_code(*program));
  ASSERT_TRUE(image.ok()) << image.error().to_string();
  for (bool in_place : {false, true})
    expect_right(ImageRunner(*image, program->kernels).run(inputs, in_place));
}

}  // namespace hone

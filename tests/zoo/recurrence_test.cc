#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "ir/reference/evaluate.h"
#include "zoo/inputs.h"
#include "zoo/zoo.h"

// Models that are written in two ways: by a composite or a scan, and step by step; and a decoder
// with a cache against the whole prompt.

namespace hone::HONE_FILE {
namespace {

Graph built(std::string_view name, ZooOptions options) {
  Result<Graph> graph = build_zoo_model(name, options);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().to_string());
  return std::move(*graph);
}

void expect_near(const Tensor& a, const Tensor& b, double tolerance) {
  ASSERT_EQ(a.type(), b.type());
  double largest = 0;
  for (int64_t i = 0; i < a.elements(); ++i)
    largest = std::max(largest, std::abs(a.real_at(i) - b.real_at(i)));
  EXPECT_LE(largest, tolerance);
}

class Unrolled : public testing::TestWithParam<std::string> {};

TEST_P(Unrolled, GivesTheSameNumbers) {
  ZooOptions options = {.size = ZooSize::tiny, .seed = 3};
  Graph whole = built(GetParam(), options);
  options.unroll = true;
  Graph steps = built(GetParam(), options);
  EXPECT_GT(steps.node_count(), 2 * whole.node_count());
  std::vector<Tensor> inputs = *random_inputs(whole, 4);
  Result<std::vector<Tensor>> a = evaluate(whole, inputs), b = evaluate(steps, inputs);
  ASSERT_TRUE(a.ok()) << a.error().to_string();
  ASSERT_TRUE(b.ok()) << b.error().to_string();
  for (size_t i = 0; i < a->size(); ++i) expect_near((*a)[i], (*b)[i], 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Models, Unrolled, testing::Values("lstm", "gnmt", "nas_rnn"),
                         [](const auto& info) { return info.param; });

class Large : public testing::TestWithParam<std::pair<std::string, int64_t>> {};

TEST_P(Large, UnrolledReachesEightyThousandNodesInTwoSeconds) {
  auto start = std::chrono::steady_clock::now();
  Graph graph = built(GetParam().first, {.length = GetParam().second, .unroll = true});
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_GE(graph.node_count(), 80000u);
#ifdef NDEBUG
  EXPECT_LT(seconds.count(), 2);
#endif
}

INSTANTIATE_TEST_SUITE_P(Models, Large,
                         testing::Values(std::pair("gnmt", 260), std::pair("lstm", 2200)),
                         [](const auto& info) { return info.param.first; });

// The first `rows` places of axis 2 of [n, heads, length, width], in `places` places.
Tensor cut_and_padded(const Tensor& cache, int64_t rows, int64_t places) {
  Ints dims = cache.type().static_dims();
  Type type = Type::get(DType::f32, {dims[0], dims[1], places, dims[3]});
  std::vector<float> values(static_cast<size_t>(type.static_elements()), 0);
  std::span<const float> from = cache.as<float>();
  for (int64_t head = 0; head < dims[0] * dims[1]; ++head)
    for (int64_t i = 0; i < rows * dims[3]; ++i)
      values[static_cast<size_t>(head * places * dims[3] + i)] =
          from[static_cast<size_t>(head * dims[2] * dims[3] + i)];
  return Tensor::of<float>(type, values);
}

TEST(Gpt2, DecodingWithACacheContinuesThePrompt) {
  constexpr int64_t kLength = 6, kPlaces = 9;
  Graph prefill = built("gpt2", {.size = ZooSize::tiny, .length = kLength});
  Graph decode = built("gpt2_decode", {.size = ZooSize::tiny, .length = kPlaces});
  std::vector<Tensor> prompt = *random_inputs(prefill, 8);
  Result<std::vector<Tensor>> whole = evaluate(prefill, prompt);
  ASSERT_TRUE(whole.ok()) << whole.error().to_string();

  std::vector<int64_t> last;
  for (int64_t n = 0; n < 2; ++n) last.push_back(prompt[0].integer_at(n * kLength + kLength - 1));
  std::vector<Tensor> inputs = {Tensor::of<int64_t>(Type::get(DType::i64, {2, 1}), last),
                                Tensor::scalar(DType::i64, kLength - 1)};
  for (size_t i = 1; i < whole->size(); ++i)
    inputs.push_back(cut_and_padded((*whole)[i], kLength - 1, kPlaces));
  Result<std::vector<Tensor>> step = evaluate(decode, inputs);
  ASSERT_TRUE(step.ok()) << step.error().to_string();

  int64_t vocabulary = (*whole)[0].type().static_dims()[2];
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t v = 0; v < vocabulary; ++v)
      EXPECT_NEAR((*step)[0].real_at(n * vocabulary + v),
                  (*whole)[0].real_at(((n + 1) * kLength - 1) * vocabulary + v), 1e-5);
  for (size_t i = 1; i < whole->size(); ++i)
    expect_near((*step)[i], cut_and_padded((*whole)[i], kLength, kPlaces), 1e-5);
}

TEST(Gpt2, DonatesEveryCache) {
  Graph decode = built("gpt2_decode", {.size = ZooSize::tiny});
  ASSERT_EQ(decode.donations().size(), 4u);  // two layers, keys and values
  for (Donation d : decode.donations())
    EXPECT_EQ(decode.name(decode.inputs()[d.input]),
              fmt::format("{}_cache", decode.name(decode.outputs()[d.output])));
}

}  // namespace
}  // namespace hone::HONE_FILE

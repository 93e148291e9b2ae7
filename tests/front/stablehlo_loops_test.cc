#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "front/hlo/hlo.h"
#include "ir/reference/evaluate_model.h"

// Loops that count become scans, and compute what the while computes.

namespace hone::HONE_FILE {
namespace {

int count(const Graph& graph, Opcode opcode) {
  int found = 0;
  for (const NodeId n : graph.nodes()) found += graph.opcode(n) == opcode ? 1 : 0;
  return found;
}

// The parts of a loop of `trips` trips. States: the counter i, a vector h, a matrix w and an array
// x that nothing changes, and rows y that are written.
struct Loop {
  int trips = 3;
  bool reads_back = false;   // x from its last row on
  bool writes_back = false;  // y from its last row on
  bool wraps = false;        // adds the size to a negative place, as JAX does
  bool reads_counter = false;
  bool reads_all = false;     // the whole of x, too
  bool row_is_right = false;  // of the product
  bool changes_weights = false;
};

// A place of `size` rows, as the text computes it from the counter.
std::string place(std::string_view name, const Loop& loop, bool back) {
  std::string lines;
  std::string at = "%i";
  if (back) {
    lines += fmt::format("  %{0}b = stablehlo.subtract %last, %i : tensor<i32>\n", name);
    at = fmt::format("%{}b", name);
  }
  if (!loop.wraps)
    return lines + fmt::format("  %{0} = stablehlo.add {1}, %zero : tensor<i32>\n", name, at);
  return lines + fmt::format(
                     "  %{0}n = stablehlo.compare LT, {1}, %zero : (tensor<i32>, tensor<i32>) -> "
                     "tensor<i1>\n"
                     "  %{0}p = stablehlo.add {1}, %n : tensor<i32>\n"
                     "  %{0} = stablehlo.select %{0}n, %{0}p, {1} : tensor<i1>, tensor<i32>\n",
                     name, at);
}

// The condition says `i < trips`, or `i <= trips - 1`, which no reader takes for a count.
std::string text_of(const Loop& loop, bool plainly) {
  const int n = loop.trips;
  // Without wrapping the place is the counter itself.
  const auto used = [&](std::string_view name, bool back) {
    if (loop.wraps) return fmt::format("%{}", name);
    return back ? fmt::format("%{}b", name) : std::string("%i");
  };
  const std::string types = fmt::format(
      "tensor<i32>, tensor<2xf32>, tensor<3x2xf32>, tensor<{0}x3xf32>, tensor<{0}x2xf32>", n);
  std::string body = place("r", loop, loop.reads_back) + place("s", loop, loop.writes_back);
  body += fmt::format(
      "  %row1 = stablehlo.dynamic_slice %x, {0}, %zero, sizes = [1, 3] : (tensor<{1}x3xf32>, "
      "tensor<i32>, tensor<i32>) -> tensor<1x3xf32>\n"
      "  %row = stablehlo.reshape %row1 : (tensor<1x3xf32>) -> tensor<3xf32>\n",
      used("r", loop.reads_back), n);
  body += loop.row_is_right
              ? "  %d = stablehlo.dot_general %w, %row, contracting_dims = [0] x [0] : "
                "(tensor<3x2xf32>, tensor<3xf32>) -> tensor<2xf32>\n"
              : "  %d = stablehlo.dot_general %row, %w, contracting_dims = [0] x [0] : "
                "(tensor<3xf32>, tensor<3x2xf32>) -> tensor<2xf32>\n";
  body += "  %h1 = stablehlo.add %h, %d : tensor<2xf32>\n";
  std::string state = "%h1";
  if (loop.reads_counter) {
    body +=
        "  %f = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>\n"
        "  %fs = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<2xf32>\n"
        "  %h2 = stablehlo.add %h1, %fs : tensor<2xf32>\n";
    state = "%h2";
  }
  if (loop.reads_all) {
    body += fmt::format(
        "  %all = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [0, 1] "
        ": (tensor<{0}x3xf32>, tensor<f32>) -> tensor<f32>\n"
        "  %alls = stablehlo.broadcast_in_dim %all, dims = [] : (tensor<f32>) -> tensor<2xf32>\n"
        "  %h3 = stablehlo.subtract {1}, %alls : tensor<2xf32>\n",
        n, state);
    state = "%h3";
  }
  if (loop.changes_weights) body += "  %w1 = stablehlo.negate %w : tensor<3x2xf32>\n";
  body += fmt::format(
      "  %new = stablehlo.reshape {0} : (tensor<2xf32>) -> tensor<1x2xf32>\n"
      "  %y1 = stablehlo.dynamic_update_slice %y, %new, {1}, %zero : (tensor<{2}x2xf32>, "
      "tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<{2}x2xf32>\n"
      "  %j = stablehlo.add %i, %one : tensor<i32>\n"
      "  stablehlo.return %j, {0}, {3}, %x, %y1 : {4}\n",
      state, used("s", loop.writes_back), n, loop.changes_weights ? "%w1" : "%w", types);
  return fmt::format(
      "func.func @main(%h0: tensor<2xf32>, %w0: tensor<3x2xf32>, %x0: tensor<{0}x3xf32>, "
      "%y0: tensor<{0}x2xf32>) -> ({1}) {{\n"
      "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"
      "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
      "  %n = stablehlo.constant dense<{0}> : tensor<i32>\n"
      "  %last = stablehlo.constant dense<{2}> : tensor<i32>\n"
      "  %c = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %q:5 = stablehlo.while(%i = %zero, %h = %h0, %w = %w0, %x = %x0, %y = %y0) : {1}\n"
      "  cond {{\n"
      "  %p = stablehlo.compare {3} : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "  stablehlo.return %p : tensor<i1>\n  }} do {{\n{4}  }}\n"
      "  return %q#0, %q#1, %q#2, %q#3, %q#4 : {1}\n}}\n",
      n, types, n - 1, plainly ? "LT, %i, %n" : "LE, %i, %last", body);
}

Model parsed(const std::string& text) {
  Result<Model> model = parse_hlo(text, "p");
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().to_string()) << text;
  return std::move(model).value();
}

void check(uint32_t seed, int cases) {
  std::mt19937 random(seed);
  const auto flip = [&] { return random() % 2 == 1; };
  for (int i = 0; i < cases; ++i) {
    Loop loop = {.trips = 1 + static_cast<int>(random() % 5)};
    for (bool* one : {&loop.reads_back, &loop.writes_back, &loop.wraps, &loop.reads_counter,
                      &loop.reads_all, &loop.row_is_right, &loop.changes_weights})
      *one = flip();
    const Model plain = parsed(text_of(loop, true)), other = parsed(text_of(loop, false));
    EXPECT_EQ(count(*single_graph(plain), Opcode::scan), 1);
    EXPECT_EQ(count(*single_graph(other), Opcode::while_), 1);
    const bool lifts = !loop.reads_all && !loop.changes_weights;
    EXPECT_EQ(count(*single_graph(plain), Opcode::dot), lifts ? 1 : 0) << text_of(loop, true);
    std::vector<Tensor> inputs;
    for (const Type type : single_graph(plain)->input_types()) {
      std::vector<double> numbers;  // whole, so that sums are exact
      for (int64_t k = type.static_elements(); k > 0; --k)
        numbers.push_back(static_cast<double>(random() % 9) - 4);
      inputs.push_back(Tensor::from_reals(type, numbers));
    }
    const std::vector<Tensor> got = evaluate_model(plain, inputs).value();
    const std::vector<Tensor> want = evaluate_model(other, inputs).value();
    for (size_t k = 0; k < want.size(); ++k)
      for (int64_t e = 0; e < want[k].elements(); ++e)
        EXPECT_EQ(got[k].real_at(e), want[k].real_at(e)) << k << text_of(loop, true);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(StablehloLoops, ThatCountBecomeScans) { check(1, 40); }
TEST(StablehloLoops, DISABLED_SweepOfLoopsThatCount) { check(2, 2000); }

// A counter that begins at 1, or goes by 2, or whose limit is computed.
TEST(StablehloLoops, ThatCountOtherwiseStay) {
  const std::string text = text_of({}, true);
  for (const auto& [from, to] :
       {std::pair<std::string_view, std::string_view>("(%i = %zero,", "(%i = %one,"),
        {"add %i, %one", "add %i, %n"},
        {"LT, %i, %n", "LT, %i, %i"}}) {
    std::string changed = text;
    const size_t at = changed.find(from);
    ASSERT_NE(at, changed.npos);
    changed.replace(at, from.size(), to);
    EXPECT_EQ(count(*single_graph(parsed(changed)), Opcode::while_), 1) << changed;
  }
}

}  // namespace
}  // namespace hone::HONE_FILE

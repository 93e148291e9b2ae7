#include <gtest/gtest.h>

#include <cmath>

#include "ir/functional.h"
#include "tests/ir/composite_testing.h"

namespace hone::tested::HONE_FILE {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

using Curve = std::function<double(double)>;

// The numbers of one problem; an Array without dims is absent.
struct Problem {
  int64_t time = 4, batch = 3, input = 2, hidden = 3, directions = 1, gates = 4;
  Array x, w, r, bias, h0, c0, peephole;
  std::vector<int64_t> lengths;
  double clip = 0;
  bool reverse = false, input_forget = false, linear_before_reset = false;
  std::vector<Curve> curves;

  Problem(int64_t gate_count, int64_t direction_count)
      : directions(direction_count), gates(gate_count) {
    x = Array::random({time, batch, input}, 1, 2);
    w = Array::random({directions, gates * hidden, input}, 2);
    r = Array::random({directions, gates * hidden, hidden}, 3);
  }
  void add_bias() { bias = Array::random({directions, 2 * gates * hidden}, 4); }
  void add_states() {
    h0 = Array::random({directions, batch, hidden}, 5);
    c0 = Array::random({directions, batch, hidden}, 6);
  }
  void add_peephole() { peephole = Array::random({directions, 3 * hidden}, 7); }
  void add_lengths() { lengths = {2, 4, 0}; }

  double clipped(double v) const { return clip > 0 ? std::min(clip, std::max(-clip, v)) : v; }
  static bool has(const Array& a) { return !a.dims().empty(); }
  std::vector<Tensor> operands(bool cell, DType lengths_type = DType::i32) const {
    auto tensor = [](const Array& a) { return has(a) ? a.tensor() : Tensor(); };
    const Tensor ends = lengths.empty()
                            ? Tensor()
                            : Tensor::from_integers(Type::get(lengths_type, {batch}), lengths);
    std::vector<Tensor> list = {x.tensor(), w.tensor(), r.tensor(), tensor(bias), ends, tensor(h0)};
    if (cell) list.insert(list.end(), {tensor(c0), tensor(peephole)});
    return list;
  }
};

struct Outcome {
  Array y, y_h, y_c;
};

// One step for one batch element: h and c are [hidden].
using Step = std::function<void(const Problem&, int64_t d, int64_t t, int64_t b,
                                std::vector<double>& h, std::vector<double>& c)>;

Outcome run(const Problem& p, const Step& step) {
  Outcome o{Array({p.time, p.directions, p.batch, p.hidden}),
            Array({p.directions, p.batch, p.hidden}), Array({p.directions, p.batch, p.hidden})};
  for (int64_t d = 0; d < p.directions; ++d) {
    const bool back = p.directions == 2 ? d == 1 : p.reverse;
    for (int64_t b = 0; b < p.batch; ++b) {
      std::vector<double> h(static_cast<size_t>(p.hidden)), c = h;
      for (int64_t k = 0; k < p.hidden; ++k) {
        if (Problem::has(p.h0)) h[static_cast<size_t>(k)] = p.h0(d, b, k);
        if (Problem::has(p.c0)) c[static_cast<size_t>(k)] = p.c0(d, b, k);
      }
      const int64_t length = p.lengths.empty() ? p.time : p.lengths[static_cast<size_t>(b)];
      for (int64_t i = 0; i < length; ++i) {
        const int64_t t = back ? length - 1 - i : i;
        step(p, d, t, b, h, c);
        for (int64_t k = 0; k < p.hidden; ++k) o.y(t, d, b, k) = h[static_cast<size_t>(k)];
      }
      for (int64_t k = 0; k < p.hidden; ++k) {
        o.y_h(d, b, k) = h[static_cast<size_t>(k)];
        o.y_c(d, b, k) = c[static_cast<size_t>(k)];
      }
    }
  }
  return o;
}

// Row `gate * hidden + k` of w x + its bias.
double input_part(const Problem& p, int64_t d, int64_t t, int64_t b, int64_t row) {
  double sum = Problem::has(p.bias) ? p.bias(d, row) : 0;
  for (int64_t i = 0; i < p.input; ++i) sum += p.w(d, row, i) * p.x(t, b, i);
  return sum;
}
// The same of r h.
double recurrent_part(const Problem& p, int64_t d, int64_t row, const std::vector<double>& h) {
  double sum = Problem::has(p.bias) ? p.bias(d, p.gates * p.hidden + row) : 0;
  for (int64_t i = 0; i < p.hidden; ++i) sum += p.r(d, row, i) * h[static_cast<size_t>(i)];
  return sum;
}

void lstm_step(const Problem& p, int64_t d, int64_t t, int64_t b, std::vector<double>& h,
               std::vector<double>& c) {
  const std::vector<double> old = h;
  for (int64_t k = 0; k < p.hidden; ++k) {
    const size_t s = static_cast<size_t>(k);
    auto gate = [&](int64_t g) {
      return input_part(p, d, t, b, g * p.hidden + k) + recurrent_part(p, d, g * p.hidden + k, old);
    };
    auto peep = [&](int64_t g) {
      return Problem::has(p.peephole) ? p.peephole(d, g * p.hidden + k) : 0;
    };
    const double i = p.curves[0](p.clipped(gate(0) + peep(0) * c[s]));
    const double f = p.input_forget ? 1 - i : p.curves[0](p.clipped(gate(2) + peep(2) * c[s]));
    c[s] = f * c[s] + i * p.curves[1](p.clipped(gate(3)));
    h[s] = p.curves[0](p.clipped(gate(1) + peep(1) * c[s])) * p.curves[2](c[s]);
  }
}

void gru_step(const Problem& p, int64_t d, int64_t t, int64_t b, std::vector<double>& h,
              std::vector<double>&) {
  std::vector<double> reset(h.size()), next(h.size());
  auto both = [&](int64_t g, int64_t k) {
    const int64_t row = g * p.hidden + k;
    return p.curves[0](p.clipped(input_part(p, d, t, b, row) + recurrent_part(p, d, row, h)));
  };
  for (int64_t k = 0; k < p.hidden; ++k)
    reset[static_cast<size_t>(k)] =
        both(1, k) * (p.linear_before_reset ? 1 : h[static_cast<size_t>(k)]);
  for (int64_t k = 0; k < p.hidden; ++k) {
    const size_t s = static_cast<size_t>(k);
    const int64_t row = 2 * p.hidden + k;
    const double inner = p.linear_before_reset ? reset[s] * recurrent_part(p, d, row, h)
                                               : recurrent_part(p, d, row, reset);
    const double candidate = p.curves[1](p.clipped(input_part(p, d, t, b, row) + inner));
    const double z = both(0, k);
    next[s] = (1 - z) * candidate + z * h[s];
  }
  h = next;
}

void rnn_step(const Problem& p, int64_t d, int64_t t, int64_t b, std::vector<double>& h,
              std::vector<double>&) {
  const std::vector<double> old = h;
  for (int64_t k = 0; k < p.hidden; ++k) {
    h[static_cast<size_t>(k)] =
        p.curves[0](p.clipped(input_part(p, d, t, b, k) + recurrent_part(p, d, k, old)));
  }
}

double hyperbolic(double x) { return std::tanh(x); }

void expect_layer(std::string_view op, const Problem& p, const Step& step, bool cell,
                  std::source_location where = std::source_location::current()) {
  ::testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()), op);
  const Outcome wanted = run(p, step);
  const std::vector<Tensor> got = run_op(op, p.operands(cell));
  ASSERT_EQ(got.size(), cell ? 3u : 2u);
  expect_near(got[0], wanted.y);
  expect_near(got[1], wanted.y_h);
  if (cell) expect_near(got[2], wanted.y_c);
}

Problem lstm_problem(int64_t directions = 1) {
  Problem p(4, directions);
  p.curves = {sigmoid, hyperbolic, hyperbolic};
  return p;
}
Problem gru_problem(int64_t directions = 1) {
  Problem p(3, directions);
  p.curves = {sigmoid, hyperbolic};
  return p;
}
Problem rnn_problem(int64_t directions = 1) {
  Problem p(1, directions);
  p.curves = {hyperbolic};
  return p;
}

// ---- Values -------------------------------------------------------------------------------------

TEST(Lstm, EachPart) {
  expect_layer("lstm", lstm_problem(), lstm_step, true);
  Problem p = lstm_problem();
  p.add_bias();
  expect_layer("lstm", p, lstm_step, true);
  p.add_states();
  expect_layer("lstm", p, lstm_step, true);
  p.add_peephole();
  expect_layer("lstm", p, lstm_step, true);
  p.add_lengths();
  expect_layer("lstm", p, lstm_step, true);
  p.reverse = true;
  expect_layer("lstm {direction = reverse}", p, lstm_step, true);
  p.input_forget = true;
  expect_layer("lstm {direction = reverse, input_forget = true}", p, lstm_step, true);
}

TEST(Lstm, BothDirections) {
  Problem p = lstm_problem(2);
  expect_layer("lstm {direction = bidirectional}", p, lstm_step, true);
  p.add_bias();
  p.add_states();
  p.add_peephole();
  p.add_lengths();
  expect_layer("lstm {direction = bidirectional}", p, lstm_step, true);
  EXPECT_EQ(difference(run_op("lstm {direction = bidirectional}", p.operands(true, DType::i64))[0],
                       run(p, lstm_step).y.tensor(), 1e-12),
            "");
}

TEST(Lstm, ClipAndActivations) {
  Problem p = lstm_problem();
  p.add_bias();
  p.clip = 0.3;
  // The clip bounds what goes into the gates alone.
  expect_layer("lstm {clip = 0.3}", p, lstm_step, true);
  p.clip = 0;
  p.curves = {[](double x) { return std::min(1.0, std::max(0.0, 0.2 * x + 0.5)); },
              [](double x) { return std::max(x, 0.0); },
              [](double x) { return x / (1 + std::abs(x)); }};
  expect_layer("lstm {activations = \"hard_sigmoid, relu, softsign\"}", p, lstm_step, true);
  p.curves = {[](double x) { return std::log(1 + std::exp(x)); },
              [](double x) { return x < 0 ? std::exp(x) - 1 : x; },
              [](double x) { return x < 0 ? 0.01 * x : x; }};
  expect_layer("lstm {activations = \"softplus,elu,leaky_relu\"}", p, lstm_step, true);
}

TEST(Lstm, ActivationsWithParameters) {
  Problem p = lstm_problem();
  p.add_bias();
  p.curves = {[](double x) { return std::min(1.0, std::max(0.0, 0.4 * x + 0.25)); },
              [](double x) { return x < 0 ? 2 * (std::exp(x) - 1) : x; },
              [](double x) { return x < 0 ? 0.3 * x : x; }};
  expect_layer("lstm {activations = \"hard_sigmoid:0.4:0.25,elu:2,leaky_relu:0.3\"}", p, lstm_step,
               true);
  p.curves = {[](double x) { return 0.5 * x + 0.125; }, [](double x) { return x >= 0.1 ? x : 0; },
              [](double x) { return 1.5 * std::tanh(0.75 * x); }};
  expect_layer(
      "lstm {activations = \"affine:0.5:0.125,thresholded_relu:0.1,scaled_tanh:1.5:0.75\"}", p,
      lstm_step, true);
  // Attributes that are not written have their default.
  p.curves = {[](double x) { return std::min(1.0, std::max(0.0, 0.4 * x + 0.5)); },
              [](double x) { return x; }, [](double x) { return std::tanh(x); }};
  expect_layer("lstm {activations = \"hard_sigmoid:0.4,affine,scaled_tanh\"}", p, lstm_step, true);
}

TEST(Gru, EachPart) {
  for (bool linear : {false, true}) {
    const std::string attributes = fmt::format("linear_before_reset = {}", linear);
    Problem p = gru_problem();
    p.linear_before_reset = linear;
    expect_layer(fmt::format("gru {{{}}}", attributes), p, gru_step, false);
    p.add_bias();
    p.h0 = Array::random({1, p.batch, p.hidden}, 5);
    p.add_lengths();
    expect_layer(fmt::format("gru {{{}}}", attributes), p, gru_step, false);
    p.reverse = true;
    p.clip = 0.4;
    expect_layer(fmt::format("gru {{{}, direction = reverse, clip = 0.4}}", attributes), p,
                 gru_step, false);
    Problem both = gru_problem(2);
    both.linear_before_reset = linear;
    both.add_bias();
    expect_layer(fmt::format("gru {{{}, direction = bidirectional}}", attributes), both, gru_step,
                 false);
  }
}

TEST(Rnn, EachPart) {
  Problem p = rnn_problem();
  expect_layer("rnn", p, rnn_step, false);
  p.add_bias();
  p.h0 = Array::random({1, p.batch, p.hidden}, 5);
  p.add_lengths();
  expect_layer("rnn", p, rnn_step, false);
  p.curves = {[](double x) { return std::max(x, 0.0); }};
  expect_layer("rnn {activations = relu}", p, rnn_step, false);
  Problem both = rnn_problem(2);
  both.add_lengths();
  expect_layer("rnn {direction = bidirectional}", both, rnn_step, false);
}

TEST(Recurrent, DifferentActivationsPerDirection) {
  const Problem p = rnn_problem(2);
  const Tensor y =
      run_op("rnn {direction = bidirectional, activations = \"tanh,relu\"}", p.operands(false))[0];
  const Array got = Array::from(y), wanted = run(p, rnn_step).y;
  Problem second = p;
  second.curves = {[](double x) { return std::max(x, 0.0); }};
  const Array rectified = run(second, rnn_step).y;
  EXPECT_NEAR(got(0, 0, 1, 1), wanted(0, 0, 1, 1), 1e-12);
  EXPECT_NEAR(got(0, 1, 1, 1), rectified(0, 1, 1, 1), 1e-12);
}

TEST(Recurrent, LengthsOutOfRangeCountAsTheNearest) {
  Problem p = lstm_problem();
  p.lengths = {-3, 100, 2};
  const std::vector<Tensor> got = run_op("lstm", p.operands(true));
  p.lengths = {0, 4, 2};
  const Outcome wanted = run(p, lstm_step);
  expect_near(got[0], wanted.y);
  expect_near(got[1], wanted.y_h);
}

TEST(Recurrent, EmptyAndSymbolicDims) {
  const std::vector<Tensor> none = run_op(
      "lstm", {Array({0, 2, 3}).tensor(), Array({1, 4, 3}).tensor(), Array({1, 4, 1}).tensor()});
  EXPECT_EQ(none[0].type(), type_of("f64[0, 1, 2, 1]"));
  expect_near(none[1], Array({1, 2, 1}));
  expect_symbolic("lstm",
                  {"f32[M, N, 3]", "f32[1, 20, 3]", "f32[1, 20, 5]", "f32[1, 40]", "i32[N]"});
  expect_symbolic("gru {direction = bidirectional}",
                  {"f32[M, N, K]", "f32[2, 15, K]", "f32[2, 15, 5]"});
  expect_symbolic("rnn", {"f32[M, N, 3]", "f32[1, K, 3]", "f32[1, K, K]"});
}

TEST(Recurrent, Errors) {
  const std::string_view x = "f32[4, 2, 3]", w = "f32[1, 20, 3]", r = "f32[1, 20, 5]";
  expect_infer_error("lstm", {"f32[2, 3]", w, r}, "x ... f32[2, 3] ... rank 2 ... rank 3");
  expect_infer_error("lstm", {x, "f32[1, 20, 4]", r}, "w is f32[1, 20, 4], want f32[1, 20, 3]");
  expect_infer_error("lstm", {x, w, "f32[1, 15, 5]"}, "r is f32[1, 15, 5], want f32[1, 20, 5]");
  expect_infer_error("lstm {direction = bidirectional}", {x, w, r},
                     "w is f32[1, 20, 3], want f32[2, 20, 3]");
  expect_infer_error("lstm", {x, w, r, "f32[1, 20]"}, "bias is f32[1, 20], want f32[1, 40]");
  expect_infer_error("lstm", {x, w, r, "", "i32[3]"}, "lengths is i32[3], want i32[2]");
  expect_infer_error("lstm", {x, w, r, "", "", "f32[1, 2, 4]"},
                     "h0 is f32[1, 2, 4], want f32[1, 2, 5]");
  expect_infer_error("lstm", {x, w, r, "", "", "", "", "f32[1, 5]"},
                     "peephole is f32[1, 5], want f32[1, 15]");
  expect_infer_error("lstm {activations = \"tanh,tanh\"}", {x, w, r}, "2 activations, want 3");
  expect_infer_error("lstm {activations = \"tanh,sin,tanh\"}", {x, w, r},
                     "no activation 'sin'; there are sigmoid");
  expect_infer_error("lstm {activations = \"tanh:1,tanh,tanh\"}", {x, w, r},
                     "'tanh:1' has 1 parameters, tanh takes 0");
  expect_infer_error("lstm {activations = \"elu:x,tanh,tanh\"}", {x, w, r}, "'x'");
  expect_infer_error("lstm {clip = -1}", {x, w, r}, "clip ... -1 ... 0 or more");
  expect_infer_error("gru", {x, "f32[1, 15, 3]", r}, "r is f32[1, 20, 5], want f32[1, 15, 5]");
}

}  // namespace
}  // namespace hone::tested::HONE_FILE

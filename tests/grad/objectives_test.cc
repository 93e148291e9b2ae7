#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "ir/functional.h"
#include "tests/grad/grad_testing.h"

// Objectives whose gradients people have derived by hand: a mixture of Gaussians, bundle
// adjustment, and an LSTM without matrices. The formulas below are loops over numbers.

namespace hone::HONE_FILE {
namespace {

using Numbers = std::vector<double>;

Numbers random_numbers(size_t count, uint64_t seed, double low = -1, double high = 1) {
  Rng rng(seed);
  Numbers all(count);
  for (double& x : all) x = rng.uniform(low, high);
  return all;
}
Tensor tensor(const Dims& dims, const Numbers& values) {
  return Tensor::from_reals(Type::get(DType::f64, dims), values);
}

void expect_gradients(const Graph& graph, std::span<const Tensor> inputs, double loss,
                      const std::vector<Numbers>& expected) {
  Mask wanted(inputs.size(), false);
  std::fill(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(expected.size()), true);
  const Result<Graph> derived = grad(graph, 0, wanted);
  ASSERT_TRUE(derived.ok()) << derived.error().to_string();
  const std::vector<Tensor> actual = evaluated(*derived, inputs);
  EXPECT_NEAR(actual[0].real_at(0), loss, 1e-10 * std::max(1.0, std::abs(loss)));
  for (size_t i = 0; i < expected.size(); ++i)
    for (size_t e = 0; e < expected[i].size(); ++e)
      EXPECT_NEAR(actual[i + 1].real_at(static_cast<int64_t>(e)), expected[i][e],
                  1e-10 * std::max(1.0, std::abs(expected[i][e])))
          << "input " << i << ", element " << e;
}

// ---- A mixture of Gaussians ---------------------------------------------------------------------

// Points x[n, d]. Each component has a weight alpha and a mean. A lower triangle with exp(q) on its
// diagonal and l below it is the root of its precision. With a prior of q and l.
struct Mixture {
  static constexpr size_t kPoints = 7, kDims = 3, kParts = 4;
  static constexpr double kGamma = 0.7, kShape = 1.5;
  Numbers alpha = random_numbers(kParts, 1), mean = random_numbers(kParts * kDims, 2),
          q = random_numbers(kParts * kDims, 3), l = random_numbers(kParts * kDims * kDims, 4),
          x = random_numbers(kPoints * kDims, 5, -2, 2);

  static bool is_below(size_t row, size_t column) { return column < row; }

  static Graph graph() {
    Builder b("mixture");
    const int64_t n = kPoints, d = kDims, k = kParts;
    const Value alpha = b.parameter("alpha", DType::f64, {k});
    const Value mean = b.parameter("mean", DType::f64, {k, d});
    const Value q = b.parameter("q", DType::f64, {k, d});
    const Value l = b.parameter("l", DType::f64, {k, d, d});
    const Value x = b.parameter("x", DType::f64, {n, d});
    const Value row = iota(b, DType::i32, {d, d}, 0), column = iota(b, DType::i32, {d, d}, 1);
    const Value below = select(broadcast_to(compare("lt", column, row), {k, d, d}), l, l * 0.0);
    const Value away = unsqueeze(x, 1) - unsqueeze(mean, 0);  // [n, k, d]
    const Value z = exp(q) * away + einsum("kij,nkj->nki", {below, away});
    const Value scores = alpha + reduce_sum(q, {1}) - 0.5 * reduce_sum(z * z, {2});
    const auto log_sum = [](Value y, int64_t axis) {
      const Value most = stop_gradient(reduce_max(y, {axis}, true));
      return log(reduce_sum(exp(y - most), {axis})) + reshape(most, {-1});
    };
    const Value fit = reduce_sum(log_sum(scores, 1), {0}) -
                      static_cast<double>(n) * reshape(log_sum(alpha, 0), {});
    const Value spread = exp(q);
    const Value prior =
        0.5 * kGamma * kGamma *
            (reduce_sum(spread * spread, {0, 1}) + reduce_sum(below * below, {0, 1, 2})) -
        kShape * reduce_sum(q, {0, 1});
    return b.finish({fit + prior}).value();
  }

  std::vector<Tensor> inputs() const {
    const int64_t n = kPoints, d = kDims, k = kParts;
    return {tensor({k}, alpha), tensor({k, d}, mean), tensor({k, d}, q), tensor({k, d, d}, l),
            tensor({n, d}, x)};
  }

  // For one point and one component: what the triangle makes of their difference.
  std::array<double, kDims> whitened(size_t i, size_t k) const {
    std::array<double, kDims> z{};
    for (size_t r = 0; r < kDims; ++r) {
      z[r] = std::exp(q[k * kDims + r]) * away(i, k, r);
      for (size_t c = 0; c < r; ++c) z[r] += l[(k * kDims + r) * kDims + c] * away(i, k, c);
    }
    return z;
  }
  double away(size_t i, size_t k, size_t c) const { return x[i * kDims + c] - mean[k * kDims + c]; }

  void check() const {
    double loss = 0, total_alpha = 0;
    std::vector<Numbers> g = {Numbers(alpha.size()), Numbers(mean.size()), Numbers(q.size()),
                              Numbers(l.size())};
    for (double a : alpha) total_alpha += std::exp(a);
    for (size_t i = 0; i < kPoints; ++i) {
      std::array<double, kParts> likely{};
      double total = 0;
      for (size_t k = 0; k < kParts; ++k) {
        double score = alpha[k];
        for (size_t r = 0; r < kDims; ++r) score += q[k * kDims + r];
        for (double z : whitened(i, k)) score -= 0.5 * z * z;
        total += likely[k] = std::exp(score);
      }
      loss += std::log(total) - std::log(total_alpha);
      for (size_t k = 0; k < kParts; ++k) add(i, k, likely[k] / total, g);
    }
    for (size_t k = 0; k < kParts; ++k) g[0][k] -= kPoints * std::exp(alpha[k]) / total_alpha;
    add_prior(loss, g);
    expect_gradients(graph(), inputs(), loss, g);
  }

  // Adds what a point gives to a component that it belongs to by `share`.
  void add(size_t i, size_t k, double share, std::vector<Numbers>& g) const {
    const std::array<double, kDims> z = whitened(i, k);
    g[0][k] += share;
    for (size_t r = 0; r < kDims; ++r) {
      const double spread = std::exp(q[k * kDims + r]);
      g[1][k * kDims + r] += share * z[r] * spread;
      g[2][k * kDims + r] += share * (1 - z[r] * spread * away(i, k, r));
      for (size_t c = 0; c < r; ++c) {
        g[1][k * kDims + c] += share * z[r] * l[(k * kDims + r) * kDims + c];
        g[3][(k * kDims + r) * kDims + c] -= share * z[r] * away(i, k, c);
      }
    }
  }

  void add_prior(double& loss, std::vector<Numbers>& g) const {
    const double half = 0.5 * kGamma * kGamma;
    for (size_t at = 0; at < q.size(); ++at) {
      loss += half * std::exp(2 * q[at]) - kShape * q[at];
      g[2][at] += 2 * half * std::exp(2 * q[at]) - kShape;
    }
    for (size_t at = 0; at < l.size(); ++at) {
      if (!is_below(at / kDims % kDims, at % kDims)) continue;
      loss += half * l[at] * l[at];
      g[3][at] += 2 * half * l[at];
    }
  }
};

TEST(Objectives, MixtureOfGaussians) { Mixture().check(); }

// ---- Bundle adjustment --------------------------------------------------------------------------

// A number and its change along one direction.
struct Dual {
  double value = 0;
  double slope = 0;
};
Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.slope + b.slope}; }
Dual operator-(Dual a, Dual b) { return {a.value - b.value, a.slope - b.slope}; }
Dual operator*(Dual a, Dual b) {
  return {a.value * b.value, a.slope * b.value + a.value * b.slope};
}
Dual operator/(Dual a, Dual b) {
  const double ratio = a.value / b.value;
  return {ratio, (a.slope - ratio * b.slope) / b.value};
}

// A camera: rotation r (an axis times an angle), center c, focal length f, principal point p,
// distortion k. The loss is half the square of how far from `seen` it sees the point.
constexpr int64_t kCamera = 11;

Graph projection() {
  Builder b("projection");
  const Value camera = b.parameter("camera", DType::f64, {kCamera});
  const Value point = b.parameter("point", DType::f64, {3});
  const Value weight = b.parameter("weight", DType::f64, {});
  const Value seen = b.parameter("seen", DType::f64, {2});
  const auto part = [&](int64_t from, int64_t to) { return slice(camera, 0, from, to); };
  const auto at = [](Value v, int64_t i) { return reshape(slice(v, 0, i, i + 1), {}); };
  const Value r = part(0, 3);
  const Value angle = sqrt(reduce_sum(r * r, {0}));
  const Value axis = r / angle;
  const Value x = point - part(3, 6);
  const auto other = [&](Value v, int64_t i) { return at(v, i % 3); };
  std::vector<Value> crossed;
  for (int64_t i = 0; i < 3; ++i)
    crossed.push_back(
        unsqueeze(other(axis, i + 1) * other(x, i + 2) - other(axis, i + 2) * other(x, i + 1), 0));
  const Value turned = x * unary(Opcode::cos, angle) +
                       concat(crossed, 0) * unary(Opcode::sin, angle) +
                       axis * (reduce_sum(axis * x, {0}) * (1.0 - unary(Opcode::cos, angle)));
  const Value flat = slice(turned, 0, 0, 2) / at(turned, 2);
  const Value square = reduce_sum(flat * flat, {0});
  const Value bent = flat * (1.0 + at(camera, 9) * square + at(camera, 10) * (square * square));
  const Value error = weight * (bent * at(camera, 6) + part(7, 9) - seen);
  return b.finish({0.5 * reduce_sum(error * error, {0})}).value();
}

struct Projection {
  std::array<Dual, kCamera> camera;
  std::array<Dual, 3> point;
  Dual weight;
  std::array<double, 2> seen;

  Dual loss() const {
    // The angle turns by what the rotation changes along the axis, the axis by the rest.
    Dual angle;
    for (size_t i = 0; i < 3; ++i) angle.value += camera[i].value * camera[i].value;
    angle.value = std::sqrt(angle.value);
    for (size_t i = 0; i < 3; ++i) angle.slope += camera[i].value * camera[i].slope / angle.value;
    std::array<Dual, 3> axis, x, turned;
    for (size_t i = 0; i < 3; ++i) {
      const double a = camera[i].value / angle.value;
      axis[i] = {a, (camera[i].slope - a * angle.slope) / angle.value};
      x[i] = point[i] - camera[3 + i];
    }
    const Dual cosine = {std::cos(angle.value), -std::sin(angle.value) * angle.slope};
    const Dual sine = {std::sin(angle.value), std::cos(angle.value) * angle.slope};
    const Dual along = axis[0] * x[0] + axis[1] * x[1] + axis[2] * x[2];
    for (size_t i = 0; i < 3; ++i) {
      const size_t j = (i + 1) % 3, k = (i + 2) % 3;
      turned[i] = x[i] * cosine + (axis[j] * x[k] - axis[k] * x[j]) * sine +
                  axis[i] * along * (Dual{1} - cosine);
    }
    const Dual u = turned[0] / turned[2], v = turned[1] / turned[2];
    const Dual square = u * u + v * v;
    const Dual bend = Dual{1} + camera[9] * square + camera[10] * square * square;
    const Dual left = weight * (u * bend * camera[6] + camera[7] - Dual{seen[0]});
    const Dual down = weight * (v * bend * camera[6] + camera[8] - Dual{seen[1]});
    return Dual{0.5} * (left * left + down * down);
  }
};

TEST(Objectives, BundleAdjustment) {
  const Graph graph = projection();
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const Numbers camera = random_numbers(kCamera, seed, 0.1, 0.9);
    const Numbers point = random_numbers(3, seed + 10, 2, 4);
    const Numbers rest = random_numbers(3, seed + 20, 0.2, 1);
    Projection one;
    for (size_t i = 0; i < camera.size(); ++i) one.camera[i].value = camera[i];
    for (size_t i = 0; i < 3; ++i) one.point[i].value = point[i];
    one.weight.value = rest[0];
    one.seen = {rest[1], rest[2]};
    const auto along = [&](Dual& number) {
      number.slope = 1;
      const double slope = one.loss().slope;
      number.slope = 0;
      return slope;
    };
    std::vector<Numbers> expected(3);
    for (Dual& number : one.camera) expected[0].push_back(along(number));
    for (Dual& number : one.point) expected[1].push_back(along(number));
    expected[2].push_back(along(one.weight));
    expect_gradients(graph,
                     std::vector<Tensor>{tensor({kCamera}, camera), tensor({3}, point),
                                         tensor({}, {rest[0]}), tensor({2}, {rest[1], rest[2]})},
                     one.loss().value, expected);
  }
}

// ---- LSTM ---------------------------------------------------------------------------------------

// Gates see their own unit alone: of each unit, weights of input and state and a bias for the
// gates forget, in, out and change. The loss is the sum of squares of what the states lack.
struct Lstm {
  static constexpr size_t kSteps = 6, kUnits = 3, kGates = 4;
  Numbers of_input = random_numbers(kGates * kUnits, 1),
          of_state = random_numbers(kGates * kUnits, 2), bias = random_numbers(kGates * kUnits, 3),
          x = random_numbers(kSteps * kUnits, 4), wanted = random_numbers(kSteps * kUnits, 5);

  static Graph graph() {
    Builder b("lstm");
    const int64_t t = kSteps, u = kUnits, g = kGates;
    const Value of_input = b.parameter("of_input", DType::f64, {g, u});
    const Value of_state = b.parameter("of_state", DType::f64, {g, u});
    const Value bias = b.parameter("bias", DType::f64, {g, u});
    const Value x = b.parameter("x", DType::f64, {t, u});
    const Value wanted = b.parameter("wanted", DType::f64, {t, u});
    const Value zero = b.full(DType::f64, {u}, 0);
    const std::vector<Value> initial = {zero, zero, of_input, of_state, bias};
    const std::vector<Value> scanned = {x};
    const Value states = scan(initial, scanned, [&](Builder&, std::span<const Value> in) {
      const Value sums = in[2] * in[5] + in[3] * in[0] + in[4];
      const auto gate = [&](int64_t i) { return reshape(slice(sums, 0, i, i + 1), {u}); };
      const Value cell = logistic(gate(0)) * in[1] + logistic(gate(1)) * tanh(gate(3));
      const Value state = logistic(gate(2)) * tanh(cell);
      return std::vector<Value>{state, cell, in[2], in[3], in[4], state};
    })[5];
    const Value lack = states - wanted;
    return b.finish({reduce_sum(lack * lack, {0, 1})}).value();
  }

  static double logistic_of(double y) { return 1 / (1 + std::exp(-y)); }

  // One unit, forwards and backwards through time.
  double unit(size_t u, std::vector<Numbers>& g) const {
    std::array<std::array<double, kGates>, kSteps> gates{};
    std::array<double, kSteps + 1> state{}, cell{};
    double loss = 0;
    for (size_t t = 0; t < kSteps; ++t) {
      for (size_t i = 0; i < kGates; ++i) {
        const size_t at = i * kUnits + u;
        const double sum = of_input[at] * x[t * kUnits + u] + of_state[at] * state[t] + bias[at];
        gates[t][i] = i == 3 ? std::tanh(sum) : logistic_of(sum);
      }
      cell[t + 1] = gates[t][0] * cell[t] + gates[t][1] * gates[t][3];
      state[t + 1] = gates[t][2] * std::tanh(cell[t + 1]);
      loss += std::pow(state[t + 1] - wanted[t * kUnits + u], 2);
    }
    double of_next_state = 0, of_next_cell = 0;
    for (size_t t = kSteps; t-- > 0;) {
      const auto& [forget, in, out, change] = gates[t];
      const double bent = std::tanh(cell[t + 1]);
      const double h = of_next_state + 2 * (state[t + 1] - wanted[t * kUnits + u]);
      const double c = of_next_cell + h * out * (1 - bent * bent);
      const std::array<double, kGates> sums = {
          c * cell[t] * forget * (1 - forget), c * change * in * (1 - in),
          h * bent * out * (1 - out), c * in * (1 - change * change)};
      of_next_state = 0;
      for (size_t i = 0; i < kGates; ++i) {
        const size_t at = i * kUnits + u;
        g[0][at] += sums[i] * x[t * kUnits + u];
        g[1][at] += sums[i] * state[t];
        g[2][at] += sums[i];
        of_next_state += sums[i] * of_state[at];
        g[3][t * kUnits + u] += sums[i] * of_input[at];
      }
      of_next_cell = c * forget;
    }
    return loss;
  }

  void check() const {
    std::vector<Numbers> g(3, Numbers(of_input.size()));
    g.emplace_back(x.size());
    double loss = 0;
    for (size_t u = 0; u < kUnits; ++u) loss += unit(u, g);
    const int64_t t = kSteps, units = kUnits, gates = kGates;
    expect_gradients(
        graph(),
        std::vector<Tensor>{tensor({gates, units}, of_input), tensor({gates, units}, of_state),
                            tensor({gates, units}, bias), tensor({t, units}, x),
                            tensor({t, units}, wanted)},
        loss, g);
  }
};

TEST(Objectives, LstmThroughTime) { Lstm().check(); }

}  // namespace
}  // namespace hone::HONE_FILE

#include <algorithm>
#include <cmath>

#include "ir/reference/evaluate.h"
#include "prove/verify.h"
#include "rules/sizes.h"

namespace hone {
namespace {

// The numbers of inputs.
enum class Magnitudes : uint8_t { normal, wide, large, zeros, nan };

double number_of(Magnitudes magnitudes, Rng& rng) {
  switch (magnitudes) {
    case Magnitudes::normal: return rng.normal();
    case Magnitudes::wide: return std::ldexp(rng.normal(), static_cast<int>(rng.between(-20, 20)));
    case Magnitudes::large: return rng.uniform(-100, 100);
    case Magnitudes::zeros: return rng.chance(0.4) ? 0 : rng.normal();
    case Magnitudes::nan: return rng.chance(0.1) ? std::nan("") : rng.normal();
  }
  return 0;
}

std::vector<Tensor> inputs_of(const Graph& graph, Magnitudes magnitudes, Rng& rng) {
  std::vector<Tensor> inputs;
  for (Type type : graph.input_types()) {
    std::vector<double> numbers;
    for (int64_t i = 0; i < type.static_elements(); ++i) {
      const double number = number_of(magnitudes, rng);
      numbers.push_back(type.dtype() == DType::boolean ? number > 0 : number);
    }
    inputs.push_back(Tensor::from_reals(type, numbers));
  }
  return inputs;
}

struct Outcome {
  bool same_bits = true;
  bool same_nan = true;
  bool finite = true;  // wherever the left side is
  double left_error = 0, right_error = 0, scale = 0;
};

Result<Outcome> outcome_of(const RuleSides& sides, Magnitudes magnitudes, Rng& rng) {
  const std::vector<Tensor> inputs = inputs_of(sides.left, magnitudes, rng);
  const EvalOptions fp32 = {.numerics = Numerics::fp32};
  const EvalOptions wide = {.numerics = Numerics::wide, .real_outputs_as_f64 = true};
  const std::vector<Tensor> left = HONE_TRY(evaluate(sides.left, inputs, fp32));
  const std::vector<Tensor> right = HONE_TRY(evaluate(sides.right, inputs, fp32));
  const std::vector<Tensor> exact = HONE_TRY(evaluate(sides.left, inputs, wide));
  const std::vector<Tensor> exact_right = HONE_TRY(evaluate(sides.right, inputs, wide));
  Outcome outcome;
  for (size_t o = 0; o < left.size(); ++o) {
    for (int64_t i = 0; i < left[o].elements(); ++i) {
      const double a = left[o].real_at(i), b = right[o].real_at(i), c = exact[o].real_at(i);
      // Plain arithmetic multiplies padding, and wide arithmetic skips it.
      const bool same_nan =
          std::isnan(a) == std::isnan(b) && std::isnan(c) == std::isnan(exact_right[o].real_at(i));
      outcome.same_nan = outcome.same_nan && same_nan;
      const bool same =
          (a == b && std::signbit(a) == std::signbit(b)) || (std::isnan(a) && std::isnan(b));
      outcome.same_bits = outcome.same_bits && same;
      if (!std::isfinite(a) || !std::isfinite(c)) continue;
      if (!std::isfinite(b)) {
        outcome.finite = false;
        continue;
      }
      outcome.left_error = std::max(outcome.left_error, std::abs(a - c));
      outcome.right_error = std::max(outcome.right_error, std::abs(b - c));
      outcome.scale = std::max(outcome.scale, std::abs(c));
    }
  }
  return outcome;
}

}  // namespace

Result<FloatTest> test_floats(const Rule& rule, uint64_t seed) {
  Rng rng(seed);
  FloatTest test = {.effect = FloatEffect::exact, .fault = ""};
  constexpr std::pair<Magnitudes, std::string_view> kClasses[] = {
      {Magnitudes::normal, "normal inputs"},
      {Magnitudes::wide, "inputs of many magnitudes"},
      {Magnitudes::large, "inputs up to 100"},
      {Magnitudes::zeros, "inputs with zeros"},
      {Magnitudes::nan, "inputs with NaN"}};
  for (const Bindings& sizes : distinct_sizes(rule, 2, rng)) {
    const RuleSides sides = HONE_TRY(at_sizes(rule, sizes));
    for (const auto& [magnitudes, name] : kClasses) {
      for (int again = 0; again < 4; ++again) {
        const Outcome outcome = HONE_TRY(outcome_of(sides, magnitudes, rng));
        // As large as that of the left side, or a few roundings of the largest result.
        const double allowed = 4 * outcome.left_error + 16 * 0x1p-24 * outcome.scale;
        const bool is_nan_test = magnitudes == Magnitudes::nan;
        std::string_view fault;
        if (!outcome.finite && !is_nan_test)
          fault = "overflows or gives NaN";
        else if (outcome.right_error > allowed && !is_nan_test)
          fault = "is less accurate";
        if (!fault.empty())
          return FloatTest{FloatEffect::real_only,
                           fmt::format("the right side {} on {}", fault, name)};
        if (is_nan_test && !outcome.same_nan)
          test = {FloatEffect::finite_only, "the right side has other elements NaN"};
        if (!outcome.same_bits) test.effect = std::max(test.effect, FloatEffect::reassociates);
      }
    }
  }
  return test;
}

Result<std::optional<Counterexample>> test_reals(const Rule& rule, const VerifyOptions& options) {
  constexpr int kTests = 8;
  constexpr double kTolerance = 1e-9;
  Rng rng(options.seed);
  std::vector<Bindings> tested = distinct_sizes(rule, options.sizes, rng);
  for (Bindings& sizes : small_sizes(rule, 1, 1)) tested.push_back(std::move(sizes));
  for (const Bindings& sizes : tested) {
    const RuleSides sides = HONE_TRY(at_sizes(rule, sizes));
    for (int test = 0; test < kTests; ++test) {
      const std::vector<Tensor> inputs = inputs_of(sides.left, Magnitudes::normal, rng);
      const EvalOptions wide = {.numerics = Numerics::wide, .real_outputs_as_f64 = true};
      const std::vector<Tensor> left = HONE_TRY(evaluate(sides.left, inputs, wide));
      const std::vector<Tensor> right = HONE_TRY(evaluate(sides.right, inputs, wide));
      for (size_t o = 0; o < left.size(); ++o)
        for (int64_t i = 0; i < left[o].elements(); ++i) {
          const double a = left[o].real_at(i), b = right[o].real_at(i);
          if (std::abs(a - b) <= kTolerance * (1 + std::abs(a))) continue;
          return std::optional(counterexample_at(sides, sizes, o, static_cast<size_t>(i)));
        }
    }
  }
  return std::optional<Counterexample>();
}

}  // namespace hone

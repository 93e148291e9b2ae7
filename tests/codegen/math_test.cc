#include "codegen/math/functions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/thread_pool.h"
#include "codegen/math/cost.h"
#include "codegen/math/evaluate.h"
#include "codegen/math/host.h"

namespace hone::math::HONE_FILE {
namespace {

constexpr Opcode kFunctions[] = {
#define HONE_MATH(name, operands, how, exact) Opcode::name,
    HONE_MATH_FUNCTIONS(HONE_MATH)
#undef HONE_MATH
};

template <class T>
double promised_ulps(Opcode opcode) {
  if (opcode == Opcode::round || opcode == Opcode::rem) return 0;
  return sizeof(T) == 4 ? 2 : 4;
}

template <class T>
void expect_accurate(Opcode opcode, const Accuracies& worst) {
  const double promised = promised_ulps<T>(opcode);
  EXPECT_LE(worst.fused.ulps, promised) << "fused, at " << worst.fused.x << ", " << worst.fused.y;
  EXPECT_LE(worst.plain.ulps, promised) << "plain, at " << worst.plain.x << ", " << worst.plain.y;
}

// Numbers where formulas change or meaning does, and their neighbours, of both signs.
template <class T>
std::vector<T> special_numbers() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> numbers = {Limits::quiet_NaN(), -Limits::quiet_NaN()};
  const double pi = 3.14159265358979323846;
  std::vector<double> centers = {0,
                                 0.5,
                                 1,
                                 2,
                                 3,
                                 4,
                                 6,
                                 10,
                                 22,
                                 88.72,
                                 103.97,
                                 709.78,
                                 710.47,
                                 745.13,
                                 pi / 8,
                                 pi / 4,
                                 pi / 2,
                                 pi,
                                 1.5 * pi,
                                 2 * pi,
                                 1e6 * pi,
                                 std::log(2.0) / 2,
                                 std::log(2.0),
                                 std::sqrt(0.5),
                                 std::sqrt(2.0),
                                 std::sqrt(2.0) - 1,
                                 std::sqrt(2.0) + 1,
                                 0.55,
                                 0.8359375,
                                 0.875,
                                 9.1,
                                 6381956970095103.0 * 0x1p797,  // the closest to a multiple of pi/2
                                 Limits::denorm_min(),
                                 Limits::min(),
                                 Limits::max(),
                                 Limits::infinity()};
  for (int exponent = Limits::min_exponent; exponent < Limits::max_exponent;
       exponent += sizeof(T) == 4 ? 7 : 61)
    centers.push_back(std::ldexp(1.0, exponent));
  for (double center : centers) {
    for (int step = -4; step <= 4; ++step) {
      T near = std::bit_cast<T>(std::bit_cast<BitsOf<T>>(static_cast<T>(center)) + step);
      numbers.push_back(near);
      numbers.push_back(-near);
    }
  }
  return numbers;
}

// Numbers of all magnitudes, but with most where functions have interesting values.
template <class T>
T random_number(Rng& rng, const std::vector<T>& special) {
  switch (rng.below(8)) {
    case 0:
    case 1: return std::bit_cast<T>(static_cast<BitsOf<T>>(rng.next()));
    case 2: return rng.pick(special);
    case 3: return static_cast<T>(rng.between(-200, 200));
    case 4:
      return static_cast<T>(1 + std::ldexp(rng.uniform(-1, 1), -static_cast<int>(rng.below(53))));
    case 5:
      return static_cast<T>(std::ldexp(rng.uniform(-1, 1), static_cast<int>(rng.between(-40, 40))));
    case 6: return static_cast<T>(rng.uniform(-20, 20));
    default: return static_cast<T>(rng.uniform(-2, 2));
  }
}

template <class T>
Accuracies measure_random(Opcode opcode, int count, uint64_t seed, const std::vector<T>& special) {
  Rng rng(seed);
  std::vector<T> x, y;
  for (int i = 0; i < count; ++i) {
    x.push_back(random_number(rng, special));
    if (operands_of(opcode) == 1) continue;
    y.push_back(random_number(rng, special));
    if (opcode == Opcode::pow && rng.chance(0.5)) {  // results that are neither zero nor infinite
      const double highest = sizeof(T) == 4 ? 104 : 746;
      x.back() = std::fabs(x.back());
      y.back() = static_cast<T>(rng.uniform(-highest, highest) / std::log(double{x.back()}));
    }
  }
  return measure(opcode, x, y);
}

// The error of each special number, or of pairs of them.
template <class T>
Accuracies measure_special(Opcode opcode, const std::vector<T>& special) {
  if (operands_of(opcode) == 1) return measure(opcode, special, {});
  Accuracies worst;
  for (size_t i = 0; i < special.size(); i += 11)
    worst.include(measure(opcode, std::vector<T>(special.size(), special[i]), special));
  return worst;
}

// The largest of `blocks` independent measurements.
template <class Measure>
Accuracies measure_blocks(int64_t blocks, const Measure& measure_block) {
  std::mutex mutex;
  Accuracies worst;
  default_pool().parallel_for(0, blocks, 1, [&](int64_t from, int64_t to) {
    for (int64_t block = from; block < to; ++block) {
      const Accuracies accuracies = measure_block(block);
      std::lock_guard lock(mutex);
      worst.include(accuracies);
    }
  });
  return worst;
}

// Every stride-th of all numbers of f32.
Accuracies measure_all_f32(Opcode opcode, int64_t stride) {
  constexpr int64_t kBlock = int64_t{1} << 16;
  const int64_t count = (int64_t{1} << 32) / stride;
  return measure_blocks((count + kBlock - 1) / kBlock, [&](int64_t block) {
    std::vector<float> x;
    for (int64_t i = block * kBlock; i < std::min(count, (block + 1) * kBlock); ++i)
      x.push_back(std::bit_cast<float>(static_cast<uint32_t>(i * stride)));
    return measure(opcode, x, {});
  });
}

class MathFunctions : public testing::TestWithParam<Opcode> {};
INSTANTIATE_TEST_SUITE_P(All, MathFunctions, testing::ValuesIn(kFunctions),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST_P(MathFunctions, F32IsWithinTwoUlps) {
  const std::vector<float> special = special_numbers<float>();
  Accuracies worst = measure_special(GetParam(), special);
  worst.include(measure_random(GetParam(), 20'000, 1, special));
  if (operands_of(GetParam()) == 1) worst.include(measure_all_f32(GetParam(), 5003));
  expect_accurate<float>(GetParam(), worst);
}

TEST_P(MathFunctions, F64IsWithinFourUlps) {
  const std::vector<double> special = special_numbers<double>();
  Accuracies worst = measure_special(GetParam(), special);
  worst.include(measure_random(GetParam(), 10'000, 2, special));
  expect_accurate<double>(GetParam(), worst);
}

template <class T>
void report(Opcode opcode, const Accuracies& worst) {
  expect_accurate<T>(opcode, worst);
  fmt::print("{:8} f{}  fused {:.3f} ulp at ({}, {}), plain {:.3f} ulp at ({}, {})\n", name(opcode),
             8 * sizeof(T), worst.fused.ulps, worst.fused.x, worst.fused.y, worst.plain.ulps,
             worst.plain.x, worst.plain.y);
  std::fflush(stdout);
}

// All 2^32 numbers, or 50 million pairs.
TEST_P(MathFunctions, DISABLED_SweepF32) {
  const std::vector<float> special = special_numbers<float>();
  Accuracies worst = measure_special(GetParam(), special);
  if (operands_of(GetParam()) == 1) {
    worst.include(measure_all_f32(GetParam(), 1));
  } else {
    worst.include(measure_blocks(
        500, [&](int64_t seed) { return measure_random(GetParam(), 100'000, seed, special); }));
  }
  report<float>(GetParam(), worst);
}

TEST_P(MathFunctions, DISABLED_SweepF64) {
  const std::vector<double> special = special_numbers<double>();
  Accuracies worst = measure_special(GetParam(), special);
  worst.include(measure_blocks(
      100, [&](int64_t seed) { return measure_random(GetParam(), 100'000, seed, special); }));
  report<double>(GetParam(), worst);
}

// Several lanes at once: what an emitter of vectors does.
template <size_t lanes>
struct Lanes {
  static constexpr bool kFused = false;
  template <class T>
  using Value = std::array<T, lanes>;
  using Mask = std::array<bool, lanes>;

  template <class T>
  Value<T> constant(T number) {
    Value<T> result;
    result.fill(number);
    return result;
  }
  template <Step step, class T, class First, class... Rest>
  auto take(const First& first, const Rest&... rest) {
    Host<false> host;
    std::array<decltype(host.take<step, T>(first[0], rest[0]...)), lanes> result;
    for (size_t i = 0; i < lanes; ++i) result[i] = host.take<step, T>(first[i], rest[i]...);
    return result;
  }
  template <class T, size_t N, class Condition, class Body>
  std::array<Value<T>, N> repeat(std::array<Value<T>, N> state, Condition condition, Body body) {
    for (;;) {
      Mask more = condition(state);
      bool some = false;
      for (bool lane : more) some |= lane;
      if (!some) return state;
      state = body(state);
    }
  }
};

// The same bits, but for those of NaN.
template <class T>
void expect_same(T a, T b) {
  if (std::isnan(a) && std::isnan(b)) return;
  EXPECT_EQ(std::bit_cast<BitsOf<T>>(a), std::bit_cast<BitsOf<T>>(b)) << a << " and " << b;
}

template <class T>
void check_lanes(Opcode opcode) {
  constexpr size_t kLanes = 4;
  Rng rng(3);
  const std::vector<T> special = special_numbers<T>();
  for (int trial = 0; trial < 200; ++trial) {
    std::array<T, kLanes> x, y;
    for (T& number : x) number = random_number(rng, special);
    for (T& number : y) number = random_number(rng, special);
    Lanes<kLanes> algebra;
    Number<Lanes<kLanes>, T> a = {&algebra, x}, b = {&algebra, y};
    const bool unary = operands_of(opcode) == 1;
    std::array<T, kLanes> result = (unary ? apply(opcode, a) : apply(opcode, a, b)).value;
    std::array<T, kLanes> expected;
    evaluate(opcode, false, x, unary ? std::span<const T>() : y, expected);
    for (size_t i = 0; i < kLanes; ++i) expect_same(result[i], expected[i]);
  }
}

TEST_P(MathFunctions, LanesDoNotDisturbEachOther) {
  check_lanes<float>(GetParam());
  check_lanes<double>(GetParam());
}

// The hot functions stay in f32; only those of many digits are long.
TEST_P(MathFunctions, StepsAreCounted) {
  const StepCounts f32 = count_steps(GetParam(), DType::f32);
  const StepCounts f64 = count_steps(GetParam(), DType::f64);
  EXPECT_EQ(f64.in_32[static_cast<size_t>(Step::add)], 0);
  EXPECT_GT(f64.total_64(), 0);
  EXPECT_LE(f32.total_32() + f32.total_64(), 100);
  for (Opcode hot :
       {Opcode::exp, Opcode::expm1, Opcode::log, Opcode::tanh, Opcode::logistic, Opcode::erf}) {
    if (hot == GetParam()) EXPECT_EQ(f32.total_64(), 0);
  }
}

TEST(Math, OtherOpsAreNotFunctionsOfIt) {
  EXPECT_EQ(operands_of(Opcode::add), 0);
  EXPECT_EQ(operands_of(Opcode::is_nan), 0);
  EXPECT_EQ(operands_of(Opcode::exp), 1);
  EXPECT_EQ(operands_of(Opcode::pow), 2);
}

// The other tests rely on this: wrong results are seen.
TEST(Math, ErrorsAreMeasured) {
  const float one[] = {1};
  float result[1];
  evaluate(Opcode::exp, true, one, {}, result);
  EXPECT_EQ(result[0], 0x1.5bf0a8p+1f);
  // e lies between two numbers, so some error is left.
  EXPECT_GT(measure(Opcode::exp, one, {}).fused.ulps, 0.01);
  EXPECT_EQ(measure(Opcode::round, one, {}).fused.ulps, 0);
}

}  // namespace
}  // namespace hone::math::HONE_FILE

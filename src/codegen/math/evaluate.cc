#include "codegen/math/evaluate.h"

#include <cmath>
#include <vector>

#include "base/error.h"
#include "codegen/math/functions.h"
#include "codegen/math/host.h"

namespace hone::math {

namespace {

template <bool fused, class T>
inline void evaluate_each(Opcode opcode, std::span<const T> x, std::span<const T> y,
                          std::span<T> result) {
  Host<fused> host;
  const T* a = x.data();
  const T* b = y.data();
  T* r = result.data();
  const size_t size = result.size();
  using N = Number<Host<fused>, T>;
#define HONE_MATH(name, operands, how, exact)                             \
  if (opcode == Opcode::name) {                                           \
    for (size_t i = 0; i < size; ++i) {                                   \
      if constexpr (operands == 1)                                        \
        r[i] = apply(Opcode::name, N{&host, a[i]}).value;                 \
      else                                                                \
        r[i] = apply(Opcode::name, N{&host, a[i]}, N{&host, b[i]}).value; \
    }                                                                     \
    return;                                                               \
  }
  HONE_MATH_FUNCTIONS(HONE_MATH)
#undef HONE_MATH
  HONE_CHECK(false, "{} is no function of the vector math", name(opcode));
}

bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has;
}

// Inlined functions are compiled for the same instructions.
template <bool fused, class T>
[[gnu::flatten, gnu::target("avx2,fma")]] void evaluate_avx2(Opcode opcode, std::span<const T> x,
                                                             std::span<const T> y,
                                                             std::span<T> result) {
  evaluate_each<fused>(opcode, x, y, result);
}
template <bool fused, class T>
[[gnu::flatten]] void evaluate_anywhere(Opcode opcode, std::span<const T> x, std::span<const T> y,
                                        std::span<T> result) {
  evaluate_each<fused>(opcode, x, y, result);
}

template <bool fused, class T>
void evaluate_fused(Opcode opcode, std::span<const T> x, std::span<const T> y,
                    std::span<T> result) {
  if (has_avx2())
    evaluate_avx2<fused>(opcode, x, y, result);
  else
    evaluate_anywhere<fused>(opcode, x, y, result);
}

template <class R>
R exact_logistic(R x) {
  if (x >= 0) return 1 / (1 + std::exp(-x));
  R e = std::exp(x);
  return e / (1 + e);
}

// The exact functions, as R computes them.
template <class R, class T>
std::vector<R> exact(Opcode opcode, std::span<const T> xs, std::span<const T> ys) {
  std::vector<R> result(xs.size());
#define HONE_MATH(name, operands, how, formula)                     \
  if (opcode == Opcode::name) {                                     \
    for (size_t i = 0; i < xs.size(); ++i) {                        \
      const R x(xs[i]);                                             \
      [[maybe_unused]] const R y = operands == 2 ? R(ys[i]) : R(0); \
      result[i] = formula;                                          \
    }                                                               \
    return result;                                                  \
  }
  HONE_MATH_FUNCTIONS(HONE_MATH)
#undef HONE_MATH
  HONE_CHECK(false, "{} is no function of the vector math", name(opcode));
}

// A unit in the last place of the format at a number.
inline double unit_of_f32(double at) {
  const int64_t fraction = (int64_t{1} << 52) - 1;
  const int64_t least = int64_t{1023 - 126} << 52;
  int64_t exponent = std::bit_cast<int64_t>(at) & ~fraction;
  return std::bit_cast<double>(std::max(exponent, least) - (int64_t{23} << 52));
}
inline long double unit_of_f64(long double at) {
  return std::ldexp(1.0L, std::max(std::ilogb(at), -1022) - 52);
}

// Without branches, for the sake of the sweep over all numbers of f32.
template <class T, class R>
inline double error_in_ulps(T result, R exact) {
  // Infinite results of finite exact ones count as the first number that there is not.
  constexpr R infinity = std::numeric_limits<R>::infinity();
  constexpr R highest = std::numeric_limits<T>::max();
  constexpr R above = R(4) / std::numeric_limits<T>::min();
  R exact_size = std::fabs(exact);
  R result_size = std::fabs(R(result));
  R from = exact_size < above ? exact_size : above;
  R to = result_size < above ? result_size : above;
  R clipped = from < highest ? from : highest;
  R unit = 0;
  if constexpr (sizeof(T) == 4)
    unit = unit_of_f32(clipped);
  else
    unit = unit_of_f64(clipped);
  double error = static_cast<double>(std::fabs(to - from) / unit);
  bool result_nan = result != result;
  bool exact_nan = exact != exact;
  bool signs = std::signbit(result) != std::signbit(exact);
  bool infinite = (exact_size == infinity) & (result_size != infinity);
  bool zero = (exact_size == 0) & (result_size != 0);
  bool wrong = (result_nan != exact_nan) | (!exact_nan & (signs | infinite | zero));
  error = wrong ? std::numeric_limits<double>::infinity() : error;
  return (exact_nan & !wrong) ? 0 : error;
}

// Looks for the highest error first, and for its place only where it beats the others. The bits of
// positive numbers are ordered as the numbers are, and compilers take the maximum of whole vectors.
template <class T, class R>
inline int64_t highest_error_bits(const T* result, const R* exact, size_t count) {
  int64_t highest = 0;
  for (size_t i = 0; i < count; ++i)
    highest = std::max(highest, std::bit_cast<int64_t>(error_in_ulps(result[i], exact[i])));
  return highest;
}

template <class T, class R>
[[gnu::flatten, gnu::target("avx2,fma")]] int64_t highest_error_bits_avx2(const T* result,
                                                                          const R* exact,
                                                                          size_t count) {
  return highest_error_bits(result, exact, count);
}

template <class T, class R>
Accuracy worst_of(std::span<const T> x, std::span<const T> y, const std::vector<T>& result,
                  const std::vector<R>& exact) {
  Accuracy worst;
  constexpr size_t kPart = 1024;
  for (size_t from = 0; from < x.size(); from += kPart) {
    const size_t to = std::min(from + kPart, x.size());
    const double highest = std::bit_cast<double>(
        has_avx2() ? highest_error_bits_avx2(&result[from], &exact[from], to - from)
                   : highest_error_bits(&result[from], &exact[from], to - from));
    for (size_t i = from; i < to && worst.ulps < highest; ++i) {
      const double ulps = error_in_ulps(result[i], exact[i]);
      if (ulps == highest) worst = {ulps, x[i], y.empty() ? T(0) : y[i]};
    }
  }
  return worst;
}

template <class R, class T>
Accuracies measure_in(Opcode opcode, std::span<const T> x, std::span<const T> y) {
  const std::vector<R> right = exact<R>(opcode, x, y);
  std::vector<T> fused(x.size());
  std::vector<T> plain(x.size());
  evaluate(opcode, true, x, y, fused);
  evaluate(opcode, false, x, y, plain);
  return {worst_of(x, y, fused, right), worst_of(x, y, plain, right)};
}

}  // namespace

void evaluate(Opcode opcode, bool fused, std::span<const float> x, std::span<const float> y,
              std::span<float> result) {
  fused ? evaluate_fused<true>(opcode, x, y, result) : evaluate_fused<false>(opcode, x, y, result);
}
void evaluate(Opcode opcode, bool fused, std::span<const double> x, std::span<const double> y,
              std::span<double> result) {
  fused ? evaluate_fused<true>(opcode, x, y, result) : evaluate_fused<false>(opcode, x, y, result);
}

Accuracies measure(Opcode opcode, std::span<const float> x, std::span<const float> y) {
  return measure_in<double>(opcode, x, y);
}
Accuracies measure(Opcode opcode, std::span<const double> x, std::span<const double> y) {
  return measure_in<long double>(opcode, x, y);
}

}  // namespace hone::math

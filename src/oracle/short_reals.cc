#include "oracle/short_reals.h"

#include <cmath>

namespace hone {

namespace {

// Infinite if just one of them is NaN, or an infinity.
double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double distance = std::fabs(a - b);
  return std::isnan(distance) ? INFINITY : distance;
}

}  // namespace

bool has_short_reals(const Graph& graph) {
  for (uint32_t v = 0; v < graph.value_count(); ++v)
    if (const DType dtype = graph.type(ValueId{v}).dtype(); is_real(dtype) && bits(dtype) < 32)
      return true;
  for (NodeId n : graph.nodes())
    for (const GraphRef& region : graph.regions(n))
      if (has_short_reals(*region)) return true;
  return false;
}

Tensor nearer(const Tensor& actual, const Tensor& a, const Tensor& b) {
  if (!is_real(a.dtype()) || actual.type().static_dims() != a.type().static_dims()) return a;
  std::vector<double> numbers(static_cast<size_t>(a.elements()));
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const double number = actual.real_at(at), one = a.real_at(at), other = b.real_at(at);
    numbers[i] = distance(number, other) < distance(number, one) ? other : one;
  }
  return Tensor::from_reals(a.type(), numbers);
}

}  // namespace hone

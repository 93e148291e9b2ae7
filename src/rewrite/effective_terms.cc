#include "rewrite/effective_terms.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace hone {
namespace {

struct Sums {
  double sizes = 0, squares = 0;

  void add(float weight) {
    const double size = std::abs(double{weight});
    sizes += size;
    squares += size * size;
  }
};

// Indexed by feature.
std::vector<Sums> sums_of(const Tensor& weights, const Ints& summed) {
  const Ints dims = weights.type().static_dims();
  Ints steps(dims.size(), 0);  // in features
  int64_t features = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    if (std::ranges::find(summed, static_cast<int64_t>(d)) != summed.end()) continue;
    steps[d] = features;
    features *= dims[d];
  }
  std::vector<Sums> sums(static_cast<size_t>(features));
  std::vector<std::byte> scratch;
  const std::span<const std::byte> bytes = weights.bytes_once(scratch);
  std::vector<float> row(static_cast<size_t>(dims.back()));
  Ints place(dims.size(), 0);
  for (size_t at = 0; at < bytes.size(); at += row.size() * sizeof(float)) {
    std::memcpy(row.data(), bytes.data() + at, row.size() * sizeof(float));
    Sums* feature = sums.data();
    for (size_t d = 0; d + 1 < dims.size(); ++d) feature += place[d] * steps[d];
    for (float weight : row) {
      feature->add(weight);
      feature += steps.back();
    }
    for (size_t d = dims.size() - 1; d-- > 0 && ++place[d] == dims[d];) place[d] = 0;
  }
  return sums;
}

}  // namespace

double effective_terms(const Tensor& weights, const Ints& summed) {
  if (weights.elements() == 0 || summed.empty()) return 0;
  double least = std::numeric_limits<double>::infinity();
  for (const Sums& sums : sums_of(weights, summed)) {
    if (!std::isfinite(sums.squares)) return 0;
    if (sums.squares > 0) least = std::min(least, sums.sizes * sums.sizes / sums.squares);
  }
  return std::isfinite(least) ? least : 0;
}

}  // namespace hone

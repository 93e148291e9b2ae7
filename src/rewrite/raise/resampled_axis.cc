#include "rewrite/raise/resampled_axis.h"

#include <algorithm>
#include <cmath>

namespace hone {

bool ResampledAxis::is_given_by(const ResizeAxis& axis, const Sampling& sampling,
                                Splats splats) const {
  const size_t count = static_cast<size_t>(out);
  auto is_close = [&](double w, double number) {
    const double reach = dtype == DType::f64 || dtype == DType::f32 ? 1e-6 : 1e-2;
    return w == number || (splats == Splats::close && std::abs(w - number) <= reach * std::abs(w));
  };
  auto rounded = [&](double w) { return is_real(dtype) ? round_to(dtype, w) : w; };
  // Most guesses fail already here.
  std::vector<SampleTap> taps;
  for (int64_t i : {int64_t{0}, out / 2, out - 1}) {
    if (i < 0 || i >= out) continue;
    sample_taps(axis, sampling, i, taps);
    for (const SampleTap& tap : taps) {
      const size_t at = static_cast<size_t>(i);
      if (std::ranges::none_of(terms,
                               [&](const ResizeTerm& term) {
                                 if (term.index[at] != tap.index) return false;
                                 const double w = rounded(tap.weight);
                                 return term.weight.size() == 1 ? is_close(w, term.weight[0])
                                                                : w == term.weight[at];
                               }) &&
          tap.weight != 0) {
        return false;
      }
    }
  }
  const Samples samples = samples_of(axis, sampling);
  const bool is_outside = std::ranges::find(samples.outside, true) != samples.outside.end();
  if (is_outside ? samples.outside != outside : !outside.empty()) return false;
  size_t matched = 0;
  for (size_t tap = 0; tap < samples.taps; ++tap) {
    std::vector<double> weight(samples.weight.begin() + static_cast<int64_t>(tap * count),
                               samples.weight.begin() + static_cast<int64_t>((tap + 1) * count));
    const bool last = tap + 1 == samples.taps && matched == 0;
    if (!last && std::ranges::all_of(weight, [](double w) { return w == 0; })) continue;
    for (double& w : weight) w = rounded(w);
    const std::span<const int64_t> at(samples.index.data() + tap * count, count);
    const bool found = std::ranges::any_of(terms, [&](const ResizeTerm& term) {
      if (!std::ranges::equal(term.index, at)) return false;
      if (term.weight.size() == count && term.weight == weight) return true;
      return term.weight.size() == 1 &&
             std::ranges::all_of(weight, [&](double w) { return is_close(w, term.weight[0]); });
    });
    if (!found || ++matched > terms.size()) return false;
  }
  return matched == terms.size();
}

}  // namespace hone

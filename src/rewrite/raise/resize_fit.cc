#include "rewrite/raise/resize_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/text.h"

namespace hone {
namespace {

// Axes with more samples are tried with the standard settings alone.
constexpr int64_t kMaxFitted = 4096;
// Positions that the fit looks at.
constexpr int64_t kMaxLooks = 24;
constexpr size_t kMaxTrials = 600;

using Reals = std::vector<double>;

ResizeAxis plain_axis(const ResampledAxis& seen) {
  ResizeAxis axis;
  axis.index = seen.axis, axis.in = seen.in, axis.out = seen.out;
  axis.scale = static_cast<double>(seen.out) / static_cast<double>(seen.in);
  return axis;
}

// ---- Parameters ---------------------------------------------------------------------------------

// What is free, as a vector.
struct Parameters {
  bool scale = false, start = false, end = false, cubic_a = false;

  Parameters(const ResampledAxis& seen, ResizeFreedom freedom)
      : scale(freedom.scale),
        // The middle of the roi is all that one position knows.
        start(freedom.roi && seen.out > 1),
        end(freedom.roi),
        cubic_a(freedom.cubic_a) {}

  size_t count() const { return size_t{scale} + size_t{start} + size_t{end} + size_t{cubic_a}; }
  double& of(ResizeFit& fit, size_t k) const {
    if (scale && k-- == 0) return fit.axis.scale;
    if (start && k-- == 0) return fit.axis.roi_start;
    if (end && k-- == 0) return fit.axis.roi_end;
    return fit.cubic_a;
  }
};

bool is_legal(const ResizeFit& fit, const Sampling& sampling) {
  const ResizeAxis& a = fit.axis;
  if (!(a.scale > 1e-9 && a.scale < 1e9) || !std::isfinite(fit.cubic_a)) return false;
  if (sampling.antialias && a.scale < 1.0 / 256) return false;
  return std::abs(a.roi_start) < 1e9 && std::abs(a.roi_end) < 1e9;
}

Sampling with_a(Sampling sampling, double cubic_a) {
  sampling.cubic_a = cubic_a;
  return sampling;
}

bool is_exact(const ResampledAxis& seen, const Sampling& sampling, const ResizeFit& fit,
              Splats splats = Splats::close) {
  // An axis that nothing changes has no samples.
  const ResizeAxis& a = fit.axis;
  if (a.in == a.out && a.scale == 1 && a.roi_start == 0 && a.roi_end == 1) return false;
  return is_legal(fit, sampling) && seen.is_given_by(a, with_a(sampling, fit.cubic_a), splats);
}

// ---- Simple numbers -----------------------------------------------------------------------------

// Numbers of [low, high] that somebody may have written, simplest first.
Reals simple_numbers(double low, double high) {
  Reals found;
  auto add = [&](double x) {
    if (x >= low && x <= high && std::ranges::find(found, x) == found.end()) found.push_back(x);
  };
  const double middle = low + (high - low) / 2;
  for (double d = 1; d <= 16; ++d) {
    add(std::round(middle * d) / d);
    add(std::ceil(low * d) / d);
  }
  for (int digits = 1; digits <= 17; ++digits) {
    const Result<double> decimal = parse_double(fmt::format("{:.{}g}", middle, digits));
    if (!decimal.ok()) continue;
    add(*decimal);
    add(static_cast<double>(static_cast<float>(*decimal)));
  }
  add(middle);
  return found;
}

// Calls `test` on combinations of the choices until one is right.
template <class Test>
bool any_combination(const std::vector<Reals>& choices, const Test& test) {
  std::vector<size_t> at(choices.size(), 0);
  Reals numbers(choices.size());
  for (const Reals& list : choices)
    if (list.empty()) return false;
  for (size_t trial = 0; trial < kMaxTrials; ++trial) {
    for (size_t i = 0; i < at.size(); ++i) numbers[i] = choices[i][at[i]];
    if (test(numbers)) return true;
    size_t i = 0;
    while (i < at.size() && ++at[i] == choices[i].size()) at[i++] = 0;
    if (i == at.size()) return false;
  }
  return false;
}

// ---- Weighted samples ---------------------------------------------------------------------------

// Moments of the weights at some positions: smooth functions of the parameters.
class Moments {
 public:
  using Numbers = std::array<double, 6>;

  Moments(const ResampledAxis& seen, const Sampling& sampling) : sampling_(sampling) {
    const int64_t step = std::max<int64_t>(1, seen.out / kMaxLooks);
    for (int64_t i = 0; i < seen.out; i += step) {
      Look look{i, 0, false, false, {}, {}};
      int64_t first = seen.in, last = 0;
      double size = 0;
      for (const ResizeTerm& term : seen.terms) {
        const size_t at = static_cast<size_t>(i);
        const SampleTap tap{term.index[at], term.weight_at(at)};
        look.mean += tap.weight * static_cast<double>(tap.index);
        look.taps.push_back(tap);
        size += std::abs(tap.weight);
        if (tap.weight == 0) continue;
        first = std::min(first, tap.index);
        last = std::max(last, tap.index);
      }
      look.at_edge = first > last || (first == last && (first == 0 || last == seen.in - 1));
      // What is left of a kernel outside may add up to next to nothing, by which it is divided.
      constexpr double kWild = 2;
      look.at_edge = look.at_edge || size > kWild;
      look.is_clean = !look.at_edge && distinct(look.taps);
      look.moments = of(look.taps, look.mean);
      looks_.push_back(std::move(look));
    }
  }

  struct Look {
    int64_t position;
    double mean;    // about where the source is
    bool at_edge;   // it may be farther outside
    bool is_clean;  // nothing of it is outside
    std::vector<SampleTap> taps;
    Numbers moments;
  };
  const std::vector<Look>& looks() const { return looks_; }

  // Away from the edges, residuals are smooth.
  enum class Which { clean, inner, all };
  void look_at(Which which) { which_ = which; }

  // How large moments get.
  double scale() const {
    double largest = 1;
    for (const Look& look : looks_)
      for (double m : look.moments) largest = std::max(largest, std::abs(m));
    return largest;
  }
  // How the moments differ from those seen.
  void residuals(const ResizeFit& fit, Reals& all) const {
    all.clear();
    const Sampling sampling = with_a(sampling_, fit.cubic_a);
    for (const Look& look : looks_) {
      if (which_ == Which::clean ? !look.is_clean : which_ == Which::inner && look.at_edge)
        continue;
      sample_taps(fit.axis, sampling, look.position, taps_);
      const Numbers got = of(taps_, look.mean);
      for (size_t i = 0; i < got.size(); ++i) all.push_back(got[i] - look.moments[i]);
    }
  }

 private:
  static bool distinct(const std::vector<SampleTap>& taps) {
    Ints indices;
    for (const SampleTap& tap : taps)
      if (tap.weight != 0) indices.push_back(tap.index);
    std::ranges::sort(indices);
    return std::ranges::adjacent_find(indices) == indices.end();
  }
  static Numbers of(const std::vector<SampleTap>& taps, double center) {
    Numbers moments = {};
    for (const SampleTap& tap : taps) {
      const double w = tap.weight, distance = static_cast<double>(tap.index) - center;
      moments[0] += w;
      moments[1] += w * distance;
      moments[2] += w * distance * distance;
      moments[3] += w * distance * distance * distance;
      // At the edges all taps read one element; these tell the weights apart.
      moments[4] += w * w;
      moments[5] += w * w * w;
    }
    return moments;
  }

  const Sampling& sampling_;
  std::vector<Look> looks_;
  mutable std::vector<SampleTap> taps_;  // kept for its storage
  Which which_ = Which::all;
};

double squared(const Reals& x) {
  double sum = 0;
  for (double d : x) sum += d * d;
  return sum;
}

// Solves a x = b (symmetric, positive) in place; the solution is left in b.
void solve(std::vector<Reals>& a, Reals& b) {
  const size_t n = b.size();
  for (size_t k = 0; k < n; ++k) {
    for (size_t i = k + 1; i < n; ++i) {
      const double f = a[k][k] != 0 ? a[i][k] / a[k][k] : 0;
      for (size_t j = k; j < n; ++j) a[i][j] -= f * a[k][j];
      b[i] -= f * b[k];
    }
  }
  for (size_t k = n; k-- > 0;) {
    for (size_t j = k + 1; j < n; ++j) b[k] -= a[k][j] * b[j];
    b[k] = a[k][k] != 0 ? b[k] / a[k][k] : 0;
  }
}

// Least squares by Levenberg and Marquardt's method. Returns what is left of the residuals, of the
// largest one.
double refine(const Moments& moments, const Parameters& free, const Sampling& sampling,
              ResizeFit& fit) {
  const size_t n = free.count();
  double damping = 1e-3;
  Reals now, residuals;
  moments.residuals(fit, now);
  double left = squared(now);
  const double first = left;
  std::vector<Reals> slope(n), matrix(n, Reals(n));
  Reals step(n);
  int stalls = 0;  // rounds that brought little, in a row
  for (int round = 0; round < 40 && left > 0 && stalls < 5; ++round) {
    // What fits has come close by then.
    if (round == 14 && left > 1e-2 * first) break;
    const double before = left;
    for (size_t k = 0; k < n; ++k) {
      ResizeFit moved = fit;
      double& x = free.of(moved, k);
      const double h = 1e-6 * std::max(1e-3, std::abs(x));
      x += h;
      moments.residuals(moved, slope[k]);
      for (size_t i = 0; i < now.size(); ++i) slope[k][i] = (slope[k][i] - now[i]) / h;
    }
    for (size_t k = 0; k < n; ++k) {
      step[k] = 0;
      std::ranges::fill(matrix[k], 0);
      for (size_t i = 0; i < now.size(); ++i) {
        step[k] -= slope[k][i] * now[i];
        for (size_t j = 0; j < n; ++j) matrix[k][j] += slope[k][i] * slope[j][i];
      }
      matrix[k][k] += damping * matrix[k][k] + 1e-30;
    }
    solve(matrix, step);
    ResizeFit next = fit;
    for (size_t k = 0; k < n; ++k) free.of(next, k) += step[k];
    residuals.clear();
    if (is_legal(next, sampling)) moments.residuals(next, residuals);
    if (!residuals.empty() && squared(residuals) < left) {
      fit = next;
      std::swap(now, residuals);
      left = squared(now);
      damping = std::max(1e-15, damping / 10);
    } else {
      damping *= 10;
    }
    stalls = left < 0.9 * before ? 0 : stalls + 1;
  }
  double largest = 0;
  for (double r : now) largest = std::max(largest, std::abs(r));
  return largest;
}

// Where the coordinates are `lever / scale = value` for a position with this source.
std::pair<double, double> lever_of(const ResampledAxis& seen, ResizeCoordinates coordinates,
                                   double position, double source) {
  if (coordinates == ResizeCoordinates::asymmetric) return {position, source};
  if (coordinates != ResizeCoordinates::half_pixel_symmetric) return {position + 0.5, source + 0.5};
  return {position + 0.5 - static_cast<double>(seen.out) / 2,
          source + 0.5 - static_cast<double>(seen.in) / 2};
}

// Parameters from where the weights are centered.
ResizeFit first_guess(const ResampledAxis& seen, const Sampling& sampling, const Moments& moments) {
  ResizeFit fit{plain_axis(seen), sampling.cubic_a};
  const double last = static_cast<double>(seen.in - 1);
  const Moments::Look *from = nullptr, *to = nullptr;
  double longest = 0;
  const bool any_clean =
      std::ranges::any_of(moments.looks(), [](const Moments::Look& l) { return l.is_clean; });
  for (const Moments::Look& look : moments.looks()) {
    if (any_clean ? !look.is_clean : look.at_edge) continue;
    from = from == nullptr ? &look : from;
    to = &look;
    const auto [lever, value] =
        lever_of(seen, sampling.coordinates, static_cast<double>(look.position), look.mean);
    if (std::abs(lever) <= longest || !(lever / value > 0) || value == 0) continue;
    longest = std::abs(lever);
    if (sampling.coordinates != ResizeCoordinates::align_corners && !sampling.crops())
      fit.axis.scale = lever / value;
  }
  if (!sampling.crops() || from == nullptr || last == 0) return fit;
  const double span = static_cast<double>(to->position - from->position);
  const double end = static_cast<double>(seen.out - 1);
  const double slope = span == 0 ? last / std::max(1.0, end) : (to->mean - from->mean) / span;
  const double start = from->mean - slope * static_cast<double>(from->position);
  fit.axis.roi_start = seen.out == 1 ? 0 : start / last;
  fit.axis.roi_end = seen.out == 1 ? 2 * start / last : (start + slope * end) / last;
  return fit;
}

// Whether the weights look like the kernel's.
bool may_be(const ResampledAxis& seen, const Sampling& sampling) {
  const bool linear = sampling.mode == ResizeMode::linear;
  if (!sampling.antialias && seen.terms.size() > (linear ? 2 : 4)) return false;
  return !linear || std::ranges::all_of(seen.terms, [](const ResizeTerm& term) {
    return std::ranges::all_of(term.weight, [](double w) { return w >= 0; });
  });
}

double fit_tolerance(DType dtype) {
  return dtype == DType::f64 ? 1e-9 : dtype == DType::f32 ? 1e-5 : 0.05;
}

// Where the fit begins: the first guess, then what comes closest of a grid over all that positions
// may not tell: how far those at the edges lie outside, how far the kernel is stretched, its slope.
std::vector<ResizeFit> starts_of(const ResizeFit& guess, const Sampling& sampling,
                                 const Parameters& free, const Moments& moments) {
  Reals scales = {guess.axis.scale}, slopes = {guess.cubic_a}, starts = {0}, ends = {0};
  const int finest = sampling.crops() ? 4 : 16;  // steps from one power of two to the next
  if (free.scale)
    for (int k = -5 * finest; k <= (sampling.crops() ? 0 : 5 * finest); ++k)
      scales.push_back(std::exp2(static_cast<double>(k) / finest));
  if (free.cubic_a) slopes.insert(slopes.end(), {-0.5, -0.25});
  if (free.end) ends.insert(ends.end(), {-0.5, -0.25, 0.25, 0.5});
  // Wide kernels that lose what is outside seem to lie farther inside.
  if (free.start && sampling.exclude_outside && sampling.antialias)
    starts.insert(starts.end(), {-0.5, -0.25, 0.25, 0.5});
  // What is best with each scale, and how far off it is.
  std::vector<ResizeFit> best(scales.size(), guess);
  Reals far(scales.size(), std::numeric_limits<double>::infinity()), residuals;
  for (size_t i = 0; i < scales.size(); ++i) {
    for (const double cubic_a : slopes) {
      for (const double start : starts) {
        for (const double end : ends) {
          ResizeFit fit{guess.axis, cubic_a};
          fit.axis.scale = scales[i], fit.axis.roi_start += start, fit.axis.roi_end += end;
          moments.residuals(fit, residuals);
          if (const double off = squared(residuals); off < far[i]) far[i] = off, best[i] = fit;
        }
      }
    }
  }
  std::vector<size_t> lows;
  for (size_t i = 1; i < scales.size(); ++i) {
    if (i > 1 && far[i - 1] < far[i]) continue;
    if (i + 1 < scales.size() && far[i + 1] <= far[i]) continue;
    lows.push_back(i);
  }
  std::ranges::sort(lows, [&](size_t a, size_t b) { return far[a] < far[b]; });
  std::vector<ResizeFit> all = {guess};
  if (far[0] < std::numeric_limits<double>::infinity() && (free.cubic_a || free.end))
    all.push_back(best[0]);
  for (size_t i : lows) all.push_back(best[i]);
  return all;
}

// Scales with which the positions lie as far between two elements as with the fit's; which elements
// does not show if all are the one at the edge.
std::vector<ResizeFit> repeats(const ResizeFit& fit, const Sampling& sampling) {
  constexpr int kMost = 32;
  std::vector<ResizeFit> all;
  for (int shift = 1; shift <= kMost; ++shift) {
    for (const double sign : {1.0, -1.0}) {
      all.push_back(fit);
      all.back().axis.scale = 1 / std::abs(shift + sign / fit.axis.scale);
      if (!is_legal(all.back(), sampling)) all.pop_back();
    }
  }
  return all;
}

// Simple numbers near the fit that give the samples.
bool settle(const ResampledAxis& seen, const Sampling& sampling, const Parameters& free,
            Splats splats, ResizeFit& fit) {
  std::vector<Reals> choices;
  const size_t count = free.count();
  const size_t most = count == 1 ? 64 : count == 2 ? 24 : 8;
  for (size_t k = 0; k < count; ++k) {
    const double x = free.of(fit, k);
    const double reach = fit_tolerance(seen.dtype) * std::max(0.1, std::abs(x));
    Reals list = simple_numbers(x - reach, x + reach);
    // The roundings of the fit itself.
    for (double up = x, down = x; list.size() < most;) {
      up = std::nextafter(up, std::numeric_limits<double>::infinity());
      down = std::nextafter(down, -std::numeric_limits<double>::infinity());
      list.push_back(up), list.push_back(down);
    }
    list.resize(most);
    choices.push_back(std::move(list));
  }
  return any_combination(choices, [&](const Reals& numbers) {
    for (size_t k = 0; k < numbers.size(); ++k) free.of(fit, k) = numbers[k];
    return is_exact(seen, sampling, fit, splats);
  });
}

// On a source of two elements almost any kernel fits, from somewhere; rounding alone tells which it
// was. So scales that somebody may have written are tried, in their turn.
std::optional<ResizeFit> with_simple_scale(const ResampledAxis& seen, const Sampling& sampling,
                                           Parameters free, const Moments& moments,
                                           const ResizeFit& guess) {
  free.scale = false;
  Reals tried;
  for (const double parts : {2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0}) {
    for (double part = 1; part < parts; ++part) {
      if (std::ranges::find(tried, part / parts) != tried.end()) continue;
      tried.push_back(part / parts);
      ResizeFit fit = guess;
      fit.axis.scale = part / parts;
      if (refine(moments, free, sampling, fit) > fit_tolerance(seen.dtype) * moments.scale())
        continue;
      if (settle(seen, sampling, free, Splats::exact, fit)) return fit;
    }
  }
  return std::nullopt;
}

std::optional<ResizeFit> fit_weights(const ResampledAxis& seen, const Sampling& sampling,
                                     ResizeFreedom freedom) {
  using Which = Moments::Which;
  Moments moments(seen, sampling);
  const Parameters free(seen, freedom);
  const ResizeFit guess = first_guess(seen, sampling, moments);
  const size_t unknowns = free.count();
  size_t looked = 0;
  std::optional<ResizeFit> close;  // if nothing gives the splats exactly
  const bool has_splat = std::ranges::any_of(
      seen.terms, [](const ResizeTerm& term) { return term.weight.size() == 1; });
  for (const Which which : {Which::clean, Which::inner, Which::all}) {
    moments.look_at(which);
    Reals residuals;
    moments.residuals(guess, residuals);
    const size_t knowns = residuals.size();
    if (knowns < unknowns || knowns == looked) continue;
    looked = knowns;
    bool fits = false;
    constexpr size_t kFewStarts = 6;  // as many where none has fitted
    std::vector<ResizeFit> open = starts_of(guess, sampling, free, moments);
    for (size_t i = 0; i < open.size() && (fits || i < kFewStarts); ++i) {
      ResizeFit fit = open[i];
      const double left = refine(moments, free, sampling, fit);
      if (left > fit_tolerance(seen.dtype) * moments.scale()) continue;
      const ResizeFit refined = fit;
      if (settle(seen, sampling, free, Splats::exact, fit)) return fit;
      fit = refined;
      if (has_splat && !close && settle(seen, sampling, free, Splats::close, fit)) close = fit;
      if (!fits && free.scale && !sampling.antialias && seen.in == 1) {
        const std::vector<ResizeFit> more = repeats(refined, sampling);
        open.insert(open.begin() + static_cast<int64_t>(i) + 1, more.begin(), more.end());
      }
      fits = true;
    }
    if (free.scale && sampling.antialias && (fits || seen.in == 2))
      if (auto fit = with_simple_scale(seen, sampling, free, moments, guess)) return fit;
    // Many positions that no parameters explain.
    if (!fits && knowns > 12 * unknowns) break;
  }
  return close;
}

// ---- Nearest neighbours -------------------------------------------------------------------------

struct Interval {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

// Where the source of a position lies, given which element was taken; bounds included.
Interval source_interval(const ResampledAxis& seen, const Sampling& sampling, size_t i) {
  const int64_t at = seen.terms[0].index[i], last = seen.in - 1;
  const double x = static_cast<double>(at);
  const double below = sampling.nearest == ResizeRounding::floor  ? 0
                       : sampling.nearest == ResizeRounding::ceil ? 1
                                                                  : 0.5;
  Interval interval;
  if (at > 0) interval.low = x - below;
  if (at < last) interval.high = x + 1 - below;
  if (!sampling.crops()) return interval;
  if (seen.outside.empty() || !seen.outside[i]) {
    interval.low = std::max(interval.low, 0.0);
    interval.high = std::min(interval.high, static_cast<double>(last));
  } else if (at == 0) {
    interval.high = std::min(interval.high, 0.0);
  } else {
    interval.low = std::max(interval.low, static_cast<double>(last));
  }
  return interval;
}

// The x with lever * x + offset in the interval.
void narrow(Interval& x, Interval value, double lever, double offset) {
  double low = (value.low - offset) / lever, high = (value.high - offset) / lever;
  if (lever == 0) return;
  if (lever < 0) std::swap(low, high);
  x.low = std::max(x.low, low);
  x.high = std::min(x.high, high);
}

// Simple numbers of the interval's inside, and beyond a bound that is not there.
Reals numbers_in(Interval x) {
  if (std::isinf(x.low) && std::isinf(x.high)) x = {-2, 2};
  if (std::isinf(x.low)) x.low = x.high - std::max(2.0, std::abs(x.high));
  if (std::isinf(x.high)) x.high = x.low + std::max(2.0, std::abs(x.low));
  return simple_numbers(x.low, x.high);
}

std::optional<ResizeFit> fit_nearest_scale(const ResampledAxis& seen, const Sampling& sampling) {
  ResizeFit fit{plain_axis(seen), sampling.cubic_a};
  Interval inverse{1e-6, 1e6};
  for (size_t i = 0; i < static_cast<size_t>(seen.out); ++i) {
    // source = offset + lever / scale
    const auto [lever, value] = lever_of(seen, sampling.coordinates, static_cast<double>(i), 0);
    narrow(inverse, source_interval(seen, sampling, i), lever, -value);
  }
  if (!(inverse.low <= inverse.high)) return std::nullopt;
  for (double scale : simple_numbers(1 / inverse.high, 1 / inverse.low)) {
    fit.axis.scale = scale;
    if (is_exact(seen, sampling, fit)) return fit;
  }
  return std::nullopt;
}

std::optional<ResizeFit> fit_nearest_roi(const ResampledAxis& seen, const Sampling& sampling) {
  ResizeFit fit{plain_axis(seen), sampling.cubic_a};
  const double extent = static_cast<double>(seen.in - 1);
  const double last = static_cast<double>(seen.out - 1);
  Interval starts;
  if (seen.out > 1) narrow(starts, source_interval(seen, sampling, 0), extent, 0);
  for (double start : seen.out > 1 ? numbers_in(starts) : Reals{0}) {
    fit.axis.roi_start = start;
    Interval ends;
    for (size_t i = 0; i < static_cast<size_t>(seen.out); ++i) {
      const double part = seen.out > 1 ? static_cast<double>(i) / last : 0.5;
      narrow(ends, source_interval(seen, sampling, i), part * extent, (1 - part) * start * extent);
    }
    if (!(ends.low <= ends.high)) continue;
    for (double end : numbers_in(ends)) {
      fit.axis.roi_end = end;
      if (is_exact(seen, sampling, fit)) return fit;
    }
  }
  return std::nullopt;
}

// Parameters that samples at the edges alone do not tell.
std::optional<ResizeFit> fit_by_trial(const ResampledAxis& seen, const Sampling& sampling,
                                      ResizeFreedom freedom) {
  ResizeFit fit{plain_axis(seen), sampling.cubic_a};
  const Parameters free(seen, freedom);
  std::vector<Reals> choices;
  if (free.scale) choices.push_back({fit.axis.scale, 1, 2, 0.5, 4, 0.25, 8, 0.125, 1.5, 0.75});
  if (free.start) choices.push_back({0, 1, 0.5, 0.25, 0.75, -0.5, -1, 1.5, 2});
  if (free.end) choices.push_back({1, 0, 0.5, 0.25, 0.75, -0.5, -1, 1.5, 2, 4, -4});
  if (free.cubic_a) choices.push_back({-0.75, -0.5});
  const bool found = any_combination(choices, [&](const Reals& numbers) {
    for (size_t k = 0; k < numbers.size(); ++k) free.of(fit, k) = numbers[k];
    return is_exact(seen, sampling, fit);
  });
  return found ? std::optional(fit) : std::nullopt;
}

}  // namespace

std::optional<ResizeFit> fit_resize(const ResampledAxis& seen, const Sampling& sampling,
                                    ResizeFreedom freedom) {
  const ResizeFit plain{plain_axis(seen), sampling.cubic_a};
  if (is_exact(seen, sampling, plain)) return plain;
  if ((!freedom.scale && !freedom.roi && !freedom.cubic_a) || seen.out > kMaxFitted)
    return std::nullopt;
  if (sampling.mode != ResizeMode::nearest) {
    if (!may_be(seen, sampling)) return std::nullopt;
    if (auto fit = fit_weights(seen, sampling, freedom)) return fit;
  } else if (freedom.roi) {
    if (auto fit = fit_nearest_roi(seen, sampling)) return fit;
  } else if (sampling.coordinates != ResizeCoordinates::align_corners) {
    if (auto fit = fit_nearest_scale(seen, sampling)) return fit;
  }
  return fit_by_trial(seen, sampling, freedom);
}

}  // namespace hone

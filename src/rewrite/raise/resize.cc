#include <algorithm>
#include <cmath>
#include <functional>

#include "rewrite/raise/guess.h"
#include "rewrite/raise/resize_fit.h"

// The expansion of `resize` holds its samples as constants: axis by axis, gathered slices times
// weights. They are read back, and the attributes that give them are solved for; where several do,
// the first of the order below is taken.

namespace hone {
namespace {

// An axis of the form, and what it was resampled from.
struct Layer {
  ResampledAxis axis;
  Form source = kNoForm;
  Form extrapolation = kNoForm;  // a splat
};

// ---- Reading ------------------------------------------------------------------------------------

// The numbers of a constant vector; one number for a splat.
std::optional<std::vector<double>> numbers_of(const Guess& g, Form f) {
  if (g.forms.is(f, FormKind::splat)) return std::vector{g.forms.number(f)};
  if (!g.forms.is(f, FormKind::constant)) return std::nullopt;
  const Tensor& tensor = g.forms.tensor(f);
  constexpr int64_t kMaxSamples = int64_t{1} << 24;
  if (tensor.elements() > kMaxSamples) return std::nullopt;
  std::vector<double> numbers(static_cast<size_t>(tensor.elements()));
  if (is_real(tensor.dtype()))
    tensor.read_reals(0, std::span(numbers));
  else
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = static_cast<double>(tensor.integer_at(static_cast<int64_t>(i)));
  return numbers;
}

// Adds the term `f`, if it is a part of `layer`.
bool read_term(const Guess& g, Form f, Layer& layer) {
  ResizeTerm term;
  const Factors factors = g.forms.is(f, Opcode::gather) ? Factors{1, {f}} : g.forms.factors(f);
  std::vector<double> weights;
  for (Form x : factors.list) {
    if (!g.is(x, Opcode::gather)) {
      if (!weights.empty()) return false;
      const auto numbers = numbers_of(g, g.core(x));
      if (!numbers) return false;
      weights = *numbers;
      continue;
    }
    if (!term.index.empty()) return false;
    const Form index = g.operand(x, 1), source = g.operand(x, 0);
    const Ints& collapsed = g.forms.op(x).ints("collapsed_dims");
    const auto at = numbers_of(g, index);
    if (!at || g.forms.type(index).rank() != 1 || collapsed.size() != 1) return false;
    if (g.forms.type(source).rank() != g.forms.type(f).rank()) return false;
    const int axis = static_cast<int>(collapsed[0]);
    const Dim in = g.forms.type(source).dim(axis), out = g.forms.type(x).dim(axis);
    if (!in.is_static() || !out.is_static()) return false;
    if (layer.source == kNoForm) {
      layer.source = source;
      layer.axis.axis = axis, layer.axis.in = in.value(), layer.axis.out = out.value();
      layer.axis.dtype = g.forms.type(f).dtype();
    }
    if (layer.source != source || layer.axis.axis != axis || layer.axis.out != out.value())
      return false;
    for (int64_t i = 0; i < out.value(); ++i)
      term.index.push_back(
          static_cast<int64_t>((*at)[at->size() == 1 ? 0 : static_cast<size_t>(i)]));
  }
  if (term.index.empty()) return false;
  for (int64_t i : term.index)
    if (i < 0 || i >= layer.axis.in) return false;
  if (weights.empty()) weights = {1};
  if (weights.size() != 1 && weights.size() != term.index.size()) return false;
  for (double& w : weights) w *= factors.number;
  term.weight = std::move(weights);
  layer.axis.terms.push_back(std::move(term));
  return true;
}

// The weights of a position add up to 1, or are all 0; those of a part of the taps do not.
bool has_unit_weights(const ResampledAxis& axis) {
  const bool narrow = axis.dtype == DType::f16 || axis.dtype == DType::bf16;
  const double reach = narrow ? 0.1 : 1e-4;
  for (size_t i = 0; i < static_cast<size_t>(axis.out); ++i) {
    double sum = 0;
    bool all_zero = true;
    for (const ResizeTerm& term : axis.terms) {
      const double w = term.weight_at(i);
      sum += w;
      all_zero = all_zero && w == 0;
    }
    if (!all_zero && !(std::abs(sum - 1) <= reach)) return false;
  }
  return true;
}

std::optional<Layer> read_layer(const Guess& g, Form f) {
  Layer layer;
  std::optional<std::vector<double>> outside;
  if (g.is(f, Opcode::select)) {
    outside = numbers_of(g, g.core(g.operand(f, 0)));
    layer.extrapolation = g.operand(f, 1);
    if (!outside || !g.forms.is(layer.extrapolation, FormKind::splat)) return std::nullopt;
    f = g.operand(f, 2);
  }
  constexpr size_t kMaxTerms = 4096;
  std::vector<Form> open = {f};
  while (!open.empty()) {
    const Form x = open.back();
    open.pop_back();
    if (layer.axis.terms.size() + open.size() > kMaxTerms) return std::nullopt;
    if (g.is(x, Opcode::add)) {
      open.push_back(g.operand(x, 0));
      open.push_back(g.operand(x, 1));
    } else if (!read_term(g, x, layer)) {
      return std::nullopt;
    }
  }
  if (!has_unit_weights(layer.axis)) return std::nullopt;
  if (!outside) return layer;
  outside->resize(static_cast<size_t>(layer.axis.out), (*outside)[0]);
  for (double b : *outside) layer.axis.outside.push_back(b != 0);
  return layer;
}

// ---- Settings -----------------------------------------------------------------------------------

bool is_plain_choice(const Layer& layer) {
  const std::vector<ResizeTerm>& terms = layer.axis.terms;
  return terms.size() == 1 && terms[0].weight == std::vector<double>{1};
}

// Whether a position takes nothing of its source, as those far outside do if they are excluded.
bool has_bare_position(const Layer& layer) {
  for (size_t i = 0; i < static_cast<size_t>(layer.axis.out); ++i) {
    if (std::ranges::all_of(layer.axis.terms,
                            [i](const ResizeTerm& term) { return term.weight_at(i) == 0; }))
      return true;
  }
  return false;
}

// In the order of preference: several may give the same samples.
std::vector<Sampling> samplings(const std::vector<Layer>& layers) {
  using enum ResizeCoordinates;
  std::vector<Sampling> all;
  std::vector<ResizeCoordinates> coordinates = {half_pixel,           asymmetric,
                                                align_corners,        pytorch_half_pixel,
                                                half_pixel_symmetric, tf_crop_and_resize};
  for (const Layer& layer : layers)
    if (layer.extrapolation != kNoForm) coordinates = {tf_crop_and_resize};
  auto add = [&](Sampling sampling) {
    for (ResizeCoordinates c : coordinates) {
      sampling.coordinates = c;
      all.push_back(sampling);
    }
  };
  if (std::ranges::all_of(layers, is_plain_choice)) {
    using enum ResizeRounding;
    for (ResizeRounding rounding : {round_prefer_floor, floor, round_prefer_ceil, ceil}) {
      Sampling sampling;
      sampling.nearest = rounding;
      add(sampling);
    }
  }
  const bool excludes = std::ranges::any_of(layers, has_bare_position);
  for (bool antialias : {false, true}) {
    for (bool exclude : {false, true}) {
      if (excludes && !exclude) continue;
      for (ResizeMode mode : {ResizeMode::linear, ResizeMode::cubic}) {
        Sampling sampling;
        sampling.mode = mode;
        sampling.exclude_outside = exclude;
        sampling.antialias = antialias;
        add(sampling);
      }
    }
  }
  return all;
}

// The axes with one sampling; nothing if it does not fit them all.
std::vector<ResizeAxis> fitted(const std::vector<Layer>& layers, const Sampling& sampling,
                               ResizeFreedom freedom) {
  std::vector<ResizeAxis> axes;
  for (const Layer& layer : layers) {
    const auto fit = fit_resize(layer.axis, sampling, freedom);
    if (!fit) return {};
    axes.push_back(fit->axis);
  }
  return axes;
}

Op resize_op(const Guess& g, const std::vector<Layer>& layers, const std::vector<ResizeAxis>& axes,
             const Sampling& sampling) {
  const size_t rank = static_cast<size_t>(g.forms.type(g.root).rank());
  Attrs attrs = {{"sizes", g.forms.dims(g.root)},
                 {"mode", name(sampling.mode)},
                 {"coordinates", name(sampling.coordinates)},
                 {"exclude_outside", sampling.exclude_outside},
                 {"antialias", sampling.antialias}};
  if (sampling.mode == ResizeMode::nearest) attrs.emplace_back("nearest", name(sampling.nearest));
  if (sampling.mode == ResizeMode::cubic) attrs.emplace_back("cubic_a", sampling.cubic_a);
  std::vector<double> scales(rank, 1), roi(2 * rank, 0);
  std::fill(roi.begin() + static_cast<int64_t>(rank), roi.end(), 1);
  bool is_scaled = false;
  for (const ResizeAxis& axis : axes) {
    const size_t i = static_cast<size_t>(axis.index);
    scales[i] = axis.scale;
    is_scaled |= axis.scale != static_cast<double>(axis.out) / static_cast<double>(axis.in);
    roi[i] = axis.roi_start, roi[rank + i] = axis.roi_end;
  }
  if (is_scaled) attrs.emplace_back("scales", scales);
  if (sampling.crops()) attrs.emplace_back("roi", roi);
  for (const Layer& layer : layers) {
    if (layer.extrapolation == kNoForm) continue;
    const DType dtype = g.forms.type(layer.extrapolation).dtype();
    const double number = g.forms.number(layer.extrapolation);
    attrs.emplace_back("extrapolation", is_real(dtype) ? recovered(dtype, number) : number);
    break;
  }
  return Op::get(Opcode::resize, std::move(attrs));
}

bool guess_sampling(Guess& g, const std::vector<Layer>& layers, Form source, Sampling sampling,
                    ResizeFreedom freedom) {
  auto try_slope = [&](double cubic_a) {
    sampling.cubic_a = cubic_a;
    const std::vector<ResizeAxis> axes = fitted(layers, sampling, freedom);
    return !axes.empty() && g.propose(resize_op(g, layers, axes, sampling), {source});
  };
  if (sampling.mode != ResizeMode::cubic) return try_slope(sampling.cubic_a);
  // An axis with few samples has many slopes, or none that is simple: each axis is asked.
  std::vector<double> tried;
  ResizeFreedom any_slope = freedom;
  any_slope.cubic_a = true;
  for (const Layer& layer : layers) {
    const auto fit = fit_resize(layer.axis, sampling, any_slope);
    if (!fit || std::ranges::find(tried, fit->cubic_a) != tried.end()) continue;
    tried.push_back(fit->cubic_a);
    if (try_slope(fit->cubic_a)) return true;
  }
  return false;
}

// Whether another sampling before it has the same samples.
bool is_repeated(const std::vector<Layer>& layers, const Sampling& sampling, bool free_scale) {
  using enum ResizeCoordinates;
  auto all = [&](auto&& test) {
    return std::ranges::all_of(layers, [&](const Layer& layer) { return test(layer.axis); });
  };
  if (sampling.coordinates == pytorch_half_pixel &&
      all([](const ResampledAxis& axis) { return axis.out > 1; }))
    return true;
  if (free_scale)
    return !sampling.antialias && (sampling.crops() || sampling.coordinates == align_corners);
  return sampling.antialias && all([](const ResampledAxis& axis) { return axis.out >= axis.in; });
}

// `layers`: first to last.
bool guess_layers(Guess& g, std::vector<Layer> layers) {
  const Form source = layers.front().source;
  // Those with the most samples first: they rule out most.
  std::ranges::sort(layers, std::greater(), [](const Layer& layer) {
    return layer.axis.out * static_cast<int64_t>(layer.axis.terms.size());
  });
  const std::vector<Sampling> all = samplings(layers);
  for (bool free_scale : {false, true}) {
    for (const Sampling& sampling : all) {
      if (is_repeated(layers, sampling, free_scale)) continue;
      // Crops have a roi; a scale counts for their antialiasing alone.
      if (guess_sampling(g, layers, source, sampling,
                         {.scale = free_scale, .roi = sampling.crops()}))
        return true;
    }
  }
  return false;
}

bool guess_resize(Guess& g) {
  std::vector<Layer> layers;  // the last one first
  for (Form f = g.root;;) {
    std::optional<Layer> layer = read_layer(g, f);
    // Axes are resampled in their order.
    if (!layer || (!layers.empty() && layer->axis.axis >= layers.back().axis.axis)) break;
    f = layer->source;
    layers.push_back(std::move(*layer));
  }
  std::ranges::reverse(layers);
  // All axes together before the last one alone.
  for (; !layers.empty(); layers.erase(layers.begin()))
    if (guess_layers(g, layers)) return true;
  return false;
}

constexpr RaiseRule kResizeRules[] = {
    {Opcode::gather, guess_resize},
    {Opcode::add, guess_resize},
    {Opcode::mul, guess_resize},
    {Opcode::select, guess_resize},
};

}  // namespace

std::span<const RaiseRule> resize_rules() { return kResizeRules; }

}  // namespace hone

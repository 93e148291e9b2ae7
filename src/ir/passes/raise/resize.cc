#include <algorithm>
#include <cmath>

#include "ir/passes/raise/guess.h"
#include "ir/passes/raise/resize_fit.h"

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
      const double w = term.weight[term.weight.size() == 1 ? 0 : i];
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

// In the order of preference: several may give the same samples.
std::vector<Sampling> samplings(const std::vector<Layer>& layers) {
  std::vector<Sampling> all;
  std::vector<const char*> coordinates = {"half_pixel",           "asymmetric",
                                          "align_corners",        "pytorch_half_pixel",
                                          "half_pixel_symmetric", "tf_crop_and_resize"};
  for (const Layer& layer : layers)
    if (layer.extrapolation != kNoForm) coordinates = {"tf_crop_and_resize"};
  auto add = [&](auto&& change) {
    for (const char* c : coordinates) {
      Sampling sampling;
      sampling.coordinates = c;
      change(sampling);
      all.push_back(sampling);
    }
  };
  if (std::ranges::all_of(layers, is_plain_choice)) {
    for (const char* rounding : {"round_prefer_floor", "floor", "round_prefer_ceil", "ceil"})
      add([&](Sampling& s) { s.nearest = rounding; });
  }
  for (bool antialias : {false, true}) {
    for (bool exclude : {false, true}) {
      for (const char* mode : {"linear", "cubic"}) {
        add([&](Sampling& s) {
          s.mode = mode;
          s.exclude_outside = exclude;
          s.antialias = antialias;
        });
      }
    }
  }
  return all;
}

// The values of cubic_a that the axes suggest, then the usual ones if
// only some axes do.
std::vector<double> slopes(const std::vector<Layer>& layers, const Sampling& sampling,
                           ResizeFreedom freedom) {
  if (sampling.mode != "cubic") return {sampling.cubic_a};
  std::vector<double> found;
  bool all_fit = true;
  freedom.cubic_a = true;
  for (const Layer& layer : layers) {
    const auto fit = fit_resize(layer.axis, sampling, freedom);
    all_fit = all_fit && fit.has_value();
    if (fit && std::ranges::find(found, fit->cubic_a) == found.end()) found.push_back(fit->cubic_a);
  }
  if (!all_fit && !found.empty()) found.insert(found.end(), {-0.75, -0.5});
  return found;
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
                 {"mode", sampling.mode},
                 {"coordinates", sampling.coordinates},
                 {"exclude_outside", sampling.exclude_outside},
                 {"antialias", sampling.antialias}};
  if (sampling.mode == "nearest") attrs.emplace_back("nearest", sampling.nearest);
  if (sampling.mode == "cubic") attrs.emplace_back("cubic_a", sampling.cubic_a);
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
  if (sampling.coordinates == "tf_crop_and_resize") attrs.emplace_back("roi", roi);
  for (const Layer& layer : layers) {
    if (layer.extrapolation == kNoForm) continue;
    const DType dtype = g.forms.type(layer.extrapolation).dtype();
    const double number = g.forms.number(layer.extrapolation);
    attrs.emplace_back("extrapolation", is_real(dtype) ? recovered(dtype, number) : number);
    break;
  }
  return Op::get(Opcode::resize, std::move(attrs));
}

bool guess_sampling(Guess& g, const std::vector<Layer>& layers, Sampling sampling,
                    ResizeFreedom freedom) {
  for (double cubic_a : slopes(layers, sampling, freedom)) {
    sampling.cubic_a = cubic_a;
    const std::vector<ResizeAxis> axes = fitted(layers, sampling, freedom);
    if (!axes.empty() && g.propose(resize_op(g, layers, axes, sampling), {layers.front().source})) {
      return true;
    }
  }
  return false;
}

bool guess_layers(Guess& g, const std::vector<Layer>& layers) {
  const std::vector<Sampling> all = samplings(layers);
  for (bool free_scale : {false, true}) {
    for (const Sampling& sampling : all) {
      // Crops have a roi; a scale counts for their antialiasing alone.
      const bool crops = sampling.coordinates == "tf_crop_and_resize";
      if (guess_sampling(g, layers, sampling, {.scale = free_scale, .roi = crops})) return true;
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

constexpr RaiseRule kRules[] = {
    {Opcode::gather, guess_resize},
    {Opcode::add, guess_resize},
    {Opcode::mul, guess_resize},
    {Opcode::select, guess_resize},
};

}  // namespace

std::span<const RaiseRule> resize_rules() { return kRules; }

}  // namespace hone

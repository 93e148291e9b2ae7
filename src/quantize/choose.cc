#include "quantize/choose.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/text.h"

namespace hone::quantize {
namespace {

// A level has to take this share of the time less, as prices are not exact.
constexpr double kFasterBy = 0.02;
// How often the aim is lowered where arrays that calibration did not see have a larger error.
constexpr int kMostRounds = 6;
constexpr double kLowerAim = 0.7;

bool matches(std::string_view name, std::string_view pattern) {
  if (pattern.ends_with('*')) return name.starts_with(pattern.substr(0, pattern.size() - 1));
  return name == pattern;
}

class Chooser {
 public:
  Chooser(const Graph& graph, const QuantizeOptions& options, const Batches& batches,
          const QuantizeMachine& machine)
      : graph_(graph), options_(options), batches_(batches), machine_(machine) {}

  Result<QuantizeResult> run() {
    layers_ = HONE_TRY(layers_of(graph_));
    HONE_TRY(leave_out_kept());
    choices_.resize(layers_.size());
    options_of_.resize(layers_.size());
    latest_.resize(layers_.size());
    HONE_TRY(check_layers());
    run_probe_ = HONE_TRY(machine_.compile(HONE_TRY(probe(graph_, layers_))));
    HONE_TRY(calibrate());
    HONE_TRY(price());
    HONE_TRY(measure_alone());
    return within_error();
  }

 private:
  struct Option {
    Precision level;
    double seconds = 0;
    double error = 0;  // if only this layer has the level
  };

  Progress& progress() { return options_.progress ? *options_.progress : no_progress(); }
  Status go_on() const { return options_.cancel ? options_.cancel->check() : Status(); }

  // ---- What may change --------------------------------------------------------------------------

  Status leave_out_kept() {
    for (const std::string& pattern : options_.keep) {
      bool is_known = false;
      for (Layer& layer : layers_) {
        if (!matches(layer.name, pattern)) continue;
        is_known = true;
        if (layer.why_not.empty()) layer.why_not = "--keep";
      }
      if (!is_known)
        return usage_error("no layer is called '{}'", pattern)
            .with_hint(layers_.empty() ? "the model has no products"
                                       : fmt::format("the first is '{}'", layers_[0].name));
    }
    return {};
  }

  Status check_layers() {
    reports_.resize(layers_.size());
    std::string why = "it has no products";
    bool any = false;
    for (size_t l = 0; l < layers_.size(); ++l) {
      const Layer& layer = layers_[l];
      reports_[l].name = layer.name;
      reports_[l].bytes_f32 = reports_[l].bytes =
          weight_bytes(layer, Precision::f32, options_.group);
      for (Precision level : options_.levels) {
        const Status good = check_level(layer, level, options_.group);
        if (good.ok())
          options_of_[l].push_back({level});
        else
          why = reports_[l].why = good.error().what();
      }
      if (!options_of_[l].empty()) reports_[l].why.clear();
      any = any || !options_of_[l].empty();
    }
    if (any) return {};
    return unsupported("no layer of the model can be quantized: {}",
                       layers_.empty() ? why : fmt::format("'{}': {}", layers_[0].name, why));
  }

  // ---- Measuring --------------------------------------------------------------------------------

  Result<std::vector<Tensor>> run_as(const std::vector<Tensor>& inputs,
                                     std::span<const LayerChoice> choices) {
    HONE_TRY(go_on());
    std::vector<Tensor> all = inputs;
    for (size_t l = 0; l < layers_.size(); ++l) {
      if (!layers_[l].why_not.empty()) continue;
      auto& [level, known] = latest_[l];
      if (known.empty() || level != choices[l].level) {
        level = choices[l].level;
        known = probe_inputs(layers_[l], choices[l], options_.group);
      }
      all.insert(all.end(), known.begin(), known.end());
    }
    return run_probe_(all);
  }

  // The f32 outputs, and the ranges of all data.
  Status calibrate() {
    const size_t outputs = graph_.outputs().size();
    progress().start(static_cast<int64_t>(batches_.calibration.size()), "calibration batches");
    for (const std::vector<Tensor>& inputs : batches_.calibration) {
      std::vector<Tensor> all = HONE_TRY(run_as(inputs, choices_));
      size_t at = outputs;
      for (size_t l = 0; l < layers_.size(); ++l) {
        if (!layers_[l].why_not.empty()) continue;
        const double low = all[at++].real_at(0), high = all[at++].real_at(0);
        if (!std::isfinite(low) || !std::isfinite(high))
          return bad_input("the data of layer '{}' are not finite numbers", layers_[l].name)
              .with_hint("choose other arrays, or --keep the layer");
        choices_[l].data.low = std::min(choices_[l].data.low, low);
        choices_[l].data.high = std::max(choices_[l].data.high, high);
      }
      all.resize(outputs);
      expected_.push_back(std::move(all));
      progress().advance();
    }
    progress().finish();
    return {};
  }

  Result<Difference> measured(std::span<const LayerChoice> choices) {
    Difference worst;
    for (size_t b = 0; b < batches_.calibration.size(); ++b) {
      const std::vector<Tensor> actual = HONE_TRY(run_as(batches_.calibration[b], choices));
      worst.add(HONE_TRY(difference(actual, expected_[b])));
    }
    return worst;
  }

  // Equal layers are priced once.
  Result<double> seconds(size_t l, Precision level) {
    const Graph alone = HONE_TRY(layer_alone(graph_, layers_[l], level, options_.group));
    const auto [at, is_new] = seconds_.try_emplace(hash_without_weights(alone));
    if (is_new) at->second = HONE_TRY(machine_.seconds(alone));
    return at->second;
  }

  Status price() {
    for (size_t l = 0; l < layers_.size(); ++l) {
      if (options_of_[l].empty()) continue;
      HONE_TRY(go_on());
      reports_[l].seconds_f32 = reports_[l].seconds = HONE_TRY(seconds(l, Precision::f32));
      for (Option& option : options_of_[l]) option.seconds = HONE_TRY(seconds(l, option.level));
      if (!options_.only_faster) continue;
      const double least = (1 - kFasterBy) * reports_[l].seconds_f32;
      std::erase_if(options_of_[l], [&](const Option& each) { return each.seconds >= least; });
      if (options_of_[l].empty()) reports_[l].why = "no level takes less time";
    }
    for (const std::vector<Option>& all : options_of_)
      if (!all.empty()) return {};
    return unsupported("no layer takes less time at another level on this machine")
        .with_hint("--to w4, or another level, makes the file smaller all the same");
  }

  Status measure_alone() {
    int64_t runs = 0;
    for (const std::vector<Option>& all : options_of_) runs += static_cast<int64_t>(all.size());
    progress().start(runs, "levels of layers");
    for (size_t l = 0; l < layers_.size(); ++l)
      for (Option& option : options_of_[l]) {
        progress().now(layers_[l].name);
        std::vector<LayerChoice> one = choices_;
        one[l].level = option.level;
        option.error = HONE_TRY(measured(one)).error;
        progress().advance();
      }
    progress().finish();
    return {};
  }

  // ---- Choosing ---------------------------------------------------------------------------------

  // Errors of layers are taken to be independent: their squares add up.
  void choose_within(double aim) {
    double left = aim * aim;
    struct Step {
      size_t layer = 0;
      const Option* option = nullptr;
      double gain = 0, cost = 0;
    };
    std::vector<const Option*> taken(layers_.size());
    for (;;) {
      std::optional<Step> best;
      for (size_t l = 0; l < layers_.size(); ++l)
        for (const Option& option : options_of_[l]) {
          const Option* before = taken[l];
          if (before == &option) continue;
          const double gain =
              before ? before->seconds - option.seconds : reports_[l].seconds_f32 - option.seconds;
          const double cost =
              option.error * option.error - (before ? before->error * before->error : 0);
          if (cost > left || (before && gain <= 0) || (options_.only_faster && gain <= 0)) continue;
          const auto is_better = [&] {
            if (!best) return true;
            if (!options_.only_faster) return cost < best->cost;
            // More time for each unit of error; what costs no error comes first.
            return gain * std::max(best->cost, 1e-30) > best->gain * std::max(cost, 1e-30);
          };
          if (is_better()) best = {l, &option, gain, cost};
        }
      if (!best) break;
      taken[best->layer] = best->option;
      left -= best->cost;
    }
    for (size_t l = 0; l < layers_.size(); ++l) take(l, taken[l]);
  }

  void take(size_t l, const Option* option) {
    choices_[l].level = option ? option->level : Precision::f32;
    LayerReport& report = reports_[l];
    report.level = choices_[l].level;
    report.error = option ? option->error : 0;
    report.seconds = option ? option->seconds : report.seconds_f32;
    report.bytes = weight_bytes(layers_[l], report.level, options_.group);
    if (!options_of_[l].empty()) report.why = option ? "" : "the error";
  }

  // Takes back the layer whose error is largest for the time that it saves.
  bool take_one_back() {
    std::optional<size_t> worst;
    const auto rank = [&](size_t l) {
      const double gain = std::max(reports_[l].seconds_f32 - reports_[l].seconds, 1e-12);
      const double squared = reports_[l].error * reports_[l].error;
      return options_.only_faster ? squared / gain : squared;
    };
    for (size_t l = 0; l < layers_.size(); ++l)
      if (choices_[l].level != Precision::f32 && (!worst || rank(l) > rank(*worst))) worst = l;
    if (worst) take(*worst, nullptr);
    return worst.has_value();
  }

  bool is_any_chosen() const {
    return std::ranges::any_of(choices_,
                               [](const LayerChoice& c) { return c.level != Precision::f32; });
  }

  Error out_of_reach(double unseen) const {
    double least = HUGE_VAL;
    size_t at = 0;
    for (size_t l = 0; l < layers_.size(); ++l)
      for (const Option& option : options_of_[l])
        if (option.error < least) least = option.error, at = l;
    return check_failed(
               "no layer can change within an error of {:.3g}: the best is {:.3g}, of layer '{}' "
               "alone",
               options_.error, std::max(least, unseen), layers_[at].name)
        .with_hint("a larger --error, or another level by --to");
  }

  Result<QuantizeResult> within_error() {
    double aim = options_.error, unseen = 0;
    for (int round = 0; round < kMostRounds; ++round, aim *= kLowerAim) {
      choose_within(aim);
      QuantizeResult result;
      while (is_any_chosen()) {
        result.calibration = HONE_TRY(measured(choices_));
        if (result.calibration.error <= aim) break;
        take_one_back();
      }
      if (!is_any_chosen()) break;
      result.graph = HONE_TRY(quantized(graph_, layers_, choices_, options_.group));
      result.unseen = HONE_TRY(check(result.graph));
      unseen = result.unseen.error;
      if (unseen > options_.error) continue;
      result.choices = choices_;
      result.reports = reports_;
      return result;
    }
    return out_of_reach(unseen);
  }

  // The graph that is written, on arrays that calibration did not see.
  Result<Difference> check(const Graph& quantized) {
    const RunGraph run = HONE_TRY(machine_.compile(quantized));
    const std::vector<LayerChoice> as_it_is(layers_.size());
    Difference worst;
    for (const std::vector<Tensor>& inputs : batches_.unseen) {
      std::vector<Tensor> expected = HONE_TRY(run_as(inputs, as_it_is));
      expected.resize(graph_.outputs().size());
      worst.add(HONE_TRY(difference(HONE_TRY(run(inputs)), expected)));
    }
    return worst;
  }

  const Graph& graph_;
  const QuantizeOptions& options_;
  const Batches& batches_;
  const QuantizeMachine& machine_;
  std::vector<Layer> layers_;
  std::vector<LayerChoice> choices_;                               // by layer
  std::vector<LayerReport> reports_;                               // by layer
  std::vector<std::vector<Option>> options_of_;                    // by layer
  std::vector<std::vector<Tensor>> expected_;                      // by calibration batch
  std::map<uint64_t, double> seconds_;                             // by layer and level
  std::vector<std::pair<Precision, std::vector<Tensor>>> latest_;  // by layer: inputs of the probe
  RunGraph run_probe_;
};

}  // namespace

Result<QuantizeResult> choose_levels(const Graph& graph, const QuantizeOptions& options,
                                     const Batches& batches, const QuantizeMachine& machine) {
  return Chooser(graph, options, batches, machine).run();
}

}  // namespace hone::quantize

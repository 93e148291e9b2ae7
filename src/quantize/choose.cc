#include "quantize/choose.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/text.h"
#include "quantize/front.h"
#include "quantize/seen.h"

namespace hone::quantize {
namespace {

// A level has to take this share of the time less, as prices are not exact.
constexpr double kFasterBy = 0.02;
// Bytes that a layer costs if it stays f32: somebody asked for a level, even one of as many bytes.
constexpr double kOfStaying = 1e-3;
// Smoothing and correction stay where they take this share of the error away: they cost time.
constexpr double kWorthIt = 0.02;

class Chooser {
 public:
  Chooser(const Graph& graph, const QuantizeOptions& options, const Batches& batches,
          const QuantizeMachine& machine)
      : graph_(graph), options_(options), batches_(batches), machine_(machine) {}

  Result<QuantizeResult> run() {
    layers_ = HONE_TRY(layers_of(graph_));
    HONE_TRY(leave_out(layers_, options_.keep));
    options_of_.resize(layers_.size());
    exact_.resize(layers_.size());
    latest_.resize(layers_.size());
    HONE_TRY(check_layers());
    run_probe_ = HONE_TRY(machine_.compile(HONE_TRY(probe(graph_, layers_))));
    HONE_TRY(calibrate());
    HONE_TRY(price());
    HONE_TRY(measure_alone());
    HONE_TRY(look_around());
    return best_allowed();
  }

 private:
  struct Option {
    LayerChoice choice;
    double seconds = 0;
    double error = 0;  // if only this layer has the level
  };
  using Options = std::vector<int>;  // as in Assigned

  Progress& progress() { return options_.progress ? *options_.progress : no_progress(); }
  Status go_on() const { return options_.cancel ? options_.cancel->check() : Status(); }

  // ---- What may change --------------------------------------------------------------------------

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
          options_of_[l].push_back({.choice = {.level = level}});
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
      auto& [choice, known] = latest_[l];
      if (known.empty() || choice != choices[l]) {
        choice = choices[l];
        known = probe_inputs(layers_[l], choice, options_.group);
      }
      all.insert(all.end(), known.begin(), known.end());
    }
    return run_probe_(all);
  }

  // Takes what a run of the probe saw of layers, and leaves the model's outputs.
  void move_seen(std::vector<Tensor>& outputs, std::vector<Seen>& seen) const {
    size_t at = graph_.outputs().size();
    for (size_t l = 0; l < layers_.size(); ++l) {
      if (!layers_[l].why_not.empty()) continue;
      seen[l].add(std::span(outputs).subspan(at, kProbeOutputs));
      at += kProbeOutputs;
    }
    outputs.resize(graph_.outputs().size());
  }

  // The f32 outputs, and what is seen of all layers.
  Status calibrate() {
    progress().start(static_cast<int64_t>(batches_.calibration.size()), "calibration batches");
    const std::vector<LayerChoice> as_it_is(layers_.size());
    for (const Batch& batch : batches_.calibration) {
      std::vector<Tensor> outputs = HONE_TRY(run_as(batch.inputs, as_it_is));
      move_seen(outputs, exact_);
      expected_.push_back(std::move(outputs));
      progress().advance();
    }
    progress().finish();
    for (size_t l = 0; l < layers_.size(); ++l)
      if (!exact_[l].is_finite())
        return bad_input("the data of layer '{}' are not finite numbers", layers_[l].name)
            .with_hint("choose other arrays, or --keep the layer");
    return {};
  }

  Result<Difference> measured(std::span<const LayerChoice> choices, std::vector<Seen>& seen) {
    Difference worst;
    for (size_t b = 0; b < batches_.calibration.size(); ++b) {
      const Batch& batch = batches_.calibration[b];
      std::vector<Tensor> actual = HONE_TRY(run_as(batch.inputs, choices));
      move_seen(actual, seen);
      worst.add_run(
          HONE_TRY(difference(actual, expected_[b], batch.labels ? &*batch.labels : nullptr)));
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
      for (Option& each : options_of_[l]) each.seconds = HONE_TRY(seconds(l, each.choice.level));
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
        HONE_TRY(refine(l, option));
        progress().advance();
      }
    progress().finish();
    return {};
  }

  // Finds the smoothing and the correction with which the layer has the least error.
  Status refine(size_t l, Option& option) {
    std::vector<LayerChoice> all(layers_.size());
    Seen seen;  // with the option
    const auto try_out = [&](LayerChoice choice, double most) -> Result<bool> {
      std::vector<Seen> now(layers_.size());
      all[l] = choice;
      const double error = HONE_TRY(measured(all, now)).error;
      if (!(error < most)) return false;
      option.choice = std::move(choice);
      option.error = error;
      seen = now[l];
      return true;
    };
    LayerChoice plain = option.choice;
    const bool has_bytes = plain.level == Precision::int8;
    if (has_bytes) plain.data = exact_[l].range();
    if (!HONE_TRY(try_out(plain, HUGE_VAL))) option.error = HUGE_VAL;
    if (has_bytes) {
      LayerChoice smooth = plain;
      smooth.smoothing = exact_[l].smoothing(layers_[l]);
      smooth.data = exact_[l].range_after(smooth.smoothing);
      if (!smooth.smoothing.empty())
        HONE_TRY(try_out(std::move(smooth), (1 - kWorthIt) * option.error));
    }
    // Other levels hardly move a mean.
    if (!has_bytes && plain.level != Precision::w4 && plain.level != Precision::w2) return {};
    LayerChoice corrected = option.choice;
    corrected.correction = seen.correction(layers_[l], exact_[l]);
    if (!corrected.correction.empty())
      HONE_TRY(try_out(std::move(corrected), (1 - kWorthIt) * option.error));
    return {};
  }

  // ---- Choosing ---------------------------------------------------------------------------------

  bool is_allowed(const Difference& difference) const {
    if (options_.drop) return difference.answers.drop() <= *options_.drop;
    return difference.error <= options_.error;
  }

  // Errors of layers are taken to be independent: their squares add up.
  Options greedy_within(double aim) const {
    double left = aim * aim;
    struct Step {
      size_t layer = 0;
      int option = kStays;
      double gain = 0, cost = 0;
    };
    Options taken(layers_.size(), kStays);
    for (;;) {
      std::optional<Step> best;
      for (size_t l = 0; l < layers_.size(); ++l)
        for (size_t o = 0; o < options_of_[l].size(); ++o) {
          const bool is_first = taken[l] == kStays;
          if (!is_first && static_cast<size_t>(taken[l]) == o) continue;
          const Option& option = options_of_[l][o];
          const double before = error_of(l, taken[l]);
          const double gain = seconds_of(l, taken[l]) - option.seconds;
          const double cost = option.error * option.error - before * before;
          if (!(cost <= left) || ((options_.only_faster || !is_first) && gain <= 0)) continue;
          const auto is_better = [&] {
            if (!best) return true;
            if (!options_.only_faster) return cost < best->cost;
            // More time for each unit of error; what costs no error comes first.
            return gain * std::max(best->cost, 1e-30) > best->gain * std::max(cost, 1e-30);
          };
          if (is_better()) best = {l, static_cast<int>(o), gain, cost};
        }
      if (!best) return taken;
      taken[best->layer] = best->option;
      left -= best->cost;
    }
  }

  const Option* option_of(size_t l, int option) const {
    return option == kStays ? nullptr : &options_of_[l][static_cast<size_t>(option)];
  }
  double error_of(size_t l, int option) const {
    return option == kStays ? 0 : option_of(l, option)->error;
  }
  double seconds_of(size_t l, int option) const {
    return option == kStays ? reports_[l].seconds_f32 : option_of(l, option)->seconds;
  }
  int64_t bytes_of(size_t l, int option) const {
    const Precision level = option == kStays ? Precision::f32 : option_of(l, option)->choice.level;
    return weight_bytes(layers_[l], level, options_.group);
  }
  std::vector<LayerChoice> choices_of(const Options& options) const {
    std::vector<LayerChoice> choices(layers_.size());
    for (size_t l = 0; l < layers_.size(); ++l)
      if (const Option* option = option_of(l, options[l])) choices[l] = option->choice;
    return choices;
  }
  static bool is_any_chosen(const Options& options) {
    return std::ranges::any_of(options, [](int option) { return option != kStays; });
  }

  // Takes back the layer whose error is largest for the time that it saves.
  void take_one_back(Options& options) const {
    std::optional<size_t> worst;
    const auto rank = [&](size_t l) {
      const double gain = std::max(reports_[l].seconds_f32 - seconds_of(l, options[l]), 1e-12);
      const double squared = error_of(l, options[l]) * error_of(l, options[l]);
      return options_.only_faster ? squared / gain : squared;
    };
    for (size_t l = 0; l < layers_.size(); ++l)
      if (options[l] != kStays && (!worst || rank(l) > rank(*worst))) worst = l;
    if (worst) options[*worst] = kStays;
  }

  Result<Assigned> assigned(const Options& options) {
    Assigned result = {.options = options};
    for (size_t l = 0; l < layers_.size(); ++l)
      result.cost += options_.only_faster ? seconds_of(l, options[l])
                                          : static_cast<double>(bytes_of(l, options[l])) +
                                                (options[l] == kStays ? kOfStaying : 0);
    std::vector<Seen> seen(layers_.size());
    const Difference difference = HONE_TRY(measured(choices_of(options), seen));
    result.error = difference.error;
    result.is_allowed = is_allowed(difference);
    return result;
  }

  // Adds choices to the front until one is allowed, with at most this error.
  Status add_greedy(double aim) {
    Options options = greedy_within(aim);
    while (is_any_chosen(options)) {
      const Assigned now = HONE_TRY(assigned(options));
      front_.add(now);
      if (now.is_allowed && now.error <= aim) break;
      take_one_back(options);
    }
    return {};
  }

  // The cheapest allowed choice of the front with at most this error.
  const Assigned* cheapest(double most_error) const {
    for (const Assigned& one : front_.all())
      if (one.is_allowed && one.error <= most_error && is_any_chosen(one.options)) return &one;
    return nullptr;
  }

  Status look_around() {
    front_.add(HONE_TRY(assigned(Options(layers_.size(), kStays))));
    HONE_TRY(add_greedy(most_error()));
    const Assigned* found = cheapest(most_error());
    std::vector<int> counts;
    for (const std::vector<Option>& all : options_of_)
      counts.push_back(static_cast<int>(all.size()));
    progress().start(0, "trials of other choices");
    HONE_TRY(evolve(
        front_, counts,
        {.trials = options_.trials,
         .aim = found ? found->error : most_error(),
         .seed = options_.seed},
        [&](const Options& options) {
          progress().advance();
          return assigned(options);
        }));
    progress().finish();
    return {};
  }

  // The most that errors of layers may add up to. A drop is measured alone: any error may do.
  double most_error() const { return options_.drop ? 1 : options_.error; }

  Error out_of_reach(double unseen) const {
    double least = HUGE_VAL;
    size_t at = 0;
    for (size_t l = 0; l < layers_.size(); ++l)
      for (const Option& option : options_of_[l])
        if (option.error < least) least = option.error, at = l;
    if (options_.drop)
      return check_failed(
                 "no choice that was tried keeps the drop within {:.3g} %: layer '{}' alone has an "
                 "error of {:.3g}, the least of all",
                 100 * *options_.drop, layers_[at].name, least)
          .with_hint("a larger --drop, more --data, or another level by --to");
    return check_failed(
               "no layer can change within an error of {:.3g}: the best is {:.3g}, of layer '{}' "
               "alone",
               options_.error, std::max(least, unseen), layers_[at].name)
        .with_hint("a larger --error, or another level by --to");
  }

  Result<QuantizeResult> best_allowed() {
    double most = most_error(), unseen = 0;
    for (int round = 0; round < kMostRounds; ++round) {
      const Assigned* found = cheapest(most);
      if (found == nullptr) {
        HONE_TRY(add_greedy(most));
        found = cheapest(most);
      }
      if (found == nullptr) break;
      const Assigned best = *found;
      QuantizeResult result;
      result.choices = choices_of(best.options);
      result.graph = HONE_TRY(quantized(graph_, layers_, result.choices, options_.group));
      result.unseen = HONE_TRY(check(result.graph));
      unseen = result.unseen.error;
      if (!is_allowed(result.unseen)) {
        // As much less as the unseen arrays have more.
        const double lower = options_.drop ? kLowerAim : options_.error / unseen;
        most = best.error * std::min(lower, 0.99);
        continue;
      }
      std::vector<Seen> seen(layers_.size());
      result.calibration = HONE_TRY(measured(result.choices, seen));
      report(best.options);
      result.reports = reports_;
      for (const Assigned& one : front_.all())
        result.front.push_back({one.cost, one.error, one.options == best.options});
      return result;
    }
    return out_of_reach(unseen);
  }

  void report(const Options& options) {
    for (size_t l = 0; l < layers_.size(); ++l) {
      const Option* option = option_of(l, options[l]);
      LayerReport& report = reports_[l];
      report.level = option ? option->choice.level : Precision::f32;
      report.error = error_of(l, options[l]);
      report.seconds = seconds_of(l, options[l]);
      report.bytes = bytes_of(l, options[l]);
      report.is_smoothed = option && !option->choice.smoothing.empty();
      report.is_corrected = option && !option->choice.correction.empty();
      if (!options_of_[l].empty()) report.why = option ? "" : "the error";
    }
  }

  // The graph that is written, on arrays that calibration did not see.
  Result<Difference> check(const Graph& quantized) {
    const RunGraph run = HONE_TRY(machine_.compile(quantized));
    const std::vector<LayerChoice> as_it_is(layers_.size());
    Difference worst;
    for (const Batch& batch : batches_.unseen) {
      std::vector<Tensor> expected = HONE_TRY(run_as(batch.inputs, as_it_is));
      expected.resize(graph_.outputs().size());
      worst.add_run(HONE_TRY(difference(HONE_TRY(run(batch.inputs)), expected,
                                        batch.labels ? &*batch.labels : nullptr)));
    }
    return worst;
  }

  const Graph& graph_;
  const QuantizeOptions& options_;
  const Batches& batches_;
  const QuantizeMachine& machine_;
  std::vector<Layer> layers_;
  std::vector<LayerReport> reports_;             // by layer
  std::vector<std::vector<Option>> options_of_;  // by layer
  std::vector<std::vector<Tensor>> expected_;    // by calibration batch
  std::map<uint64_t, double> seconds_;           // by layer and level
  std::vector<Seen> exact_;                      // by layer, in f32
  Front front_;
  std::vector<std::pair<LayerChoice, std::vector<Tensor>>>
      latest_;  // by layer: inputs of the probe
  RunGraph run_probe_;
};

}  // namespace

std::string remark(const LayerReport& report) {
  if (!report.is_smoothed) return report.is_corrected ? "corrected" : report.why;
  return report.is_corrected ? "smoothed, corrected" : "smoothed";
}

Result<QuantizeResult> choose_levels(const Graph& graph, const QuantizeOptions& options,
                                     const Batches& batches, const QuantizeMachine& machine) {
  return Chooser(graph, options, batches, machine).run();
}

}  // namespace hone::quantize

#include "quantize/hardware.h"

#include <algorithm>
#include <cmath>

#include "quantize/front.h"
#include "quantize/seen.h"

namespace hone::quantize {
namespace {

constexpr int kExact = kStays;  // the layer has exact products

class HardwareChooser {
 public:
  HardwareChooser(const Graph& graph, const QuantizeOptions& options,
                  std::span<const Multiplier> multipliers, const Batches& batches,
                  const QuantizeMachine& machine)
      : graph_(graph), options_(options), batches_(batches), machine_(machine) {
    for (const Multiplier& each : multipliers) {
      if (!each.is_exact()) {
        inexact_.push_back(&each);
      } else if (exact_ == nullptr || each.power < exact_->power) {
        exact_ = &each;
      }
    }
    std::ranges::sort(inexact_, {}, &Multiplier::power);
  }

  Result<HardwareResult> run() {
    if (exact_ == nullptr) return bad_input("no multiplier is exact, to compare energy with");
    HONE_TRY(find_layers());
    HONE_TRY(calibrate());
    run_tables_ = HONE_TRY(
        machine_.compile(HONE_TRY(with_products(graph_, layers_, ranges_, exact_->is_signed, {}))));
    const std::vector<int> none(layers_.size(), kExact);
    result_.exact = HONE_TRY(measured(none));
    if (!is_allowed(result_.exact))
      return check_failed("exact products of bytes have an error of {:.3g} already",
                          result_.exact.error)
          .with_hint("a larger --error or --drop, or --keep the most sensitive layers");
    front_.add(assigned(none, result_.exact));
    HONE_TRY(measure_alone());
    HONE_TRY(look_around());
    return best_allowed();
  }

 private:
  Progress& progress() { return options_.progress ? *options_.progress : no_progress(); }
  Status go_on() const { return options_.cancel ? options_.cancel->check() : Status(); }
  bool is_allowed(const Difference& difference) const {
    if (options_.drop) return difference.answers.drop() <= *options_.drop;
    return difference.error <= options_.error;
  }
  double most_error() const { return options_.drop ? 1 : options_.error; }

  Status find_layers() {
    all_ = HONE_TRY(layers_of(graph_));
    HONE_TRY(leave_out(all_, options_.keep));
    std::string why = "it has no products";
    for (const Layer& layer : all_) {
      HardwareReport report = {.name = layer.name};
      Result<ByteLayer> found = byte_layer(graph_, layer);
      if (found.ok()) {
        report.products = found->products();
        layers_.push_back(*std::move(found));
        place_.push_back(result_.reports.size());
      } else {
        why = report.why = found.error().what();
      }
      result_.reports.push_back(std::move(report));
    }
    if (layers_.empty())
      return unsupported("no layer of the model can have products of a table: {}", why);
    return {};
  }

  // The f32 outputs, and the ranges of the data.
  Status calibrate() {
    const RunGraph run = HONE_TRY(machine_.compile(HONE_TRY(probe(graph_, all_))));
    std::vector<Tensor> as_it_is;
    std::vector<size_t> at(all_.size());  // of the layer's outputs
    size_t outputs = graph_.outputs().size();
    for (size_t l = 0; l < all_.size(); ++l) {
      if (!all_[l].why_not.empty()) continue;
      at[l] = outputs;
      outputs += kProbeOutputs;
      for (Tensor& each : probe_inputs(all_[l], {}, options_.group))
        as_it_is.push_back(std::move(each));
    }
    std::vector<Seen> seen(layers_.size());
    const auto exact_run = [&](const Batch& batch) -> Result<std::vector<Tensor>> {
      HONE_TRY(go_on());
      std::vector<Tensor> inputs = batch.inputs;
      inputs.insert(inputs.end(), as_it_is.begin(), as_it_is.end());
      return run(inputs);
    };
    for (const Batch& batch : batches_.calibration) {
      std::vector<Tensor> made = HONE_TRY(exact_run(batch));
      for (size_t l = 0; l < layers_.size(); ++l)
        seen[l].add(std::span(made).subspan(at[place_[l]], kProbeOutputs));
      made.resize(graph_.outputs().size());
      expected_.push_back(std::move(made));
    }
    for (const Batch& batch : batches_.unseen) {
      std::vector<Tensor> made = HONE_TRY(exact_run(batch));
      made.resize(graph_.outputs().size());
      unseen_.push_back(std::move(made));
    }
    for (size_t l = 0; l < layers_.size(); ++l) {
      if (!seen[l].is_finite())
        return bad_input("the data of layer '{}' are not finite numbers", layers_[l].layer.name)
            .with_hint("choose other arrays, or --keep the layer");
      ranges_.push_back(seen[l].range());
    }
    return {};
  }

  const Multiplier& multiplier(int option) const {
    return option == kExact ? *exact_ : *inexact_[static_cast<size_t>(option)];
  }
  double energy_of(size_t l, int option) const {
    return static_cast<double>(layers_[l].products()) * multiplier(option).power;
  }
  std::vector<Tensor> tables_of(const std::vector<int>& options) const {
    std::vector<Tensor> tables;
    for (int option : options)
      tables.push_back(multiplier(option).products.viewed_as(Type::get(DType::i32, {65536})));
    return tables;
  }

  Result<Difference> differences(std::span<const Batch> batches,
                                 const std::vector<std::vector<Tensor>>& expected,
                                 const std::vector<int>& options) {
    const std::vector<Tensor> tables = tables_of(options);
    Difference worst;
    for (size_t i = 0; i < batches.size(); ++i) {
      HONE_TRY(go_on());
      std::vector<Tensor> inputs = batches[i].inputs;
      inputs.insert(inputs.end(), tables.begin(), tables.end());
      worst.add_run(HONE_TRY(difference(HONE_TRY(run_tables_(inputs)), expected[i],
                                        batches[i].labels ? &*batches[i].labels : nullptr)));
    }
    return worst;
  }
  Result<Difference> measured(const std::vector<int>& options) {
    return differences(batches_.calibration, expected_, options);
  }

  Assigned assigned(const std::vector<int>& options, const Difference& difference) const {
    Assigned one = {.options = options, .error = difference.error};
    double all = 0;
    for (size_t l = 0; l < layers_.size(); ++l) {
      one.cost += energy_of(l, options[l]);
      all += energy_of(l, kExact);
    }
    one.cost /= all;
    one.is_allowed = is_allowed(difference);
    return one;
  }
  Result<Assigned> tried(const std::vector<int>& options) {
    return assigned(options, HONE_TRY(measured(options)));
  }

  // One layer and multiplier at a time, the others exact.
  Status measure_alone() {
    progress().start(std::ssize(layers_) * std::ssize(inexact_), "multipliers of layers");
    for (size_t l = 0; l < layers_.size(); ++l) {
      progress().now(layers_[l].layer.name);
      errors_.emplace_back();
      for (size_t m = 0; m < inexact_.size(); ++m) {
        std::vector<int> options(layers_.size(), kExact);
        options[l] = static_cast<int>(m);
        const Difference now = HONE_TRY(measured(options));
        front_.add(assigned(options, now));
        errors_.back().push_back(now.error);
        progress().advance();
      }
    }
    progress().finish();
    return {};
  }

  // This is what a multiplier adds to the squared error, which is taken to add up.
  double added(size_t l, int option) const {
    if (option == kExact) return 0;
    const double error = errors_[l][static_cast<size_t>(option)], base = result_.exact.error;
    return std::max(error * error - base * base, 0.0);
  }

  // Steps with the most energy saved for each unit of squared error, as long as there is some left.
  std::vector<int> greedy_within(double aim) const {
    std::vector<int> options(layers_.size(), kExact);
    double left = aim * aim - result_.exact.error * result_.exact.error;
    for (;;) {
      size_t best_layer = 0;
      int best = kExact;
      double best_rank = 0;
      for (size_t l = 0; l < layers_.size(); ++l)
        for (int m = 0; m < static_cast<int>(inexact_.size()); ++m) {
          const double gain = energy_of(l, options[l]) - energy_of(l, m);
          const double cost = added(l, m) - added(l, options[l]);
          const double rank = gain / std::max(cost, 1e-30);
          if (gain <= 0 || cost > left || rank <= best_rank) continue;
          best_layer = l, best = m, best_rank = rank;
        }
      if (best == kExact) return options;
      left -= added(best_layer, best) - added(best_layer, options[best_layer]);
      options[best_layer] = best;
    }
  }

  // The layer whose multiplier adds most for what it saves.
  void take_one_back(std::vector<int>& options) const {
    size_t worst = 0;
    double most = -1;
    for (size_t l = 0; l < layers_.size(); ++l) {
      if (options[l] == kExact) continue;
      const double gain = energy_of(l, kExact) - energy_of(l, options[l]);
      const double rank = added(l, options[l]) / std::max(gain, 1e-30);
      if (rank > most) most = rank, worst = l;
    }
    options[worst] = kExact;
  }

  Status add_greedy(double aim) {
    std::vector<int> options = greedy_within(aim);
    while (std::ranges::any_of(options, [](int option) { return option != kExact; })) {
      const Assigned now = HONE_TRY(tried(options));
      front_.add(now);
      if (now.is_allowed && now.error <= aim) break;
      take_one_back(options);
    }
    return {};
  }

  Status look_around() {
    HONE_TRY(add_greedy(most_error()));
    const std::vector<int> counts(layers_.size(), static_cast<int>(inexact_.size()));
    progress().start(0, "other choices");
    HONE_TRY(evolve(
        front_, counts, {.trials = options_.trials, .aim = most_error(), .seed = options_.seed},
        [&](const std::vector<int>& options) { return tried(options); }));
    progress().finish();
    return {};
  }

  Result<HardwareResult> best_allowed() {
    double most = most_error();
    for (int round = 0; round < kMostRounds; ++round) {
      const auto found = std::ranges::find_if(
          front_.all(), [&](const Assigned& one) { return one.is_allowed && one.error <= most; });
      if (found == front_.all().end()) break;
      const Assigned best = *found;
      result_.unseen = HONE_TRY(differences(batches_.unseen, unseen_, best.options));
      if (is_allowed(result_.unseen)) {
        HONE_TRY(report(best));
        return std::move(result_);
      }
      const double lower = options_.drop ? kLowerAim : options_.error / result_.unseen.error;
      most = best.error * std::min(lower, 0.99);
    }
    return check_failed(
               "no choice is within the error on arrays that calibration did not see: {:.3g}",
               result_.unseen.error)
        .with_hint("a larger --error, or more --data");
  }

  Status report(const Assigned& best) {
    result_.calibration = HONE_TRY(measured(best.options));
    result_.graph = HONE_TRY(
        with_products(graph_, layers_, ranges_, exact_->is_signed, tables_of(best.options)));
    for (size_t l = 0; l < layers_.size(); ++l) {
      HardwareReport& report = result_.reports[place_[l]];
      const int option = best.options[l];
      report.multiplier = multiplier(option).name;
      report.error =
          option == kExact ? result_.exact.error : errors_[l][static_cast<size_t>(option)];
      result_.energy += report.energy = energy_of(l, option);
      result_.energy_exact += report.energy_exact = energy_of(l, kExact);
    }
    for (const Assigned& one : front_.all())
      result_.front.push_back({one.cost, one.error, one.options == best.options});
    return {};
  }

  const Graph& graph_;
  const QuantizeOptions& options_;
  const Batches& batches_;
  const QuantizeMachine& machine_;
  const Multiplier* exact_ = nullptr;
  std::vector<const Multiplier*> inexact_;  // by power
  std::vector<Layer> all_;
  std::vector<ByteLayer> layers_;
  std::vector<size_t> place_;  // of a layer in all_
  std::vector<DataRange> ranges_;
  std::vector<std::vector<Tensor>> expected_, unseen_;  // f32 outputs by batch
  std::vector<std::vector<double>> errors_;             // by layer and multiplier, the others exact
  RunGraph run_tables_;
  Front front_;
  HardwareResult result_;
};

}  // namespace

Result<HardwareResult> choose_multipliers(const Graph& graph, const QuantizeOptions& options,
                                          std::span<const Multiplier> multipliers,
                                          const Batches& batches, const QuantizeMachine& machine) {
  return HardwareChooser(graph, options, multipliers, batches, machine).run();
}

}  // namespace hone::quantize

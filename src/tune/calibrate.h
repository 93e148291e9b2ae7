#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "cost/kernel_model.h"
#include "cost/prices.h"
#include "log/log.h"
#include "target/target.h"
#include "tune/price_race.h"

// Prices for this machine, by measuring: the coefficients of the analytic one, and the last layers
// of a learned one.

namespace hone {

struct CalibrateOptions {
  double seconds = 180;  // for all; a few kernels and one model are measured in any case
  int64_t threads = 1;
  uint64_t seed = 0;
  Log* log = nullptr;        // what was measured before, and what is measured now
  std::string version = {};  // of hone, for the log
  const CancelToken* cancel = nullptr;
  std::function<void(std::string_view)> told = {};  // a line for each kernel and model
  // The learned price that plans are chosen by, of the target; null: by the formula alone.
  std::shared_ptr<const KernelModel> model = nullptr;
  // Plans are made by this so far: with the prices of an earlier call, and with a model of whole
  // plans. New prices have to make faster ones. Null: default coefficients beside the model.
  std::shared_ptr<const Cost> used = nullptr;
  std::vector<HeldBackModel> held_back = held_back_models();  // that decide about the fit
  PlanTimer timer = duel;                                     // of PriceRaceOptions
  SecondsClock now = steady_seconds;
  static constexpr int64_t kMostSchedules = 24;  // of a kernel: the planned one and drawn ones
};

// How good prices are for some kernels: means over them.
struct PriceCheck {
  size_t kernels = 0, schedules = 0;
  double tau = 0;    // of the order of a kernel's schedules
  double error = 0;  // of the times, relative
};

struct Calibration {
  Prices prices = {};  // the fitted ones if whole models are surely faster by them, else defaults
  Prices fitted = {};
  // The learned price with layers that the measurements have moved; none: nothing was better for
  // kernels that were left out, or whole models are not surely faster.
  std::optional<KernelModel> adapted = {};
  double adapted_before = 0, adapted_after = 0;  // losses of AdaptedModel; 0: nobody tried
  std::optional<PriceRace> race = {};            // of the fitted ones; none: there is nothing new
  double loss_before = 0, loss_after = 0;
  PriceCheck fitted_before = {}, fitted_after = {};  // kernels that were fitted to
  PriceCheck held_before = {}, held_after = {};      // and those that were not
  int64_t compiles = 0, reused = 0;
  size_t left_out = 0;                  // kernels for which there was no time
  std::optional<Error> unwritten = {};  // why the log does not have all that was measured
  double seconds = 0;
  bool is_default() const { return prices == Prices(); }
  // Else what counted before goes on to count.
  bool is_better() const { return race && race->why_not().empty(); }
  // Plans of whole models decide: fitted and adapted prices count if they are surely faster by
  // them, else neither do.
  void decide_by(PriceRace of_both);
};

// The target is this machine, or a restriction of it. An error: hardly any of the
// kernels can be measured.
Result<Calibration> calibrate(const Target& target, const CalibrateOptions& options);

}  // namespace hone

#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cost/cost.h"
#include "learn/kernel_data.h"
#include "learn/models/train_kernel_model.h"

// Judges how good prices are for kernels that were measured.

namespace hone {

struct KernelVerdict {
  std::string kind, program;  // the first of its programs
  double tau = 0;             // of the order of its schedules (ranking.h)
  double top1 = 0, top5 = 0;  // regrets: 0.03 is 3 %
  double error = 0;           // mean of |price - time| / time
  double planned = 0;         // the same of the planner's schedule alone
};
KernelVerdict verdict_of(const KernelSample& kernel, std::span<const double> prices);
std::vector<KernelVerdict> judge_prices(std::span<const KernelSample> kernels, const Cost& cost,
                                        int64_t threads);
// The same of another measurement with the noise of the times, which no price can be surer than.
std::vector<KernelVerdict> judge_replicates(std::span<const KernelSample> kernels);

// Means over the verdicts of a kind, or of all (`kind` empty).
struct MeanVerdict {
  size_t kernels = 0;
  double tau = 0, top1 = 0, top5 = 0, error = 0, planned = 0;
};
MeanVerdict mean_of(std::span<const KernelVerdict> verdicts, std::string_view kind = "");

// A model that is trained on one part of the programs and judged by another. Beside it stand the
// analytic price as it is, and with coefficients that were fitted to the same kernels.
struct PriceTrial {
  KernelModel model;
  std::vector<KernelVerdict> plain, fitted, learned, again;  // of the kernels of Part::test; the
                                                             // last by another measurement
  double known = 0;                                          // share of them that the model knows
  // The kernels that have a bound: how often the bound of one candidate holds, and its mean.
  size_t bounded = 0;
  double bound_holds = 0, bound = 0;
  // The choices of the planner: the order of the analytic price as it is, but what the learned
  // one puts first comes first where it has the lead.
  std::vector<KernelVerdict> chosen;
  double seconds = 0;  // of training
};

// The model is of the target.
PriceTrial judged(KernelModel model, std::span<const KernelSample> kernels, const Target& target);
Result<PriceTrial> price_trial(const KernelData& data, const ProgramSplit& split,
                               const ModelTraining& options);

// Models that have not seen what they are judged by: a processor, a part of the families of
// programs, or both. A trial for each model and set.
struct LeftOutTrials {
  std::vector<PriceTrial> processor, family, both;
};
// Models learn from `sets`. They are judged by `others`, of processors that the sets lack. Without
// others each processor is left out in turn, if two remain. Programs are cut into `parts`, families
// together; where both are left out each processor goes with one part.
Result<LeftOutTrials> left_out_trials(std::span<const MeasuredSet> sets,
                                      std::span<const MeasuredSet> others, size_t parts,
                                      const ModelTraining& options);

// The time of a kernel by the planner's schedule, and its prices. Seconds.
struct TimeVerdict {
  std::string kind;
  KernelOrigin origin = KernelOrigin::plan;
  double time = 0, analytic = 0, fitted = 0, learned = 0;
};
inline constexpr double kLeastJudgedTime = 5e-6;  // of a kernel: less is mostly launching
// Judges kernels of Part::test in absolute time (load_fusion_data()). The model is trained on the
// other kernels, and on the schedules of kernels of their programs in `tiles`. Both sets have one
// target.
Result<std::vector<TimeVerdict>> time_trial(const KernelData& tiles, const KernelData& fusion,
                                            const ProgramSplit& split,
                                            const ModelTraining& options);
// The mean and the median of |price - time| / time, over the verdicts of a kind or of all (`kind`
// empty), and of an origin if there is one. NaN: there are no verdicts.
struct TimeErrors {
  size_t kernels = 0;
  double mean = 0, median = 0;
};
TimeErrors errors_of(std::span<const TimeVerdict> verdicts, double TimeVerdict::* price,
                     std::string_view kind = "", std::optional<KernelOrigin> origin = {});

// Programs that are mostly convs, and the others: one sort to train on, the other to test.
ProgramSplit dissimilar_split(const KernelData& data, bool tests_convs);
// Over programs, by the first one of each kernel: the most of the mean slowdown (1 + top1) of the
// choices by some prices over that by others. A short kernel counts as much as a long one.
double worst_program(std::span<const KernelVerdict> verdicts, std::span<const KernelVerdict> than);

// A mean over trials, and half of the width of its 95 % interval by Student's t; of one trial the
// interval is infinite.
struct MeanInterval {
  double mean = 0, half = 0;
};
MeanInterval interval_of(std::span<const double> values);

}  // namespace hone

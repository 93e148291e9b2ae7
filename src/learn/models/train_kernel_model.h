#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include "compile/compilation.h"
#include "cost/kernel_model.h"
#include "learn/kernel_data.h"
#include "learn/models/kernel_network.h"
#include "learn/models/measured_set.h"

// Makes a model of kernels from measurements.
//
//   const KernelData data = HONE_TRY(load_kernel_data("set"));
//   const KernelModel model = HONE_TRY(train_kernel_model(data.kernels, data.target,
//   data.threads));

namespace hone {

struct ModelTraining {
  NetworkOptions network = {};
  // The number of networks. Programs are cut into as many parts, and each network learns without
  // one of them. The programs that a network has not seen tell how far the model is to be trusted.
  int64_t members = 5;
  int64_t epochs = 6;
  double rate = 0.003;
  // How networks of one of several processors go on from the common ones.
  int64_t own_epochs = 4;
  double own_rate = 0.002;
  int64_t slate = 32, slates = 16;  // schedules of a kernel, kernels in a batch
  double caution = 1;               // KernelModel::caution
  double jitter = 0.15;             // of KernelSlates
  uint64_t seed = 0;
  bool knows_targets = true;  // of several processors: networks read features of the target
  bool fits_prices = true;    // else the analytic price has its default coefficients
  // Networks begin with those of this model, which may be of another target, and have their widths.
  // Its prices do not count. Null: with random numbers.
  const KernelModel* start = nullptr;
  // Checkpoints of the networks: training that was broken off goes on. Training with other data, or
  // from another start, begins anew. Empty: there are none.
  std::filesystem::path folder = {};
  CompileOptions compile = {};
  const CancelToken* cancel = nullptr;
  std::function<void(std::string_view)> told = {};  // a line for each step
};

// Trains on kernels that were measured with this number of threads on the target. Errors: fewer
// than two programs, or nothing to learn from.
Result<KernelModel> train_kernel_model(std::span<const KernelSample> kernels, const Target& target,
                                       int64_t threads, const ModelTraining& options = {});

// Makes a model of several processors from a set of each, all of one number of threads. Beside the
// networks that leave out programs it has one for each processor that leaves that out, and the
// programs of a part of the data with it. These say how far the model is to be trusted where it has
// not seen the processor. Each target has networks of its own, which go on from the common ones.
// Errors: the same for all sets together; one processor alone.
Result<KernelModel> train_kernel_model(std::span<const MeasuredSet> sets,
                                       const ModelTraining& options = {});

// The mean over the schedules of a kernel, for this number of threads: KernelModel::priced.
float mean_log_price(const TimedKernel& kernel, const Cost& cost, int64_t threads);

// The analytic price of such a model, fitted to some schedules of each kernel: those that lie
// evenly in the order of their times say as much as all.
FittedPrices fitted_prices(std::span<const KernelSample> kernels, const Target& target,
                           int64_t threads);
inline constexpr size_t kMostFitted = 24;  // schedules of a kernel

// Programs in parts of about as many kernels, families (family_of()) together if there are as many
// as parts: by kernel the parts that its programs are in, in order.
std::vector<std::vector<size_t>> program_folds(std::span<const KernelSample> kernels, size_t count,
                                               uint64_t seed);
std::vector<std::vector<size_t>> program_folds(std::span<const KernelSample* const> kernels,
                                               size_t count, uint64_t seed);

}  // namespace hone

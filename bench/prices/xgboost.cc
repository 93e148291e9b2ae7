#include "bench/prices/xgboost.h"

#include <fmt/format.h>
#include <xgboost/c_api.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

namespace hone::bench {
namespace {

using Handle = std::shared_ptr<void>;  // of a matrix or a booster
constexpr int kThreads = 1;            // as networks have

// What calls of XGBoost return: 0, or there is a message.
Status status_of(int code) {
  if (code != 0) return bad_input("XGBoost: {}", XGBGetLastError());
  return {};
}

Result<Handle> matrix_of(std::span<const Features> rows) {
  constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();
  DMatrixHandle matrix = nullptr;
  HONE_TRY(status_of(XGDMatrixCreateFromMat_omp(rows[0].all().data(), rows.size(), kFeatures,
                                                kMissing, &matrix, kThreads)));
  return Handle(matrix, XGDMatrixFree);
}

Status set(const Handle& matrix, const char* field, std::span<const float> values) {
  return status_of(XGDMatrixSetFloatInfo(matrix.get(), field, values.data(), values.size()));
}

// What trees learn from, by row.
struct Lesson {
  std::vector<float> labels, margins;  // a margin is what the trees add to
  std::vector<unsigned> groups;        // rows of each kernel
};

// As the loss of networks has it: trees correct the order by analytic price, and the logarithms of
// prices count in these units. Times that differ by less than twice their noise are equal.
constexpr double kRankUnit = 0.1;
Lesson order_of(std::span<const DescribedKernel> kernels) {
  Lesson lesson;
  for (const DescribedKernel& kernel : kernels) {
    const auto rows = static_cast<float>(kernel.times.size());
    const float noise = std::accumulate(kernel.noise.begin(), kernel.noise.end(), 0.0f) / rows;
    const float step = std::max(2 * noise, 1e-3f);
    const float slowest = std::ranges::max(kernel.times);
    for (size_t i = 0; i < kernel.times.size(); ++i) {
      lesson.labels.push_back(std::floor((slowest - kernel.times[i]) / step));
      lesson.margins.push_back(-kernel.analytic[i] / static_cast<float>(kRankUnit));
    }
    lesson.groups.push_back(static_cast<unsigned>(kernel.times.size()));
  }
  return lesson;
}

Lesson times_of(std::span<const DescribedKernel> kernels) {
  Lesson lesson;
  for (const DescribedKernel& kernel : kernels)
    for (size_t i = 0; i < kernel.times.size(); ++i)
      lesson.labels.push_back(kernel.times[i] - kernel.analytic[i]);
  return lesson;
}

Result<Handle> matrix_of(std::span<const DescribedKernel> kernels, const Lesson& lesson) {
  std::vector<Features> rows;
  for (const DescribedKernel& kernel : kernels)
    rows.insert(rows.end(), kernel.features.begin(), kernel.features.end());
  Handle matrix = HONE_TRY(matrix_of(rows));
  HONE_TRY(set(matrix, "label", lesson.labels));
  if (lesson.groups.empty()) return matrix;
  HONE_TRY(set(matrix, "base_margin", lesson.margins));
  HONE_TRY(status_of(
      XGDMatrixSetUIntInfo(matrix.get(), "group", lesson.groups.data(), lesson.groups.size())));
  return matrix;
}

Result<Handle> booster_of(const Handle& matrix, const XgboostOptions& options) {
  const DMatrixHandle matrices[] = {matrix.get()};
  BoosterHandle made = nullptr;
  HONE_TRY(status_of(XGBoosterCreate(matrices, 1, &made)));
  Handle booster(made, XGBoosterFree);
  const bool ranks = options.learn == TreesLearn::order;
  const std::pair<const char*, std::string> parameters[] = {
      {"objective", ranks ? "rank:pairwise" : "reg:squarederror"},
      {"num_pairsample", ranks ? "4" : ""},
      {"min_child_weight", ranks ? "1" : "8"},  // of pairs that are in order there is little
      {"base_score", "0"},
      {"tree_method", "hist"},
      {"max_depth", fmt::to_string(options.depth)},
      {"eta", fmt::to_string(options.eta)},
      {"subsample", "0.7"},
      {"colsample_bytree", "0.5"},
      {"nthread", fmt::to_string(kThreads)},
      {"verbosity", "0"}};
  for (const auto& [name, value] : parameters)
    if (!value.empty()) HONE_TRY(status_of(XGBoosterSetParam(booster.get(), name, value.c_str())));
  return booster;
}

Result<std::vector<double>> scores_of(const Handle& booster, std::span<const Features> rows) {
  const Handle matrix = HONE_TRY(matrix_of(rows));
  bst_ulong count = 0;
  const float* scores = nullptr;  // the booster's own
  HONE_TRY(status_of(XGBoosterPredict(booster.get(), matrix.get(), 0, 0, 0, &count, &scores)));
  return std::vector<double>(scores, scores + count);
}

}  // namespace

Status check_xgboost() { return {}; }

Result<TreeResiduals> train_xgboost(std::span<const DescribedKernel> kernels,
                                    const XgboostOptions& options) {
  const bool ranks = options.learn == TreesLearn::order;
  const Lesson lesson = ranks ? order_of(kernels) : times_of(kernels);
  const Handle matrix = HONE_TRY(matrix_of(kernels, lesson));
  const Handle booster = HONE_TRY(booster_of(matrix, options));
  for (int round = 0; round < options.rounds; ++round)
    HONE_TRY(status_of(XGBoosterUpdateOneIter(booster.get(), round, matrix.get())));
  const double unit = ranks ? -kRankUnit : 1;  // the higher a rank, the faster
  return TreeResiduals(
      [booster, unit](std::span<const Features> rows) -> Result<std::vector<double>> {
        std::vector<double> scores = HONE_TRY(scores_of(booster, rows));
        for (double& each : scores) each *= unit;
        return scores;
      });
}

}  // namespace hone::bench

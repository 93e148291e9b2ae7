#pragma once

#include <string>
#include <utility>
#include <vector>

#include "learn/models/judge_prices.h"

namespace hone::bench {

ModelTraining training();          // as flags say
double seconds_of_plans();         // that race: --seconds
double seconds_of_tuning();        // of a model: --tuned
Result<KernelData> kernel_data();  // of --data
Result<std::vector<ProgramSplit>> splits_of(const KernelData& data);
// The kernels of the test part, and a share of the others.
KernelData thinned(KernelData data, const ProgramSplit& split);

// Models that were trained on parts of the data of --data, and judged by the others.
struct Trials {
  KernelData data;
  std::vector<ProgramSplit> splits;
  std::vector<PriceTrial> unseen;                // by split
  std::vector<std::vector<KernelVerdict>> free;  // of these
  std::vector<std::pair<std::string, PriceTrial>> dissimilar;
};
// They are made when they are first asked for.
const Result<Trials>& trials();

}  // namespace hone::bench

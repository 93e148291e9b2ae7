#pragma once

#include <string>
#include <vector>

#include "report/model_report.h"

namespace hone {

// The first words of a report on a model that ran, sentence by sentence. They say how long a run
// takes, under which load of the machine it was measured, and why it is not the sum of its kernels.
std::vector<std::string> headline(const ModelReport& report);

}  // namespace hone

#pragma once

#include <string>

#include "learn/models/train_plan_model.h"

namespace hone {

// The choices of a model of whole plans for programs that its networks had not seen, and whether it
// counts.
std::string trained_plans_text(const TrainedPlans& trained);
std::string trained_plans_json(const TrainedPlans& trained);

}  // namespace hone

#pragma once

#include <span>
#include <string>
#include <vector>

#include "learn/models/judge_prices.h"

namespace hone {

// A table by kind of kernel, and of all, in which each figure is the mean over the trials that have
// such kernels. With several trials, those of all kernels have their intervals.
std::string price_trials_text(std::span<const PriceTrial> trials);
std::string price_trials_json(std::span<const PriceTrial> trials);

// Errors of absolute times, by kind of kernel and by origin, over the kernels of all trials; those
// of all kernels with intervals over several trials.
std::string time_trials_text(std::span<const std::vector<TimeVerdict>> trials);
std::string time_trials_json(std::span<const std::vector<TimeVerdict>> trials);

// Describes a model: "5 networks, 300 kernels of 12 programs, ...".
std::string kernel_model_text(const KernelModel& model);

}  // namespace hone

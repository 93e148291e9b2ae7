#pragma once

#include <span>
#include <string>

#include "lab/models/judge_graphs.h"

namespace hone {

// A row for each verdict, then means by model, by price, of random choice and of the default. There
// are means over random layouts and over those near the default, or over all. Others are over those
// with kManyRuns and more. `has_area` tells how well slow and fast configurations are told apart,
// with its interval.
std::string graph_verdicts_text(std::span<const GraphVerdict> verdicts, bool has_area);
std::string graph_verdicts_json(std::span<const GraphVerdict> verdicts);

// Describes a model: "sage, 2 layers of 32, ...".
std::string graph_model_text(const GraphModel& model);

}  // namespace hone

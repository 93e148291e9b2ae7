#pragma once

#include <string>

#include "ir/model.h"
#include "ir/summary.h"

namespace hone {

std::string summary_text(const GraphSummary& summary);  // for people
std::string summary_json(const GraphSummary& summary);  // an object, and a line break

// The same for a model of several segments: its inputs and outputs, and the content of each
// segment.
Result<std::string> model_text(const Model& model);
Result<std::string> model_json(const Model& model);

}  // namespace hone

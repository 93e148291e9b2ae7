#pragma once

#include <string>

#include "report/summary.h"

namespace hone {

std::string summary_text(const GraphSummary& summary);  // for people
std::string summary_json(const GraphSummary& summary);  // an object, and a line break

}  // namespace hone

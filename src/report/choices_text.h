#pragma once

#include <span>
#include <string>

#include "search/choices.h"

namespace hone {

// Within 100 columns.
std::string choices_text(const PlanChoices& choices);
// An object per graph, as an array, and a line break. Choices that are not counted are null.
std::string choices_json(std::span<const std::pair<std::string, PlanChoices>> graphs);

}  // namespace hone

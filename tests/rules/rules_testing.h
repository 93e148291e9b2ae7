#pragma once

#include <vector>

#include "rules/rule.h"

namespace hone {

// The rules of the folder rules/, file by file.
std::vector<Rule> committed_rules();

}  // namespace hone

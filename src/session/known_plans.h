#pragma once

#include <memory>
#include <string>

#include "log/log.h"
#include "session/native.h"

namespace hone {

// The plans of the log that are better than the planner's, for NativeOptions::best_plan. The face
// is told of each plan that is taken; `without` says how to do without: "--no-log". Plans that
// assume more of inputs than `assumed_decades` says are not taken.
decltype(NativeOptions::best_plan) known_plans(std::shared_ptr<const Log> log,
                                               std::function<void(std::string_view)> notice,
                                               std::string without, int32_t assumed_decades = 0);

}  // namespace hone

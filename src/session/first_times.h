#pragma once

#include "session/native.h"
#include "tune/first_times.h"

namespace hone {

// NativeOptions::revise: schedules of long kernels by their times. The cost is that of the plan;
// null: analytic.
decltype(NativeOptions::revise) first_times_by(std::shared_ptr<const Cost> cost,
                                               FirstTimesOptions options);

}  // namespace hone

#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "cost/cost.h"
#include "cost/task_price.h"

namespace hone {

// The time of each task of the last list, with the lists that it runs. `launches` has the seconds
// of a launch of each kernel, by the hash that tasks name it by. Symbols without a value count as
// their largest.
Result<std::vector<TaskSeconds>> task_seconds(const Tasks& tasks,
                                              const std::unordered_map<uint64_t, double>& launches,
                                              const Cost& cost, const Bindings& sizes = {});

}  // namespace hone

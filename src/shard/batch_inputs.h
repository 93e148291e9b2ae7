#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "ir/graph.h"
#include "shard/batch_part.h"

// Which inputs of a model have a batch, and which rows of it each device computes.

namespace hone {

struct BatchInputs {
  int64_t rows = 0;
  std::vector<int> dims = {};  // by input: the dim that has the rows, or kWhole
};

// The inputs with the batch, for inputs of these static types. `chosen` names them: "x" has it
// along dim 0, "x:1" along dim 1. If none is chosen, the first input that has a dim has it along
// dim 0. So have all whose dim 0 is the same in the graph, as a symbol or as a number.
Result<BatchInputs> batch_inputs(const Graph& graph, std::span<const Type> types,
                                 std::span<const std::string> chosen = {});

// As even as it gets; the first devices have a row more than the last ones. A device without rows
// is left out; of no rows the first device has all.
std::vector<BatchShare> batch_shares(int64_t rows, int64_t devices);
// Seconds that a device takes: to begin with, and for each row, which is above 0.
struct RowTimes {
  double start = 0;
  double row = 1;
};
// The same by speed: all devices are done as soon as they may be. If there are enough rows, each
// has one at least. If not, the first devices have them.
std::vector<BatchShare> batch_shares(int64_t rows, std::span<const RowTimes> times);

}  // namespace hone

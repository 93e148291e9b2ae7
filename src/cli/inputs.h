#pragma once

#include "cli/arguments.h"
#include "ir/graph.h"
#include "ir/tensor.h"

#include <string>
#include <string_view>
#include <vector>

// From --dim, --shape, --input, --inputs and --seed to the tensors of a graph's parameters.

namespace hone::cli {

class Console;

struct RunInputs {
  std::vector<Tensor> tensors;  // of all parameters, in order
  Bindings bindings;            // of all symbols
};

// Says on the console what was chosen: symbols, random inputs and their seed.
Result<RunInputs> resolve_inputs(const Graph& graph, const Arguments& arguments, Console& console);

// --dim NAME=N, each checked against its symbol.
Result<Bindings> dim_bindings(const Graph& graph, const std::vector<std::string>& texts);

// "2x3xf32=1 2 3 4 5 6", "i64=7", or one number for all elements: "8xf16=0.5".
Result<Type> parse_literal_type(std::string_view text);  // the part before the sign
Result<Tensor> parse_literal(std::string_view text);

}  // namespace hone::cli

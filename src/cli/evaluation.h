#pragma once

#include "cli/inputs.h"
#include "ir/model.h"
#include "ir/reference/evaluate.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

// Models, run by the reference.

namespace hone::cli {

class Console;

inline constexpr std::string_view kNumericsNames = "wide|rounded|fp32";
Numerics numerics_of(std::string_view name);

std::vector<std::string> names_of_outputs(const Model& model);

// Progress and cancelling are the console's.
Result<std::vector<Tensor>> evaluate_with_progress(const Graph& graph,
                                                   std::span<const Tensor> inputs,
                                                   EvalOptions options, Console& console);
Result<std::vector<Tensor>> evaluate_on(const Model& model, const RunInputs& inputs,
                                        EvalOptions options, Console& console);

// --rtol and --atol only with --expect.
Status check_tolerance_options(const Arguments& arguments);

}  // namespace hone::cli

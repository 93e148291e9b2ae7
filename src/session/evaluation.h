#pragma once

#include <string_view>
#include <vector>

#include "ir/model.h"
#include "ir/reference/evaluate.h"
#include "session/inputs.h"

// Models, run by the reference.

namespace hone {

inline constexpr std::string_view kNumericsNames = "wide|rounded|fp32";
Numerics numerics_of(std::string_view name);

// Progress and cancelling are the face's.
Result<std::vector<Tensor>> evaluate_on(const Model& model, const RunInputs& inputs,
                                        EvalOptions options, const Face& face = {});

}  // namespace hone

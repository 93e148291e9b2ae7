#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "ir/model.h"
#include "ir/reference/evaluate.h"
#include "oracle/accuracy_runs.h"
#include "runtime/runnable.h"
#include "session/inputs.h"

// Models, run by the reference.

namespace hone {

inline constexpr std::string_view kNumericsNames = "wide|rounded|fp32";
Numerics numerics_of(std::string_view name);

// Progress and cancelling are the face's.
Result<std::vector<Tensor>> evaluate_on(const Model& model, const RunInputs& inputs,
                                        EvalOptions options, const Face& face = {});

// Native code of the model beside the reference; other inputs are those of other seeds. Model,
// inputs and face outlive it.
Contest contest_of(const Model& model, const RunInputs& inputs,
                   std::shared_ptr<const Runnable> native, const Face& face = {});

}  // namespace hone

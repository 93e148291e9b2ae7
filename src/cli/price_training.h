#pragma once

#include <string>

#include "learn/models/train_kernel_model.h"
#include "learn/models/train_plan_model.h"
#include "session/native.h"

// Commands that train learned prices, or judge them, share these.

namespace hone::cli {

class Arguments;
class Console;

// Training is a program like others, whatever its prices are for. The native options outlive it.
ModelTraining model_training(const Arguments& arguments, const NativeOptions& native,
                             Console& console);
PlanTraining plan_training(const Arguments& arguments, const NativeOptions& native,
                           Console& console);
// The kernels of a set; a line says how many.
Result<KernelData> data_in(const std::string& folder, Console& console);
// The kernels as one of several sets; a line says where the rates of its machine are from.
MeasuredSet measured_set(const KernelData& data, const std::string& folder, Console& console);
// The text of a table, and the same as data where --json says.
Status tell_table(const Arguments& arguments, Console& console, const std::string& text,
                  const std::string& data);

}  // namespace hone::cli

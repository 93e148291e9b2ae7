#pragma once

#include "compile/compilation.h"

#include <string>
#include <vector>

// Compiling as people follow it: what each stage took, and what it made.

namespace hone {

struct StageTime {
  CompileStage stage;
  double seconds;
};

// An observer that notes the stages as they are done, and tells another one, which may be empty.
// The list outlives it.
std::function<void(CompileStage, double)> noting(
    std::vector<StageTime>& times, std::function<void(CompileStage, double)> other = {});

// Describes the result of the stage, and makes it if it is not there: "3 kernels to run on 2
// threads".
Result<std::string> made_by(CompileStage stage, Compilation& compilation);

CompileStage stage_from_name(std::string_view name);  // one of kStages

}  // namespace hone

#pragma once

#include <string>

#include "base/error.h"
#include "codegen/codegen.h"
#include "codegen/mlir.h"
#include "target/target.h"

namespace hone::code {

// A module of the llvm dialect as text or bytes of another form; not CodeForm::mlir.
Result<std::string> machine_code(mlir::ModuleOp module, const Target& target, CodeForm form,
                                 CodeEffort effort);

}  // namespace hone::code

#pragma once

#include "ir/op_def.h"

// Inference that elementwise ops share.

namespace hone {

// All operands have one type, which is the result's.
inline Result<std::vector<Type>> infer_same_type(const Application& app) {
  for (int i = 1; i < app.count(); ++i) {
    if (app.operand(i) != app.operand(0)) {
      return bad_input("operands must have one type, not {} and {}", app.operand(0).to_string(),
                       app.operand(i).to_string());
    }
  }
  return std::vector<Type>{app.operand(0)};
}

// As infer_same_type, but the result is bool.
inline Result<std::vector<Type>> infer_predicate(const Application& app) {
  std::vector<Type> types = HONE_TRY(infer_same_type(app));
  return std::vector<Type>{types[0].with_dtype(DType::boolean)};
}

}  // namespace hone

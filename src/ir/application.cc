#include "ir/application.h"

#include "ir/builder.h"

namespace hone {

Result<Graph> expansion(Op op, std::span<const Type> operands, ExpandFn form) {
  Builder builder(op.name());
  std::vector<Value> values;
  for (Type type : operands) values.push_back(type ? builder.parameter("", type) : Value());
  if (form == nullptr) form = op.def().expand;
  HONE_CHECK(form != nullptr, "{} is no composite", op.name());
  return builder.finish(form(builder, op, values));
}

}  // namespace hone

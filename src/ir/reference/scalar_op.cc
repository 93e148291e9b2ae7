#include "ir/reference/scalar_op.h"

#include <vector>

#include "ir/reference/run.h"

namespace hone {

struct ScalarOp::State {
  Op op;
  DType result_type;
  std::vector<Buffer<WideDomain>> operands;
  std::vector<const Buffer<WideDomain>*> pointers;
  std::vector<Buffer<WideDomain>> results;
  EvalState eval{EvalOptions{}};
  EvalContext context{.pool = default_pool(), .state = eval, .devices = {0}};
};

ScalarOp::ScalarOp(Op op, std::span<const DType> operands, DType result)
    : state_(std::make_unique<State>()) {
  state_->op = op;
  state_->result_type = result;
  for (DType dtype : operands) state_->operands.emplace_back(Type::scalar(dtype));
  for (const Buffer<WideDomain>& operand : state_->operands) state_->pointers.push_back(&operand);
  state_->results.emplace_back(Type::scalar(result));
}

ScalarOp::ScalarOp(ScalarOp&&) noexcept = default;
ScalarOp::~ScalarOp() = default;

ScalarNumber ScalarOp::operator()(std::span<const ScalarNumber> operands) {
  State& s = *state_;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (s.operands[i].holds_reals())
      s.operands[i].reals()[0] = operands[i].real;
    else
      s.operands[i].ints()[0] = operands[i].integer;
  }
  EvalCall<WideDomain> call{s.op, s.pointers, s.results, {}, s.context};
  Status status = s.op.def().eval->entry<WideDomain>().local(call);
  HONE_CHECK(status.ok(), "{} of numbers: {}", s.op.name(), status.error().what());
  const Buffer<WideDomain>& result = s.results[0];
  if (result.holds_reals()) return {round_to(s.result_type, result.reals()[0]), 0};
  return {0, result.ints()[0]};
}

}  // namespace hone

#include "rewrite/two_valued.h"

#include <algorithm>
#include <vector>

#include "ir/op_facts.h"
#include "ir/reference/evaluate.h"
#include "rewrite/numbers.h"

namespace hone {
namespace {

Tensor truth(bool value) {
  return Tensor::from_integers(Type::scalar(DType::boolean), {{static_cast<int64_t>(value)}});
}

// The op's result for numbers.
Result<Tensor> result_of(Op op, std::span<const Tensor> numbers) {
  Graph alone;
  std::vector<ValueId> operands;
  for (const Tensor& number : numbers) operands.push_back(alone.add_constant(number));
  alone.set_outputs({HONE_TRY(append_value(alone, op, operands))});
  return HONE_TRY(evaluate(alone, {}, {.numerics = Numerics::rounded}))[0];
}

bool same_dims(const Type& a, const Type& b) { return std::ranges::equal(a.dims(), b.dims()); }

}  // namespace

// A predicate of which nothing is known decides itself.
std::optional<TwoValued> TwoValuedResults::known(ValueId v) const {
  if (const auto found = found_.find(v); found != found_.end()) return found->second;
  if (graph_.type(v).dtype() == DType::boolean) return TwoValued{v, truth(true), truth(false)};
  return std::nullopt;
}

Result<std::optional<TwoValued>> TwoValuedResults::of(NodeId n) {
  const std::optional<TwoValued> nothing;
  if (!is_elementwise(graph_.opcode(n))) return nothing;
  std::optional<ValueId> predicate;
  std::vector<Tensor> on_true, on_false;
  for (ValueId v : graph_.operands(n)) {
    if (const std::optional<Tensor> number = repeated_element(graph_, v)) {
      on_true.push_back(*number);
      on_false.push_back(*number);
      continue;
    }
    const std::optional<TwoValued> each = known(v);
    if (!each || (predicate && *predicate != each->predicate)) return nothing;
    predicate = each->predicate;
    on_true.push_back(each->on_true);
    on_false.push_back(each->on_false);
  }
  const ValueId result = graph_.result(n);
  if (!predicate || !same_dims(graph_.type(*predicate), graph_.type(result))) return nothing;
  Result<Tensor> yes = result_of(graph_.op(n), on_true), no = result_of(graph_.op(n), on_false);
  if (!yes.ok() || !no.ok()) return nothing;
  return std::optional(
      found_.insert_or_assign(result, TwoValued{*predicate, *yes, *no}).first->second);
}

}  // namespace hone

#include "kernel/prepared.h"

#include <algorithm>

#include "ir/op_def.h"
#include "kernel/algorithms/winograd.h"

namespace hone {

std::optional<PreparedInput> prepared_input(const KernelBody& body, const Schedule& schedule) {
  if (schedule.algorithm() != Algorithm::winograd) return std::nullopt;
  const Graph& graph = body.graph;
  const KernelFacts facts(body);
  const WinogradDims dims = winograd_dims(body, facts).value();
  const WinogradShape shape(dims, facts.space, schedule);
  const ValueId weights = graph.operands(facts.space.anchor)[1];
  const auto parameter = std::ranges::find(graph.inputs(), weights) - graph.inputs().begin();
  const DType dtype =
      graph.type(graph.result(facts.space.anchor)).dtype() == DType::f64 ? DType::f64 : DType::f32;
  return PreparedInput{
      static_cast<size_t>(parameter), winograd_weights_type(shape, dtype),
      [=](const Tensor& tensor) { return winograd_weights(tensor, dims, shape, dtype); }};
}

}  // namespace hone

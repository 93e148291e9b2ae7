#include "session/device_contest.h"

#include <algorithm>

#include "compile/spmd_programs.h"
#include "ir/reference/evaluate.h"
#include "session/source.h"
#include "zoo/inputs.h"

namespace hone {

Result<Contest> contest_of_devices(const Model& model, const RunInputs& inputs,
                                   const DeviceOptions& devices,
                                   std::shared_ptr<const Runnable> native, const Face& face) {
  using Tensors = Contest::Tensors;
  const int64_t count = std::ssize(devices.names);
  const Model sized = HONE_TRY(with_sizes(model, inputs.bindings));
  const Graph& graph = *single_graph(sized);
  const Graph signature = HONE_TRY(spmd_signature(graph, count, devices.batch));
  const CancelToken* const cancel = face.cancel;
  Contest contest;
  contest.native = [native = std::move(native), cancel](const Tensors& tensors) {
    return native->run(tensors, {.cancel = cancel});
  };
  contest.reference = [graph, count, cancel, progress = face.progress,
                       most = inputs.memory_left.reference](const Tensors& tensors,
                                                            Numerics numerics) -> Result<Tensors> {
    return tensors_of_all( HONE_TRY(evaluate_spmd(graph, tensors_of_each(tensors, graph, count),
                                                  {.numerics = numerics,
                                                   .real_outputs_as_f64 = true,
                                                   .max_bytes = most,
                                                   .progress = progress,
                                                   .cancel = cancel})));
  };
  if (std::ranges::find(inputs.is_random, true) == inputs.is_random.end()) return contest;
  contest.other_inputs = [signature, given = inputs.tensors, is_random = inputs.is_random,
                          seed = inputs.seed](uint64_t n) -> Result<Tensors> {
    Tensors others = HONE_TRY(random_inputs(signature, seed + n));
    for (size_t i = 0; i < others.size(); ++i)
      if (!is_random[i]) others[i] = given[i];
    return others;
  };
  return contest;
}

}  // namespace hone

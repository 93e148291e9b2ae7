#include "compile/batch_model.h"

#include <algorithm>

#include "shard/batch_inputs.h"

namespace hone {

BatchModel::BatchModel(Graph graph, Target target, CompileOptions options, BatchOptions batch)
    : graph_(std::move(graph)),
      target_(std::move(target)),
      options_(std::move(options)),
      batch_(std::move(batch)),
      inputs_(ports_of(graph_, graph_.inputs(), "input")),
      outputs_(ports_of(graph_, graph_.outputs(), "output")) {}

Result<DividedCode> BatchModel::code_for(std::span<const Type> types) const {
  const Graph whole = HONE_TRY(specialize(graph_, HONE_TRY(bind_inputs(graph_, types))));
  const BatchInputs batch = HONE_TRY(batch_inputs(graph_, types, batch_.inputs));
  CompileOptions options = options_;
  options.plan.threads = batch_.threads;
  return divided_code(whole, batch, std::ssize(batch_.devices), target_, options,
                      batch_.system.get(), batch_.gpus);
}

Result<std::shared_ptr<const ManyDevices>> BatchModel::make(std::span<const Type> types) const {
  const DividedCode code = HONE_TRY(code_for(types));
  return ManyDevices::load(code.division, code.inputs, code.outputs, code.images,
                           load_options(code, batch_.gpus,
                                        {.names = batch_.devices,
                                         .threads = batch_.threads,
                                         .memory_limit = options_.memory_limit,
                                         .cubins = cubin_store(options_.cache)}));
}

Result<std::shared_ptr<const ManyDevices>> BatchModel::devices_for(
    std::span<const Type> types) const {
  const std::scoped_lock lock(mutex_);
  const auto known = std::ranges::find_if(
      made_, [&](const Made& one) { return std::ranges::equal(one.types, types); });
  if (known != made_.end()) {
    made_.splice(made_.begin(), made_, known);
  } else {
    made_.push_front({{types.begin(), types.end()}, HONE_TRY(make(types))});
    if (made_.size() > kMaxKept) made_.pop_back();
  }
  return made_.front().devices;
}

Result<std::vector<Tensor>> BatchModel::run(std::span<const Tensor> inputs,
                                            const RunOptions& options,
                                            std::vector<UnitTimes>* times) const {
  return HONE_TRY(devices_for(types_of(inputs)))->run(inputs, options, times);
}

}  // namespace hone

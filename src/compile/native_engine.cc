#include "compile/native_engine.h"

#include <algorithm>

namespace hone {

NativeEngine::NativeEngine(Target target, CompileOptions options)
    : target_(std::move(target)), options_(std::move(options)) {}

Result<std::vector<Tensor>> NativeEngine::run(const GraphRef& graph,
                                              std::span<const Tensor> inputs) {
  const std::shared_ptr<const Executable> executable = HONE_TRY(executable_of(graph, inputs));
  return executable->run(inputs, {.cancel = options_.cancel});
}

Result<std::shared_ptr<const Executable>> NativeEngine::executable_of(
    const GraphRef& graph, std::span<const Tensor> inputs) {
  std::vector<Type> types;
  for (const Tensor& input : inputs) types.push_back(input.type());
  auto known = std::ranges::find_if(
      kept_, [&](const Kept& kept) { return kept.graph == graph && kept.types == types; });
  if (known != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, known);
    return kept_.front().executable;
  }
  if (options_.team == nullptr) {
    const int64_t threads = options_.plan.threads.value_or(target_.cores);
    options_.team = HONE_TRY(Team::create({.threads = threads}));
  }
  const Bindings bindings = HONE_TRY(bind_inputs(*graph, types));
  Compilation compilation(HONE_TRY(specialize(*graph, bindings)), target_, options_);
  std::shared_ptr<const Executable> executable = HONE_TRY(compilation.executable());
  ++compiled_;
  kept_.push_front({graph, std::move(types), std::move(executable)});
  if (kept_.size() > kMaxKept) kept_.pop_back();
  return kept_.front().executable;
}

}  // namespace hone

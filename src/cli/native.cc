#include "cli/native.h"

#include "base/file.h"
#include "cli/cache.h"
#include "cli/console.h"

namespace hone::cli {

namespace {

// A folder that cannot be used is an error if the user named it.
Result<std::unique_ptr<CompileCache>> cache_of(const Arguments& arguments, Console& console) {
  const bool is_named = arguments.given("cache");
  if (is_named && arguments.text("cache") == "none") return std::unique_ptr<CompileCache>();
  Result<std::unique_ptr<CompileCache>> cache = open_cache(arguments);
  if (cache.ok() || is_named) return cache;
  console.note("what is compiled is not kept: {}", cache.error().what);
  return std::unique_ptr<CompileCache>();
}

}  // namespace

Result<NativeOptions> native_options(const Arguments& arguments, Console& console) {
  NativeOptions options;
  if (arguments.given("target")) {
    const std::string& file = arguments.text("target");
    options.target = HONE_TRY(parse_target(HONE_TRY(read_file(file, kMaxTargetText)), file));
  } else {
    options.target = HONE_TRY(host_target());
  }
  if (arguments.given("isa"))
    options.target = restricted(std::move(options.target), *isa_from_name(arguments.text("isa")));
  if (arguments.given("plan")) {
    const std::string& file = arguments.text("plan");
    options.plan = HONE_TRY(parse_plan(HONE_TRY(read_file(file, kMaxPlanText)), file));
  }
  if (arguments.given("plan-seed")) {
    if (arguments.given("plan") || arguments.given("threads"))
      return usage_error(
          "--plan-seed draws the whole plan; it goes with neither --plan nor --threads");
    options.plan_seed = static_cast<uint64_t>(arguments.integer("plan-seed"));
  }
  if (arguments.given("threads")) {
    const int64_t threads = arguments.integer("threads");
    if (options.plan.threads.value_or(threads) != threads)
      return usage_error("--threads {}, but the plan says {}", threads, *options.plan.threads);
    options.plan.threads = threads;
  }
  options.cache = HONE_TRY(cache_of(arguments, console));
  return options;
}

CompileOptions compile_options(const NativeOptions& options) {
  CompileOptions compile;
  compile.plan = options.plan;
  compile.plan_seed = options.plan_seed;
  compile.cache = options.cache.get();
  return compile;
}

Status check_runs_here(const Target& target) {
  const Target host = HONE_TRY(host_target());
  if (target.isa > host.isa)
    return unsupported("the target needs {}, this machine has {}", name(target.isa), name(host.isa))
        .with_hint("'hone compile' makes code for other machines without running it");
  for (Extension extension : kExtensions)
    if (target.extensions.contains(extension) && !host.extensions.contains(extension))
      return unsupported("the target needs {}, which this machine lacks", name(extension));
  return {};
}

Result<NativeModel> native_model(const Model& model, const RunInputs& inputs,
                                 const NativeOptions& options, Console& console) {
  HONE_TRY(check_runs_here(options.target));
  NativeModel native;
  native.progress_ = console.progress();
  native.cancel_ = &console.cancel();
  CompileOptions compile = compile_options(options);
  compile.progress = native.progress_.get();
  compile.cancel = native.cancel_;
  native.engine_ = std::make_shared<NativeEngine>(options.target, std::move(compile));
  if (const Graph* graph = single_graph(model))
    native.graph_ = std::make_shared<Graph>(HONE_TRY(specialize(*graph, inputs.bindings)));
  else
    native.runner_ =
        std::make_shared<ModelRunner>(HONE_TRY(specialize(model, inputs.bindings)), native.engine_);
  return native;
}

Result<std::vector<Tensor>> NativeModel::run(std::span<const Tensor> inputs) {
  if (graph_ != nullptr) return engine_->run(graph_, inputs);
  EvalOptions options;
  options.cancel = cancel_;
  return runner_->run(inputs, options);
}

Result<std::vector<Tensor>> run_native(const Model& model, const RunInputs& inputs,
                                       const NativeOptions& options, Console& console) {
  NativeModel native = HONE_TRY(native_model(model, inputs, options, console));
  return native.run(inputs.tensors);
}

}  // namespace hone::cli

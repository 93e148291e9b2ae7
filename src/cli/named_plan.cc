#include "cli/named_plan.h"

#include "cli/console.h"
#include "cli/log.h"
#include "cli/native.h"
#include "tune/best_plan.h"

namespace hone::cli {
namespace {

Result<Plan> plan_of_log(Compilation& code, int64_t threads, const Target& target,
                         const Arguments& arguments) {
  const std::unique_ptr<Log> log = HONE_TRY(find_log(arguments));
  std::optional<KnownPlan> known;
  if (log != nullptr) known = best_plan(*log, *HONE_TRY(code.graph()), target, threads);
  if (known) return std::move(known->plan);
  return bad_input("the log {} has no plan of this model for {} threads",
                   HONE_TRY(log_path(arguments)),
                   threads)
      .with_hint("'hone tune' looks for one; 'default' is the planner's");
}

}  // namespace

Result<NamedPlan> named_plan(const std::string& word, std::string_view option, const Graph& graph,
                             const Model& model, const Bindings& sizes, const Arguments& arguments,
                             Console& console, const Target* target) {
  NamedPlan named = {.name = word, .options = {}, .code = {}};
  NativeOptions& options = named.options;
  options =
      target == nullptr
          ? HONE_TRY(native_options(arguments, console, DefaultCache::user, LogPlans::left))
          : HONE_TRY(native_options_for(*target, arguments, console, DefaultCache::user,
                                        LogPlans::left));
  const bool is_file = word != "default" && word != "rewritten" && word != "log";
  // It is measured: whatever is cheaper counts.
  if (word == "rewritten") HONE_TRY(take_rewrites(options, 0, arguments, console));
  if (is_file) HONE_TRY(take_plans(options, word, option, arguments, console));
  const Face face = console.face();
  CompileOptions compile = HONE_TRY(compile_options(graph, model, sizes, options, face));
  named.code = std::make_unique<Compilation>(graph, options.target, compile);
  if (word == "log") {
    compile.plan = HONE_TRY(plan_of_log(*named.code, options.threads.value_or(options.target.cores),
                                        options.target, arguments));
    named.code = std::make_unique<Compilation>(graph, options.target, std::move(compile));
  }
  Result<const Plan*> plan = named.code->plan();
  if (!plan.ok() && word == "log" && plan.error().code() == ErrorCode::bad_input)
    return Error(plan.error())
        .about("plan log")
        .with_hint("it is of another version of hone; 'hone tune' looks for one that fits");
  if (!plan.ok()) return is_file ? plan.error() : Error(plan.error()).about("plan " + word);
  return named;
}

}  // namespace hone::cli

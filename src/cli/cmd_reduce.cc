#include "base/file.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/case_process.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/native.h"
#include "cli/source.h"
#include "plan/prepare.h"
#include "report/reduce.h"

namespace hone::cli {
namespace {

constexpr int64_t kMaxCaseText = int64_t{64} << 20;  // bytes

Result<DifferentialCase> read_case(const std::string& file) {
  return parse_case(HONE_TRY(read_file(file, kMaxCaseText)), file);
}

bool names_model(std::string_view name) {
  return name.starts_with("zoo:") || name.ends_with(".hone") || name.ends_with(".onnx");
}

// As `hone check` runs it. A plan is one for the sizes of the run.
Result<DifferentialCase> case_of_model(const Arguments& arguments, Console& console) {
  const NativeOptions native = HONE_TRY(native_options(arguments, console, DefaultCache::none));
  const Source source =
      HONE_TRY(load_model_source(arguments.text("CASE"), sizes_of(arguments), console));
  const Graph* graph = single_graph(source.model);
  if (graph == nullptr) return no_single_graph(source.model, "'hone reduce'");
  RunInputs inputs = HONE_TRY(resolve_inputs(*graph, source.open, arguments, console));
  Graph sized = HONE_TRY(specialize(*graph, inputs.bindings));
  Plan plan = HONE_TRY(compile_options(sized, source.model, inputs.bindings, native)).plan;
  plan.graph_hash = 0;  // fits; the case's text spells weights out, which have other hashes then
  return DifferentialCase{.graph = std::move(sized),
                          .inputs = std::move(inputs.tensors),
                          .plan = std::move(plan),
                          .isa = native.target.isa,
                          .judge = Judge::accurate};
}

Result<DifferentialCase> case_of(const Arguments& arguments, Console& console) {
  const std::string name = arguments.text("CASE");
  if (names_model(name)) return case_of_model(arguments, console);
  for (std::string_view option : {"plan", "isa", "input", "inputs", "seed", "dim", "shape"})
    if (arguments.given(option))
      return usage_error("--{} is for models, a case says that itself", option);
  return read_case(name);
}

// What a person's plan gets wrong is an answer, not a case.
Status check_given_plan(const DifferentialCase& one, const Target& host, const std::string& file) {
  const Graph graph = HONE_TRY(prepare(one.graph));
  Status good = check(one.plan, graph, restricted(host, one.isa));
  if (good.ok()) return good;
  return std::move(good).error().within(file).as(ErrorCode::bad_input);
}

}  // namespace

Status cmd_reduce(const Arguments& arguments, Console& console) {
  const DifferentialCase one = HONE_TRY(case_of(arguments, console));
  const Target host = HONE_TRY(host_target());
  if (one.isa > host.isa)
    return unsupported("the case needs {}, this machine has {}", name(one.isa), name(host.isa));
  const CaseProcess process(arguments.real("time-limit"), console.cancel());
  const DifferentialOutcome before = process.run(one);
  HONE_TRY(console.cancel().check());
  if (!is_failure(before.verdict)) {
    console.note("the case does not fail: {}", name(before.verdict));
    return {};
  }
  if (before.verdict == Verdict::refused && arguments.given("plan"))
    HONE_TRY(check_given_plan(one, host, arguments.text("plan")));
  console.note("{}", trim(before.reason));
  int64_t runs = 0;
  const DifferentialCase reduced =
      reduce(one, before.verdict, host, [&](const DifferentialCase& smaller) {
        ++runs;
        return process.run(smaller).verdict;
      });
  HONE_TRY(console.cancel().check());
  console.note("reduced in {} runs", runs);
  const std::string output = arguments.text("output");
  if (output != "-") return write_file_atomic(output, print(reduced));
  console.write(print(reduced));
  return {};
}

Status cmd_reduce_case(const Arguments& arguments, Console& console) {
  const DifferentialCase one = HONE_TRY(read_case(arguments.text("CASE")));
  const Target host = HONE_TRY(host_target());
  const std::shared_ptr<Team> team = HONE_TRY(Team::create({.threads = host.cores}));
  const DifferentialOutcome outcome = run_case(one, host, team);
  console.print("{} {}\n", name(outcome.verdict), outcome.reason);
  return {};
}

}  // namespace hone::cli

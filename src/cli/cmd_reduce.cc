#include "base/file.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/inputs.h"
#include "cli/native.h"
#include "cli/source.h"
#include "front/front_end.h"
#include "ir/reference/evaluate_model.h"
#include "oracle/case_process.h"
#include "oracle/reduce.h"
#include "rewrite/prepare.h"

#include <algorithm>
#include <map>
#include <optional>

namespace hone::cli {
namespace {

constexpr int64_t kMaxCaseText = int64_t{64} << 20;  // bytes

Result<DifferentialCase> read_case(const std::string& file) {
  return parse_case(HONE_TRY(read_file(file, kMaxCaseText)), file);
}

bool names_model(std::string_view name) {
  return name.starts_with("zoo:") || front_end_named(name) != nullptr;
}

// A case and what it comes to.
struct Judged {
  DifferentialCase one;
  DifferentialOutcome outcome;
};

// Watches the reference run a model. Each graph is a case of its own until one fails, once for each
// of the sizes that it meets. The first sizes are numbers; the others run by code for all sizes, as
// in NativeCode.
class SegmentJudge {
 public:
  SegmentJudge(const NativeOptions& native, const CaseProcess& process)
      : native_(native), process_(process) {}

  void set_plan(const Graph* graph, const PlacedPlan* plan) { plans_[graph] = plan; }

  Status watch(const GraphRef& graph, std::span<const Tensor> inputs) {
    std::vector<Type> types = types_of(inputs);
    Met& met = met_[graph];
    if (std::ranges::find(met, types) == met.end()) {
      const bool is_first = met.empty();
      HONE_TRY(judge(graph, types, inputs, is_first));
      met.push_back(std::move(types));
    }
    return {};
  }

  std::optional<Judged>& failing() { return failing_; }
  int64_t judged() const { return judged_; }

 private:
  using Met = std::vector<std::vector<Type>>;  // the types of inputs

  Status judge(const GraphRef& graph, std::span<const Type> types, std::span<const Tensor> inputs,
               bool is_first) {
    const auto given = plans_.find(graph.get());
    Plan plan = compile_options(native_, given == plans_.end() ? nullptr : given->second).plan;
    const bool is_open = plan.graph_hash != 0 || !is_first;
    plan.graph_hash = 0;  // fits; as for a single graph
    const Bindings sizes = is_open ? Bindings() : HONE_TRY(bind_inputs(*graph, types));
    DifferentialCase one = {.graph = HONE_TRY(specialize(*graph, sizes)),
                            .inputs = {inputs.begin(), inputs.end()},
                            .plan = std::move(plan),
                            .isa = native_.target.isa,
                            .judge = Judge::accurate};
    ++judged_;
    DifferentialOutcome outcome = HONE_TRY(process_.run(one));
    if (!is_failure(outcome.verdict)) return {};
    failing_ = {std::move(one), std::move(outcome)};
    return check_failed("segment '{}' fails", excerpt(graph->name()));  // ends the run
  }

  const NativeOptions& native_;
  const CaseProcess& process_;
  std::map<const Graph*, const PlacedPlan*> plans_;
  std::map<GraphRef, Met> met_;
  std::optional<Judged> failing_;
  int64_t judged_ = 0;
};

// None if no segment fails on its own.
Result<std::optional<Judged>> failing_segment(const Model& model, const RunInputs& inputs,
                                              const NativeOptions& native,
                                              const CaseProcess& process, Console& console) {
  Model bound = HONE_TRY(with_sizes(model, inputs.bindings));
  const std::vector<const Graph*> graphs = graphs_of(bound);
  const std::vector<const PlacedPlan*> plans =
      HONE_TRY(plans_of(graphs, model, inputs.bindings, native, Console::labels()));
  SegmentJudge judge(native, process);
  for (size_t i = 0; i < graphs.size(); ++i) judge.set_plan(graphs[i], plans[i]);
  const auto watch = [&judge](const GraphRef& graph, std::span<const Tensor> tensors) {
    return judge.watch(graph, tensors);
  };
  const Result<std::vector<Tensor>> outputs =
      ModelRunner(std::move(bound), watch).run(inputs.tensors, {.cancel = &console.cancel()});
  if (judge.failing()) {
    console.note("segment '{}'", excerpt(judge.failing()->one.graph.name()));
    return std::move(judge.failing());
  }
  if (!outputs.ok()) return outputs.error();
  console.note("no segment fails on its own; {} cases were tried", judge.judged());
  return std::optional<Judged>();
}

Status check_has(Isa isa, const Target& host) {
  if (isa <= host.isa) return {};
  return unsupported("the case needs {}, this machine has {}", name(isa), name(host.isa));
}

Result<std::optional<Judged>> judged(DifferentialCase one, const CaseProcess& process,
                                     Console& console) {
  DifferentialOutcome outcome = HONE_TRY(process.run(one));
  if (is_failure(outcome.verdict)) return std::optional(Judged{std::move(one), std::move(outcome)});
  console.note("the case does not fail: {}", name(outcome.verdict));
  return std::optional<Judged>();
}

// As `hone check` runs it. A plan is one for the sizes of the run.
Result<std::optional<Judged>> failing_model(const Arguments& arguments, const Target& host,
                                            const CaseProcess& process, Console& console) {
  const NativeOptions native = HONE_TRY(native_options(arguments, console, DefaultCache::none));
  HONE_TRY(check_has(native.target.isa, host));
  const Source source = HONE_TRY(given_source(arguments.text("CASE"), arguments, console));
  RunInputs inputs = HONE_TRY(
      given_inputs(signature_of(source.model), source.open, arguments, Engine::contest, console));
  const Graph* graph = single_graph(source.model);
  if (graph == nullptr) return failing_segment(source.model, inputs, native, process, console);
  Graph sized = HONE_TRY(specialize(*graph, inputs.bindings));
  Plan plan =
      HONE_TRY(compile_options(sized, source.model, inputs.bindings, native, console.face())).plan;
  plan.graph_hash = 0;  // fits; the case's text spells weights out, which have other hashes then
  return judged({.graph = std::move(sized),
                 .inputs = std::move(inputs.tensors),
                 .plan = std::move(plan),
                 .isa = native.target.isa,
                 .judge = Judge::accurate},
                process, console);
}

// None if it does not fail, which is said.
Result<std::optional<Judged>> failing_case(const Arguments& arguments, const Target& host,
                                           const CaseProcess& process, Console& console) {
  const std::string name = arguments.text("CASE");
  if (names_model(name)) return failing_model(arguments, host, process, console);
  for (std::string_view option : {"plan", "isa", "input", "inputs", "seed", "dim", "shape"})
    if (arguments.given(option))
      return usage_error("--{} is for models; a case has its own", option);
  DifferentialCase one = HONE_TRY(read_case(name));
  HONE_TRY(check_has(one.isa, host));
  return judged(std::move(one), process, console);
}

// A fault in a person's plan is an answer, not a case.
Status check_given_plan(const DifferentialCase& one, const Target& host, const std::string& file) {
  const Graph graph = HONE_TRY(prepare(one.graph));
  Status good = check(one.plan, graph, restricted(host, one.isa));
  if (good.ok()) return good;
  const std::vector<PlacedPlan> plans =
      HONE_TRY(parse_plans(HONE_TRY(read_file(file, kMaxPlanText)), file));
  const std::string place = plans.size() == 1 ? plans[0].place_of(good.error().where()) : file;
  return std::move(good).error().within(place).as(ErrorCode::bad_input);
}

}  // namespace

Status cmd_reduce(const Arguments& arguments, Console& console) {
  const Target host = HONE_TRY(host_target());
  const CaseProcess process({kThisProgram, {"reduce-case"}}, arguments.real("time-limit"),
                            console.cancel());
  const std::optional<Judged> found = HONE_TRY(failing_case(arguments, host, process, console));
  if (!found) return {};
  const auto& [one, before] = *found;
  if (before.verdict == Verdict::refused && arguments.given("plan"))
    HONE_TRY(check_given_plan(one, host, arguments.text("plan")));
  console.note("{}", trim(before.reason));
  int64_t runs = 0;
  const DifferentialCase reduced =
      reduce(one, before.verdict, host, [&](const DifferentialCase& smaller) {
        ++runs;
        return process.verdict(smaller);
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

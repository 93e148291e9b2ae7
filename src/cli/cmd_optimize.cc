#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/budget.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/inputs.h"
#include "cli/memory_limit.h"
#include "cli/native.h"
#include "cli/source.h"
#include "cost/gpu_cost.h"
#include "prove/verify.h"
#include "report/accuracy_text.h"
#include "rules/rule_files.h"
#include "search/optimize.h"
#include "session/evaluation.h"

namespace hone::cli {
namespace {

// Reads --rules; nothing in a file is taken on trust.
Result<std::vector<Rule>> verified(const std::string& path, Console& console) {
  std::vector<Rule> sound;
  for (Rule& rule :
       HONE_TRY(parse_rules(HONE_TRY(read_file(path, kMaxRuleText)), {.file = path}))) {
    HONE_TRY(console.cancel().check());
    const Result<RuleVerdict> verdict = verify(rule);
    if (verdict.ok() && verdict->refuted())
      return check_failed("the rule '{}' is not true: {}", rule.name,
                          verdict->identity.counterexample->to_string())
          .about(path);
    if (verdict.ok()) say(rule, *verdict);
    if (verdict.ok() && is_sound(rule)) {
      sound.push_back(std::move(rule));
      continue;
    }
    const std::string why =
        !verdict.ok() ? verdict.error().to_string()
        : verdict->rung != Rung::all_sizes
            ? fmt::format("it is not proved for all sizes; {}", verdict->stopped)
            : fmt::format("floats: {}", verdict->float_fault);
    console.note("the rule '{}' is left out: {}", rule.name, why);
  }
  return sound;
}

Result<std::vector<Rule>> given_rules(const Arguments& arguments, Console& console) {
  if (!arguments.given("rules")) return default_rules();
  std::vector<Rule> all;
  for (const std::string& path : arguments.list("rules"))
    for (Rule& rule : HONE_TRY(verified(path, console))) all.push_back(std::move(rule));
  return all;
}

std::string text_of(const Optimized& result) {
  TextTable table("lr", {"rule", "applied"});
  for (const AppliedRule& each : applied_rules(result.plan))
    table.add_row({each.rule, fmt::format("{}", each.times)});
  std::string text = result.is_cheaper ? table.to_string() + "\n" : "";
  if (result.is_cheaper)
    text +=
        fmt::format("price  {} before, {} after: {:.2f} % less\n", format_seconds(result.before),
                    format_seconds(result.after), 100 * (1 - result.after / result.before));
  else if (result.least < result.before)
    text += fmt::format("price  {}; the cheapest graph is {:.2f} % less, below --margin\n",
                        format_seconds(result.before), 100 * (1 - result.least / result.before));
  else
    text += fmt::format("price  {}; nothing is cheaper\n", format_seconds(result.before));
  text += fmt::format("{} graphs priced; {}\n", result.priced, name(result.end));
  text += fmt::format("e-graph: {} rewrites in {} rounds; {}\n", result.egraph.matches,
                      result.egraph.rounds, name(result.egraph.end));
  text += fmt::format("{} of {} nodes have ops of no rule\n", result.outside, result.nodes);
  return text;
}

std::string json_of(const Optimized& result) {
  nlohmann::ordered_json json = {{"before", result.before},
                                 {"after", result.after},
                                 {"least", result.least},
                                 {"priced", result.priced},
                                 {"end", name(result.end)},
                                 {"nodes", result.nodes},
                                 {"outside", result.outside},
                                 {"egraph_rewrites", result.egraph.matches},
                                 {"egraph_end", name(result.egraph.end)},
                                 {"applied", nlohmann::ordered_json::array()}};
  for (const AppliedRule& each : applied_rules(result.plan))
    json["applied"].push_back({{"rule", each.rule}, {"times", each.times}});
  return json.dump(2) + "\n";
}

// Reads the result again, compiles it, and compares it with the model on random inputs.
Status check_written(const Graph& given, const std::string& path, const NativeOptions& native,
                     const Face& face, Console& console) {
  const Source written = HONE_TRY(load_source(path));
  const Model model = model_of(given);
  const RunInputs inputs = HONE_TRY(resolve_inputs(given, {}, 0, Engine::contest, face));
  const auto compiled = HONE_TRY(native_model(written.model, inputs, native, face));
  const ContestResult result =
      HONE_TRY(judge(contest_of(model, inputs, compiled, face), inputs.tensors));
  const std::vector<std::string> names = output_names(model);
  console.write(accuracy_table(names, result, true));
  if (result.failed() == 0) return {};
  return check_failed("{} of {} outputs are less accurate than allowed", result.failed(),
                      names.size());
}

}  // namespace

Status cmd_optimize(const Arguments& arguments, Console& console) {
  if (!arguments.given("output"))
    return usage_error("'hone optimize' needs --output").with_hint("-o model.onnx, or -o -");
  const std::string path = arguments.text("output");
  HONE_TRY(check_model_path(path));
  if (arguments.given("check") && path == "-")
    return usage_error("--check reads the result again: -o FILE");
  const std::string json = arguments.text("json");
  const std::string rewrites = arguments.text("rewrites");
  OptimizeOptions options;
  options.rewrite.seconds = HONE_TRY(parse_budget(arguments.text("budget")));
  options.margin = arguments.real("margin") / 100;
  options.rewrite.egraph.nodes = static_cast<size_t>(arguments.integer("max-nodes"));
  const ExportOptions onnx = HONE_TRY(onnx_options(arguments, path));
  const NativeOptions native =
      HONE_TRY(native_options(arguments, console, DefaultCache::user, LogPlans::left));
  if (arguments.given("check")) HONE_TRY(check_runs_here(native.target, Console::labels()));
  const std::vector<Rule> rules = HONE_TRY(given_rules(arguments, console));

  const Source source = HONE_TRY(given_source(arguments.text("MODEL"), arguments, console));
  const Bindings sizes = HONE_TRY(given_sizes(source, console));
  const Model model = HONE_TRY(with_sizes(source.model, sizes));
  const Graph* graph = single_graph(model);
  if (graph == nullptr) return no_single_graph(model, "'hone optimize'");
  if (!graph->is_static())
    return usage_error("the cheapest graph depends on the open sizes, such as {}",
                       graph->symbols()[0].name())
        .with_hint("--dim NAME=N and --shape NAME=DIMS choose them");

  const std::unique_ptr<Progress> progress = console.progress();
  options.threads = native.threads;
  options.rewrite.assumed_decades = native.assumed_decades;
  options.rewrite.cancel = &console.cancel();
  options.rewrite.progress = progress.get();
  options.rewrite.told = [&](std::string_view line) { progress->note(line); };
  const std::shared_ptr<const Cost> cost =
      native.cost != nullptr ? native.cost : analytic_cost(native.target);
  const Console::Keeping keeping(console);
  progress->start(0, "graphs");
  const Optimized result = HONE_TRY(optimize(*graph, rules, native.target, *cost, options));
  progress->finish();
  HONE_TRY(write_model(model_of(result.graph), path, console, onnx));
  if (!json.empty()) HONE_TRY(write_text(json, json_of(result), console));
  if (!rewrites.empty()) HONE_TRY(write_text(rewrites, print(result.plan), console));
  if (path == "-" || json == "-" || rewrites == "-")
    console.say(trim(text_of(result)));
  else
    console.write(text_of(result));
  HONE_TRY(console.cancel().check());
  if (!arguments.given("check")) return {};
  return check_written(*graph, path, native, limited_face(arguments, console), console);
}

}  // namespace hone::cli

#include <algorithm>

#include "base/text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/graphs.h"
#include "cli/native.h"
#include "cli/source.h"
#include "lab/models/graph_text.h"
#include "learn/kernel_data.h"
#include "session/native.h"

namespace hone::cli {
namespace {

template <class Choice>
void choose(const Arguments& arguments, std::string_view option, int count, Choice& choice) {
  if (!arguments.given(option)) return;
  for (int i = 0; i < count; ++i)
    if (name(static_cast<Choice>(i)) == arguments.text(option)) choice = static_cast<Choice>(i);
}

// The native options outlive it.
GraphTraining training(const ConfiguredGraph& graph, const Arguments& arguments,
                       const NativeOptions& native, Console& console) {
  GraphTraining options = training_for(graph);
  choose(arguments, "passing", kMessagePassings, options.network.passing);
  choose(arguments, "reduction", kGraphReductions, options.network.reduction);
  choose(arguments, "loss", kGraphLosses, options.network.loss);
  options.network.compares = arguments.given("compare");
  options.network.skeleton = arguments.given("skeleton");
  if (arguments.given("segments")) options.segments = arguments.integer("segments");
  if (arguments.given("hops")) options.hops = arguments.integer("hops");
  if (arguments.given("epochs")) options.epochs = arguments.integer("epochs");
  options.seed = static_cast<uint64_t>(arguments.integer("seed"));
  options.compile = compile_options(native, nullptr);
  options.compile.cancel = &console.cancel();
  options.told = [&console](std::string_view line) { console.say(line); };
  return options;
}

Result<std::vector<ConfiguredGraph>> graphs_of(const Arguments& arguments, Console& console) {
  std::vector<ConfiguredGraph> graphs = HONE_TRY(load_graphs(arguments.text("DATA")));
  size_t configs = 0, left_out = 0;
  for (const ConfiguredGraph& each : graphs) {
    configs += each.times.size();
    left_out += each.left_out;
  }
  console.say(fmt::format("{} configurations of {} graphs of {} programs", configs, graphs.size(),
                          programs_of(graphs).size()));
  if (left_out > 0)
    console.say(
        fmt::format("{} others are left out: too little of their time was measured", left_out));
  return graphs;
}

// Judges by the graphs of programs that the model has not learned from.
Result<std::vector<GraphVerdict>> judged_by(const GraphModel& model,
                                            std::span<const ConfiguredGraph> graphs,
                                            const CompileOptions& compile) {
  std::vector<GraphVerdict> verdicts;
  for (const ConfiguredGraph& each : graphs) {
    if (std::ranges::binary_search(model.programs, each.program)) continue;
    verdicts.push_back(HONE_TRY(judged(model, each, compile)));
  }
  if (verdicts.empty())
    return bad_input("the model has learned from all programs of the data")
        .with_hint("without --model, models are trained on parts of the data");
  return verdicts;
}

// The given ones, or some at random.
Result<std::vector<ProgramSplit>> splits_of(const Arguments& arguments,
                                            std::span<const ConfiguredGraph> graphs) {
  std::vector<ProgramSplit> splits;
  if (arguments.given("split")) {
    const std::string files = arguments.text("split");
    for (std::string_view each : split(files, ',')) {
      const std::string file(each);
      splits.push_back(HONE_TRY(read_split(file)));
      const Result<std::vector<ConfiguredGraph>> tested = part(graphs, splits.back(), Part::test);
      if (!tested.ok()) return Error(tested.error()).within(file);
      if (tested->empty())
        return bad_input("no graph is in its part {}", name(Part::test)).within(file);
    }
    return splits;
  }
  const std::vector<std::string> programs = programs_of(graphs);
  for (int64_t s = 0; s < arguments.integer("splits"); ++s)
    splits.push_back(
        HONE_TRY(random_split(programs, static_cast<uint64_t>(s + 1), {.validation = 0})));
  return splits;
}

Result<std::vector<GraphVerdict>> trained_and_judged(std::span<const ConfiguredGraph> graphs,
                                                     const Arguments& arguments,
                                                     const GraphTraining& options) {
  const bool are_kernels = graphs[0].config_nodes.empty();
  if (arguments.given("split") && are_kernels)
    return usage_error("each of these kernels is left out in turn: --split is for programs");
  if (arguments.given("split") && graphs.size() == 1)
    return usage_error("of one graph some configurations are left out: --split is for programs");
  if (are_kernels) return leave_one_out(graphs, options);
  if (graphs.size() == 1) return judged_by_configs(graphs[0], arguments.integer("splits"), options);
  return judged_by_programs(graphs, HONE_TRY(splits_of(arguments, graphs)), options);
}

}  // namespace

Status cmd_train_layout(const Arguments& arguments, Console& console) {
  if (!arguments.given("output")) return usage_error("-o names the file of the model");
  const std::string output = arguments.text("output");
  std::vector<ConfiguredGraph> graphs = HONE_TRY(graphs_of(arguments, console));
  if (graphs[0].config_nodes.empty())
    return bad_input("{} has tiles of kernels, and no layouts", arguments.text("DATA"))
        .with_hint("'hone eval' trains models of such kernels and judges them");
  if (arguments.given("split")) {
    const std::string& file = arguments.text("split");
    Result<std::vector<ConfiguredGraph>> some = part(graphs,
                                                     HONE_TRY(read_split(file)), Part::train);
    if (!some.ok()) return Error(some.error()).within(file);
    if (some->empty()) return bad_input("the split has no program to train on").within(file);
    graphs = *std::move(some);
  }
  const NativeOptions native = HONE_TRY(native_options(arguments, console));
  const GraphModel model =
      HONE_TRY(train_graph_model(graphs, training(graphs[0], arguments, native, console)));
  HONE_TRY(write_graph_model(output, model));
  console.write(graph_model_text(model));
  console.note("wrote {}", output);
  return {};
}

Status eval_graphs(const Arguments& arguments, Console& console) {
  const std::string json = arguments.text("json");
  const std::vector<ConfiguredGraph> graphs = HONE_TRY(graphs_of(arguments, console));
  const NativeOptions native = HONE_TRY(native_options(arguments, console));
  const GraphTraining options = training(graphs[0], arguments, native, console);
  std::vector<GraphVerdict> verdicts;
  if (arguments.given("model")) {
    const std::string& file = arguments.text("model");
    Result<std::vector<GraphVerdict>> found =
        judged_by(HONE_TRY(read_graph_model(file)), graphs, options.compile);
    if (!found.ok()) return Error(found.error()).within(file);
    verdicts = *std::move(found);
  } else {
    verdicts = HONE_TRY(trained_and_judged(graphs, arguments, options));
  }
  if (json == "-") {
    console.write(graph_verdicts_json(verdicts));
    return {};
  }
  if (!json.empty()) HONE_TRY(write_text(json, graph_verdicts_json(verdicts), console));
  console.write(graph_verdicts_text(verdicts, !graphs[0].config_nodes.empty()));
  return {};
}

}  // namespace hone::cli

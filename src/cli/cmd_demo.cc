#include "base/hash.h"
#include "base/text.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/memory_limit.h"
#include "cli/native.h"
#include "cli/outputs.h"
#include "cli/shell_word.h"
#include "cli/source.h"
#include "ir/summary.h"
#include "report/accuracy_text.h"
#include "report/bench_text.h"
#include "report/summary_text.h"
#include "session/evaluation.h"
#include "session/stages.h"
#include "zoo/inputs.h"

#include <memory>

namespace hone::cli {
namespace {

// A real network, small enough that its first result is there in seconds.
constexpr std::string_view kDefaultModel = "zoo:squeezenet";
constexpr double kSeconds = 1;  // of measuring

// A hash of the bits of all outputs: equal if nothing has changed.
uint64_t digest(std::span<const Tensor> tensors) {
  Hasher hasher;
  for (const Tensor& tensor : tensors) hasher.add(tensor.content_hash());
  return hasher.value();
}

// A row per stage: how long it took, and what it made.
Result<std::string> stage_table(std::span<const StageTime> times, Compilation& compilation) {
  TextTable table("lrl", {"stage", "time", "made"});
  for (const StageTime& time : times) {
    const std::string made = HONE_TRY(made_by(time.stage, compilation));
    table.add_row({std::string(name(time.stage)), format_seconds(time.seconds), made});
  }
  return table.to_string();
}

// The same of all graphs of a model together: how long it took, and for how many of them.
std::string stage_table(std::span<const StageTime> times) {
  TextTable table("lrr", {"stage", "time", "graphs"});
  for (CompileStage stage : kStages) {
    double seconds = 0;
    int64_t graphs = 0;
    for (const StageTime& time : times) {
      if (time.stage != stage) continue;
      seconds += time.seconds;
      ++graphs;
    }
    if (graphs > 0)
      table.add_row({std::string(name(stage)), format_seconds(seconds), std::to_string(graphs)});
  }
  return table.to_string();
}

// A model that was run once, and runs again.
struct Running {
  std::vector<Tensor> outputs;
  std::shared_ptr<const Runnable> model;
};

// Both describe the model once nothing can be wrong with the command line any more, and tell of
// compiling it.

Result<Running> start_graph(const Model& model, const RunInputs& inputs,
                            const NativeOptions& native, std::string_view title, Console& console) {
  const Graph graph = HONE_TRY(specialize(*single_graph(model), inputs.bindings));
  std::vector<StageTime> times;
  CompileOptions options =
      HONE_TRY(compile_options(graph, model, inputs.bindings, native, console.face()));
  options.progress = nullptr;  // the table of stages tells it
  options.memory_limit = inputs.memory_left.native;
  options.observer = noting(times);
  Compilation compilation(graph, native.target, options);
  HONE_TRY(compilation.plan());
  console.print("{}\n\n{}\n", title, summary_text(HONE_TRY(summarize(graph))));
  const std::shared_ptr<const Executable> executable = HONE_TRY(compilation.executable());
  console.print("{}\n", HONE_TRY(stage_table(times, compilation)));
  return Running{HONE_TRY(executable->run(inputs.tensors)), executable};
}

// Segments are compiled when they are run.
Result<Running> start_segments(const Model& model, const RunInputs& inputs,
                               const NativeOptions& options, std::string_view title,
                               Console& console) {
  const auto times = std::make_shared<std::vector<StageTime>>();
  const auto note = [times](CompileStage stage, double seconds) {
    times->push_back({stage, seconds});
  };
  const auto native = HONE_TRY(native_model(model, inputs, options, console.face(), note));
  const Model sized = HONE_TRY(with_sizes(model, inputs.bindings));
  console.print("{}\n\n{}\n", title, HONE_TRY(model_text(sized)));
  Running running = { HONE_TRY(native->run(inputs.tensors, {.cancel = &console.cancel()})), native};
  console.print("{}\n", stage_table(*times));
  return running;
}

// Says what to try next: with the model, or with one of the user's if it is empty.
std::string next_text(const std::string& model) {
  const std::string word = escape(shell_word(model));
  std::vector<std::pair<std::string, std::string>> lines;
  if (model.empty())
    lines = {{"hone demo model.onnx", "the same for a model of yours"},
             {"hone zoo list", "the built-in models"},
             {"hone compile zoo:mlp --emit plan", "every decision, as text to edit"}};
  else
    lines = {{fmt::format("hone bench {} --profile", word), "the layers that take longest"},
             {fmt::format("hone report {}", word), "a page for a browser that shows its speed"},
             {fmt::format("hone tune {}", word), "a faster plan, by measuring"},
             {fmt::format("hone compile {} -o model.honec", word), "a file for your program"}};
  lines.emplace_back("hone help", "all commands");
  TextTable table("ll");
  for (const auto& [command, what] : lines) table.add_row({"  " + command, what});
  return "Next:\n" + table.to_string();
}

}  // namespace

// Runs `hone` without a command: the whole way of one model.
Status cmd_demo(const Arguments& arguments, Console& console) {
  const bool is_given = arguments.command().name == "demo" && arguments.given("MODEL");
  const std::string name = is_given ? arguments.text("MODEL") : std::string(kDefaultModel);
  // Times are those of the work, unless a cache is asked for.
  const NativeOptions native = HONE_TRY(native_options(arguments, console, DefaultCache::none));
  HONE_TRY(check_runs_here(native.target, Console::labels()));
  const Source source = HONE_TRY(given_source(name, arguments, console));
  const Model& model = source.model;
  const Graph signature = signature_of(model);
  const Face face = limited_face(arguments, console);
  RunInputs inputs;
  inputs.chosen = HONE_TRY(size_bindings(signature, source.open.sizes, face));
  inputs.bindings =
      HONE_TRY(all_size_bindings(signature, source.open.sizes, face, source.open.smallest));
  inputs.memory_left = HONE_TRY(memory_left(signature, inputs.bindings, Engine::contest, face));
  inputs.tensors = HONE_TRY(random_inputs(signature, 0, inputs.bindings));
  inputs.is_random.assign(inputs.tensors.size(), true);

  const std::string title =
      fmt::format("hone {}: {}", HONE_VERSION, console.styled(Style::bold, name));
  const auto start = single_graph(model) != nullptr ? start_graph : start_segments;
  const Running running = HONE_TRY(start(model, inputs, native, title, console));

  // Check.
  const ContestResult result =
      HONE_TRY(judge(contest_of(model, inputs, running.model, face), inputs.tensors));
  console.print("{}\n", marked(accuracy_table(output_names(model), result, false), console));

  // Measure.
  const Timing timing = HONE_TRY(measure(
      {.seconds = kSeconds}, console.cancel(),
      [&]() -> Status {
        HONE_TRY(running.model->run(inputs.tensors, {.cancel = &console.cancel()}));
        return {};
      }));
  console.print("native  {}, digest {:016x}\n\n", timing_text(timing), digest(running.outputs));
  console.write(next_text(is_given && name != "-" ? name : ""));
  if (result.failed() == 0) return {};
  return Error(ErrorCode::mismatch, "native code is less accurate than allowed");
}

}  // namespace hone::cli

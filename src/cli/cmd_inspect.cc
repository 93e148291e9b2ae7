#include "base/file.h"
#include "base/text.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/compiled.h"
#include "cli/console.h"
#include "cli/inputs.h"
#include "cli/outputs.h"
#include "cli/source.h"
#include "ir/summary.h"
#include "report/dot.h"
#include "report/summary_text.h"
#include "session/denormals.h"
#include "session/echo.h"

namespace hone::cli {

namespace {

// Prints the meaning of numbers; beside a JSON document it is talk.
void tell_labels(const OnnxLabels& labels, bool json, Console& console) {
  const std::string text = labels_text(labels);
  if (text.empty()) return;
  if (!json) return console.print("\n{}", text);
  for (std::string_view line : split_lines(text)) console.note("{}", line);
}

// Part of a text; beside a JSON document it is talk.
void tell_denormals(const Model& model, bool json, Console& console) {
  const std::string note = denormals_note(count_denormals(model), "'hone bench --flush-denormals'");
  if (note.empty()) return;
  if (json) return console.note("{}", note);
  console.print("\n{}\n", note);
}

}  // namespace

Status cmd_inspect(const Arguments& arguments, Console& console) {
  if (names_compiled(arguments)) return inspect_compiled(arguments, console);
  HONE_TRY(refuse_verify(arguments));
  const std::string drawing = arguments.text("dot");
  const Source source =
      HONE_TRY(given_source(arguments.text("MODEL"), arguments, console, {.runs_inputs = true}));
  const Model& model = source.model;
  const Bindings bindings = HONE_TRY(given_sizes(source, console));
  const bool json = arguments.text("format") == "json";
  if (single_graph(model) == nullptr) {
    if (arguments.given("dot")) return no_single_graph(model, "--dot");
    const Model bound = HONE_TRY(specialize(model, bindings));
    console.write(HONE_TRY(json ? model_json(bound) : model_text(bound)));
    tell_labels(source.labels, json, console);
    tell_denormals(model, json, console);
    return {};
  }
  const Graph& graph = *single_graph(model);

  if (arguments.given("dot")) {
    if (drawing == "-") {
      console.write(graphviz(graph));
      return {};
    }
    HONE_TRY(write_file_atomic(drawing, graphviz(graph)));
    console.note("wrote {}", drawing);
  }
  GraphSummary summary = HONE_TRY(summarize(graph, bindings));
  for (size_t i = 0; i < model.inputs.size(); ++i) summary.inputs[i].name = model.inputs[i].name;
  for (size_t i = 0; i < model.outputs.size(); ++i) summary.outputs[i].name = model.outputs[i].name;
  console.write(json ? summary_json(summary) : summary_text(summary));
  tell_labels(source.labels, json, console);
  tell_denormals(model, json, console);
  return {};
}

}  // namespace hone::cli

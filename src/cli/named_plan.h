#pragma once

#include <string>

#include "cli/arguments.h"
#include "compile/compilation.h"
#include "session/native.h"
#include "session/source.h"

// Plans by the words of a command line.

namespace hone::cli {

class Console;

// A graph under a plan that is named, on its way to code.
struct NamedPlan {
  std::string name;
  NativeOptions options;  // of the compilation
  std::unique_ptr<Compilation> code;
};

// "default" is the planner's plan, "rewritten" that of the graph that -O3 finds, "log" the best one
// of the log; all else is a file. The graph is
// the one of the model, whose `sizes` were bound. Errors: the file, with its line; the log knows no
// plan; the plan does not fit. `option` names the word in a report of a fault. `target` is a
// machine to plan for in place of this one.
Result<NamedPlan> named_plan(const std::string& word, std::string_view option, const Graph& graph,
                             const Model& model, const Bindings& sizes, const Arguments& arguments,
                             Console& console, const Target* target = nullptr);

}  // namespace hone::cli

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cost/cost.h"
#include "search/placed_graph.h"

// Problems of placement that the command line names.

namespace hone::cli {

class Console;

// A problem from a file, or made of a model.
struct PlaceSubject {
  std::optional<PlacedGraph> model;
  std::vector<std::shared_ptr<const Cost>> costs;  // of the model's system
  PlaceProblem file;

  const PlaceProblem& problem() const { return model ? model->problem : file; }
};

// True for files of problems; all else is a model. "-" is a problem on the standard input.
bool is_problem_path(std::string_view path);
// A problem in any of its formats. `system`: in place of its devices. A graph of tasks has none: it
// takes `tasks` equal devices, or 4; of other files `tasks` is refused.
Result<PlaceProblem> load_place_problem(const std::string& path, std::optional<System> system,
                                        std::optional<int64_t> tasks);
// FILE of the command line, with --system, --target, --devices and --plan.
Result<PlaceSubject> given_place_subject(const Arguments& arguments, Console& console);
// A model or a file of a problem, to learn from: kernels of this machine's price, on one device.
Result<PlaceProblem> place_lesson(const std::string& path, const Arguments& arguments,
                                  Console& console);

}  // namespace hone::cli

#include "report/choices_text.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/text_table.h"
#include "report/wrapped.h"

namespace hone {
namespace {

constexpr size_t kWidth = 100;
constexpr double kMostExact = 1e5;

// "24", "3e18", "uncounted".
std::string number(double count) {
  if (std::isinf(count)) return "uncounted";
  if (count < kMostExact) return fmt::format("{:.0f}", count);
  const int power = static_cast<int>(std::floor(std::log10(count)));
  return fmt::format("{:.0f}e{}", std::floor(count / std::pow(10, power)), power);
}

std::string kernel_text(const KernelChoices& kernel) {
  std::vector<std::string> what = {excerpt(kernel.name)};
  if (kernel.steps > 1) what.push_back(fmt::format("{} times", kernel.steps));
  std::string text = wrapped(excerpt(kernel.label) + "  ", what, 4);
  for (const AlgorithmChoices& algorithm : kernel.algorithms) {
    std::vector<std::string> decisions;
    for (const ScheduleSpace::OpenDecision& decision : algorithm.decisions)
      decisions.push_back(fmt::format("{} {}", decision.name, number(decision.bound)));
    const std::string first =
        fmt::format("{} {:8}  {:>9}  ", kernel.planned == algorithm.algorithm ? '*' : ' ',
                    name(algorithm.algorithm), number(algorithm.schedules));
    text += wrapped(first, decisions, first.size());
  }
  return text;
}

nlohmann::ordered_json json_of(double count) {
  return std::isinf(count) ? nlohmann::ordered_json() : nlohmann::ordered_json(count);
}

nlohmann::ordered_json json_of(const KernelChoices& kernel) {
  nlohmann::ordered_json algorithms = nlohmann::ordered_json::array();
  for (const AlgorithmChoices& algorithm : kernel.algorithms) {
    nlohmann::ordered_json decisions = nlohmann::ordered_json::object();
    for (const ScheduleSpace::OpenDecision& decision : algorithm.decisions)
      decisions[std::string(decision.name)] = json_of(decision.bound);
    algorithms.push_back({{"algorithm", name(algorithm.algorithm)},
                          {"schedules", json_of(algorithm.schedules)},
                          {"decisions", decisions}});
  }
  nlohmann::ordered_json planned;
  if (kernel.planned) planned = name(*kernel.planned);
  return {{"label", kernel.label},
          {"name", kernel.name},
          {"hash", fmt::format("{:#018x}", kernel.hash)},
          {"steps", kernel.steps},
          {"planned", planned},
          {"algorithms", algorithms}};
}

}  // namespace

std::string choices_text(const PlanChoices& choices) {
  std::string text = fmt::format(
      "{} steps, {} different kernels. Schedules of each, by algorithm (*: the plan's), and the "
      "most\nvalues of each decision:\n\n",
      choices.steps, choices.kernels.size());
  for (const KernelChoices& kernel : choices.kernels) text += kernel_text(kernel);
  text += "\nEdits of the plan:\n\n";
  TextTable table("lrrl", {"edit", "open", "values", "for example"});
  for (const EditChoices& edit : choices.edits) {
    const size_t room = kWidth - 37;  // what the other columns take at most
    std::string example = edit.examples.empty() ? "" : excerpt(edit.examples[0]);
    for (size_t i = 1; i < edit.examples.size(); ++i)
      if (const std::string more = ", " + excerpt(edit.examples[i]);
          example.size() + more.size() <= room)
        example += more;
    table.add_row({std::string(name(edit.kind)), number(static_cast<double>(edit.open)),
                   edit.open == 0 ? "" : number(edit.values), example});
  }
  return text + table.to_string();
}

std::string choices_json(std::span<const std::pair<std::string, PlanChoices>> graphs) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const auto& [graph, choices] : graphs) {
    nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
    for (const KernelChoices& kernel : choices.kernels) kernels.push_back(json_of(kernel));
    nlohmann::ordered_json edits = nlohmann::ordered_json::array();
    for (const EditChoices& edit : choices.edits)
      edits.push_back({{"edit", name(edit.kind)},
                       {"open", edit.open},
                       {"values", json_of(edit.values)},
                       {"examples", edit.examples}});
    all.push_back(
        {{"graph", graph}, {"steps", choices.steps}, {"kernels", kernels}, {"edits", edits}});
  }
  return all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace hone

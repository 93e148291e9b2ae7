#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/text_table.h"
#include "kernel/schedule_text.h"
#include "report/explain.h"
#include "report/wrapped.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kIndent = 13;

// "{algorithm = nest, order = [0]}" as "order = [0]": the algorithm stands elsewhere.
std::string fields_text(const Schedule& schedule) {
  const std::string whole = print(schedule);
  const std::string algorithm = fmt::format("algorithm = {}", name(schedule.algorithm()));
  std::string fields = whole.substr(1, whole.size() - 2);
  if (fields.starts_with(algorithm)) fields.erase(0, algorithm.size());
  return fields.starts_with(", ") ? fields.substr(2) : fields;
}

std::string line(std::string_view title, std::span<const std::string> parts) {
  return wrapped(fmt::format("  {:<{}} ", title, kIndent - 3), parts, kIndent);
}

std::string schedule_text(std::string_view title, const Schedule& schedule) {
  std::vector<std::string> parts;
  const std::string fields = fields_text(schedule);
  for (std::string_view part : split(fields, ',')) parts.emplace_back(trim(part));
  return line(title, parts);
}

// "5 us: arithmetic 2 us, memory 4 us", of what takes any time.
std::string price_text(const ScheduleFigures& figures) {
  std::vector<std::string> parts;
  for (const PriceTerm& term : figures.terms)
    if (term.seconds > 0)
      parts.push_back(fmt::format("{} {}", term.name, format_seconds(term.seconds)));
  std::string price = format_seconds(figures.priced);
  if (figures.source != "analytic") price += fmt::format(", {}", figures.source);
  if (parts.empty())
    parts = {price + ", without terms"};
  else
    parts[0] = price + (figures.source == "analytic" ? ": " : "; analytic: ") + parts[0];
  return line("price", parts);
}

std::string measured_text(const ScheduleFigures& figures) {
  std::vector<std::string> parts;
  for (const auto& [conditions, seconds] : figures.measured)
    parts.push_back(fmt::format("{} ({})", format_seconds(seconds), excerpt(conditions)));
  return parts.empty() ? "" : line("measured", parts);
}

// The change by another decision than the planner's; measured, if both were under equal
// conditions.
std::string planned_text(const ExplainedKernel& kernel) {
  const ScheduleFigures& before = *kernel.planned;
  std::string text = schedule_text("planner's", before.schedule);
  std::vector<std::string> parts = {fmt::format("{}, priced {}", name(before.schedule.algorithm()),
                                                format_seconds(before.priced))};
  for (const auto& [conditions, seconds] : before.measured) {
    const auto now = kernel.chosen.measured.find(conditions);
    if (now == kernel.chosen.measured.end() || now->second <= 0) continue;
    parts.push_back(fmt::format("measured {}: it is {:.3f}x as fast now ({})",
                                format_seconds(seconds), seconds / now->second,
                                excerpt(conditions)));
  }
  return text + line("", parts);
}

std::string undivided_text(const Undivided& undivided, int64_t threads) {
  if (!undivided.divided) return line("threads", std::vector{"one: " + undivided.why});
  const ScheduleFigures& divided = *undivided.divided;
  std::vector<std::string> parts = {fmt::format("one: divided among {} it is priced {}", threads,
                                                format_seconds(divided.priced))};
  for (const PriceTerm& term : divided.terms)
    if (term.name == "fork_join" && term.seconds > 0)
      parts.push_back(fmt::format("{} to start and join them", format_seconds(term.seconds)));
  return line("threads", parts);
}

std::string kernel_text(const ExplainedKernel& kernel, size_t number, double all, int64_t threads) {
  std::vector<std::string> title = {excerpt(kernel_label(kernel.layers, kernel.name))};
  if (!kernel.layers.empty()) title.push_back(excerpt(kernel.name));
  title.push_back(kernel.steps == 1 ? "1 step" : fmt::format("{} steps", kernel.steps));
  title.push_back(fmt::format("{:.1f}% of the price", all > 0 ? 100 * kernel.priced() / all : 0));
  std::string text = wrapped(fmt::format("{}. ", number), title, 4);
  text += schedule_text(name(kernel.chosen.schedule.algorithm()), kernel.chosen.schedule);
  text += price_text(kernel.chosen) + measured_text(kernel.chosen);
  std::vector<std::string> roofs;
  if (kernel.arithmetic_roof > 0)
    roofs.push_back("arithmetic " + format_seconds(kernel.arithmetic_roof));
  if (kernel.memory_roof > 0) roofs.push_back("memory " + format_seconds(kernel.memory_roof));
  if (!roofs.empty()) text += line("roofs", roofs);
  std::vector<std::string> others;
  for (const ScheduleFigures& other : kernel.others)
    others.push_back(
        fmt::format("{} {}", name(other.schedule.algorithm()), format_seconds(other.priced)));
  if (!others.empty()) text += line("others", others);
  if (kernel.undivided) text += undivided_text(*kernel.undivided, threads);
  return kernel.planned ? text + planned_text(kernel) : text;
}

Json json_of(const ScheduleFigures& figures) {
  Json json = {{"schedule", print(figures.schedule)},
               {"priced", figures.priced},
               {"source", figures.source}};
  json["terms"] = nullptr;  // the price has none
  for (const PriceTerm& term : figures.terms) json["terms"][std::string(term.name)] = term.seconds;
  json["measured"] = Json::object();
  for (const auto& [conditions, seconds] : figures.measured) json["measured"][conditions] = seconds;
  return json;
}

Json json_of(const LearnedCost::Trust& trust) {
  Json json = {
      {"knows", trust.knows.ok()},    {"why", trust.knows.ok() ? "" : trust.knows.error().what()},
      {"analytic", trust.analytic},   {"residual", trust.residual},
      {"deviation", trust.deviation}, {"inside", trust.is_inside}};
  json["bound"] = trust.bound ? Json(*trust.bound) : Json(nullptr);
  return json;
}

std::string rewrites_text(std::span<const std::string> rewrites, size_t most) {
  if (rewrites.empty()) return "";
  std::string text = fmt::format("\nthe graph is rewritten, {} {}:\n", rewrites.size(),
                                 rewrites.size() == 1 ? "time" : "times");
  const size_t shown = std::min(most, rewrites.size());
  for (size_t i = 0; i < shown; ++i) text += fmt::format("  {:4} {}\n", i + 1, rewrites[i]);
  if (shown < rewrites.size())
    text += fmt::format("       and {} more (--top N shows more)\n", rewrites.size() - shown);
  return text;
}

// A name in a cell of a table.
std::string cut(const std::string& name) {
  constexpr size_t kName = 24;
  return name.size() > kName ? name.substr(0, kName - 2) + ".." : name;
}

// The cells of a kernel under one plan; null: the plan does not have it.
void add_cells(const ExplainedKernel* kernel, std::vector<std::string>& row) {
  if (kernel == nullptr) return row.insert(row.end(), {"", "", "", ""}), void();
  const auto& measured = kernel->chosen.measured;
  row.insert(row.end(),
             {std::to_string(kernel->steps), std::string(name(kernel->chosen.schedule.algorithm())),
              format_seconds(kernel->chosen.priced),
              measured.empty() ? "" : format_seconds(measured.begin()->second)});
}

}  // namespace

std::string explanation_text(const Explanation& explanation, size_t most) {
  const double all = explanation.priced();
  std::string text =
      fmt::format("{} different kernels, threads {}, priced {} in all\n",
                  explanation.kernels.size(), explanation.threads, format_seconds(all));
  if (explanation.gpu) text += gpu_share_text(*explanation.gpu, most);
  text += rewrites_text(explanation.rewrites, most);
  const size_t shown = std::min(most, explanation.kernels.size());
  for (size_t i = 0; i < shown; ++i)
    text += "\n" + kernel_text(explanation.kernels[i], i + 1, all, explanation.threads);
  if (shown < explanation.kernels.size())
    text +=
        fmt::format("\n{} cheaper ones (--top N shows more)\n", explanation.kernels.size() - shown);
  return text;
}

std::string trust_text(const Explanation& explanation, size_t most) {
  TextTable table("rlrrrrrl",
                  {"", "kernel", "price", "analytic", "networks", "+-", "bound", "price is"});
  std::string reasons;
  const size_t shown = std::min(most, explanation.kernels.size());
  for (size_t i = 0; i < shown; ++i) {
    const ExplainedKernel& kernel = explanation.kernels[i];
    if (!kernel.trust) continue;
    const LearnedCost::Trust& trust = *kernel.trust;
    const bool knows = trust.knows.ok();
    table.add_row({fmt::format("{}.", i + 1), cut(kernel.name),
                   format_seconds(kernel.chosen.priced), format_seconds(trust.analytic),
                   knows ? fmt::format("x {:.2f}", std::exp(trust.residual)) : "",
                   knows ? fmt::format("{:.0f} %", 100 * trust.deviation) : "",
                   knows && trust.bound ? fmt::format("{:.0f} %", 100 * *trust.bound) : "",
                   !knows            ? "analytic"
                   : trust.is_inside ? "learned"
                                     : "the dearer"});
    if (!knows) reasons += fmt::format("{}. {}\n", i + 1, trust.knows.error().what());
  }
  if (table.empty()) return "no price is learned\n";
  std::string text = fmt::format("learned prices, {}\n\n", explanation.learned);
  text += table.to_string();
  if (!reasons.empty()) text += "\nwhy networks have no say:\n" + reasons;
  return text;
}

std::string explanation_json(const Explanation& explanation) {
  Json json = {{"threads", explanation.threads},
               {"priced", explanation.priced()},
               {"rewrites", explanation.rewrites},
               {"kernels", Json::array()}};
  if (explanation.gpu) {
    json["on_cpu"] = Json::array();
    for (const CpuKernel& one : explanation.gpu->on_cpu)
      json["on_cpu"].push_back({{"kernel", escape(one.name)}, {"why", escape(one.why)}});
  }
  for (const ExplainedKernel& kernel : explanation.kernels) {
    Json one = {{"kernel", fmt::format("0x{:016x}", kernel.hash)},
                {"name", kernel.name},
                {"layers", Json::array()},
                {"steps", kernel.steps},
                {"launches", kernel.launches},
                {"chosen", json_of(kernel.chosen)},
                {"arithmetic_roof", kernel.arithmetic_roof},
                {"memory_roof", kernel.memory_roof},
                {"others", Json::array()}};
    for (const std::string& layer : kernel.layers) one["layers"].push_back(escape(layer));
    for (const ScheduleFigures& other : kernel.others) one["others"].push_back(json_of(other));
    if (kernel.planned) one["planner"] = json_of(*kernel.planned);
    if (kernel.trust) one["trust"] = json_of(*kernel.trust);
    if (kernel.undivided && kernel.undivided->divided)
      one["divided"] = json_of(*kernel.undivided->divided);
    else if (kernel.undivided)
      one["undivided"] = kernel.undivided->why;
    json["kernels"].push_back(std::move(one));
  }
  return json.dump(1) + "\n";
}

std::string explained_difference(const Explanation& first, const Explanation& second,
                                 std::string_view first_name, std::string_view second_name) {
  std::map<uint64_t, std::pair<const ExplainedKernel*, const ExplainedKernel*>> both;
  for (const ExplainedKernel& kernel : first.kernels) both[kernel.hash].first = &kernel;
  for (const ExplainedKernel& kernel : second.kernels) both[kernel.hash].second = &kernel;
  TextTable table("lrlrrrlrr",
                  {"kernel", "in A", "", "priced", "measured", "in B", "", "priced", "measured"});
  for (const auto& [hash, pair] : both) {
    const auto& [a, b] = pair;
    const bool is_same = a != nullptr && b != nullptr && a->steps == b->steps &&
                         a->chosen.schedule == b->chosen.schedule;
    if (is_same) continue;
    std::vector<std::string> row = {cut((a != nullptr ? a : b)->name)};
    add_cells(a, row);
    add_cells(b, row);
    table.add_row(std::move(row));
  }
  std::string text = fmt::format("A: {}, priced {} in all\nB: {}, priced {} in all\n",
                                 excerpt(first_name), format_seconds(first.priced()),
                                 excerpt(second_name), format_seconds(second.priced()));
  return table.empty() ? text + "no kernel differs\n" : text + table.to_string();
}

}  // namespace hone

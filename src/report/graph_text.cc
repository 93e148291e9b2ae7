#include "report/graph_text.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text_table.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

std::string percent(double share) { return fmt::format("{:.2f}", 100 * share); }

std::vector<std::string> mean_row(std::span<const GraphVerdict> verdicts, bool many) {
  const MeanGraphVerdict mean = mean_of(verdicts, many);
  const bool has_planned = std::ranges::any_of(
      verdicts, [](const GraphVerdict& each) { return each.planned.has_value(); });
  return {many ? fmt::format("mean, {} runs and more", kManyRuns) : "mean",
          std::to_string(mean.graphs),
          fmt::format("{:.3f}", mean.tau),
          percent(mean.top1),
          percent(mean.top5),
          percent(mean.random),
          has_planned ? percent(mean.planned) : "",
          ""};
}

}  // namespace

std::string graph_verdicts_text(std::span<const GraphVerdict> verdicts, bool has_area) {
  TextTable table("lrrrrrrr", {"graph", "runs", "tau", "top1 %", "top5 %", "random %", "default %",
                               has_area ? "area" : ""});
  std::vector<double> areas;
  for (const GraphVerdict& each : verdicts) {
    areas.push_back(each.area);
    table.add_row({each.program, std::to_string(each.runs), fmt::format("{:.3f}", each.tau),
                   percent(each.top1), percent(each.top5), percent(each.random),
                   each.planned ? percent(*each.planned) : "",
                   has_area ? fmt::format("{:.3f}", each.area) : ""});
  }
  table.add_rule();
  const auto many = std::ranges::count_if(
      verdicts, [](const GraphVerdict& each) { return each.runs >= kManyRuns; });
  table.add_row(mean_row(verdicts, false));
  if (many > 0 && many < std::ssize(verdicts)) table.add_row(mean_row(verdicts, true));
  std::string text = table.to_string();
  if (!has_area) return text;
  const MeanInterval area = interval_of(areas);
  text += fmt::format("area under the curve, slow against fast: {:.3f}", area.mean);
  if (std::isfinite(area.half)) text += fmt::format(" ±{:.3f}", area.half);
  return text + "\n";
}

std::string graph_verdicts_json(std::span<const GraphVerdict> verdicts) {
  Json all = Json::array();
  for (const GraphVerdict& each : verdicts) {
    Json json = {{"graph", each.program}, {"runs", each.runs}, {"tau", each.tau},
                 {"top1", each.top1},     {"top5", each.top5}, {"random", each.random},
                 {"area", each.area}};
    if (each.planned) json["default"] = *each.planned;
    all.push_back(std::move(json));
  }
  const MeanGraphVerdict mean = mean_of(verdicts, false);
  const Json json = {{"graphs", all},
                     {"mean", {{"tau", mean.tau}, {"top1", mean.top1}, {"random", mean.random}}}};
  return json.dump(2) + "\n";
}

std::string graph_model_text(const GraphModel& model) {
  size_t numbers = 0;
  for (const NamedTensor& each : model.weights)
    numbers += static_cast<size_t>(each.tensor.elements());
  return fmt::format(
      "{}, {} layers of {}, {} reduction, {}loss {}, {}: {} weights, from {} programs\n",
      name(model.network.passing), model.network.layers, model.network.width,
      name(model.network.reduction), model.network.compares ? "comparing, " : "",
      name(model.network.loss),
      model.hops < 0 ? std::string("whole graphs") : fmt::format("{} hops", model.hops), numbers,
      model.programs.size());
}

}  // namespace hone

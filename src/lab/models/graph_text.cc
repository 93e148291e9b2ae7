#include "lab/models/graph_text.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text_table.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

std::string hundredths(double share) { return fmt::format("{:.2f}", 100 * share); }
std::string hundredths(std::optional<double> share) { return share ? hundredths(*share) : ""; }
std::string digits(double number) { return fmt::format("{:.3f}", number); }
std::string digits(std::optional<double> number) { return number ? digits(*number) : ""; }

// Verdicts that are told together: near the default it is harder than at random.
struct Verdicts {
  std::string name;
  std::vector<GraphVerdict> verdicts;
};
std::vector<Verdicts> grouped(std::span<const GraphVerdict> verdicts) {
  std::vector<Verdicts> groups;
  for (std::string_view sort : {"random", "default"})
    if (auto some = those_of_sort(verdicts, sort); !some.empty())
      groups.push_back({std::string(sort), std::move(some)});
  if (groups.empty()) groups.push_back({"all", {verdicts.begin(), verdicts.end()}});
  std::vector<GraphVerdict> many = those_with_many_runs(verdicts);
  if (!many.empty() && many.size() < verdicts.size())
    groups.push_back({fmt::format("{} runs and more", kManyRuns), std::move(many)});
  return groups;
}

void add_means(TextTable& table, const Verdicts& group) {
  const MeanGraphVerdict mean = mean_of(group.verdicts);
  const auto add = [&](std::string_view by, const OrderVerdict& order,
                       std::optional<double> share) {
    table.add_row({group.name, std::string(by), std::to_string(mean.graphs), digits(order.tau),
                   hundredths(order.top1), hundredths(order.top5), hundredths(order.top10),
                   digits(order.whole), hundredths(share)});
  };
  add("model", mean.model, mean.share);
  if (mean.priced) add("price", *mean.priced, mean.priced_share);
  if (mean.summed) add("layouts", *mean.summed, std::nullopt);
  const auto one = [&](std::string_view by, double regret) {
    table.add_row({group.name, std::string(by), std::to_string(mean.graphs), "", hundredths(regret),
                   "", "", "", ""});
  };
  one("random", mean.random);
  if (mean.planned) one("default", *mean.planned);
}

}  // namespace

std::string graph_verdicts_text(std::span<const GraphVerdict> verdicts, bool has_area) {
  TextTable table("llrrrrrrrrr", {"graph", "", "runs", "tau", "top1 %", "top5 %", "top10 %",
                                  "price top1 %", "random %", "default %", has_area ? "area" : ""});
  std::vector<double> areas, summed_areas;
  for (const GraphVerdict& each : verdicts) {
    areas.push_back(each.area);
    if (each.summed) summed_areas.push_back(each.summed->area);
    table.add_row({each.program, each.sort, std::to_string(each.runs), digits(each.tau),
                   hundredths(each.top1), hundredths(each.top5), hundredths(each.top10),
                   each.priced ? hundredths(each.priced->top1) : "", hundredths(each.random),
                   hundredths(each.planned), has_area ? digits(each.area) : ""});
  }
  TextTable means("llrrrrrrr", {"mean", "by", "graphs", "tau", "top1 %", "top5 %", "top10 %",
                                "tau of whole runs", "of their ceiling %"});
  for (const Verdicts& group : grouped(verdicts)) add_means(means, group);
  std::string text = table.to_string() + "\n" + means.to_string();
  if (!has_area) return text;
  const auto mean_area = [](std::string_view by, std::span<const double> each) {
    const MeanInterval area = interval_of(each);
    std::string text = fmt::format("{} {:.3f}", by, area.mean);
    if (std::isfinite(area.half)) text += fmt::format(" ±{:.3f}", area.half);
    return text;
  };
  text += "area under the curve, slow against fast: " + mean_area("model", areas);
  if (!summed_areas.empty()) text += ", " + mean_area("sums of layouts", summed_areas);
  return text + "\n";
}

namespace {

Json json_of(const OrderVerdict& order) {
  Json json = {{"tau", order.tau},
               {"top1", order.top1},
               {"top5", order.top5},
               {"top10", order.top10},
               {"area", order.area}};
  if (order.whole) json["tau_of_whole"] = *order.whole;
  return json;
}

Json json_of(const GraphVerdict& verdict) {
  Json json = {{"graph", verdict.program}, {"runs", verdict.runs}};
  if (!verdict.sort.empty()) json["sort"] = verdict.sort;
  json.update(json_of(static_cast<const OrderVerdict&>(verdict)));
  json["random"] = verdict.random;
  if (verdict.planned) json["default"] = *verdict.planned;
  if (verdict.priced) json["priced"] = json_of(*verdict.priced);
  if (verdict.summed) json["sums_of_layouts"] = json_of(*verdict.summed);
  if (verdict.whole_runs > 0) json["whole_runs"] = verdict.whole_runs;
  if (verdict.ceiling) json["ceiling"] = *verdict.ceiling;
  return json;
}

Json json_of(const MeanGraphVerdict& mean) {
  Json json = {{"graphs", mean.graphs}};
  json.update(json_of(mean.model));
  json["random"] = mean.random;
  if (mean.planned) json["default"] = *mean.planned;
  if (mean.share) json["share_of_ceiling"] = *mean.share;
  if (mean.priced) {
    json["priced"] = json_of(*mean.priced);
    if (mean.priced_share) json["priced"]["share_of_ceiling"] = *mean.priced_share;
  }
  if (mean.summed) json["sums_of_layouts"] = json_of(*mean.summed);
  return json;
}

}  // namespace

std::string graph_verdicts_json(std::span<const GraphVerdict> verdicts) {
  Json all = Json::array(), means = Json::object();
  for (const GraphVerdict& each : verdicts) all.push_back(json_of(each));
  for (const Verdicts& group : grouped(verdicts))
    means[group.name] = json_of(mean_of(group.verdicts));
  const Json json = {{"graphs", all}, {"mean", json_of(mean_of(verdicts))}, {"means", means}};
  return json.dump(2) + "\n";
}

std::string graph_model_text(const GraphModel& model) {
  size_t numbers = 0;
  for (const NamedTensor& each : model.weights)
    numbers += static_cast<size_t>(each.tensor.elements());
  const std::string segments =
      model.segments == 0 ? "" : fmt::format(", segments of {} nodes", model.segments);
  return fmt::format(
      "{}, {} layers of {}, {} reduction, {}{}loss {}, {}{}: {} weights, from {} programs\n",
      name(model.network.passing), model.network.layers, model.network.width,
      name(model.network.reduction), model.network.compares ? "comparing, " : "",
      model.network.skeleton ? "on prices, " : "", name(model.network.loss),
      model.hops < 0 ? std::string("whole graphs") : fmt::format("{} hops", model.hops), segments,
      numbers, model.programs.size());
}

}  // namespace hone

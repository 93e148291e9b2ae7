#include "report/price_text.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/text_table.h"
#include "kernel/kernel_kind.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;
using TrialVerdicts = std::vector<KernelVerdict> PriceTrial::*;

constexpr std::pair<std::string_view, TrialVerdicts> kPrices[] = {{"analytic", &PriceTrial::plain},
                                                                  {"fitted", &PriceTrial::fitted},
                                                                  {"learned", &PriceTrial::learned},
                                                                  {"measured", &PriceTrial::again}};
struct Figure {
  std::string_view name;
  double MeanVerdict::* member;
  bool is_share = true;  // told in %
};
constexpr Figure kFigures[] = {{"tau", &MeanVerdict::tau, false},
                               {"top1", &MeanVerdict::top1},
                               {"top5", &MeanVerdict::top5},
                               {"error", &MeanVerdict::error},
                               {"planned", &MeanVerdict::planned}};

// Over the trials that have such kernels.
MeanInterval figure(std::span<const PriceTrial> trials, TrialVerdicts verdicts,
                    std::string_view kind, double MeanVerdict::* member) {
  std::vector<double> values;
  for (const PriceTrial& trial : trials) {
    const MeanVerdict mean = mean_of(trial.*verdicts, kind);
    if (mean.kernels > 0) values.push_back(mean.*member);
  }
  return interval_of(values);
}

size_t kernels_of(std::span<const PriceTrial> trials, std::string_view kind) {
  size_t kernels = 0;
  for (const PriceTrial& trial : trials) kernels += mean_of(trial.learned, kind).kernels;
  return kernels;
}

std::string text_of(const MeanInterval& interval, bool is_share, bool has_half) {
  const double scale = is_share ? 100 : 1;
  std::string text = is_share ? fmt::format("{:.1f}", scale * interval.mean)
                              : fmt::format("{:.3f}", interval.mean);
  if (!has_half || !std::isfinite(interval.half)) return text;
  return text + (is_share ? fmt::format(" ±{:.1f}", scale * interval.half)
                          : fmt::format(" ±{:.3f}", interval.half));
}

MeanInterval over(std::span<const PriceTrial> trials, double PriceTrial::* member) {
  std::vector<double> values;
  for (const PriceTrial& trial : trials) values.push_back(trial.*member);
  return interval_of(values);
}

// Over the trials in which a kernel has a bound.
MeanInterval over_bounded(std::span<const PriceTrial> trials, double PriceTrial::* member) {
  std::vector<double> values;
  for (const PriceTrial& trial : trials)
    if (trial.bounded > 0) values.push_back(trial.*member);
  return interval_of(values);
}

}  // namespace

std::string price_trials_text(std::span<const PriceTrial> trials) {
  TextTable table("lrlrrrrrr", {"kind", "kernels", "price", "tau", "of ceiling", "top1 %", "top5 %",
                                "error %", "planned %"});
  std::vector<std::string_view> kinds(std::begin(kKernelKinds), std::end(kKernelKinds));
  kinds.push_back("");
  for (std::string_view kind : kinds) {
    const size_t kernels = kernels_of(trials, kind);
    if (kernels == 0) continue;
    const bool is_all = kind.empty();
    if (is_all) table.add_rule();
    const double ceiling = figure(trials, &PriceTrial::again, kind, &MeanVerdict::tau).mean;
    for (const auto& [name, verdicts] : kPrices) {
      const bool is_first = verdicts == &PriceTrial::plain;
      std::vector<std::string> row = {is_first ? std::string(is_all ? "all" : kind) : "",
                                      is_first ? std::to_string(kernels) : "", std::string(name)};
      for (const Figure& each : kFigures) {
        const MeanInterval interval = figure(trials, verdicts, kind, each.member);
        row.push_back(text_of(interval, each.is_share, is_all));
        if (each.member == &MeanVerdict::tau)
          row.push_back(fmt::format("{:.2f}", interval.mean / std::max(ceiling, 1e-9)));
      }
      table.add_row(std::move(row));
    }
  }
  std::string text = table.to_string();
  text += fmt::format("{:.0f} % of the kernels are known; ",
                      100 * over(trials, &PriceTrial::known).mean);
  const bool has_bound =
      std::ranges::any_of(trials, [](const PriceTrial& trial) { return trial.bounded > 0; });
  text +=
      !has_bound
          ? "none has a bound\n"
          : fmt::format("their bound of one candidate is {:.0f} % on average, and holds for {} %\n",
                        100 * over_bounded(trials, &PriceTrial::bound).mean,
                        text_of(over_bounded(trials, &PriceTrial::bound_holds), true, true));
  text += fmt::format(
      "what the planner chooses of them, by the analytic price unless the learned one leads, is "
      "{} % slower than the fastest\n",
      text_of(figure(trials, &PriceTrial::chosen, "", &MeanVerdict::top1), true, true));
  return text;
}

std::string price_trials_json(std::span<const PriceTrial> trials) {
  Json json = {{"trials", trials.size()},
               {"known", over(trials, &PriceTrial::known).mean},
               {"bound", over_bounded(trials, &PriceTrial::bound).mean},
               {"bound_holds", over_bounded(trials, &PriceTrial::bound_holds).mean},
               {"chosen", figure(trials, &PriceTrial::chosen, "", &MeanVerdict::top1).mean},
               {"kinds", Json::object()}};
  std::vector<std::string_view> kinds(std::begin(kKernelKinds), std::end(kKernelKinds));
  kinds.push_back("");
  for (std::string_view kind : kinds) {
    if (kernels_of(trials, kind) == 0) continue;
    Json& of_kind = json["kinds"][kind.empty() ? "all" : std::string(kind)];
    of_kind["kernels"] = kernels_of(trials, kind);
    for (const auto& [name, verdicts] : kPrices)
      for (const Figure& each : kFigures) {
        const MeanInterval interval = figure(trials, verdicts, kind, each.member);
        Json& to = of_kind[std::string(name)][std::string(each.name)];
        to["mean"] = interval.mean;
        to["half"] = std::isfinite(interval.half) ? Json(interval.half) : Json(nullptr);
      }
  }
  return json.dump(1) + "\n";
}

namespace {

constexpr std::pair<std::string_view, double TimeVerdict::*> kTimes[] = {
    {"analytic", &TimeVerdict::analytic},
    {"fitted", &TimeVerdict::fitted},
    {"learned", &TimeVerdict::learned}};
constexpr KernelOrigin kOrigins[] = {KernelOrigin::plan, KernelOrigin::groups,
                                     KernelOrigin::layouts};

// A row of the table: kernels of a kind, of an origin, or all.
struct TimeRow {
  std::string name;
  std::string_view kind = "";
  std::optional<KernelOrigin> origin = {};
};
std::vector<TimeRow> time_rows() {
  std::vector<TimeRow> rows;
  for (std::string_view kind : kKernelKinds) rows.push_back({std::string(kind), kind});
  for (KernelOrigin origin : kOrigins)
    rows.push_back({fmt::format("of {}", name(origin)), "", origin});
  rows.push_back({"all"});
  return rows;
}

std::vector<TimeVerdict> joined(std::span<const std::vector<TimeVerdict>> trials) {
  std::vector<TimeVerdict> all;
  for (const auto& trial : trials) all.insert(all.end(), trial.begin(), trial.end());
  return all;
}

MeanInterval over(std::span<const std::vector<TimeVerdict>> trials, double TimeVerdict::* price,
                  double TimeErrors::* figure) {
  std::vector<double> values;
  for (const auto& trial : trials)
    if (!trial.empty()) values.push_back(errors_of(trial, price).*figure);
  return interval_of(values);
}

}  // namespace

std::string time_trials_text(std::span<const std::vector<TimeVerdict>> trials) {
  TextTable table("lrrrrrrr", {"kind", "kernels", "analytic %", "median", "fitted %", "median",
                               "learned %", "median"});
  const std::vector<TimeVerdict> all = joined(trials);
  for (const TimeRow& each : time_rows()) {
    const bool is_all = each.kind.empty() && !each.origin;
    const size_t kernels = errors_of(all, &TimeVerdict::analytic, each.kind, each.origin).kernels;
    if (kernels == 0) continue;
    if (is_all) table.add_rule();
    std::vector<std::string> row = {each.name, std::to_string(kernels)};
    for (const auto& [name, price] : kTimes) {
      const TimeErrors errors = errors_of(all, price, each.kind, each.origin);
      for (double TimeErrors::* figure : {&TimeErrors::mean, &TimeErrors::median})
        row.push_back(is_all ? text_of(over(trials, price, figure), true, true)
                             : fmt::format("{:.1f}", 100 * (errors.*figure)));
    }
    table.add_row(std::move(row));
  }
  return table.to_string();
}

std::string time_trials_json(std::span<const std::vector<TimeVerdict>> trials) {
  Json json = {{"trials", trials.size()}, {"rows", Json::object()}};
  const std::vector<TimeVerdict> all = joined(trials);
  for (const TimeRow& each : time_rows()) {
    if (errors_of(all, &TimeVerdict::analytic, each.kind, each.origin).kernels == 0) continue;
    Json& row = json["rows"][each.name];
    for (const auto& [name, price] : kTimes) {
      const TimeErrors errors = errors_of(all, price, each.kind, each.origin);
      row["kernels"] = errors.kernels;
      row[std::string(name)] = {{"mean", errors.mean}, {"median", errors.median}};
    }
  }
  return json.dump(1) + "\n";
}

namespace {

std::string lead_text(double lead) {
  if (lead >= kNoLead) return "no schedule takes the planner's place: choices gained nothing\n";
  return fmt::format("a schedule takes the planner's place if it is priced {:.0f} % below\n",
                     100 * lead);
}

}  // namespace

std::string kernel_model_text(const KernelModel& model) {
  std::string text = fmt::format("{} networks for '{}' on {} {}, by {} kernels of {} programs\n",
                                 model.members.size(), model.target, model.threads,
                                 model.threads == 1 ? "thread" : "threads", model.kernels.size(),
                                 model.programs.size());
  TextTable table("lrrr", {"kernels", "best 1 is slower by", "best 5", "best 12"});
  for (const RegretBound& bound : model.bounds) {
    const auto cell = [&](size_t c) { return fmt::format("{:.1f} %", 100 * bound.slower[c]); };
    table.add_row({bound.kind.empty() ? "all" : bound.kind, cell(0), cell(3), cell(5)});
  }
  text += "at most, for nine of ten that a network has not seen:\n" + table.to_string("  ") +
          lead_text(model.lead);
  if (!model.is_of_several()) return text;
  text = "on a processor that it has not learned from:\n" + text;
  for (const ModelTarget& each : model.processors.targets)
    text += fmt::format("{}: {} kernels; {}", each.name, each.kernels, lead_text(each.trust.lead));
  return text;
}

}  // namespace hone

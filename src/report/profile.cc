#include "report/profile.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/text.h"
#include "base/text_table.h"
#include "cost/cost.h"
#include "plan/group_work.h"
#include "plan/planned.h"

namespace hone {

namespace {

// What the plan says of a command that launches a kernel.
struct Planned {
  double operations = 0;
  Type result;
  uint64_t hash = 0;
  std::string_view algorithm;
  double price = 0;  // seconds of a launch
};

// By name of the command; names that several regions use are left out.
class PlannedCommands {
 public:
  static Result<PlannedCommands> of(const Graph& graph, const Plan& plan, const Cost& cost) {
    PlannedCommands commands(plan, cost);
    HONE_TRY(commands.add(graph, plan));
    return commands;
  }

  const Planned* find(const std::string& command) const {
    const auto found = by_name_.find(command);
    return found == by_name_.end() || !found->second ? nullptr : &*found->second;
  }

 private:
  PlannedCommands(const Plan& whole, const Cost& cost) : whole_(whole), cost_(cost) {}

  Status add(const Graph& graph, const Plan& plan) {
    const PlannedGraph planned = HONE_TRY(hone::planned(plan, graph));
    const Users users(*planned.graph);
    for (const Step& step : planned.steps) {
      const auto [entry, is_new] = by_name_.try_emplace(step.name);
      if (!is_new) entry->second.reset();
      if (!is_new || !step.is_kernel || step.writes.empty()) continue;
      const KernelBody body = body_of(planned, users, step);
      const uint64_t hash = kernel_hash(body);
      const auto schedule = whole_.schedule.find(hash);
      if (schedule == whole_.schedule.end()) continue;
      entry->second = {work_of(*planned.graph, step.nodes, step.writes).inherent,
                       planned.graph->type(step.writes[0]), hash, name(schedule->second.algorithm),
                       cost_.launch(body, schedule->second, whole_.threads.value_or(1))};
    }
    for (const RegionRef& region : regions_of(graph))
      HONE_TRY(add(*region.graph, plan.region.at(region.key)));
    return {};
  }

  const Plan& whole_;
  const Cost& cost_;
  std::map<std::string, std::optional<Planned>> by_name_;
};

// A kernel's launches, or all copies.
struct Row {
  const CommandTime* first = nullptr;
  int64_t runs = 0;
  double seconds = 0;
};

std::vector<Row> rows_of(std::span<const CommandTime> times) {
  std::map<std::string_view, size_t> known;
  std::vector<Row> rows;
  for (const CommandTime& time : times) {
    const auto [at, is_new] = known.try_emplace(time.kernel, rows.size());
    if (is_new) rows.push_back({.first = &time});
    Row& row = rows[at->second];
    row.runs += time.runs;
    row.seconds += time.least * static_cast<double>(time.runs);
  }
  std::ranges::sort(rows, std::greater<>(), &Row::seconds);
  return rows;
}

std::string percent(double part) { return fmt::format("{:.1f}%", 100 * part); }

}  // namespace

Result<std::string> profile_table(std::span<const CommandTime> times, int64_t runs,
                                  const Graph& graph, const Plan& plan, const Target& target,
                                  size_t most) {
  const AnalyticCost cost(target);
  const PlannedCommands commands = HONE_TRY(PlannedCommands::of(graph, plan, cost));
  const double peak = target.peak(DType::f32) * static_cast<double>(plan.threads.value_or(1));
  const double a_run = 1 / static_cast<double>(std::max<int64_t>(runs, 1));
  const std::vector<Row> rows = rows_of(times);
  double total = 0;
  for (const Row& row : rows) total += row.seconds;
  const auto time_of = [&](double seconds) { return format_seconds(seconds * a_run); };

  TextTable table("llrlllrrrrr", {"kernel", "first", "launches", "writes", "algorithm", "schedule",
                                  "time", "share", "priced", "Gop/s", "of peak"});
  double rest = total;
  for (const Row& row : std::span(rows).first(std::min(most, rows.size()))) {
    rest -= row.seconds;
    const bool is_copy = row.first->kernel.empty();
    std::vector<std::string> cells(11);
    cells[0] = is_copy ? "(copies)" : row.first->kernel;
    cells[1] = row.first->command;
    cells[2] = fmt::format("{:.4g}", static_cast<double>(row.runs) * a_run);
    cells[6] = time_of(row.seconds);
    cells[7] = percent(row.seconds / total);
    if (const Planned* planned = commands.find(row.first->command); planned && !is_copy) {
      const double rate = planned->operations * static_cast<double>(row.runs) / row.seconds;
      cells[3] = planned->result.to_string();
      cells[4] = planned->algorithm;
      cells[5] = fmt::format("0x{:016x}", planned->hash);
      cells[8] = time_of(planned->price * static_cast<double>(row.runs));
      cells[9] = fmt::format("{:.1f}", rate / 1e9);
      if (peak > 0) cells[10] = percent(rate / peak);
    }
    table.add_row(std::move(cells));
  }
  if (rows.size() > most)
    table.add_row({fmt::format("{} others", rows.size() - most), "", "", "", "", "", time_of(rest),
                   percent(rest / total), "", "", ""});
  table.add_row({"all", "", "", "", "", "", time_of(total), "", "", "", ""});
  return table.to_string();
}

}  // namespace hone

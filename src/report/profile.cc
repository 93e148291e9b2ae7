#include "report/profile.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/text.h"
#include "base/text_table.h"
#include "kernel/group_work.h"
#include "plan/planned_kernels.h"

namespace hone {

namespace {

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
std::string share(double part, double all) { return percent(all > 0 ? part / all : 0); }

}  // namespace

Result<std::string> profile_table(std::span<const CommandTime> times, int64_t runs,
                                  const Graph& graph, const Plan& plan, const Target& target,
                                  const Cost& cost, size_t most, const Bindings& sizes) {
  const std::map<std::string, PlannedKernel> kernels = HONE_TRY(planned_kernels(graph, plan));
  const int64_t threads = plan.threads.value_or(1);
  const double peak = target.peak(DType::f32) * static_cast<double>(threads);
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
    cells[7] = share(row.seconds, total);
    if (const auto kernel = kernels.find(row.first->command); kernel != kernels.end() && !is_copy) {
      const auto& [body_of_all, hash, schedule] = kernel->second;
      KernelBody body = body_of_all;
      if (!sizes.empty()) body.graph = HONE_TRY(specialize(body.graph, sizes));
      const double runs_of_kernel = static_cast<double>(row.runs);
      cells[3] = body.graph.type(body.graph.outputs()[0]).to_string();
      cells[4] = name(schedule->algorithm());
      cells[5] = fmt::format("0x{:016x}", hash);
      cells[8] = time_of(cost.launch(body, *schedule, threads) * runs_of_kernel);
      if (row.seconds > 0) {
        const double rate = work_of(body).inherent * runs_of_kernel / row.seconds;
        cells[9] = fmt::format("{:.1f}", rate / 1e9);
        if (peak > 0) cells[10] = percent(rate / peak);
      }
    }
    table.add_row(std::move(cells));
  }
  if (rows.size() > most)
    table.add_row({fmt::format("{} others", rows.size() - most), "", "", "", "", "", time_of(rest),
                   share(rest, total), "", "", ""});
  table.add_row({"all", "", "", "", "", "", time_of(total), "", "", "", ""});
  return table.to_string();
}

namespace {

constexpr size_t kSegmentTables = 5;

using GraphProfile = NativeEngine::GraphProfile;

double seconds_of(const GraphProfile& one) {
  double seconds = 0;
  for (const CommandTime& time : one.times) seconds += time.least * static_cast<double>(time.runs);
  return seconds;
}

std::string sizes_text(const Bindings& sizes) {
  std::vector<std::string> texts;
  for (const auto& [name, size] : sizes)
    texts.push_back(fmt::format("{} = {}", name, size.to_string()));
  return join(texts, ", ");
}

// Code for these sizes has them as numbers.
Result<std::string> table_of(const GraphProfile& one, int64_t runs, const Target& target,
                             size_t most) {
  const Graph& graph = *HONE_TRY(one.code->graph());
  const Plan& plan = *HONE_TRY(one.code->plan());
  return profile_table(one.times, runs, graph, plan, target, one.code->cost(), most,
                       graph.is_static() ? Bindings() : one.sizes);
}

}  // namespace

Result<std::string> profile_text(const NativeEngine& engine, int64_t runs, const Target& target,
                                 size_t most) {
  std::vector<GraphProfile> all = engine.profiles();
  if (all.size() == 1) return table_of(all[0], runs, target, most);
  std::ranges::sort(all, std::greater<>(), seconds_of);
  const double a_run = 1 / static_cast<double>(std::max<int64_t>(runs, 1));
  double total = 0;
  for (const GraphProfile& one : all) total += seconds_of(one);
  const auto time_of = [&](double seconds) { return format_seconds(seconds * a_run); };
  TextTable table("llrrr", {"segment", "sizes", "runs", "time", "share"});
  double rest = total;
  for (const GraphProfile& one : std::span(all).first(std::min(most, all.size()))) {
    const double seconds = seconds_of(one);
    rest -= seconds;
    table.add_row({excerpt(one.name), sizes_text(one.sizes),
                   fmt::format("{:.4g}", static_cast<double>(one.runs) * a_run), time_of(seconds),
                   share(seconds, total)});
  }
  if (all.size() > most)
    table.add_row(
        {fmt::format("{} others", all.size() - most), "", "", time_of(rest), share(rest, total)});
  table.add_row({"all", "", "", time_of(total), ""});
  std::string text = table.to_string();
  for (const GraphProfile& one : std::span(all).first(std::min(kSegmentTables, all.size()))) {
    if (one.times.empty()) continue;
    text += fmt::format("\n# segment {}{}{}\n", excerpt(one.name), one.sizes.empty() ? "" : ", ",
                        sizes_text(one.sizes));
    text += HONE_TRY(table_of(one, runs, target, most));
  }
  return text;
}

}  // namespace hone

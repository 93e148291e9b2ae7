#include "report/data_set_text.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/text_table.h"
#include "kernel/kernel_kind.h"
#include "learn/ranking.h"
#include "log/hash_text.h"
#include "target/fingerprint.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

double middle(std::vector<double> numbers) {
  if (numbers.empty()) return 0;
  std::ranges::sort(numbers);
  return numbers[numbers.size() / 2];
}

// The figures that some kernels share.
struct Figures {
  size_t kernels = 0, schedules = 0, races = 0;
  std::vector<double> noise;   // of times
  std::vector<double> spread;  // of kernels: the slowest schedule for one of the fastest
  double gain = 0;             // of kernels: logarithms of planned / best
  std::vector<double>
      ceilings;  // of kernels that were measured twice: tau of one run and the other

  void add(const KernelSample& kernel) {
    const std::vector<double>& seconds = kernel.timed.seconds;
    ++kernels;
    schedules += seconds.size();
    for (const std::vector<double>& runs : kernel.runs) races += runs.size();
    noise.insert(noise.end(), kernel.noise.begin(), kernel.noise.end());
    const auto [best, worst] = std::ranges::minmax(seconds);
    spread.push_back(worst / best);
    gain += std::log(seconds[0] / best);
    add_ceiling(kernel);
  }
  void add_ceiling(const KernelSample& kernel) {
    std::vector<double> first, second;
    for (const std::vector<double>& runs : kernel.runs) {
      if (runs.size() < 2) continue;
      first.push_back(runs[0]);
      second.push_back(runs[1]);
    }
    if (first.size() >= kLeastSchedules) ceilings.push_back(kendall_tau(first, second));
  }
  double mean_gain() const { return std::exp(gain / static_cast<double>(kernels)); }
  double ceiling() const {
    double sum = 0;
    for (double tau : ceilings) sum += tau;
    return sum / static_cast<double>(ceilings.size());
  }
  std::string ceiling_text() const {
    return ceilings.empty() ? "-" : fmt::format("{:.2f}", ceiling());
  }
  Json json() const {
    Json data = {{"kernels", kernels},       {"schedules", schedules},
                 {"races", races},           {"noise", middle(noise)},
                 {"spread", middle(spread)}, {"planned_to_best", mean_gain()}};
    if (!ceilings.empty()) data["tau_of_replicates"] = ceiling();
    return data;
  }
};

std::vector<std::pair<std::string, Figures>> by_kind(const KernelData& data) {
  std::vector<std::pair<std::string, Figures>> kinds;
  Figures all;
  for (std::string_view kind : kKernelKinds) {
    Figures figures;
    for (const KernelSample& kernel : data.kernels)
      if (kernel.kind == kind) figures.add(kernel);
    if (figures.kernels > 0) kinds.emplace_back(kind, std::move(figures));
  }
  for (const KernelSample& kernel : data.kernels) all.add(kernel);
  if (all.kernels > 0) kinds.emplace_back("all", std::move(all));
  return kinds;
}

std::map<std::string, Figures> by_program(const KernelData& data) {
  std::map<std::string, Figures> programs;
  for (const KernelSample& kernel : data.kernels)
    for (const std::string& program : kernel.programs) programs[program].add(kernel);
  return programs;
}

std::string title_of(const KernelData& data) {
  return fmt::format("target {} {}, {}\n", hash_text(fingerprint(data.target)), data.target.name,
                     data.conditions);
}

}  // namespace

std::string built_text(const BuiltSet& built) {
  std::string text = fmt::format("{} programs, {} different kernels; {} of {} wanted are done\n",
                                 built.programs, built.kernels, built.collected, built.wanted);
  text += fmt::format("{} compiled, {} known, {} records taken from the other log; {}\n",
                      built.compiles, built.reused, built.taken, format_seconds(built.seconds));
  if (built.refused > 0)
    text +=
        fmt::format("{} races were refused, because the machine was not steady\n", built.refused);
  if (built.plans > 0)
    text += fmt::format("{} {}, {} runs of whole programs\n", built.plans, built.what, built.whole);
  if (!built.errors.empty()) {
    double error = 0;
    for (double ratio : built.errors) error += std::abs(ratio - 1);
    text +=
        fmt::format("composed times are off by {:.1f} %, and {:.2f} of whole ones in the middle\n",
                    100 * error / static_cast<double>(built.errors.size()), middle(built.errors));
  }
  for (const std::string& what : built.left_out) text += fmt::format("left out: {}\n", what);
  return text;
}

std::string kernel_data_text(const KernelData& data) {
  std::string text = title_of(data);
  TextTable kinds("lrrrrrr", {"kind", "kernels", "schedules", "noise", "slowest/best",
                              "planned/best", "tau of replicates"});
  for (const auto& [kind, figures] : by_kind(data))
    kinds.add_row({kind, std::to_string(figures.kernels), std::to_string(figures.schedules),
                   fmt::format("{:.1f} %", 100 * middle(figures.noise)),
                   fmt::format("{:.2f}", middle(figures.spread)),
                   fmt::format("{:.3f}", figures.mean_gain()), figures.ceiling_text()});
  TextTable programs("lrr", {"program", "kernels", "schedules"});
  for (const auto& [program, figures] : by_program(data))
    programs.add_row({program, std::to_string(figures.kernels), std::to_string(figures.schedules)});
  text += kinds.to_string() + "\n" + programs.to_string() + "\n";
  text += fmt::format(
      "{} records of the same code were merged, {} of them from a slower machine left out; {} were "
      "too noisy, {} have no time, {} have a schedule that is none any more; {} kernels have too "
      "little\n",
      data.duplicates, data.slow, data.noisy, data.failed, data.unfit, data.left_out);
  return text;
}

std::string kernel_data_json(const KernelData& data) {
  Json kinds = Json::object(), programs = Json::object();
  for (const auto& [kind, figures] : by_kind(data)) kinds[kind] = figures.json();
  for (const auto& [program, figures] : by_program(data)) programs[program] = figures.json();
  const Json json = {{"target", hash_text(fingerprint(data.target))},
                     {"threads", data.threads},
                     {"conditions", data.conditions},
                     {"kinds", kinds},
                     {"programs", programs},
                     {"merged", data.duplicates},
                     {"slow", data.slow},
                     {"noisy", data.noisy},
                     {"failed", data.failed},
                     {"unfit", data.unfit},
                     {"left_out", data.left_out}};
  return json.dump(2) + "\n";
}

std::string split_text(const KernelData& data, const ProgramSplit& split) {
  TextTable table("lrrr", {"part", "programs", "kernels", "schedules"});
  for (Part each : kParts) {
    size_t schedules = 0;
    const std::vector<KernelSample> kernels = part(data, split, each);
    for (const KernelSample& kernel : kernels) schedules += kernel.timed.seconds.size();
    table.add_row({std::string(name(each)), std::to_string(split.of(each).size()),
                   std::to_string(kernels.size()), std::to_string(schedules)});
  }
  return table.to_string();
}

}  // namespace hone

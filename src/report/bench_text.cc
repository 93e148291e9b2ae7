#include "report/bench_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/text_table.h"
#include "ir/op_facts.h"
#include "report/load_text.h"
#include "target/memory_speed.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownInputs = 3;

Json interval_json(const std::optional<Interval>& interval) {
  if (!interval) return nullptr;
  return Json::array({interval->low, interval->high});
}

Json json_of(const Timing& timing) {
  return {{"runs", timing.seconds.size()},
          {"min", timing.min()},
          {"median", timing.median()},
          {"p90", timing.quantile(0.9)},
          {"p99", timing.quantile(0.99)},
          {"median_interval", interval_json(median_interval(timing.seconds))}};
}

// "weights of 80.0 MiB: 33.9 GiB a second, 72 % of what the memory delivers".
std::string weights_text(const BenchReport& report) {
  if (!report.weights) return "";
  const double seconds = report.timing.median();
  const double speed = static_cast<double>(report.weights->bytes) / seconds;
  return fmt::format("weights of {}: {} a second, {:.0f} % of what the memory delivers\n",
                     format_bytes(report.weights->bytes), format_bytes(static_cast<int64_t>(speed)),
                     100 * report.weights->part(seconds));
}

std::string devices_text(const std::vector<BenchReport::Device>& devices) {
  if (devices.empty()) return "";
  const bool have_rows =
      std::ranges::any_of(devices, [](const BenchReport::Device& one) { return one.rows > 0; });
  std::vector<std::string> heads = {"device", "computing", "moving", "waiting"};
  if (have_rows) heads.insert(heads.begin() + 1, "rows");
  TextTable table(have_rows ? "lrrrr" : "lrrr", heads);
  for (const BenchReport::Device& device : devices) {
    std::vector<std::string> row = {device.name, format_seconds(device.computing),
                                    format_seconds(device.moving), format_seconds(device.waiting)};
    if (have_rows) row.insert(row.begin() + 1, std::to_string(device.rows));
    table.add_row(std::move(row));
  }
  return table.to_string();
}

Json devices_json(const std::vector<BenchReport::Device>& devices) {
  Json all = Json::array();
  for (const BenchReport::Device& device : devices)
    all.push_back({{"name", device.name},
                   {"rows", device.rows},
                   {"computing", device.computing},
                   {"moving", device.moving},
                   {"waiting", device.waiting}});
  return all;
}

Json json_of(const BenchReport::Rival& rival) {
  Json json = {{"name", rival.name},
               {"seconds", json_of(rival.timing)},
               {"ratio", rival.ratio},
               {"ratio_interval", interval_json(rival.interval)}};
  if (rival.difference) json["difference"] = *rival.difference;
  return json;
}

std::string ratio_text(const BenchReport::Rival& rival) {
  std::string text = fmt::format("{} takes {:.3g} times as long", rival.name, rival.ratio);
  if (rival.interval)
    text += fmt::format(" ({:.3g} to {:.3g})", rival.interval->low, rival.interval->high);
  if (rival.difference)
    text +=
        fmt::format("; outputs differ by at most {:.1e} of the largest number", *rival.difference);
  return text;
}

// The fastest one is the last line: it counts.
std::string rivals_text(const BenchReport& report) {
  std::string text;
  for (const std::string& why : report.no_rivals) text += "did not run: " + why + "\n";
  const auto add = [&](const BenchReport::Rival& rival) {
    text += fmt::format("{}: {}\n{}\n", rival.name, timing_text(rival.timing), ratio_text(rival));
  };
  for (size_t i = report.slower_rivals.size(); i-- > 0;) add(report.slower_rivals[i]);
  if (report.rival) add(*report.rival);
  return text;
}

// True if a node other than one that takes rows by data reads the value.
bool reads_all_of(const Graph& graph, ValueId value) {
  for (const NodeId n : graph.nodes())
    if (class_of(graph.opcode(n)) != OpClass::indexed &&
        std::ranges::count(graph.operands(n), value) > 0)
      return true;
  return false;
}

}  // namespace

std::optional<WeightRoof> weight_roof(const Model& model, const Target& target, int64_t threads) {
  const Graph* const graph = single_graph(model);
  if (graph == nullptr || target.gpu || target.caches.empty()) return std::nullopt;
  WeightRoof roof = {.bytes_per_second = memory_speed(target, threads)};
  for (const NodeId n : graph->nodes()) {
    if (!graph->regions(n).empty()) return std::nullopt;  // weights there run often, or never
    // Others are no reason for a long search.
    constexpr int64_t kSmall = 4096;
    if (!is_constant(graph->opcode(n)) || graph->constant(n).byte_size() < kSmall) continue;
    if (reads_all_of(*graph, graph->result(n))) roof.bytes += graph->constant(n).byte_size();
  }
  if (roof.bytes <= target.caches.back().bytes || roof.bytes_per_second <= 0) return std::nullopt;
  return roof;
}

std::string timing_text(const Timing& timing) {
  return fmt::format("min {}, median {}, p90 {}, p99 {}, of {} runs", format_seconds(timing.min()),
                     format_seconds(timing.median()), format_seconds(timing.quantile(0.9)),
                     format_seconds(timing.quantile(0.99)), timing.seconds.size());
}

std::string bench_title(const BenchReport& report) {
  std::vector<std::string> parts = {fmt::format("threads {}", report.threads),
                                    fmt::format("target {} ({})", report.target, report.isa)};
  for (size_t i = 0; i < std::min(report.inputs.size(), kShownInputs); ++i)
    parts.push_back(fmt::format("{} {}", excerpt(report.inputs[i].first), report.inputs[i].second));
  if (report.inputs.size() > kShownInputs)
    parts.push_back(fmt::format("{} more inputs", report.inputs.size() - kShownInputs));
  for (const auto& [name, size] : report.sizes)
    parts.push_back(fmt::format("{}={}", name, size.to_string()));
  return join(parts, ", ") + "\n";
}

std::string bench_text(const BenchReport& report) {
  return timing_text(report.timing) + "\n" + rivals_text(report) +
         fmt::format("memory {} at most\n", format_bytes(report.peak_bytes)) +
         weights_text(report) + devices_text(report.devices);
}

std::string bench_warning(const BenchReport& report) {
  std::string why = noise_of(report.timing);
  if (why.empty() && report.rival) {
    const std::optional<Interval>& interval = report.rival->interval;
    if (!interval)
      why = "the ratio is of too few rounds for an interval";
    else if (interval->low <= 1 && 1 <= interval->high)
      why = "the interval of the ratio contains 1: neither is known to be faster";
  }
  if (why.empty()) return load_warning(report.load, report.cores);
  if (report.load >= 0) why += fmt::format("; the machine's load is {:.3g}", report.load);
  return why;
}

std::string bench_json(const BenchReport& report, const std::string& profile) {
  Json json = {{"model", report.model},    {"threads", report.threads},
               {"target", report.target},  {"isa", report.isa},
               {"inputs", Json::object()}, {"sizes", Json::object()},
               {"warmup", report.warmup},  {"compile_and_first_run", report.first}};
  for (const auto& [name, type] : report.inputs) json["inputs"][name] = type;
  for (const auto& [name, size] : report.sizes) json["sizes"][name] = size.to_string();
  json["seconds"] = json_of(report.timing);
  json["peak_bytes"] = report.peak_bytes;
  if (report.weights)
    json["weights"] = {{"bytes", report.weights->bytes},
                       {"of_memory", report.weights->part(report.timing.median())}};
  json["load"] = report.load >= 0 ? Json(report.load) : Json(nullptr);
  json["warning"] = bench_warning(report);
  if (report.rival) json["rival"] = json_of(*report.rival);
  for (const BenchReport::Rival& rival : report.slower_rivals)
    json["slower_rivals"].push_back(json_of(rival));
  if (!report.no_rivals.empty()) json["no_rivals"] = report.no_rivals;
  if (!report.devices.empty()) json["devices"] = devices_json(report.devices);
  if (!profile.empty()) json["profile"] = Json::parse(profile);
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hone

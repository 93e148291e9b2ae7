#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/hardware.h"
#include "cli/native.h"
#include "cli/quantizing.h"
#include "cli/source.h"
#include "report/quantize_page.h"
#include "session/duels.h"

namespace hone::cli {
namespace {

constexpr double kDuelSeconds = 0.15;  // for each side

struct Totals {
  double seconds_f32 = 0, seconds = 0;
  int64_t bytes_f32 = 0, bytes = 0;
};

Totals totals_of(const quantize::QuantizeResult& result) {
  Totals totals;
  for (const quantize::LayerReport& each : result.reports) {
    totals.seconds_f32 += each.seconds_f32, totals.seconds += each.seconds;
    totals.bytes_f32 += each.bytes_f32, totals.bytes += each.bytes;
  }
  return totals;
}

// The choice, and how long the model and the new one take in turns: the second is b.
struct Measured {
  quantize::QuantizeResult result;
  Duel times;
};

// Both stay where they lie in memory: this is for large differences.
Result<Duel> in_turns(const Graph& graph, const quantize::QuantizeResult& result,
                      std::span<const Tensor> inputs, const quantize::QuantizeMachine& machine,
                      const CancelToken& cancel) {
  const quantize::RunGraph before = HONE_TRY(machine.compile(graph));
  const quantize::RunGraph after = HONE_TRY(machine.compile(result.graph));
  const auto runs = [&](const quantize::RunGraph& run) {
    return DuelRuns{.run = [&]() -> Status {
                      (void)HONE_TRY(run(inputs));
                      return {};
                    },
                    .leave = [] {},
                    .place = [] { return Status(); }};
  };
  return duel_of_runs({.seconds = kDuelSeconds}, cancel, runs(before), runs(after));
}

std::string turns_text(const Duel& times) {
  std::string text =
      fmt::format("time     {} before, {} after, measured in turns",
                  format_seconds(times.a.median()), format_seconds(times.b.median()));
  if (times.ratio > 0) text += fmt::format(": {:.2f}x as fast", 1 / times.ratio);
  return text + "\n";
}

// The front near what is allowed, the taken one marked.
std::string front_text(const quantize::QuantizeResult& result, bool is_by_seconds) {
  constexpr size_t kMostLines = 6;
  const auto taken = std::ranges::find(result.front, true, &quantize::FrontPoint::is_taken);
  const auto at = static_cast<size_t>(taken - result.front.begin());
  const size_t begin = at < kMostLines / 2 ? 0 : at - kMostLines / 2;
  std::string text;
  for (size_t i = begin; i < std::min(result.front.size(), begin + kMostLines); ++i) {
    const quantize::FrontPoint& point = result.front[i];
    const std::string cost =
        is_by_seconds ? format_seconds(point.cost) : format_bytes(static_cast<int64_t>(point.cost));
    text += fmt::format("{}  {}, error {:.3g}{}\n", i == begin ? "front  " : "       ", cost,
                        point.error, point.is_taken ? ", taken" : "");
  }
  return text;
}

std::string table_of(const Measured& measured, bool is_by_seconds) {
  const quantize::QuantizeResult& result = measured.result;
  TextTable table("llrrrl", {"layer", "level", "error", "time saved", "weights", "remarks"});
  for (const quantize::LayerReport& each : result.reports) {
    const double saved = each.seconds_f32 - each.seconds;
    const bool is_changed = each.level != quantize::Precision::f32;
    table.add_row({each.name, std::string(quantize::name(each.level)),
                   is_changed ? fmt::format("{:.2g}", each.error) : "",
                   is_changed ? (saved < 0 ? "-" : "") + format_seconds(std::abs(saved)) : "",
                   format_bytes(each.bytes), remark(each)});
  }
  const Totals totals = totals_of(result);
  std::string text = table.to_string() + "\n";
  text += fmt::format("layers   {} before, {} after, by price\n",
                      format_seconds(totals.seconds_f32), format_seconds(totals.seconds));
  text += fmt::format("weights  {} before, {} after\n", format_bytes(totals.bytes_f32),
                      format_bytes(totals.bytes));
  text += turns_text(measured.times);
  text += fmt::format("seen     {}\n", difference_text(result.calibration));
  text += fmt::format("unseen   {}\n", difference_text(result.unseen));
  return text + front_text(result, is_by_seconds);
}

nlohmann::ordered_json json_of(const quantize::Difference& difference) {
  nlohmann::ordered_json json = {{"error", difference.error}, {"largest", difference.largest}};
  if (const std::optional<double> equal = difference.equal_best()) json["equal_best"] = *equal;
  if (difference.answers.are_labelled) {
    json["right"] = share_of(difference.answers.right, difference.answers.rows);
    json["right_f32"] = share_of(difference.answers.right_of_f32, difference.answers.rows);
  }
  return json;
}

std::string json_of(const Measured& measured) {
  const quantize::QuantizeResult& result = measured.result;
  const Totals totals = totals_of(result);
  nlohmann::ordered_json json = {{"seconds_f32", totals.seconds_f32},
                                 {"seconds", totals.seconds},
                                 {"measured_f32", measured.times.a.median()},
                                 {"measured", measured.times.b.median()},
                                 {"bytes_f32", totals.bytes_f32},
                                 {"bytes", totals.bytes},
                                 {"seen", json_of(result.calibration)},
                                 {"unseen", json_of(result.unseen)},
                                 {"layers", nlohmann::ordered_json::array()},
                                 {"front", nlohmann::ordered_json::array()}};
  for (const quantize::LayerReport& each : result.reports)
    json["layers"].push_back({{"layer", each.name},
                              {"level", quantize::name(each.level)},
                              {"error", each.error},
                              {"seconds_f32", each.seconds_f32},
                              {"seconds", each.seconds},
                              {"bytes_f32", each.bytes_f32},
                              {"bytes", each.bytes},
                              {"smoothed", each.is_smoothed},
                              {"corrected", each.is_corrected},
                              {"stays", each.why}});
  for (const quantize::FrontPoint& point : result.front)
    json["front"].push_back(
        {{"cost", point.cost}, {"error", point.error}, {"taken", point.is_taken}});
  return json.dump(2) + "\n";
}

// The sizes that were open stay so, where the layers are the same for all of them.
Result<Graph> with_open_sizes(const Source& source, const Graph& measured,
                              const quantize::QuantizeResult& result, int64_t group,
                              Console& console) {
  const Graph* open = single_graph(source.model);
  if (open == nullptr || open->is_static()) return result.graph;
  const std::vector<quantize::Layer> layers = HONE_TRY(quantize::layers_of(measured));
  std::optional<Graph> graph =
      HONE_TRY(quantize::quantized_open(*open, layers, result.choices, group));
  if (graph) return std::move(*graph);
  console.note("the model has the sizes that were measured: for others its layers are not these");
  return result.graph;
}

}  // namespace

Status cmd_quantize(const Arguments& arguments, Console& console) {
  const std::string path = arguments.text("output"), json = arguments.text("json");
  const std::string page = arguments.text("page");
  if (!path.empty()) HONE_TRY(check_model_path(path));
  const quantize::QuantizeOptions options = HONE_TRY(quantize_options(arguments));
  const ExportOptions onnx = HONE_TRY(onnx_options(arguments, path));
  const NativeOptions native =
      HONE_TRY(native_options(arguments, console, DefaultCache::none, LogPlans::left));
  HONE_TRY(check_runs_here(native, Console::labels()));
  const Source source = HONE_TRY(given_source(arguments.text("MODEL"), arguments, console));
  const Model model = HONE_TRY(model_to_measure(source, "'hone quantize'", console));
  const Graph* graph = single_graph(model);
  const std::vector<quantize::Multiplier> multipliers = HONE_TRY(multipliers_of(arguments));
  if (!multipliers.empty())
    return quantize_for_hardware(*graph, options, multipliers, arguments, native, onnx, console);
  Levels levels = HONE_TRY(
      chosen_levels(*graph, options, arguments, arguments.integer("seed"), native, console));
  Measured measured = {.result = std::move(levels.result), .times = {}};
  measured.times =
      HONE_TRY(in_turns(*graph, measured.result, levels.samples.batches.unseen[0].inputs,
                        levels.samples.machine, console.cancel()));
  const std::string table = table_of(measured, options.only_faster);
  if (path == "-" || json == "-" || page == "-")
    console.say(trim(table));
  else
    console.write(table);
  if (measured.times.b_is_slower())
    console.note("{} it takes longer than before on this machine",
                 console.styled_talk(Style::red, "slower:"));
  if (!json.empty()) HONE_TRY(write_text(json, json_of(measured), console));
  if (!page.empty())
    HONE_TRY(write_text(page,
                        quantize_page({.model = graph->name(),
                                       .result = measured.result,
                                       .times = measured.times,
                                       .error = options.error,
                                       .is_by_seconds = options.only_faster}),
                        console));
  if (path.empty()) return {};
  const Graph written =
      HONE_TRY(with_open_sizes(source, *graph, measured.result, options.group, console));
  return write_model(model_of(written), path, console, onnx);
}

}  // namespace hone::cli

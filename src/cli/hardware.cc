#include "cli/hardware.h"

#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/text_table.h"
#include "cli/console.h"
#include "cli/quantizing.h"
#include "cli/source.h"
#include "quantize/hardware.h"

namespace hone::cli {
namespace {

double share_of_energy(double part, double all) { return all > 0 ? part / all : 1; }

std::string hardware_table(const quantize::HardwareResult& result) {
  TextTable table("llrrrl", {"layer", "multiplier", "error", "products", "energy", "remarks"});
  for (const quantize::HardwareReport& each : result.reports) {
    const bool is_chosen = !each.multiplier.empty();
    table.add_row(
        {each.name, is_chosen ? each.multiplier : "f32",
         is_chosen ? fmt::format("{:.2g}", each.error) : "",
         is_chosen ? std::to_string(each.products) : "",
         is_chosen ? fmt::format("{:.3f}", share_of_energy(each.energy, each.energy_exact)) : "",
         each.why});
  }
  std::string text = table.to_string() + "\n";
  text += fmt::format("energy   {:.3f} of that of exact products\n",
                      share_of_energy(result.energy, result.energy_exact));
  text += fmt::format("exact    {}\n", difference_text(result.exact));
  text += fmt::format("seen     {}\n", difference_text(result.calibration));
  text += fmt::format("unseen   {}\n", difference_text(result.unseen));
  return text;
}

nlohmann::ordered_json hardware_difference(const quantize::Difference& difference) {
  nlohmann::ordered_json json = {{"error", difference.error}, {"largest", difference.largest}};
  if (difference.answers.are_labelled) {
    json["right"] = share_of(difference.answers.right, difference.answers.rows);
    json["right_f32"] = share_of(difference.answers.right_of_f32, difference.answers.rows);
  }
  return json;
}

std::string hardware_json(const quantize::HardwareResult& result) {
  nlohmann::ordered_json json = {{"energy", share_of_energy(result.energy, result.energy_exact)},
                                 {"exact", hardware_difference(result.exact)},
                                 {"seen", hardware_difference(result.calibration)},
                                 {"unseen", hardware_difference(result.unseen)},
                                 {"layers", nlohmann::ordered_json::array()},
                                 {"front", nlohmann::ordered_json::array()}};
  for (const quantize::HardwareReport& each : result.reports)
    json["layers"].push_back({{"layer", each.name},
                              {"multiplier", each.multiplier},
                              {"error", each.error},
                              {"products", each.products},
                              {"energy", share_of_energy(each.energy, each.energy_exact)},
                              {"stays", each.why}});
  for (const quantize::FrontPoint& point : result.front)
    json["front"].push_back(
        {{"energy", point.cost}, {"error", point.error}, {"taken", point.is_taken}});
  return json.dump(2) + "\n";
}

}  // namespace

Result<std::vector<quantize::Multiplier>> multipliers_of(const Arguments& arguments) {
  const std::filesystem::path file = arguments.text("target");
  std::error_code absent;
  // A name of a GPU names no file.
  if (arguments.text("to") != "auto" || !std::filesystem::is_regular_file(file, absent))
    return std::vector<quantize::Multiplier>();
  return quantize::load_multipliers(file);
}

Status quantize_for_hardware(const Graph& graph, const quantize::QuantizeOptions& options,
                             const std::vector<quantize::Multiplier>& multipliers,
                             const Arguments& arguments, const NativeOptions& native,
                             const ExportOptions& onnx, Console& console) {
  if (arguments.given("page"))
    return usage_error("--page is for levels of precision; {} lists multipliers",
                       arguments.text("target"))
        .with_hint("--json FILE has the front and all layers");
  const int64_t seed = arguments.integer("seed");
  const Samples samples = HONE_TRY(samples_of(graph, arguments, seed, native, console));
  const std::unique_ptr<Progress> progress = console.progress();
  quantize::QuantizeOptions now = options;
  now.seed = static_cast<uint64_t>(seed);
  now.progress = progress.get();
  now.cancel = &console.cancel();
  const quantize::HardwareResult result = HONE_TRY(
      quantize::choose_multipliers(graph, now, multipliers, samples.batches, samples.machine));
  const std::string path = arguments.text("output"), json = arguments.text("json");
  const std::string table = hardware_table(result);
  if (path == "-" || json == "-")
    console.say(trim(table));
  else
    console.write(table);
  if (!json.empty()) HONE_TRY(write_text(json, hardware_json(result), console));
  if (path.empty()) return {};
  return write_model(model_of(result.graph), path, console, onnx);
}

}  // namespace hone::cli
